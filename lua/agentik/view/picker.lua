--- Lists to choose from, by vim.ui.select: sessions, agents, modes, options, search results. Whatever picker the person
--- has shows them. Must not know how a chosen thing is shown.

local conversation = require('agentik.conversation')
local host = require('agentik.host')
local hub = require('agentik.hub')

local M = {}

---@param err agentik.Error
local function complain(err)
  hub.say(err.message, vim.log.levels.WARN)
end

---@param milliseconds integer
---@return string
local function day(milliseconds)
  local seconds = math.floor(milliseconds / 1000)
  local today = os.date('%Y-%m-%d') == os.date('%Y-%m-%d', seconds)
  return tostring(os.date(today and '%H:%M' or '%Y-%m-%d', seconds))
end

---@param session table
---@return string
local function session_line(session)
  local known = conversation.of_session(session.sessionId)
  local asks = known and #known.permissions + #known.questions or 0
  local state = asks > 0 and 'waits for you' or session.state ~= 'idle' and session.state or ''
  local title = session.title ~= '' and session.title or 'untitled'
  local parts = { day(session.updatedAt), title, session.agentId, vim.fn.fnamemodify(session.cwd, ':~') }
  if state ~= '' then
    table.insert(parts, state)
  end
  if session.pendingCount > 0 then
    table.insert(parts, ('%d waiting'):format(session.pendingCount))
  end
  return table.concat(parts, '  ')
end

--- Chooses a session of any folder and shows it.
function M.sessions()
  host.call('listSessions', { limit = 200 }, function(err, result)
    if err then
      complain(err)
    elseif #result.sessions == 0 then
      hub.say('there are no sessions yet')
    else
      local options = { prompt = 'Sessions', kind = 'agentik.session', format_item = session_line }
      vim.ui.select(result.sessions, options, function(session)
        if session then
          require('agentik').show(conversation.open(session.sessionId))
        end
      end)
    end
  end)
end

--- Chooses an agent and opens a new session with it.
function M.agents()
  host.call('listAgents', {}, function(err, result)
    if err then
      complain(err)
      return
    end
    local options = {
      prompt = 'Agents',
      kind = 'agentik.agent',
      format_item = function(agent)
        local note = agent.available and '' or ('  (%s)'):format(agent.reason or 'not installed')
        return agent.name .. (agent.isDefault and '  (default)' or '') .. note
      end,
    }
    vim.ui.select(result.agents, options, function(agent)
      if agent and not agent.available then
        local hint = agent.installHint or agent.reason or 'not installed'
        hub.say(('%s: %s'):format(agent.name, hint), vim.log.levels.WARN)
      elseif agent then
        require('agentik').new(agent.agentId)
      end
    end)
  end)
end

---@param current agentik.Conversation
---@param id? string
function M.mode(current, id)
  local modes = current.session.modes
  if type(modes) ~= 'table' or #modes == 0 then
    hub.say('this agent has no modes')
    return
  end
  if id and id ~= '' then
    conversation.call(current, 'setMode', { modeId = id })
    return
  end
  local options = {
    prompt = 'Mode',
    kind = 'agentik.mode',
    format_item = function(mode)
      local chosen = mode.id == current.session.modeId and '  (now)' or ''
      return mode.name .. chosen .. (mode.description and '  ' .. mode.description or '')
    end,
  }
  vim.ui.select(modes, options, function(mode)
    if mode then
      conversation.call(current, 'setMode', { modeId = mode.id })
    end
  end)
end

--- The values of an option of the agent; options may be in groups.
---@param option table
---@return { value: any, name: string }[]
local function values_of(option)
  if option.type == 'boolean' then
    return { { value = true, name = 'on' }, { value = false, name = 'off' } }
  end
  local values = {}
  for _, each in ipairs(option.options or {}) do
    for _, value in ipairs(each.options or { each }) do
      table.insert(values, { value = value.value, name = value.name or tostring(value.value) })
    end
  end
  return values
end

---@param current agentik.Conversation
---@param option table
local function set_option(current, option)
  local options = {
    prompt = option.name,
    kind = 'agentik.value',
    format_item = function(value)
      return value.name .. (value.value == option.currentValue and '  (now)' or '')
    end,
  }
  vim.ui.select(values_of(option), options, function(value)
    if value then
      conversation.call(current, 'setConfigOption', { optionId = option.id, value = value.value })
    end
  end)
end

--- Chooses the value of one of the agent's options, of a category (`model`) if one is given; modes are among them.
---@param current agentik.Conversation
---@param category? string
function M.options(current, category)
  local found = {}
  for _, option in ipairs(current.session.configOptions or {}) do
    if not category or option.category == category or option.id == category then
      table.insert(found, option)
    end
  end
  if not category and #(current.session.modes or {}) > 0 then
    table.insert(found, 1, { name = 'Mode', mode = true })
  end
  local function choose(option)
    if option and option.mode then
      M.mode(current)
    elseif option then
      set_option(current, option)
    end
  end
  if #found == 0 then
    hub.say(category and ('this agent has no option for the %s'):format(category) or 'this agent has no options')
  elseif #found == 1 then
    choose(found[1])
  else
    local format = function(option)
      return option.name
    end
    vim.ui.select(found, { prompt = 'Options', kind = 'agentik.option', format_item = format }, choose)
  end
end

--- Searches all sessions; a chosen match shows its session at that message.
---@param query string
function M.search(query)
  host.call('searchMessages', { query = query, limit = 200 }, function(err, result)
    if err then
      complain(err)
    elseif #result.matches == 0 then
      hub.say(('nothing found for %s'):format(query))
    else
      local options = {
        prompt = 'Found',
        kind = 'agentik.match',
        format_item = function(match)
          return day(match.createdAt) .. '  ' .. match.snippet:gsub('%s+', ' ')
        end,
      }
      vim.ui.select(result.matches, options, function(match)
        if match then
          local current = conversation.open(match.sessionId)
          require('agentik').show(current, false)
          require('agentik.view.chat').go_to(current, match.messageId)
        end
      end)
    end
  end)
end

--- Completion of :AgentikNew and :AgentikMode, from what is known already: nothing is asked and waited for.
---@param list 'agents'|'modes'
---@param lead string
---@return string[]
function M.complete(list, lead)
  local words = {}
  if list == 'agents' then
    words = vim.tbl_keys(host.server.agents or {})
  else
    local current = require('agentik').current()
    for _, mode in ipairs(current and current.session.modes or {}) do
      table.insert(words, mode.id)
    end
  end
  table.sort(words)
  return vim.tbl_filter(function(word)
    return vim.startswith(word, lead)
  end, words)
end

return M
