--- What is measured inside the editor: when text reaches a buffer, when keys are worked off, how long the main loop
--- was busy. Only for tests/bench; must not change what it measures.

local M = {}

local api = vim.api

---@type [number, number][] time of writing, time of arrival in the buffer (nanoseconds of one clock)
M.stamps = {}
---@type number[] arrivals of keys
M.keys = {}
---@type [number, number][] wall and CPU milliseconds of each frame of the host
M.frames = {}
---@type [number, number] longest time without a turn of the main loop, wall and CPU milliseconds
M.gap = { 0, 0 }
M.writes = 0

--- Notes the stamps `@NS;` that reach a buffer.
---@param buf integer
function M.watch_stamps(buf)
  api.nvim_buf_attach(buf, false, {
    on_bytes = function(_, _, _, row, column, _, _, _, _, rows, columns, bytes)
      M.writes = M.writes + 1
      if bytes == 0 then
        return
      end
      local now = vim.uv.hrtime()
      local last = rows == 0 and column + columns or columns
      local ok, lines = pcall(api.nvim_buf_get_text, buf, row, column, row + rows, last, {})
      if not ok then -- the text ends with the newline of the buffer's last line
        lines = api.nvim_buf_get_lines(buf, row, row + rows, false)
      end
      for _, line in ipairs(lines) do
        for stamp in line:gmatch('@(%d+);') do
          table.insert(M.stamps, { tonumber(stamp), now })
        end
      end
    end,
  })
end

--- Notes when text reaches a buffer that a person types into.
---@param buf integer
function M.watch_keys(buf)
  api.nvim_buf_attach(buf, false, {
    on_bytes = function(_, _, _, _, _, _, _, _, _, _, _, bytes)
      -- Keys that wait together are inserted together.
      for _ = 1, bytes do
        table.insert(M.keys, vim.uv.hrtime())
      end
    end,
  })
end

--- Notes how long the editor is held by each frame.
function M.watch_frames()
  local host = require('agentik.host')
  local frame = host.frame
  host.frame = function(...)
    local wall, cpu = vim.uv.hrtime(), os.clock()
    local answer = frame(...)
    table.insert(M.frames, { (vim.uv.hrtime() - wall) / 1e6, (os.clock() - cpu) * 1e3 })
    return answer
  end
end

local timer

--- Notes how long the main loop does not come round: what other processes took away is in the wall time only.
function M.watch_loop()
  local last, last_cpu = vim.uv.hrtime(), os.clock()
  timer = vim.uv.new_timer()
  timer:start(1, 1, function()
    local now, cpu = vim.uv.hrtime(), os.clock()
    M.gap = { math.max(M.gap[1], (now - last) / 1e6), math.max(M.gap[2], (cpu - last_cpu) * 1e3) }
    last, last_cpu = now, cpu
  end)
end

function M.stop_loop()
  timer:close()
end

--- Gives what was noted since the last time.
---@return table
function M.take()
  local noted = { stamps = M.stamps, keys = M.keys, frames = M.frames, gap = M.gap, writes = M.writes }
  M.stamps, M.keys, M.frames, M.gap, M.writes = {}, {}, {}, { 0, 0 }, 0
  return noted
end

--- Milliseconds that a call holds the editor.
---@param run fun()
---@return number wall
---@return number cpu
function M.timed(run)
  local wall, cpu = vim.uv.hrtime(), os.clock()
  run()
  return (vim.uv.hrtime() - wall) / 1e6, (os.clock() - cpu) * 1e3
end

return M
