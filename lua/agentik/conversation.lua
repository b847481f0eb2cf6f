--- The conversations of this Neovim: each a session of the server with what the views need to draw it. A conversation
--- may be shown and typed into before its session is there. Holds only what the server said; must not touch windows.

local config = require('agentik.config')
local host = require('agentik.host')
local hub = require('agentik.hub')

local M = {}

---@class agentik.Pending
---@field items table[] PendingItem
---@field paused boolean
---@field reason? string
---@field detail? string

---@class agentik.Turn
---@field turnId? string nil: no turn runs
---@field startedAt? integer milliseconds since the epoch

---@class (exact) agentik.Conversation
---@field key integer ours, from the first moment on
---@field session_id? string nil until the server has given it
---@field problem? string why there is no session
---@field cwd string
---@field session table Session, {} before it is there
---@field pending agentik.Pending
---@field permissions table[]
---@field questions table[]
---@field turn agentik.Turn
---@field more boolean older messages exist that are not loaded
---@field bufs table<'chat'|'compose'|'pending', integer> made by the views
---@field waiting fun(err?: agentik.Error)[] called when the session is there

---@type agentik.Conversation[]
local all = {}
---@type agentik.Conversation?
local last = nil
local count = 0

---@param cwd string
---@return agentik.Conversation
local function create(cwd)
  count = count + 1
  ---@type agentik.Conversation
  local conversation = {
    key = count,
    cwd = cwd,
    session = {},
    pending = { items = {}, paused = false },
    permissions = {},
    questions = {},
    turn = {},
    more = false,
    bufs = {},
    waiting = {},
  }
  table.insert(all, conversation)
  hub.emit('conversation', conversation)
  return conversation
end

---@return agentik.Conversation[] in the order in which they were opened
function M.all()
  return all
end

---@param session_id string
---@return agentik.Conversation?
function M.of_session(session_id)
  for _, conversation in ipairs(all) do
    if conversation.session_id == session_id then
      return conversation
    end
  end
end

--- The conversation to which one of our buffers belongs.
---@param buf? integer
---@return agentik.Conversation?
function M.of_buffer(buf)
  buf = buf and buf ~= 0 and buf or vim.api.nvim_get_current_buf()
  for _, conversation in ipairs(all) do
    for _, own in pairs(conversation.bufs) do
      if own == buf then
        return conversation
      end
    end
  end
end

--- The conversation that was shown last.
---@return agentik.Conversation?
function M.last()
  return last
end

---@param conversation agentik.Conversation
function M.used(conversation)
  last = conversation
end

---@param conversation agentik.Conversation
---@param err? agentik.Error
local function settle(conversation, err)
  local waiting = conversation.waiting
  conversation.waiting = {}
  conversation.problem = err and err.message or nil
  for _, callback in ipairs(waiting) do
    callback(err)
  end
  hub.emit('changed', conversation, 'session')
end

---@param conversation agentik.Conversation
---@param session table
local function bind(conversation, session)
  conversation.session_id = session.sessionId
  conversation.session = session
  conversation.cwd = session.cwd or conversation.cwd
  hub.emit('bound', conversation)
  host.watch(session.sessionId, function(err)
    settle(conversation, err)
  end)
end

--- Calls back when the session is there, or with the reason why it is not.
---@param conversation agentik.Conversation
---@param callback fun(err?: agentik.Error)
function M.when_ready(conversation, callback)
  if conversation.session_id and #conversation.waiting == 0 then
    callback()
    return
  end
  table.insert(conversation.waiting, callback)
  if conversation.problem then
    M.begin(conversation, {})
  end
end

--- Asks the server for a session for a conversation that has none.
---@param conversation agentik.Conversation
---@param wanted { agentId?: string, title?: string }
function M.begin(conversation, wanted)
  conversation.problem = nil
  local params = { cwd = conversation.cwd, agentId = wanted.agentId or config.get().agent, title = wanted.title }
  host.call('newSession', params, function(err, result)
    if err then
      settle(conversation, err)
    else
      bind(conversation, result.session)
    end
  end)
end

--- A conversation with a new session.
---@param wanted? { agentId?: string, cwd?: string, title?: string }
---@return agentik.Conversation
function M.new(wanted)
  wanted = wanted or {}
  local conversation = create(wanted.cwd or vim.fn.getcwd())
  M.begin(conversation, wanted)
  return conversation
end

--- The conversation of a session that the server knows.
---@param session_id string
---@return agentik.Conversation
function M.open(session_id)
  local known = M.of_session(session_id)
  if known then
    return known
  end
  local conversation = create(vim.fn.getcwd())
  bind(conversation, { sessionId = session_id })
  return conversation
end

--- The last session of this folder, else a new one.
---@return agentik.Conversation
function M.restore()
  local conversation = create(vim.fn.getcwd())
  if not config.get().restore then
    M.begin(conversation, {})
    return conversation
  end
  local params = { cwd = conversation.cwd, agentId = config.get().agent, limit = 1 }
  host.call('listSessions', params, function(err, result)
    local session = result and result.sessions[1]
    if err then
      settle(conversation, err)
    elseif session and not M.of_session(session.sessionId) then
      bind(conversation, session)
    else
      M.begin(conversation, {})
    end
  end)
  return conversation
end

--- How many sessions wait for an answer of the person.
---@param except? agentik.Conversation
---@return integer
function M.waiting_count(except)
  local waiting = 0
  for _, conversation in ipairs(all) do
    if conversation ~= except and #conversation.permissions + #conversation.questions > 0 then
      waiting = waiting + 1
    end
  end
  return waiting
end

--- Calls the server about the conversation's session; problems are told in one line unless `answer` takes them.
---@param conversation agentik.Conversation
---@param method string without `agentik/`
---@param params? table without `sessionId`
---@param answer? agentik.Answer
function M.call(conversation, method, params, answer)
  M.when_ready(conversation, function(err)
    if err then
      if answer then
        answer(err)
      else
        hub.say(err.message, vim.log.levels.ERROR)
      end
      return
    end
    local full = vim.tbl_extend('force', params or {}, { sessionId = conversation.session_id })
    host.call(method, full, answer or function(problem)
      if problem then
        hub.say(problem.message, vim.log.levels.WARN)
      end
    end)
  end)
end

-- What could not begin because the host was not there (no Python environment yet, say) begins when it is.
hub.on('host', function(state)
  if state ~= 'ready' then
    return
  end
  for _, each in pairs(M.all()) do
    if each.problem and not each.session_id then
      M.begin(each, {})
    end
  end
end)

hub.on('state', function(session_id, state)
  local conversation = M.of_session(session_id)
  if not conversation then
    return
  end
  for part, value in pairs(state) do
    conversation[part] = value
  end
  for part in pairs(state) do
    hub.emit('changed', conversation, part)
  end
end)

hub.on('event', function(name, params)
  local conversation = name == 'sessionGone' and M.of_session(params.sessionId)
  if not conversation then
    return
  end
  for index, each in ipairs(all) do
    if each == conversation then
      table.remove(all, index)
    end
  end
  if last == conversation then
    last = nil
  end
  hub.emit('gone', conversation, params.detail)
end)

return M
