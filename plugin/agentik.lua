-- Commands and <Plug> maps: their names only. What they do is in agentik.commands, which is loaded when the first of
-- them is used: Neovim's start pays for nothing else.

if vim.g.loaded_agentik then
  return
end
vim.g.loaded_agentik = 1

local api = vim.api

---@param name string after `Agentik`
---@param desc string
---@param options? table of nvim_create_user_command
local function command(name, desc, options)
  options = options or {}
  options.desc = desc
  api.nvim_create_user_command('Agentik' .. name, function(given)
    require('agentik.commands')[name](given)
  end, options)
end

---@param list string
---@return fun(lead: string): string[]
local function completes(list)
  return function(lead)
    return require('agentik.commands').complete(list, lead)
  end
end

command(
  'Send',
  'Send a message to the agent (!: stop the running turn first)',
  { nargs = '*', bang = true, range = true }
)
command('Toggle', 'Open or hide the chat')
command('Stop', 'Stop the running turn')
command('New', 'Open a new session, with an agent of your choice', { nargs = '?', complete = completes('agents') })
command('Pause', 'Stop sending the messages that wait')
command('Resume', 'Send the messages that wait again')
command(
  'Sessions',
  'Choose a session (!: and what to do with it), by words, agent=ID, folder=PATH',
  { nargs = '*', bang = true, complete = completes('sessions') }
)
command('Rename', 'Give the session another title', { nargs = '*' })
command('Fork', 'Open a session that goes on from this one')
command('Delete', 'Delete the session, after asking')
command('Import', 'Take over sessions that only the agent knows', { nargs = '?', complete = completes('agents') })
command('Agents', 'Choose an agent for a new session')
command('Search', 'Search all sessions (!: into the quickfix list)', { nargs = '+', bang = true })
command('Export', 'Write the session as Markdown (!: over a file)', { nargs = '?', bang = true, complete = 'file' })
command('Mode', "Choose the agent's mode", { nargs = '?', complete = completes('modes') })
command('Model', "Choose the agent's model")
command('Option', "Choose one of the agent's options")
command('Attach', 'Attach something to the next message', { range = true })
command('Dictate', 'Speak the message (!: forget what was said)', { bang = true })
command('Diff', 'Show all that the session changed')
command('Follow', 'Show where the agent works, or stop doing so')
command('Conflicts', 'Decide about files that the agent wrote while they had unsaved edits')
command('Restart', 'Start the server and the plugin host anew')
command('Log', 'Show the log of the plugin')
command('Install', 'Make the Python environment of the plugin', { nargs = '?', complete = completes('extras') })
command('Report', 'Write a bug report without secrets')

--- nvim_set_keymap() and not vim.keymap.set(): there are many of them, and the latter takes twice as long.
---@param mode string
---@param name string
---@param desc string
---@param options { rhs?: string, callback?: fun(), silent?: boolean }
local function plug(mode, name, desc, options)
  local map = { desc = 'agentik: ' .. desc, noremap = true, silent = options.silent, callback = options.callback }
  api.nvim_set_keymap(mode, '<Plug>(agentik-' .. name .. ')', options.rhs or '', map)
end

---@param mode string
---@param name string of a public function
local function call(mode, name)
  plug(mode, name, name, {
    callback = function()
      require('agentik')[name]()
    end,
  })
end

for _, name in ipairs({ 'open', 'close', 'toggle', 'compose', 'pending', 'stop', 'new', 'pause', 'resume' }) do
  call('n', name)
end
for _, name in ipairs({ 'sessions', 'agents', 'mode', 'options', 'export', 'changes', 'restart', 'log', 'attach' }) do
  call('n', name)
end
call('n', 'dictate')
call('i', 'dictate')
call('n', 'talk')
call('i', 'talk')
plug('n', 'send', 'send', { rhs = '<Cmd>AgentikSend<CR>' })
plug('n', 'send-now', 'send now', { rhs = '<Cmd>AgentikSend!<CR>' })
plug('x', 'send', 'send the selection', { rhs = ':AgentikSend<CR>', silent = true })
plug('x', 'attach', 'attach the selection', { rhs = ':AgentikAttach<CR>', silent = true })
for number = 1, 9 do
  plug('n', 'answer-' .. number, 'answer with option ' .. number, {
    callback = function()
      require('agentik').answer(number)
    end,
  })
end

api.nvim_create_autocmd('BufReadCmd', {
  group = api.nvim_create_augroup('agentik', {}),
  pattern = 'agentik://*',
  callback = function(event)
    require('agentik.view.own').forget(event.buf)
  end,
})
