--- Keeps the head of a queue from being drained under the person's cursor (B16). A hold ends by itself after 60 s on
--- the server; it is renewed while something happens in the list. Must not look at the list.

local conversation = require('agentik.conversation')
local hub = require('agentik.hub')

local M = {}

local RENEW_MS = 20000

---@type table<integer, integer> key of the conversation -> uv.now() of the last request
local held = {}

--- The person is in the list: hold, or renew what is getting old.
---@param current agentik.Conversation
function M.start(current)
  local since = held[current.key]
  if since and vim.uv.now() - since < RENEW_MS then
    return
  end
  held[current.key] = vim.uv.now()
  conversation.call(current, 'holdPending', { hold = true })
  hub.emit('changed', current, 'draft')
end

--- The person left.
---@param current agentik.Conversation
function M.stop(current)
  if held[current.key] then
    held[current.key] = nil
    conversation.call(current, 'holdPending', { hold = false })
    hub.emit('changed', current, 'draft')
  end
end

---@param current agentik.Conversation
---@return boolean
function M.is_on(current)
  return held[current.key] ~= nil and vim.uv.now() - held[current.key] < 60000
end

---@param current agentik.Conversation
function M.forget(current)
  held[current.key] = nil
end

return M
