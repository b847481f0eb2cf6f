--- Where the parts of the plugin meet: one says what happened, the others listen. Knows nobody.

local M = {}

---@type table<string, (fun(...: any))[]>
local listeners = {}

--- Calls `listener` whenever `name` happens. Modules do this once, when they are loaded.
---@param name string
---@param listener fun(...: any)
function M.on(name, listener)
  listeners[name] = listeners[name] or {}
  table.insert(listeners[name], listener)
end

--- Tells all listeners, in the order in which they came. The error of one does not keep it from the others.
---@param name string
function M.emit(name, ...)
  for _, listener in ipairs(listeners[name] or {}) do
    local ok, problem = xpcall(listener, debug.traceback, ...)
    if not ok then
      M.log(('%s: %s'):format(name, problem))
    end
  end
end

local LINES = 500
---@type string[]
local log = {}

--- Keeps a line for |:AgentikLog|.
---@param text string
function M.log(text)
  local time = os.date('%H:%M:%S ')
  for line in vim.gsplit(text, '\n', { plain = true, trimempty = true }) do
    table.insert(log, time .. line)
  end
  while #log > LINES do
    table.remove(log, 1)
  end
end

--- A function for autocommands, keys and timers: a bug in it goes to the log with its traceback, and one line tells of
--- it. Left to Neovim it would be many lines, and those stop everything until the person presses a key.
---@generic F: function
---@param callback F
---@return F
function M.guard(callback)
  return function(...)
    local ok, problem = xpcall(callback, debug.traceback, ...)
    if not ok then
      M.log(problem)
      M.say('this should not have happened, see :AgentikLog', vim.log.levels.ERROR)
    end
  end
end

--- What was logged in this Neovim, oldest first.
---@return string[]
function M.logged()
  return log
end

---@type [string, integer][] said in this turn of the main loop
local said = {}

local function speak()
  local last = said[#said]
  local more = #said > 1 and (' (and %d more: :AgentikLog)'):format(#said - 1) or ''
  said = {}
  -- Two lines, or one that is too long, would raise the hit-enter prompt, which stops everything.
  local room = math.max(vim.v.echospace - #'agentik: ' - #more, 20)
  local text = last[1]
  if vim.api.nvim_strwidth(text) > room then
    text = vim.fn.strcharpart(text, 0, room - 1) .. '…'
  end
  vim.cmd('redraw')
  vim.notify('agentik: ' .. text .. more, last[2])
end

--- One line for the person.
---@param text string
---@param level? integer vim.log.levels
function M.say(text, level)
  local line = text:gsub('%s*\n%s*', ' ')
  M.log(line)
  table.insert(said, { line, level or vim.log.levels.INFO })
  if #said == 1 then
    vim.schedule(speak)
  end
end

return M
