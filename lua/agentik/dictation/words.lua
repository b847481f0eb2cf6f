--- Where spoken words go in a buffer: final ones as text, each utterance one undo step, where dictation began or went
--- on; running guesses as virtual text. Must not know where the words come from.

local M = {}

local api = vim.api
local NS = api.nvim_create_namespace('agentik.dictation')

---@class (exact) agentik.Utterance
---@field mark integer extmark over its text
---@field text string as it was put in

---@class (exact) agentik.Words
---@field buf integer
---@field anchor integer extmark where the next words go
---@field utterances agentik.Utterance[] oldest first

--- Begins at the cursor of a window: in front of it while typing, else behind the character under it.
---@param win integer
---@return agentik.Words
function M.begin(win)
  local buf = api.nvim_win_get_buf(win)
  local row, column = unpack(api.nvim_win_get_cursor(win))
  local typing = win == api.nvim_get_current_win() and api.nvim_get_mode().mode:sub(1, 1) == 'i'
  if not typing then
    local line = api.nvim_buf_get_lines(buf, row - 1, row, true)[1]
    column = math.min(#line, column + #vim.fn.matchstr(line, '.', column))
  end
  return { buf = buf, anchor = api.nvim_buf_set_extmark(buf, NS, row - 1, column, {}), utterances = {} }
end

---@param words agentik.Words
---@return integer row
---@return integer column
local function place_of(words)
  local mark = api.nvim_buf_get_extmark_by_id(words.buf, NS, words.anchor, {})
  local row = math.min(mark[1] or 0, api.nvim_buf_line_count(words.buf) - 1)
  local line = api.nvim_buf_get_lines(words.buf, row, row + 1, true)[1]
  return row, math.min(mark[2] or 0, #line)
end

---@param words agentik.Words
---@param row integer
---@param column integer
---@param virtual? [string, string][]
local function set_anchor(words, row, column, virtual)
  local position = virtual and 'inline' or nil
  local mark = { id = words.anchor, virt_text = virtual, virt_text_pos = position }
  api.nvim_buf_set_extmark(words.buf, NS, row, column, mark)
end

--- Makes one undo step of a change, apart from what was typed before and will be typed after.
---@param buf integer
---@param change fun()
local function as_one_step(buf, change)
  local levels = vim.bo[buf].undolevels
  vim.bo[buf].undolevels = levels -- setting it ends the step
  change()
  vim.bo[buf].undolevels = levels
  if api.nvim_get_current_buf() == buf and api.nvim_get_mode().mode:sub(1, 1) == 'i' then
    -- Insert mode would go on as if nothing had come in between.
    api.nvim_feedkeys(vim.keycode('<C-g>u'), 'n', false)
  end
end

--- Windows whose cursor is where the words go: it goes along.
---@param words agentik.Words
---@param row integer
---@param column integer
---@return integer[]
local function companions(words, row, column)
  return vim.tbl_filter(function(win)
    local cursor = api.nvim_win_get_cursor(win)
    local typing = win == api.nvim_get_current_win() and api.nvim_get_mode().mode:sub(1, 1) == 'i'
    local line = api.nvim_buf_get_lines(words.buf, row, row + 1, true)[1]
    local behind = typing and cursor[2] or math.min(#line, cursor[2] + #vim.fn.matchstr(line, '.', cursor[2]))
    return cursor[1] - 1 == row and behind == column
  end, vim.fn.win_findbuf(words.buf))
end

---@param words agentik.Words
---@param text string may have line breaks
local function put(words, text)
  local row, column = place_of(words)
  local wins = companions(words, row, column)
  local lines = vim.split(text, '\n', { plain = true })
  as_one_step(words.buf, function()
    api.nvim_buf_set_text(words.buf, row, column, row, column, lines)
  end)
  local last_row = row + #lines - 1
  local last_column = (#lines == 1 and column or 0) + #lines[#lines]
  local range = { end_row = last_row, end_col = last_column, right_gravity = true, end_right_gravity = false }
  local mark = api.nvim_buf_set_extmark(words.buf, NS, row, column, range)
  table.insert(words.utterances, { mark = mark, text = text })
  set_anchor(words, last_row, last_column)
  for _, win in ipairs(wins) do
    local typing = win == api.nvim_get_current_win() and api.nvim_get_mode().mode:sub(1, 1) == 'i'
    api.nvim_win_set_cursor(win, { last_row + 1, typing and last_column or math.max(0, last_column - 1) })
  end
end

--- Puts final words in, with the blanks that they need on both sides.
---@param words agentik.Words
---@param text string
function M.add(words, text)
  local row, column = place_of(words)
  local line = api.nvim_buf_get_lines(words.buf, row, row + 1, true)[1]
  local before, after = line:sub(1, column), line:sub(column + 1)
  local apart = before ~= '' and not before:find('[%s%(%[{"\'`]$') and not text:find('^[%.,;:?!%)%]}]')
  put(words, (apart and ' ' or '') .. text .. (after:find('^[%w_]') and ' ' or ''))
end

--- Begins a new line.
---@param words agentik.Words
function M.new_line(words)
  put(words, '\n')
end

--- Where an utterance stands, if it still is what was put in.
---@param words agentik.Words
---@param utterance agentik.Utterance
---@return { row: integer, column: integer, end_row: integer, end_column: integer }?
local function range_of(words, utterance)
  local mark = api.nvim_buf_get_extmark_by_id(words.buf, NS, utterance.mark, { details = true })
  local details = mark[3]
  if not details or not details.end_row then
    return nil
  end
  local lines = api.nvim_buf_get_text(words.buf, mark[1], mark[2], details.end_row, details.end_col, {})
  if table.concat(lines, '\n') ~= utterance.text then
    return nil
  end
  return { row = mark[1], column = mark[2], end_row = details.end_row, end_column = details.end_col }
end

---@param words agentik.Words
---@param utterance agentik.Utterance
local function take_out(words, utterance)
  local range = range_of(words, utterance)
  if range then
    api.nvim_buf_set_text(words.buf, range.row, range.column, range.end_row, range.end_column, {})
  end
  api.nvim_buf_del_extmark(words.buf, NS, utterance.mark)
end

--- Takes the last utterance out again; what was changed by hand since stays.
---@param words agentik.Words
function M.scratch(words)
  local utterance = table.remove(words.utterances)
  if utterance then
    as_one_step(words.buf, function()
      take_out(words, utterance)
    end)
  end
end

--- Takes everything out that was said, as one undo step.
---@param words agentik.Words
function M.forget(words)
  if #words.utterances == 0 then
    return
  end
  as_one_step(words.buf, function()
    for index = #words.utterances, 1, -1 do
      take_out(words, words.utterances[index])
    end
  end)
  words.utterances = {}
end

--- Shows text where the next words go; none takes it away.
---@param words agentik.Words
---@param chunks [string, string][] text, highlight group
function M.show(words, chunks)
  local row, column = place_of(words)
  local before = api.nvim_buf_get_lines(words.buf, row, row + 1, true)[1]:sub(1, column)
  if #chunks > 0 and before ~= '' and not before:find('%s$') then
    table.insert(chunks, 1, { ' ', 'AgentikDictation' })
  end
  set_anchor(words, row, column, #chunks > 0 and chunks or nil)
end

--- Leaves the text alone from here on.
---@param words agentik.Words
function M.finish(words)
  if api.nvim_buf_is_valid(words.buf) then
    for _, utterance in ipairs(words.utterances) do
      api.nvim_buf_del_extmark(words.buf, NS, utterance.mark)
    end
    api.nvim_buf_del_extmark(words.buf, NS, words.anchor)
  end
end

return M
