--- What the bar over the pending list says: how many messages wait, and why. Only words: reads what the server said.

local config = require('agentik.config')
local hold = require('agentik.view.hold')
local host = require('agentik.host')
local keys = require('agentik.view.keys')
local pending = require('agentik.view.pending')

local M = {}

--- Short: the bar is narrow, and the key that resumes has to have room.
local REASONS = {
  user = 'by you',
  cancel = 'stopped',
  start = 'agent did not start',
  auth = 'login needed',
  crash = 'agent crashed',
  error = 'agent failed',
  timeout = 'no answer in time',
  refusal = 'agent refused',
  restore = 'restarted',
}

--- What the bar over the list says: how many wait, and why.
---@param current agentik.Conversation
---@return agentik.Chunk[]
---@return agentik.Chunk[] right
function M.of(current)
  local state, icons = current.pending, config.icons()
  local chunks = { { (' %d waiting '):format(#state.items), 'BarTitle' } }
  local pause = keys.of('pending', 'pause')
  local hint, detail
  if state.paused then
    local reason = REASONS[state.reason] or state.reason or 'paused'
    table.insert(chunks, { ('%s paused: %s '):format(icons.paused, reason), 'BarWarning' })
    hint, detail = pause and pause .. ' resumes', state.detail
  elseif pending.is_edited(current) then
    table.insert(chunks, { 'edited ', 'BarWarning' })
    hint = ('%s applies  %s forgets'):format(keys.of('pending', 'apply') or ':w', keys.of('pending', 'discard') or 'u')
  elseif hold.is_on(current) then
    table.insert(chunks, { 'held while you are here ', 'BarHint' })
    hint = keys.of('pending', 'help') and keys.of('pending', 'help') .. ' keys'
  elseif host.state ~= 'ready' then
    table.insert(chunks, { 'until the server is back ', 'BarHint' })
  elseif #current.permissions + #current.questions > 0 then
    table.insert(chunks, { 'until you have answered ', 'BarWarning' })
  else
    table.insert(chunks, { 'for the turn to end ', 'BarHint' })
  end
  local right = hint and { { hint .. ' ', 'BarHint' } } or {}
  if detail and detail ~= '' then
    table.insert(right, { detail .. ' ', 'BarHint' })
  end
  return chunks, right
end

return M
