--- One line when something wants the person and the chat is out of sight. Must not interrupt: no prompt, no window.

local config = require('agentik.config')
local conversation = require('agentik.conversation')
local hub = require('agentik.hub')
local layout = require('agentik.view.layout')

---@param current agentik.Conversation
---@return string
local function name_of(current)
  local title = current.session.title
  return title and title ~= '' and title or 'a session'
end

---@type table<string, fun(current: agentik.Conversation, params: table): string?, integer?>
local TEXTS = {
  permissionRequested = function(current, params)
    return ('%s: the agent asks: %s'):format(name_of(current), params.title or 'a tool call'), vim.log.levels.WARN
  end,
  questionAsked = function(current, params)
    local message = (params.question or {}).message or ''
    return ('%s: the agent asks: %s'):format(name_of(current), message), vim.log.levels.WARN
  end,
  turnEnded = function(current, params)
    if params.stopReason == 'cancelled' then
      return nil
    end
    if params.stopReason == 'end_turn' then
      return ('%s: the agent is done'):format(name_of(current)), vim.log.levels.INFO
    end
    local why = params.error or params.detail or params.stopReason
    return ('%s: the turn ended: %s'):format(name_of(current), why), vim.log.levels.WARN
  end,
}

local LEVELS = { info = vim.log.levels.INFO, warning = vim.log.levels.WARN, error = vim.log.levels.ERROR }

hub.on('event', function(name, params)
  if name == 'notice' then
    hub.say(params.text, LEVELS[params.level])
    return
  end
  if name == 'turnEnded' and params.error and params.stopReason ~= 'cancelled' then
    hub.say(params.error, vim.log.levels.WARN)
    return
  end
  local text_of = config.get().notify and TEXTS[name]
  local current = text_of and params.sessionId and conversation.of_session(params.sessionId)
  if not current or layout.is_visible(current) then
    return
  end
  local text, level = text_of(current, params)
  -- A turn after which the next message goes at once is no news.
  if text and not (name == 'turnEnded' and #current.pending.items > 0 and not current.pending.paused) then
    hub.say(text, level)
  end
end)
