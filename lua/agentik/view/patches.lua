--- Brings a chat buffer where the host wants it: lines, marks and blocks, as patches made for exactly the buffer as it
--- is. The only writer of chat buffers. Must not look at text: structure is in the blocks' extmarks.

local code = require('agentik.view.code')
local folds = require('agentik.view.folds')
require('agentik.highlight')

local M = {}

local api = vim.api
local NS = api.nvim_create_namespace('agentik.marks')
local BLOCKS = api.nvim_create_namespace('agentik.blocks')

---@class (exact) agentik.Meta
---@field id string message or request
---@field kind 'user'|'agent'|'thought'|'tool'|'plan'|'notice'|'ask'|'more'
---@field height integer lines
---@field fold? [integer, integer, boolean] first and last line from the start of the block, closed at first

---@class agentik.Patch
---@field block integer
---@field row? integer first line that is replaced, or the line that `text` is added to
---@field del? integer
---@field lines? string[]
---@field text? string[] added to the end of line `row`
---@field height? integer of the block, with `text`
---@field at? integer first line of the block
---@field meta? agentik.Meta
---@field gone? boolean
---@field clear? [integer, integer] lines whose marks are set anew
---@field spans? [integer, integer, integer, string][]
---@field fills? [integer, string][]
---@field signs? [integer, string, string][]
---@field codes? [integer, integer, string][]

---@class (exact) agentik.Canvas
---@field tick integer changedtick after our last change
---@field metas table<integer, agentik.Meta>

---@type table<integer, agentik.Canvas>
local canvases = {}

--- Makes `buf` one that takes patches.
---@param buf integer
function M.attach(buf)
  canvases[buf] = { tick = -1, metas = {} }
  api.nvim_buf_attach(buf, false, {
    on_detach = function()
      canvases[buf] = nil
    end,
  })
end

---@param buf integer
---@param patch agentik.Patch
local function set_marks(buf, patch)
  if patch.clear then
    api.nvim_buf_clear_namespace(buf, NS, patch.clear[1], patch.clear[2])
    code.clear(buf, patch.clear[1], patch.clear[2])
  end
  for _, span in ipairs(patch.spans or {}) do
    local mark = { end_col = span[3], hl_group = 'Agentik' .. span[4] }
    mark.conceal = span[4] == 'Markup' and '' or nil
    api.nvim_buf_set_extmark(buf, NS, span[1], span[2], mark)
  end
  for _, fill in ipairs(patch.fills or {}) do
    api.nvim_buf_set_extmark(buf, NS, fill[1], 0, { line_hl_group = 'Agentik' .. fill[2], priority = 50 })
  end
  for _, sign in ipairs(patch.signs or {}) do
    local mark = { sign_text = sign[2], sign_hl_group = 'Agentik' .. sign[3] }
    api.nvim_buf_set_extmark(buf, NS, sign[1], 0, mark)
  end
  for _, block in ipairs(patch.codes or {}) do
    code.add(buf, block[1], block[2], block[3])
  end
end

---@param buf integer
---@param canvas agentik.Canvas
---@param patch agentik.Patch
local function set_block(buf, canvas, patch)
  if patch.gone then
    canvas.metas[patch.block] = nil
    api.nvim_buf_del_extmark(buf, BLOCKS, patch.block)
    return
  end
  if patch.at then
    api.nvim_buf_set_extmark(buf, BLOCKS, patch.at, 0, { id = patch.block })
  end
  if patch.meta then
    canvas.metas[patch.block] = patch.meta
  elseif patch.height then
    canvas.metas[patch.block].height = patch.height
  end
end

---@param buf integer
---@param patch agentik.Patch
local function set_text(buf, patch)
  if patch.text then
    api.nvim_buf_set_text(buf, patch.row, -1, patch.row, -1, patch.text)
  elseif patch.lines then
    if patch.del > 0 then
      api.nvim_buf_clear_namespace(buf, NS, patch.row, patch.row + patch.del)
      code.clear(buf, patch.row, patch.row + patch.del)
    end
    api.nvim_buf_set_lines(buf, patch.row, patch.row + patch.del, true, patch.lines)
  end
end

--- The lines of a drawing for an empty buffer: each patch stands below the one before it.
---@param patches agentik.Patch[]
---@return string[]
local function lines_of(patches)
  local lines = {}
  for _, patch in ipairs(patches) do
    vim.list_extend(lines, patch.lines or {})
  end
  return #lines > 0 and lines or { '' }
end

--- Puts `lines` into the buffer but touches only those that differ, so that views and cursors stay.
---@param buf integer
---@param lines string[]
local function replace(buf, lines)
  local old = api.nvim_buf_get_lines(buf, 0, -1, true)
  local least = math.min(#old, #lines)
  local head, tail = 0, 0
  while head < least and old[head + 1] == lines[head + 1] do
    head = head + 1
  end
  while tail < least - head and old[#old - tail] == lines[#lines - tail] do
    tail = tail + 1
  end
  api.nvim_buf_set_lines(buf, head, #old - tail, true, vim.list_slice(lines, head + 1, #lines - tail))
end

---@param buf integer
---@param canvas agentik.Canvas
---@param patches agentik.Patch[]
local function redraw(buf, canvas, patches)
  canvas.metas = {}
  replace(buf, lines_of(patches))
  api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  api.nvim_buf_clear_namespace(buf, BLOCKS, 0, -1)
  code.clear(buf, 0, -1)
  for _, patch in ipairs(patches) do
    set_marks(buf, patch)
    set_block(buf, canvas, patch)
  end
end

--- Windows whose cursor is on the last line: they follow what is added there. A selection is never moved.
---@param buf integer
---@return integer[]
local function followers(buf)
  local last = api.nvim_buf_line_count(buf)
  local selecting = vim.tbl_contains({ 'v', 'V', '\22', 's', 'S', '\19' }, api.nvim_get_mode().mode:sub(1, 1))
  return vim.tbl_filter(function(win)
    if selecting and win == api.nvim_get_current_win() then
      return false
    end
    local line = api.nvim_win_get_cursor(win)[1]
    return line >= last or folds.last_line(win, line) >= last
  end, vim.fn.win_findbuf(buf))
end

--- Brings the last line to the bottom where a fold or a shorter block left empty rows below it.
---@param win integer
local function sink(win)
  api.nvim_win_call(win, function()
    if vim.fn.line('w0') > 1 then
      vim.cmd('noautocmd normal! zb')
    end
  end)
end

---@param buf integer
---@param wins integer[]
---@param patches agentik.Patch[]
local function follow(buf, wins, patches)
  if #wins == 0 then
    return
  end
  local last = api.nvim_buf_line_count(buf)
  -- The last column: else the end of a line that is taller than the window would be out of sight.
  local column = #api.nvim_buf_get_lines(buf, last - 1, last, true)[1]
  for _, win in ipairs(wins) do
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == buf then
      api.nvim_win_set_cursor(win, { last, column })
      if vim.iter(patches):any(function(patch)
        return patch.lines ~= nil or patch.meta ~= nil
      end) then
        sink(win)
      end
    end
  end
end

--- Draws one frame. False: the buffer was changed by somebody else, it has to be drawn anew.
---@param buf integer
---@param chat { reset: boolean, patches: agentik.Patch[] }
---@return boolean
function M.apply(buf, chat)
  local canvas = canvases[buf]
  if not chat.reset and api.nvim_buf_get_changedtick(buf) ~= canvas.tick then
    return false
  end
  local wins = followers(buf)
  vim.bo[buf].modifiable = true
  local ok, problem = pcall(function()
    if chat.reset then
      redraw(buf, canvas, chat.patches)
      return
    end
    for _, patch in ipairs(chat.patches) do
      set_text(buf, patch)
      set_marks(buf, patch)
      set_block(buf, canvas, patch)
    end
  end)
  vim.bo[buf].modifiable = false
  vim.bo[buf].modified = false
  canvas.tick = api.nvim_buf_get_changedtick(buf)
  if not ok then
    require('agentik.hub').log('patch: ' .. problem)
    return chat.reset
  end
  if chat.reset then
    folds.update(buf, M.folded(buf))
  else
    M.fold(buf, chat.patches)
  end
  follow(buf, wins, chat.patches)
  return true
end

--- Makes the folds of the blocks that were drawn.
---@param buf integer
---@param patches agentik.Patch[]
function M.fold(buf, patches)
  local seen, changed = {}, {}
  for _, patch in ipairs(patches) do
    if not patch.gone and not seen[patch.block] and (patch.lines or patch.meta) then
      seen[patch.block] = true
      local block = M.block(buf, patch.block)
      if block and block.meta.fold then
        changed[#changed + 1] = block
      end
    end
  end
  if #changed > 0 then
    folds.update(buf, changed)
  end
end

---@class (exact) agentik.Block
---@field number integer
---@field row integer first line, 0-based
---@field meta agentik.Meta

--- A block by its number.
---@param buf integer
---@param number integer
---@return agentik.Block?
function M.block(buf, number)
  local meta = canvases[buf] and canvases[buf].metas[number]
  local mark = meta and api.nvim_buf_get_extmark_by_id(buf, BLOCKS, number, {})
  return meta and { number = number, row = mark[1], meta = meta }
end

--- The blocks that pass a test, from top to bottom.
---@param buf integer
---@param test fun(meta: agentik.Meta): any
---@return agentik.Block[]
local function blocks_where(buf, test)
  local blocks = {}
  for number, meta in pairs(canvases[buf].metas) do
    if test(meta) then
      blocks[#blocks + 1] = M.block(buf, number)
    end
  end
  table.sort(blocks, function(one, other)
    return one.row < other.row
  end)
  return blocks
end

--- The blocks that have a fold, from top to bottom.
---@param buf integer
---@return agentik.Block[]
function M.folded(buf)
  return blocks_where(buf, function(meta)
    return meta.fold
  end)
end

--- The block of a message or a request.
---@param buf integer
---@param id string
---@return agentik.Block?
function M.of_item(buf, id)
  return blocks_where(buf, function(meta)
    return meta.id == id
  end)[1]
end

local SOME = 50

--- The blocks that begin at a line or below it (`step` 1) or above it (-1), the nearest first. Of a long transcript it
--- asks for no more than are used.
---@param buf integer
---@param row integer 0-based
---@param step 1|-1
---@return fun(): agentik.Block?
function M.from(buf, row, step)
  local marks, index = {}, 0
  local function more()
    local last = step > 0 and -1 or 0
    marks = row >= 0 and api.nvim_buf_get_extmarks(buf, BLOCKS, { row, 0 }, last, { limit = SOME }) or {}
    index = 0
    row = marks[1] and marks[#marks][2] + step or -1
  end
  return function()
    if index == #marks then
      more()
    end
    index = index + 1
    return marks[index] and M.block(buf, marks[index][1])
  end
end

--- The block in which a line stands.
---@param buf integer
---@param row integer 0-based
---@return agentik.Block?
function M.at(buf, row)
  local marks = api.nvim_buf_get_extmarks(buf, BLOCKS, { row, -1 }, 0, { limit = 1 })
  return marks[1] and M.block(buf, marks[1][1])
end

return M
