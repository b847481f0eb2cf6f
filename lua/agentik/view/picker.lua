--- Lists of what an agent offers, by vim.ui.select: agents, modes, options; and completion of the commands' arguments.
--- Holds no rule: which values there are and which may be set is the agent's.

local conversation = require('agentik.conversation')
local host = require('agentik.host')
local hub = require('agentik.hub')
local rows = require('agentik.view.rows')

local M = {}

--- The first line of a description.
---@param description any
---@return string
local function first_line(description)
  return type(description) == 'string' and vim.split(vim.trim(description), '\n')[1] or ''
end

--- A list of named choices, the one in force marked.
---@param choices { name: string, description?: string, now?: boolean }[]
---@param options { prompt: string, kind: string }
---@param use fun(choice: table)
local function choose(choices, options, use)
  local names = vim.tbl_map(function(choice)
    return choice.name
  end, choices)
  local width = rows.width(names, 40)
  vim.ui.select(choices, {
    prompt = options.prompt,
    kind = options.kind,
    format_item = function(choice)
      local text = (choice.now and '* ' or '  ') .. rows.cell(choice.name, width) .. '  '
      local room = math.max(10, rows.room() - width - 4)
      return (text .. rows.cell(first_line(choice.description), room)):gsub('%s+$', '')
    end,
  }, function(choice)
    if choice then
      use(choice)
    end
  end)
end

---@param agents table[] Agent
---@param prompt string
---@param more? { name: string, run: fun() }
---@param use fun(agent: table)
local function choose_agent(agents, prompt, more, use)
  local choices = vim.tbl_map(function(agent)
    local note = agent.available and (agent.isDefault and 'default' or '') or agent.reason or 'not installed'
    return { name = agent.name, description = note, agent = agent }
  end, agents)
  table.insert(choices, more)
  choose(choices, { prompt = prompt, kind = 'agentik.agent' }, function(choice)
    if choice.run then
      choice.run()
    else
      use(choice.agent)
    end
  end)
end

---@param agent table Agent
local function say_how_to_get(agent)
  hub.say(('%s: %s'):format(agent.name, agent.installHint or agent.reason or 'not installed'))
end

--- Asks the server for its agents and lets the person choose one of those that are there.
---@param prompt string
---@param use fun(agent: table) Agent
function M.agent(prompt, use)
  host.call('listAgents', {}, function(err, result)
    if err then
      hub.say(err.message, vim.log.levels.WARN)
      return
    end
    local there, missing = {}, {}
    for _, agent in ipairs(result.agents) do
      table.insert(agent.available and there or missing, agent)
    end
    choose_agent(there, prompt, #missing > 0 and {
      name = ('how to get others (%d) …'):format(#missing),
      run = function()
        choose_agent(missing, 'How to get', nil, say_how_to_get)
      end,
    } or nil, use)
  end)
end

--- Chooses an agent and opens a new session with it.
function M.agents()
  M.agent('Agent of a new session', function(agent)
    require('agentik').new(agent.agentId)
  end)
end

--- Says why there is nothing to choose from: the agent may only not have told yet.
---@param current agentik.Conversation
---@param what string
local function nothing(current, what)
  local connection = current.session.connection
  if connection == 'has_session' or connection == 'streaming' then
    hub.say(('this agent has no %s'):format(what))
  else
    hub.say(('the agent is not connected yet: its %s come with it'):format(what))
  end
end

--- Chooses the agent's mode.
---@param current agentik.Conversation
---@param wanted? string id or name
function M.mode(current, wanted)
  local modes = current.session.modes
  if type(modes) ~= 'table' or #modes == 0 then
    nothing(current, 'modes')
    return
  end
  for _, mode in ipairs(wanted and wanted ~= '' and modes or {}) do
    if mode.id == wanted or mode.name == wanted then
      conversation.call(current, 'setMode', { modeId = mode.id })
      return
    end
  end
  if wanted and wanted ~= '' then
    hub.say(('this agent has no mode %s'):format(wanted), vim.log.levels.WARN)
    return
  end
  local choices = vim.tbl_map(function(mode)
    local now = mode.id == current.session.modeId
    return { name = mode.name, description = mode.description, now = now, id = mode.id }
  end, modes)
  choose(choices, { prompt = 'Mode', kind = 'agentik.mode' }, function(mode)
    conversation.call(current, 'setMode', { modeId = mode.id })
  end)
end

--- The values of an option of the agent; they may be in groups.
---@param option table
---@return { value: any, name: string, description?: string, now: boolean }[]
local function values_of(option)
  local given = {}
  if option.type == 'boolean' then
    given = { { value = true, name = 'on' }, { value = false, name = 'off' } }
  end
  for _, each in ipairs(option.options or {}) do
    vim.list_extend(given, type(each.options) == 'table' and each.options or { each })
  end
  return vim.tbl_map(function(each)
    local name = type(each.name) == 'string' and each.name or tostring(each.value)
    return { value = each.value, name = name, description = each.description, now = each.value == option.currentValue }
  end, given)
end

---@param current agentik.Conversation
---@param option table
local function set_option(current, option)
  choose(values_of(option), { prompt = option.name or option.id, kind = 'agentik.value' }, function(choice)
    conversation.call(current, 'setConfigOption', { optionId = option.id, value = choice.value })
  end)
end

--- What is chosen in an option now, as the agent names it.
---@param option table
---@return string
local function value_now(option)
  for _, choice in ipairs(values_of(option)) do
    if choice.now then
      return choice.name
    end
  end
  return ''
end

--- The name of the mode in force.
---@param session table Session
---@return string
local function mode_now(session)
  for _, mode in ipairs(session.modes or {}) do
    if mode.id == session.modeId then
      return mode.name
    end
  end
  return ''
end

--- Chooses the value of one of the agent's options, of a category (`model`) if one is given; modes are among them.
---@param current agentik.Conversation
---@param category? string
function M.options(current, category)
  local session, found = current.session, {}
  if not category and #(session.modes or {}) > 0 then
    table.insert(found, { name = 'Mode', description = mode_now(session) })
  end
  for _, option in ipairs(session.configOptions or {}) do
    if not category or option.category == category or option.id == category then
      local name = type(option.name) == 'string' and option.name or option.id
      table.insert(found, { name = name, description = value_now(option), option = option })
    end
  end
  local function use(choice)
    if choice.option then
      set_option(current, choice.option)
    else
      M.mode(current)
    end
  end
  if #found == 0 then
    nothing(current, category and ('%s to choose'):format(category) or 'options')
  elseif #found == 1 then
    use(found[1])
  else
    choose(found, { prompt = 'Option', kind = 'agentik.option' }, use)
  end
end

--- Completion of arguments, from what is known already: nothing is asked and waited for.
---@param list 'agents'|'modes'|'sessions'
---@param lead string
---@return string[]
function M.complete(list, lead)
  local words = {}
  local agents = vim.tbl_keys(host.server.agents or {})
  if list == 'agents' then
    words = agents
  elseif list == 'sessions' then
    words = vim.tbl_map(function(agent)
      return 'agent=' .. agent
    end, agents)
    table.insert(words, 'folder=.')
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
