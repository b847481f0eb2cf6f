--- Choosing a session, and what to do with one: open, rename, fork, export, delete; and taking over those that so far
--- only an agent knows. Holds no list of its own: the server is asked each time.

local conversation = require('agentik.conversation')
local host = require('agentik.host')
local hub = require('agentik.hub')
local preview = require('agentik.view.preview')
local rows = require('agentik.view.rows')

local M = {}

local MOST = 200

---@class (exact) agentik.SessionFilter
---@field cwd? string
---@field agentId? string
---@field query? string words of the title or of the messages

---@param text string
local function warn(text)
  hub.say(text, vim.log.levels.WARN)
end

---@param session table Session
---@return string
local function title_of(session)
  return session.title ~= '' and session.title or 'untitled'
end

---@param session table Session
---@return string
local function agent_of(session)
  return (host.server.agents or {})[session.agentId] or session.agentId
end

--- What of a session wants to be known before it is opened.
---@param session table Session
---@return string
local function state_of(session)
  local known = conversation.of_session(session.sessionId)
  local parts = {}
  if session.state == 'waiting' or (known and #known.permissions + #known.questions > 0) then
    table.insert(parts, 'waits for you')
  elseif session.state ~= 'idle' then
    table.insert(parts, 'works')
  end
  if session.pendingCount > 0 then
    table.insert(parts, ('%d waiting'):format(session.pendingCount))
  end
  return table.concat(parts, ', ')
end

---@param session table Session
---@return string
local function folder_of(session)
  return vim.fn.fnamemodify(session.cwd, ':~')
end

---@param session table Session
---@return string
local function day_of(session)
  return rows.day(session.updatedAt)
end

--- The columns of these sessions: time, title, and where they differ in them, agent and folder; then the state.
---@param sessions table[] Session
---@return fun(session: table): string
local function formatter(sessions)
  local current = require('agentik').current()
  local here = vim.fn.getcwd()
  local first = sessions[1]
  local columns = { { day_of, 10 } }
  local function differs(from)
    return vim.iter(sessions):any(from)
  end
  local title = { title_of, 60 }
  table.insert(columns, title)
  if differs(function(session)
    return session.agentId ~= first.agentId
  end) then
    table.insert(columns, { agent_of, 16 })
  end
  if differs(function(session)
    return session.cwd ~= here
  end) then
    table.insert(columns, { folder_of, math.floor(rows.room() / 4) })
  end
  table.insert(columns, { state_of, 26 })
  local taken = #'* '
  for _, column in ipairs(columns) do
    column[2] = rows.width(vim.tbl_map(column[1], sessions), column[2])
    taken = taken + (column == title and 0 or column[2]) + #'  '
  end
  title[2] = math.max(14, math.min(title[2], rows.room() - taken))
  return function(session)
    local cells = vim.tbl_map(function(column)
      return rows.cell(column[1](session), column[2])
    end, columns)
    local mark = current and current.session_id == session.sessionId and '* ' or '  '
    return (mark .. table.concat(cells, '  ')):gsub('%s+$', '')
  end
end

--- Lets the person choose one of some sessions.
---@param sessions table[] Session
---@param prompt string
---@param more? { text: string, run: fun() } an entry below the sessions
---@param use fun(session: table)
local function choose(sessions, prompt, more, use)
  local format = formatter(sessions)
  local items = vim.list_slice(sessions)
  if more then
    table.insert(items, more)
  end
  preview.select(items, {
    prompt = prompt,
    kind = 'agentik.session',
    format_item = function(item)
      return item.run and '  ' .. item.text or format(item)
    end,
  }, function(item, show)
    if not item.run then
      preview.session(item, show)
    end
  end, function(item)
    if item and item.run then
      item.run()
    elseif item then
      use(item)
    end
  end)
end

--- `agent=ID` and `folder=PATH` narrow the list; everything else is searched for.
---@param words string
---@return agentik.SessionFilter
function M.filter(words)
  local filter, query = {}, {}
  for word in words:gmatch('%S+') do
    local key, value = word:match('^(%l+)=(.+)$')
    if key == 'agent' then
      filter.agentId = value
    elseif key == 'folder' then
      filter.cwd = vim.fn.fnamemodify(value, ':p'):gsub('(.)/$', '%1')
    else
      table.insert(query, word)
    end
  end
  filter.query = #query > 0 and table.concat(query, ' ') or nil
  return filter
end

--- Asks which of the sessions that the filter leaves. Without a filter: those of this folder, with the way to all.
---@param filter agentik.SessionFilter
---@param prompt string
---@param use fun(session: table)
local function pick(filter, prompt, use)
  local params = vim.tbl_extend('force', { limit = MOST }, filter)
  host.call('listSessions', params, function(err, result)
    if err then
      return warn(err.message)
    elseif #result.sessions == 0 then
      return hub.say(next(filter) and 'no session is like that' or 'there are no sessions yet')
    end
    local all = result.sessions
    local here = vim.tbl_filter(function(session)
      return session.cwd == vim.fn.getcwd()
    end, all)
    if next(filter) or #here == 0 or #here == #all then
      return choose(all, prompt, nil, use)
    end
    choose(here, prompt, {
      text = ('sessions of other folders (%d) …'):format(#all - #here),
      run = function()
        choose(all, prompt, nil, use)
      end,
    }, use)
  end)
end

---@param session table
local function open(session)
  require('agentik').show(conversation.open(session.sessionId))
end

--- Gives a session another title; asks for it when none is given.
---@param session table Session
---@param title? string
function M.rename(session, title)
  if title and title ~= '' then
    host.call('renameSession', { sessionId = session.sessionId, title = title }, function(err)
      if err then
        warn(err.message)
      else
        hub.say(('the session is called "%s"'):format(title))
      end
    end)
    return
  end
  vim.ui.input({ prompt = 'Title: ', default = session.title }, function(answer)
    if answer and vim.trim(answer) ~= '' then
      M.rename(session, vim.trim(answer))
    end
  end)
end

--- Opens a session that goes on from this one, where the agent can do that.
---@param session table Session
function M.fork(session)
  host.call('forkSession', { sessionId = session.sessionId }, function(err, result)
    if err then
      warn(err.message)
    else
      open(result.session)
    end
  end)
end

--- Deletes a session with everything of it, after asking.
---@param session table Session
function M.delete(session)
  local choices = { 'Keep it', 'Delete it, with all its messages and attachments' }
  vim.ui.select(choices, { prompt = ('Delete "%s"?'):format(title_of(session)) }, function(_, index)
    if index ~= 2 then
      return
    end
    host.call('deleteSession', { sessionId = session.sessionId }, function(err)
      if err then
        warn(err.message)
      else
        hub.say(('deleted "%s"'):format(title_of(session)))
      end
    end)
  end)
end

---@type [string, fun(session: table)][]
local ACTIONS = {
  { 'Open', open },
  { 'Rename', M.rename },
  { 'Fork', M.fork },
  {
    'Export as Markdown',
    function(session)
      require('agentik.view.export').session(session)
    end,
  },
  { 'Delete', M.delete },
}

---@param session table
local function ask_what(session)
  local options = {
    prompt = title_of(session),
    kind = 'agentik.action',
    format_item = function(action)
      return action[1]
    end,
  }
  vim.ui.select(ACTIONS, options, function(action)
    if action then
      action[2](session)
    end
  end)
end

--- Chooses a session and opens it, or asks what to do with it.
---@param words? string see `filter`
---@param manage? boolean
function M.choose(words, manage)
  local prompt = manage and 'Sessions: what to do with' or 'Sessions'
  pick(M.filter(words or ''), prompt, manage and ask_what or open)
end

--- Takes over the sessions of this folder that so far only the agent knows, and lets the person open one.
---@param agent_id string
function M.import(agent_id)
  local name = (host.server.agents or {})[agent_id] or agent_id
  hub.say(('asking %s for its sessions'):format(name))
  host.call('importSessions', { cwd = vim.fn.getcwd(), agentId = agent_id }, function(err, result)
    if err then
      warn(err.message)
    elseif #result.sessions == 0 then
      hub.say(('%s has no further sessions of this folder'):format(name))
    else
      choose(result.sessions, ('%d new: open one?'):format(#result.sessions), nil, open)
    end
  end)
end

return M
