--- Push to talk, as far as a terminal allows it: it tells that a key goes down, never that it comes up. A key that is
--- held repeats, and when the repeating ends, it came up. A key that was only touched talks until the next key, or
--- until the person falls silent. Must not know what talking is.

local hub = require('agentik.hub')

local M = {}

local NS = vim.api.nvim_create_namespace('agentik.push')
--- Keyboards begin to repeat after 200 to 660 ms, and then repeat every 20 to 60.
local FIRST_REPEAT_MS = 800
local RELEASED_AFTER_MS = 250

---@class (exact) agentik.Push
---@field last integer uv.now() of the last press
---@field held boolean
---@field stop fun()

---@type agentik.Push?
local push = nil
local presses = 0
local timer = assert(vim.uv.new_timer())

--- The key is done with, whoever ended it.
function M.finish()
  timer:stop()
  vim.on_key(nil, NS)
  push = nil
end

local function stop()
  local ended = push
  M.finish()
  if ended then
    ended.stop()
  end
end

--- Any other key ends it, and does what it does.
---@param _ string
---@param typed string
local function on_key(_, typed)
  local name = typed and vim.fn.keytrans(typed) or ''
  if name == '' or name:find('^<Mouse') or name:find('^<Focus') or name:find('^<ScrollWheel') then
    return
  end
  local before = presses
  vim.schedule(hub.guard(function()
    -- Our own key has been counted by now.
    if push and presses == before then
      stop()
    end
  end))
end

---@param now integer
local function again(now)
  local gap = now - push.last
  push.last = now
  if not push.held and gap > FIRST_REPEAT_MS then
    stop() -- touched a second time
    return
  end
  push.held = true
  timer:start(RELEASED_AFTER_MS, 0, vim.schedule_wrap(hub.guard(stop)))
end

--- The key goes down, or repeats.
---@param start fun()
---@param on_stop fun()
function M.press(start, on_stop)
  presses = presses + 1
  local now = vim.uv.hrtime() / 1e6
  if push then
    again(now)
    return
  end
  push = { last = now, held = false, stop = on_stop }
  vim.on_key(on_key, NS)
  start()
end

--- Something was said and the person fell silent: a key that is not held is done.
function M.silent()
  if push and not push.held then
    stop()
  end
end

return M
