-- Commands and <Plug> maps. Requires nothing until one of them is used: it costs Neovim's start well below a
-- millisecond.

if vim.g.loaded_agentik then
  return
end
vim.g.loaded_agentik = 1

---@param name string after `Agentik`
---@param run fun(agentik: table, command: table)
---@param options? table of nvim_create_user_command
local function command(name, run, options)
  vim.api.nvim_create_user_command('Agentik' .. name, function(given)
    run(require('agentik'), given)
  end, options or {})
end

---@param list string
---@return fun(lead: string): string[]
local function completes(list)
  return function(lead)
    return require('agentik.view.picker').complete(list, lead)
  end
end

command('Send', function(agentik, given)
  local options = { now = given.bang }
  if given.range > 0 then
    local attachment, problem = require('agentik.context').selection(given)
    if not attachment then
      require('agentik.hub').say(problem, vim.log.levels.WARN)
      return
    end
    options.attachments = { attachment }
    if given.args == '' then
      agentik.attach(attachment)
      agentik.compose()
      return
    end
  end
  agentik.send(given.args, options)
end, { nargs = '*', bang = true, range = true, desc = 'Send a message to the agent (!: stop the running turn first)' })

command('Toggle', function(agentik)
  agentik.toggle()
end, { desc = 'Open or hide the chat' })

command('Stop', function(agentik)
  agentik.stop()
end, { desc = 'Stop the running turn' })

command('New', function(agentik, given)
  agentik.new(given.args)
end, { nargs = '?', complete = completes('agents'), desc = 'Open a new session, with an agent of your choice' })

command('Pause', function(agentik)
  agentik.pause()
end, { desc = 'Stop sending the messages that wait' })

command('Resume', function(agentik)
  agentik.resume()
end, { desc = 'Send the messages that wait again' })

command('Sessions', function(agentik, given)
  agentik.sessions(given.args, given.bang)
end, {
  nargs = '*',
  bang = true,
  complete = completes('sessions'),
  desc = 'Choose a session (!: and what to do with it), by words, agent=ID, folder=PATH',
})

command('Rename', function(agentik, given)
  agentik.rename(given.args)
end, { nargs = '*', desc = 'Give the session another title' })

command('Fork', function(agentik)
  agentik.fork()
end, { desc = 'Open a session that goes on from this one' })

command('Delete', function(agentik)
  agentik.delete()
end, { desc = 'Delete the session, after asking' })

command('Import', function(agentik, given)
  agentik.import(given.args)
end, { nargs = '?', complete = completes('agents'), desc = 'Take over sessions that only the agent knows' })

command('Agents', function(agentik)
  agentik.agents()
end, { desc = 'Choose an agent for a new session' })

command('Search', function(agentik, given)
  agentik.search(given.args, given.bang)
end, { nargs = '+', bang = true, desc = 'Search all sessions (!: into the quickfix list)' })

command('Export', function(agentik, given)
  agentik.export(given.args, given.bang)
end, { nargs = '?', bang = true, complete = 'file', desc = 'Write the session as Markdown (!: over a file)' })

command('Mode', function(agentik, given)
  agentik.mode(given.args)
end, { nargs = '?', complete = completes('modes'), desc = "Choose the agent's mode" })

command('Model', function(agentik)
  agentik.options('model')
end, { desc = "Choose the agent's model" })

command('Option', function(agentik)
  agentik.options()
end, { desc = "Choose one of the agent's options" })

command('Attach', function(agentik, given)
  if given.range > 0 then
    local attachment, problem = require('agentik.context').selection(given)
    if attachment then
      agentik.attach(attachment)
    else
      require('agentik.hub').say(problem, vim.log.levels.WARN)
    end
  else
    agentik.attach()
  end
end, { range = true, desc = 'Attach something to the next message' })

command('Dictate', function(agentik, given)
  agentik.dictate(given.bang)
end, { bang = true, desc = 'Speak the message (!: forget what was said)' })

command('Diff', function(agentik)
  agentik.changes()
end, { desc = 'Show all that the session changed' })

command('Conflicts', function(agentik)
  agentik.conflicts()
end, { desc = 'Decide about files that the agent wrote while they had unsaved edits' })

command('Restart', function(agentik)
  agentik.restart()
end, { desc = 'Start the server and the plugin host anew' })

command('Log', function(agentik)
  agentik.log()
end, { desc = 'Show the log of the plugin' })

command('Install', function(_, given)
  require('agentik.install').command(given.args)
end, {
  nargs = '?',
  complete = function()
    return { 'voice' }
  end,
  desc = 'Make the Python environment of the plugin',
})

command('Report', function()
  require('agentik.report').open()
end, { desc = 'Write a bug report without secrets' })

---@param name string
---@param run string Lua after `require('agentik')`
---@param modes? string|string[]
local function plug(name, run, modes)
  vim.keymap.set(modes or 'n', ('<Plug>(agentik-%s)'):format(name), function()
    local agentik = require('agentik')
    agentik[run]()
  end, { desc = 'agentik: ' .. name })
end

for _, name in ipairs({ 'open', 'close', 'toggle', 'compose', 'pending', 'stop', 'new', 'pause', 'resume' }) do
  plug(name, name)
end
for _, name in ipairs({ 'sessions', 'agents', 'mode', 'options', 'export', 'changes', 'restart', 'log', 'attach' }) do
  plug(name, name)
end
plug('dictate', 'dictate', { 'n', 'i' })
vim.keymap.set('n', '<Plug>(agentik-send)', '<Cmd>AgentikSend<CR>', { desc = 'agentik: send' })
for name, run in pairs({ send = ':AgentikSend<CR>', attach = ':AgentikAttach<CR>' }) do
  local lhs = ('<Plug>(agentik-%s)'):format(name)
  vim.keymap.set('x', lhs, run, { desc = ('agentik: %s the selection'):format(name), silent = true })
end
vim.keymap.set('n', '<Plug>(agentik-send-now)', '<Cmd>AgentikSend!<CR>', { desc = 'agentik: send now' })
for number = 1, 9 do
  vim.keymap.set('n', ('<Plug>(agentik-answer-%d)'):format(number), function()
    require('agentik').answer(number)
  end, { desc = ('agentik: answer with option %d'):format(number) })
end

vim.api.nvim_create_autocmd('BufReadCmd', {
  group = vim.api.nvim_create_augroup('agentik', {}),
  pattern = 'agentik://*',
  callback = function(event)
    require('agentik.view.own').forget(event.buf)
  end,
})
