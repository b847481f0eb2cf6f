--- The public functions of the plugin. Each finds the conversation it is about and hands it to the module that can do
--- it. Works without setup(). Loads the views when the first of them is needed, so that starting Neovim costs nothing.

local M = {}

---@type boolean
local loaded = false

--- Loads everything that listens: what is seen at once, and the rest when the current command is over. The server says
--- nothing before that.
local function load()
  if not loaded then
    loaded = true
    require('agentik.view.layout')
    require('agentik.view.status')
    vim.schedule(function()
      require('agentik.buffers.watch')
      for _, name in ipairs({ 'permission', 'question', 'notify', 'keep', 'follow' }) do
        require('agentik.view.' .. name)
      end
    end)
  end
end

---@param text string
---@param level? integer
local function say(text, level)
  require('agentik.hub').say(text, level)
end

--- Options: |agentik-options|.
---@param options? agentik.Options
function M.setup(options)
  require('agentik.config').setup(options)
end

--- The conversation that the person means: the one in this tab page, else the one shown last.
---@return agentik.Conversation?
function M.current()
  load()
  local layout = require('agentik.view.layout').of_tab()
  return layout and layout.conversation or require('agentik.conversation').last()
end

---@return agentik.Conversation
local function current_or_new()
  return M.current() or require('agentik.conversation').restore()
end

--- Calls `use` with the conversation, or says that there is none.
---@param use fun(current: agentik.Conversation)
local function with_current(use)
  local current = M.current()
  if current then
    use(current)
  else
    say('no chat is open; :AgentikToggle opens one')
  end
end

--- Calls `use` with the session that the person means, as soon as the server has given it.
---@param use fun(session: table)
local function with_session_of(use)
  with_current(function(current)
    require('agentik.conversation').when_ready(current, function(err)
      if err then
        say(err.message, vim.log.levels.WARN)
      else
        use(current.session)
      end
    end)
  end)
end

---@param action 'rename'|'fork'|'delete'
local function with_session(action, ...)
  local arguments = { ... }
  with_session_of(function(session)
    require('agentik.view.sessions')[action](session, unpack(arguments))
  end)
end

--- Shows a conversation in this tab page.
---@param current agentik.Conversation
---@param focus? boolean false: stay in the window
---@return agentik.Layout
function M.show(current, focus)
  load()
  return require('agentik.view.layout').open(current, focus ~= false)
end

--- Opens the chat: the one that was shown last, the last one of this folder, or a new one.
---@param options? { focus?: boolean }
function M.open(options)
  M.show(current_or_new(), (options or {}).focus)
end

--- Hides the chat of this tab page. The work goes on.
function M.close()
  load()
  local layouts = require('agentik.view.layout')
  local layout = layouts.of_tab()
  if layout then
    layouts.close(layout)
  end
end

--- Opens or hides the chat.
function M.toggle()
  load()
  if require('agentik.view.layout').of_tab() then
    M.close()
  else
    M.open()
  end
end

--- Goes to the compose window and begins to type.
function M.compose()
  M.open()
  vim.cmd('startinsert!')
end

--- Goes to the pending list.
function M.pending()
  with_current(function(current)
    local win = M.show(current, false).wins.pending
    if win then
      vim.api.nvim_set_current_win(win)
    else
      say('no message is waiting')
    end
  end)
end

--- Sends a text, or what stands in the compose window. Nothing is drawn before the server has it.
---@param text? string
---@param options? { now?: boolean, attachments?: agentik.Attachment[] } now: stop the running turn, this one first
function M.send(text, options)
  options = options or {}
  local current = current_or_new()
  local compose = require('agentik.view.compose')
  M.show(current, false)
  for _, attachment in ipairs(options.attachments or {}) do
    compose.attach(current, attachment)
  end
  if not text or text == '' then
    if not compose.send(current, options.now) then
      M.compose() -- nothing is written yet: write it
    end
    return
  end
  compose.send_text(current, text, options.now)
end

--- Adds an attachment to the next message; without one, asks which.
---@param attachment? agentik.Attachment
---@param current? agentik.Conversation left out: the one that is shown, or a new one
function M.attach(attachment, current)
  current = current or current_or_new()
  if attachment then
    M.show(current, false)
    require('agentik.view.compose').attach(current, attachment)
  else
    require('agentik.view.attach').choose(current)
  end
end

--- Stops the running turn. What waits stays.
function M.stop()
  with_current(function(current)
    require('agentik.conversation').call(current, 'cancelTurn', {}, function(err, result)
      if err then
        say(err.message, vim.log.levels.WARN)
      elseif not result.cancelled then
        say('nothing is running')
      end
    end)
  end)
end

--- Opens a new session, in this tab page.
---@param agent_id? string
function M.new(agent_id)
  load()
  M.show(require('agentik.conversation').new({ agentId = agent_id ~= '' and agent_id or nil }))
end

--- Stops sending what waits, until `resume`.
function M.pause()
  with_current(function(current)
    require('agentik.conversation').call(current, 'pauseQueue')
  end)
end

function M.resume()
  with_current(function(current)
    require('agentik.conversation').call(current, 'resumeQueue')
  end)
end

--- Answers the open permission request with its option number `number`.
---@param number integer
function M.answer(number)
  with_current(function(current)
    require('agentik.view.permission').answer(current, number)
  end)
end

--- Chooses a session and opens it.
---@param words? string what it is about; `agent=ID` and `folder=PATH` narrow the list
---@param manage? boolean ask what to do with it: open, rename, fork, export, delete
function M.sessions(words, manage)
  load()
  require('agentik.view.sessions').choose(words, manage)
end

--- Gives the session another title.
---@param title? string asked for when left out
function M.rename(title)
  with_session('rename', title)
end

--- Opens a session that goes on from this one, where the agent can do that.
function M.fork()
  with_session('fork')
end

--- Deletes the session and everything of it, after asking.
function M.delete()
  with_session('delete')
end

--- Takes over the sessions of this folder that so far only the agent knows.
---@param agent_id? string left out: the agent of the current session, else one that is chosen
function M.import(agent_id)
  local current = M.current()
  local sessions = require('agentik.view.sessions')
  agent_id = agent_id and agent_id ~= '' and agent_id or current and current.session.agentId
  if agent_id then
    sessions.import(agent_id)
    return
  end
  require('agentik.view.picker').agent('Whose sessions', function(agent)
    sessions.import(agent.agentId)
  end)
end

--- Chooses an agent and opens a new session with it.
function M.agents()
  load()
  require('agentik.view.picker').agents()
end

--- Chooses the agent's mode.
---@param id? string
function M.mode(id)
  with_current(function(current)
    require('agentik.view.picker').mode(current, id)
  end)
end

--- Chooses mode, model or another option of the agent.
---@param category? string such as `model`
function M.options(category)
  with_current(function(current)
    require('agentik.view.picker').options(current, category)
  end)
end

--- Searches all sessions.
---@param query string words, "a phrase", the begin of a word with `*`
---@param quickfix? boolean put what is found into the quickfix list
function M.search(query, quickfix)
  load()
  require('agentik.view.found').search(query, quickfix)
end

--- Writes the session as Markdown to a file or a folder, or shows it in a new buffer.
---@param path? string
---@param overwrite? boolean also over a file that is there
function M.export(path, overwrite)
  with_session_of(function(session)
    require('agentik.view.export').session(session, path, overwrite)
  end)
end

--- Shows all that the session changed, file by file.
function M.changes()
  with_current(function(current)
    require('agentik.view.diff').changes(current)
  end)
end

--- Shows the files where the agent works, or stops doing so (option `follow`).
function M.follow()
  load()
  require('agentik.view.follow').toggle()
end

--- Asks again about files that the agent wrote while they had unsaved edits.
function M.conflicts()
  local problem = require('agentik.buffers.conflict').resolve()
  if problem then
    say(problem)
  end
end

--- Starts or ends dictation into the compose window.
---@param cancel? boolean end it, and take out what was said
function M.dictate(cancel)
  local current = current_or_new()
  M.show(current, false)
  require('agentik.view.dictation').toggle(current, cancel)
end

--- Push to talk: dictates while the key is held. A key that was only touched talks until the next key or until silence,
--- as a terminal does not tell when a key comes up.
function M.talk()
  local current = current_or_new()
  local dictation = require('agentik.view.dictation')
  if not dictation.is_on() then -- a held key repeats
    M.show(current, false)
  end
  dictation.push(current)
end

--- Starts server and host anew.
function M.restart()
  load()
  require('agentik.host').restart()
end

--- Shows the log of the plugin.
function M.log()
  load()
  require('agentik.view.log').open()
end

--- For the user's statusline; '' when no chat was opened.
---@return string
function M.statusline()
  return loaded and require('agentik.view.status').statusline() or ''
end

return M
