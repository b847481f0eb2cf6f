--- What a conversation is doing, in words: the bars over our windows and the statusline component. Asks nobody: it
--- reads what the server said. A timer runs only while a turn does.

local bar = require('agentik.view.bar')
local compose = require('agentik.view.compose')
local config = require('agentik.config')
local conversation = require('agentik.conversation')
local host = require('agentik.host')
local hub = require('agentik.hub')
local keys = require('agentik.view.keys')
local layout = require('agentik.view.layout')
local pending_bar = require('agentik.view.pending_bar')

local M = {}

local api = vim.api

--- Seconds as people read them.
---@param seconds integer
---@return string
function M.duration(seconds)
  if seconds < 60 then
    return ('%d s'):format(seconds)
  end
  return ('%d:%02d min'):format(math.floor(seconds / 60), seconds % 60)
end

---@param current agentik.Conversation
---@return integer? seconds
local function elapsed(current)
  local started = current.turn.startedAt
  if not current.turn.turnId or not started then
    return nil
  end
  local seconds, micros = vim.uv.gettimeofday()
  return math.max(0, math.floor(seconds + micros / 1e6 - started / 1000))
end

local CONNECTING = { connecting = true, initializing = true }

--- State in words, its group, and the name of its icon.
---@param current agentik.Conversation
---@return string text
---@return string group
---@return string? icon
function M.state(current)
  local session = current.session
  local asks = #current.permissions + #current.questions
  if host.state == 'down' then
    return host.problem or 'not running', 'BarError', 'failed'
  elseif host.state ~= 'ready' then
    return 'starting', 'BarBusy', 'running'
  elseif current.problem then
    return current.problem, 'BarError', 'failed'
  elseif not current.session_id then
    return 'starting', 'BarBusy', 'running'
  elseif asks > 0 then
    return asks == 1 and 'waits for you' or ('waits for you (%d)'):format(asks), 'BarWarning', 'question'
  elseif session.state == 'cancelling' then
    return 'stopping', 'BarWarning', 'running'
  elseif CONNECTING[session.connection] then
    return 'starting the agent', 'BarBusy', 'running'
  elseif session.state == 'busy' or session.state == 'waiting' then
    local seconds = elapsed(current)
    return seconds and 'working ' .. M.duration(seconds) or 'working', 'BarBusy', 'running'
  elseif session.connection == 'error_startup' then
    return session.connectionDetail or 'the agent did not start', 'BarError', 'failed'
  end
  return 'ready', 'BarHint', nil
end

---@param options any the agent's list of modes
---@param id any
---@return string?
local function name_of(options, id)
  for _, option in ipairs(type(options) == 'table' and options or {}) do
    if option.id == id then
      return option.name
    end
  end
  return type(id) == 'string' and id or nil
end

---@param usage any
---@return string?
local function used(usage)
  if type(usage) ~= 'table' then
    return nil
  end
  local parts = {}
  if tonumber(usage.used) and tonumber(usage.size) and usage.size > 0 then
    table.insert(parts, ('%d%% used'):format(math.floor(usage.used / usage.size * 100 + 0.5)))
  end
  local cost = usage.cost
  if type(cost) == 'table' and tonumber(cost.amount) then
    table.insert(parts, ('%.2f %s'):format(cost.amount, cost.currency or ''))
  end
  return #parts > 0 and table.concat(parts, ' ') or nil
end

---@param current agentik.Conversation
---@return string
function M.agent(current)
  local id = current.session.agentId
  return id and ((host.server.agents or {})[id] or id) or 'Agentik'
end

---@param current agentik.Conversation
---@return agentik.Chunk[] left
---@return agentik.Chunk[] right
local function chat_bar(current)
  local session, icons = current.session, config.icons()
  local text, group, icon = M.state(current)
  local chunks = { { ' ' .. M.agent(current) .. ' ', 'BarTitle' } }
  table.insert(chunks, { (icon and icons[icon] .. ' ' or '') .. text .. ' ', group })
  local waiting = conversation.waiting_count(current)
  if waiting > 0 then
    local other = waiting == 1 and 'another session waits' or ('%d other sessions wait'):format(waiting)
    table.insert(chunks, { ('%s %s '):format(icons.question, other), 'BarWarning' })
  end
  local right = {}
  for _, detail in ipairs({ name_of(session.modes, session.modeId) or false, used(session.usage) or false }) do
    if detail then
      table.insert(right, { detail .. ' ', 'BarHint' })
    end
  end
  return chunks, right
end

--- What the bar says of dictation; nothing of it is loaded before it is used.
---@param current agentik.Conversation
---@return agentik.Chunk[]?
local function dictation_bar(current)
  local dictation = package.loaded['agentik.view.dictation']
  return dictation and dictation.bar(current)
end

--- How an open permission request is answered: the numbers, and the key that works while one types.
---@param current agentik.Conversation
---@return agentik.Chunk[]?
local function answer_hint(current)
  local permission = current.permissions[1]
  if not permission then
    return nil
  end
  local count = math.min(#permission.options, 9)
  local numbers = count > 1 and ('1-%d'):format(count) or '1'
  local hints = {}
  for _, mapping in ipairs(config.mappings('permission')) do
    if mapping.action == 'option' then
      local typing = vim.list_contains(mapping.mode, 'i')
      local key = mapping.lhs:gsub('%%d', typing and '1' or numbers)
      table.insert(hints, key .. (typing and ' while typing' or ' answers'))
    end
  end
  return { { table.concat(hints, ', ') .. '  ', 'BarBusy' } }
end

---@param current agentik.Conversation
---@return agentik.Chunk[] left
---@return agentik.Chunk[] right
local function compose_bar(current)
  local draft, icons = compose.draft(current), config.icons()
  local dictated = dictation_bar(current)
  local chunks = dictated or {}
  for _, attachment in ipairs(draft.attachments) do
    table.insert(chunks, { (' %s%s'):format(icons.attachment, compose.label(attachment)), 'Attachment' })
  end
  local first = draft.sending[1]
  if first and vim.uv.now() - first.since > 200 then
    table.insert(chunks, { ' sending', 'BarBusy' })
  elseif draft.problem then
    table.insert(chunks, { ' not sent: ' .. draft.problem, 'BarError' })
  end
  local answers = answer_hint(current)
  if answers then
    return chunks, answers
  end
  local busy = current.session.state and current.session.state ~= 'idle'
  local right = {}
  local hints = { { 'send', busy and 'queues' or 'sends' }, { 'help', 'keys' }, { 'send_now', busy and 'sends now' } }
  if dictated then
    table.insert(hints, 1, { 'dictate', 'stops' })
  end
  for _, hint in ipairs(hints) do
    local key = hint[2] and keys.of('compose', hint[1])
    if key then
      table.insert(right, { ('%s %s  '):format(key, hint[2]), 'BarHint' })
    end
  end
  return chunks, right
end

--- Writes the bars of every layout.
function M.update()
  for _, each in ipairs(layout.all()) do
    bar.set(each.wins.chat, chat_bar(each.conversation))
    bar.set(each.wins.compose, compose_bar(each.conversation))
    bar.set(each.wins.pending, pending_bar.of(each.conversation))
  end
end

--- For the user's statusline: agent and state of the conversation that was shown last, '' when there is none.
---@return string
function M.statusline()
  local current = conversation.last()
  if not current then
    return ''
  end
  local text, _, icon = M.state(current)
  local waiting = #current.pending.items
  local parts = { M.agent(current), (icon and config.icons()[icon] .. ' ' or '') .. text }
  if waiting > 0 then
    table.insert(parts, ('%d waiting'):format(waiting))
  end
  local dictation = package.loaded['agentik.view.dictation']
  if dictation and dictation.is_on() then
    table.insert(parts, config.icons().microphone .. ' dictating')
  end
  return bar.escaped(table.concat(parts, ', '))
end

local timer = assert(vim.uv.new_timer())
local ticking = false

--- Times are redrawn each second while something runs, and never else.
local function tick()
  local running = false
  for _, current in ipairs(conversation.all()) do
    running = running or current.turn.turnId ~= nil or #current.pending.items > 0 or #compose.draft(current).sending > 0
  end
  if running and not ticking then
    timer:start(1000, 1000, vim.schedule_wrap(function()
      M.update()
      hub.emit('tick')
    end))
  elseif not running and ticking then
    timer:stop()
  end
  ticking = running
end

--- Many changes of one frame are one update.
local wanted = false
local function want()
  if not wanted then
    wanted = true
    vim.schedule(function()
      wanted = false
      tick()
      M.update()
      if conversation.last() then
        vim.cmd('redrawstatus')
      end
    end)
  end
end

hub.on('changed', want)
hub.on('host', want)
hub.on('level', function(current)
  for _, each in ipairs(layout.all()) do
    if each.conversation == current then
      bar.set(each.wins.compose, compose_bar(current))
    end
  end
end)
hub.on('draft', function()
  want()
  vim.defer_fn(want, 250)
end)
hub.on('layout', function()
  M.update()
  want()
end)

return M
