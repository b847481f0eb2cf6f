--- Makes the lines of a buffer others with as little change as possible, so that all that hangs on the rest stays:
--- cursors, scrolling, marks, folds, extmarks, and one undo step for the whole.
--- Knows nothing of files.

local M = {}

-- Neovim 0.12 has it by another name.
local newer = vim.text
local diff = newer.diff or vim.diff

local namespace = vim.api.nvim_create_namespace('agentik.patch')

-- With more hunks than this the whole span is replaced at once: each change costs every listener of the buffer.
local MAX_HUNKS = 300

---@class (exact) agentik.buffers.Hunk
---@field from integer first old line, 0-based
---@field upto integer end of the old lines, exclusive; equal to `from` for an insertion
---@field new_from integer
---@field new_upto integer

--- Number of lines that both lists have in common at their start and, of what is left, at their end.
---@param old string[]
---@param new string[]
---@return integer head
---@return integer tail
local function common(old, new)
  local shorter = math.min(#old, #new)
  local head, tail = 0, 0
  while head < shorter and old[head + 1] == new[head + 1] do
    head = head + 1
  end
  while tail < shorter - head and old[#old - tail] == new[#new - tail] do
    tail = tail + 1
  end
  return head, tail
end

---@param lines string[]
---@param from integer
---@param upto integer
---@return string
local function joined(lines, from, upto)
  return from > upto and '' or table.concat(lines, '\n', from, upto) .. '\n'
end

--- The changes from `old` to `new`, in order.
---@param old string[]
---@param new string[]
---@return agentik.buffers.Hunk[]
function M.hunks(old, new)
  local head, tail = common(old, new) -- most of a big file: only the rest is worth a diff
  local before, after = joined(old, head + 1, #old - tail), joined(new, head + 1, #new - tail)
  local found = diff(before, after, { result_type = 'indices' }) --[[@as integer[][] ]]
  local hunks = {}
  for _, hunk in ipairs(found) do
    local start, count, new_start, new_count = unpack(hunk)
    -- With a count of 0 the diff names the line before.
    local from = head + (count == 0 and start or start - 1)
    local new_from = head + (new_count == 0 and new_start or new_start - 1)
    table.insert(hunks, { from = from, upto = from + count, new_from = new_from, new_upto = new_from + new_count })
  end
  if #hunks > MAX_HUNKS then
    local first, last = hunks[1], hunks[#hunks]
    return { { from = first.from, upto = last.upto, new_from = first.new_from, new_upto = last.new_upto } }
  end
  return hunks
end

---@param text string
---@param at integer 1-based byte
---@return boolean
local function inside_character(text, at)
  local byte = text:byte(at)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

--- Changes one line in place, only where it differs, at the borders of characters.
---@param buf integer
---@param row integer
---@param old string
---@param new string
local function replace_in_line(buf, row, old, new)
  local shorter = math.min(#old, #new)
  local head = 0
  while head < shorter and old:byte(head + 1) == new:byte(head + 1) do
    head = head + 1
  end
  while head > 0 and (inside_character(old, head + 1) or inside_character(new, head + 1)) do
    head = head - 1
  end
  local tail = 0
  while tail < shorter - head and old:byte(#old - tail) == new:byte(#new - tail) do
    tail = tail + 1
  end
  while tail > 0 and (inside_character(old, #old - tail + 1) or inside_character(new, #new - tail + 1)) do
    tail = tail - 1
  end
  vim.api.nvim_buf_set_text(buf, row, head, row, #old - tail, { new:sub(head + 1, #new - tail) })
end

---@param buf integer
---@param hunk agentik.buffers.Hunk
---@param old string[]
---@param new string[]
local function apply_hunk(buf, hunk, old, new)
  local paired = math.min(hunk.upto - hunk.from, hunk.new_upto - hunk.new_from)
  local rest = vim.list_slice(new, hunk.new_from + paired + 1, hunk.new_upto)
  if #rest > 0 or hunk.from + paired < hunk.upto then
    vim.api.nvim_buf_set_lines(buf, hunk.from + paired, hunk.upto, true, rest)
  end
  for i = paired, 1, -1 do
    local before, after = old[hunk.from + i], new[hunk.new_from + i]
    if before ~= after then
      replace_in_line(buf, hunk.from + i - 1, before, after)
    end
  end
end

---@param buf integer
---@param row integer 0-based, clamped to the buffer
---@param col integer clamped to the line
---@return integer id of an extmark
local function pin(buf, row, col)
  row = math.max(0, math.min(row, vim.api.nvim_buf_line_count(buf) - 1))
  local line = vim.api.nvim_buf_get_lines(buf, row, row + 1, true)[1]
  return vim.api.nvim_buf_set_extmark(buf, namespace, row, math.max(0, math.min(col, #line)), {})
end

---@param buf integer
---@param id integer
---@return integer row
---@return integer col
local function pinned(buf, id)
  local position = vim.api.nvim_buf_get_extmark_by_id(buf, namespace, id, {})
  return position[1], position[2]
end

--- Pins what every window of the buffer shows; the returned function puts it back.
---@param buf integer
---@return fun()
local function keep_views(buf)
  local views = {}
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local view = vim.api.nvim_win_call(win, vim.fn.winsaveview)
    table.insert(views, {
      win = win,
      view = view,
      cursor = pin(buf, view.lnum - 1, view.col),
      top = pin(buf, view.topline - 1, 0),
    })
  end
  return function()
    for _, kept in ipairs(views) do
      local view = kept.view
      local row, col = pinned(buf, kept.cursor)
      if row ~= view.lnum - 1 or col ~= view.col then
        view.curswant = nil
      end
      view.lnum, view.col = row + 1, col
      view.topline = pinned(buf, kept.top) + 1
      if vim.api.nvim_win_is_valid(kept.win) then
        vim.api.nvim_win_call(kept.win, function()
          vim.fn.winrestview(view)
        end)
      end
    end
  end
end

--- Pins the named marks; the returned function sets those again whose lines are gone.
---@param buf integer
---@return fun()
local function keep_marks(buf)
  local marks = {}
  local all = vim.list_extend(vim.fn.getmarklist(buf), vim.fn.getmarklist())
  for _, mark in ipairs(all) do
    local name = mark.mark:sub(2)
    if name:match('^%a$') and (mark.pos[1] == buf or name:match('%l')) then
      table.insert(marks, { name = name, id = pin(buf, mark.pos[2] - 1, mark.pos[3] - 1) })
    end
  end
  return function()
    for _, mark in ipairs(marks) do
      if vim.api.nvim_buf_get_mark(buf, mark.name)[1] == 0 then
        local row, col = pinned(buf, mark.id)
        vim.api.nvim_buf_set_mark(buf, mark.name, row + 1, col, {})
      end
    end
  end
end

--- Ends the open undo step, so that what follows is a step of its own.
---@param buf integer
function M.start_undo_step(buf)
  vim.api.nvim_buf_call(buf, function()
    -- Setting 'undolevels', even to what it is, closes the step (:help undo-break).
    vim.bo.undolevels = vim.bo.undolevels
  end)
end

--- Makes the lines of `buf` those of `new`. Raises what Neovim raises when the buffer must not be changed now.
---@param buf integer loaded and modifiable
---@param new string[] at least one
function M.apply(buf, new)
  local old = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  local hunks = M.hunks(old, new)
  if #hunks == 0 then
    return
  end
  local restore_views, restore_marks = keep_views(buf), keep_marks(buf)
  M.start_undo_step(buf)
  local ok, problem = pcall(function()
    for i = #hunks, 1, -1 do
      apply_hunk(buf, hunks[i], old, new)
    end
  end)
  M.start_undo_step(buf)
  restore_marks()
  restore_views()
  vim.api.nvim_buf_clear_namespace(buf, namespace, 0, -1)
  if not ok then
    error(problem, 0)
  end
end

--- True when no line that differs between `base` and `mine` would be changed or removed by going from `mine` to `new`.
---@param base string[]
---@param mine string[]
---@param new string[]
---@return boolean
function M.keeps_changes(base, mine, new)
  local theirs = M.hunks(mine, new)
  for _, own in ipairs(M.hunks(base, mine)) do
    for _, hunk in ipairs(theirs) do
      local touches
      if own.new_from == own.new_upto then
        -- Lines that the user removed: whatever happens right there may bring them back.
        touches = hunk.from <= own.new_from and own.new_from <= hunk.upto
      else
        touches = hunk.from < own.new_upto and own.new_from < hunk.upto
      end
      if touches then
        return false
      end
    end
  end
  return true
end

return M
