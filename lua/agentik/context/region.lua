--- What is selected: positions in bytes become text and a range as in LSP (0-based lines, UTF-16 units, end exclusive).
--- Reads the current window only; leaves mode, cursor and marks as they are.

local M = {}

---@class (exact) agentik.Position
---@field line integer 0-based
---@field character integer in UTF-16 code units

---@class (exact) agentik.Range
---@field start agentik.Position
---@field end agentik.Position exclusive

---@class (exact) agentik.Region
---@field range agentik.Range
---@field text string
---@field first integer first line, 1-based
---@field last integer last line, 1-based

--- Length in UTF-16 units of the first `bytes` bytes of a line in UTF-8.
---@param line string
---@param bytes integer
---@return integer
function M.utf16(line, bytes)
  local units = 0
  for i = 1, math.min(bytes, #line) do
    local byte = line:byte(i)
    if byte >= 0xF0 then
      units = units + 2
    elseif byte < 0x80 or byte >= 0xC0 then
      units = units + 1
    end
  end
  return units
end

---@param row integer 1-based
---@return string
local function line_at(row)
  return vim.fn.getline(row)
end

---@param row integer 1-based
---@param bytes integer bytes of the line before the position
---@return agentik.Position
local function position(row, bytes)
  return { line = row - 1, character = M.utf16(line_at(row), bytes) }
end

--- Whole lines: the range ends at the start of the line after the last, and the text with a line end.
---@param first integer 1-based
---@param last integer 1-based, clamped to the buffer
---@return agentik.Region
function M.lines(first, last)
  local count = vim.api.nvim_buf_line_count(0)
  first, last = math.max(1, math.min(first, count)), math.max(1, math.min(last, count))
  if first > last then
    first, last = last, first
  end
  local lines = vim.api.nvim_buf_get_lines(0, first - 1, last, true)
  local range = { start = { line = first - 1, character = 0 }, ['end'] = { line = last, character = 0 } }
  return { range = range, text = table.concat(lines, '\n') .. '\n', first = first, last = last }
end

--- Bytes of the line up to and with the character at a column, combining ones included.
---@param row integer 1-based
---@param col integer 1-based byte
---@return integer
local function upto_character(row, col)
  local line = line_at(row)
  return math.min(#line, col - 1 + #vim.fn.matchstr(line, '.', col - 1))
end

---@param from integer[] getpos() of the smaller end
---@param upto integer[]
---@return agentik.Region
local function characters(from, upto)
  local first, last = from[2], upto[2]
  local exclusive = vim.o.selection == 'exclusive' and (first ~= last or from[3] ~= upto[3])
  local last_bytes = exclusive and upto[3] - 1 or upto_character(last, upto[3])
  local lines = vim.api.nvim_buf_get_lines(0, first - 1, last, true)
  lines[#lines] = lines[#lines]:sub(1, last_bytes)
  lines[1] = lines[1]:sub(from[3])
  return {
    range = { start = position(first, from[3] - 1), ['end'] = position(last, last_bytes) },
    text = table.concat(lines, '\n'),
    first = first,
    last = last,
  }
end

--- A block: the text is the block's, the range goes from its first to its last character and holds more than the text.
---@param from integer[]
---@param upto integer[]
---@param to_line_ends boolean
---@return agentik.Region
local function block(from, upto, to_line_ends)
  local first, last = from[2], upto[2]
  local left = math.min(vim.fn.virtcol({ first, from[3] }, true)[1], vim.fn.virtcol({ last, upto[3] }, true)[1])
  local lines = {}
  if to_line_ends then
    for row = first, last do
      table.insert(lines, (line_at(row):sub(math.max(1, vim.fn.virtcol2col(0, row, left)))))
    end
  else
    lines = vim.fn.getregion(from, upto, { type = '\22' })
  end
  local start_col = math.max(1, vim.fn.virtcol2col(0, first, left))
  local last_start = math.max(1, vim.fn.virtcol2col(0, last, left))
  return {
    range = {
      start = position(first, start_col - 1),
      ['end'] = position(last, last_start - 1 + #lines[#lines]),
    },
    text = table.concat(lines, '\n') .. '\n',
    first = first,
    last = last,
  }
end

---@return boolean
function M.in_visual_mode()
  return vim.fn.mode():match('^[vV\22]') ~= nil
end

--- The selection of the running visual mode.
---@return agentik.Region
function M.visual()
  local from, upto = vim.fn.getpos('v'), vim.fn.getpos('.')
  if from[2] > upto[2] or (from[2] == upto[2] and from[3] > upto[3]) then
    from, upto = upto, from
  end
  local mode = vim.fn.mode():sub(1, 1)
  if mode == 'V' then
    return M.lines(from[2], upto[2])
  elseif mode == 'v' then
    return characters(from, upto)
  end
  return block(from, upto, vim.fn.winsaveview().curswant == vim.v.maxcol)
end

--- The selection of the last visual mode, which was left by typing a command.
---@return agentik.Region
function M.last_visual()
  local view = vim.fn.winsaveview()
  local eventignore = vim.o.eventignore
  vim.o.eventignore = 'all'
  vim.cmd('normal! gv')
  local ok, region = pcall(M.visual)
  vim.cmd('normal! \27')
  vim.o.eventignore = eventignore
  vim.fn.winrestview(view)
  return ok and region or error(region, 0)
end

return M
