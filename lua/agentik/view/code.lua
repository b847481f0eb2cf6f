--- Colours of finished code blocks: parsed when a block comes into sight, in slices, so that no redraw waits for it.
--- No parser is attached to the buffer (45 ms a frame at 0.1 MB). Languages without a parser stay plain.

local M = {}

local api = vim.api
local BLOCKS = api.nvim_create_namespace('agentik.code')
local NS = api.nvim_create_namespace('agentik.code.marks')
local LARGEST = 64 * 1024
local SLICE = 40

---@type table<integer, table<integer, string>> buffer -> extmark -> language of blocks not coloured yet
local waiting = {}

--- What people write after a fence, where the parser has another name.
local ALIASES = {
  py = 'python',
  js = 'javascript',
  jsx = 'javascript',
  ts = 'typescript',
  rb = 'ruby',
  rs = 'rust',
  sh = 'bash',
  shell = 'bash',
  zsh = 'bash',
  yml = 'yaml',
  viml = 'vim',
  ['c++'] = 'cpp',
  golang = 'go',
  md = 'markdown',
}

--- A finished block of code in lines `first` to `last` (0-based).
---@param buf integer
---@param first integer
---@param last integer
---@param language string
function M.add(buf, first, last, language)
  local mark = api.nvim_buf_set_extmark(buf, BLOCKS, first, 0, { end_row = last + 1, strict = false })
  waiting[buf] = waiting[buf] or {}
  waiting[buf][mark] = language ~= '' and language or nil
end

--- The lines of the code block in which a line stands.
---@param buf integer
---@param row integer 0-based
---@return string[]?
function M.at(buf, row)
  local options = { overlap = true, details = true }
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, BLOCKS, { row, 0 }, { row, 0 }, options)) do
    local last = mark[4].end_row
    if mark[2] <= row and row < last then
      return api.nvim_buf_get_lines(buf, mark[2], last, false)
    end
  end
end

--- Forgets the blocks that begin in some lines, and their colours.
---@param buf integer
---@param first integer
---@param last integer exclusive, -1: to the end
function M.clear(buf, first, last)
  if waiting[buf] then
    api.nvim_buf_clear_namespace(buf, BLOCKS, first, last)
    api.nvim_buf_clear_namespace(buf, NS, first, last)
  end
end

---@param name string
---@return string? language with a parser and a query
local function language_of(name)
  local language = ALIASES[name:lower()] or vim.treesitter.language.get_lang(name:lower()) or name:lower()
  local ok, added = pcall(vim.treesitter.language.add, language)
  if ok and added ~= false and (added or vim.fn.has('nvim-0.11') == 0) then
    return language
  end
end

---@param buf integer
---@param mark integer
---@param name string
local function colour(buf, mark, name)
  local language = language_of(name)
  local query = language and vim.treesitter.query.get(language, 'highlights')
  local at = api.nvim_buf_get_extmark_by_id(buf, BLOCKS, mark, { details = true })
  if not query or not at[1] then
    return
  end
  local first, last = at[1], at[3].end_row
  local text = table.concat(api.nvim_buf_get_lines(buf, first, last, false), '\n')
  if #text > LARGEST then
    return
  end
  local root = vim.treesitter.get_string_parser(text, language):parse()[1]:root()
  local function slice(from)
    local now = api.nvim_buf_is_valid(buf) and api.nvim_buf_get_extmark_by_id(buf, BLOCKS, mark, {})[1]
    if not now or from > last - first then
      return
    end
    for id, node in query:iter_captures(root, text, from, from + SLICE) do
      local row, column, end_row, end_column = node:range()
      local group = '@' .. query.captures[id] .. '.' .. language
      if not query.captures[id]:match('^_') and query.captures[id] ~= 'spell' then
        local place = { end_row = now + end_row, end_col = end_column, hl_group = group, strict = false }
        api.nvim_buf_set_extmark(buf, NS, now + row, column, place)
      end
    end
    vim.schedule(function()
      slice(from + SLICE)
    end)
  end
  slice(0)
end

---@param buf integer
---@param top integer
---@param bottom integer
local function seen(buf, top, bottom)
  for _, mark in ipairs(api.nvim_buf_get_extmarks(buf, BLOCKS, { top, 0 }, { bottom, -1 }, { overlap = true })) do
    local language = waiting[buf][mark[1]]
    if language then
      waiting[buf][mark[1]] = nil
      vim.schedule(function()
        if api.nvim_buf_is_valid(buf) then
          colour(buf, mark[1], language)
        end
      end)
    end
  end
end

api.nvim_set_decoration_provider(api.nvim_create_namespace('agentik.code.sight'), {
  on_win = function(_, _, buf, top, bottom)
    if waiting[buf] and next(waiting[buf]) then
      seen(buf, top, bottom)
    end
    return false
  end,
})

api.nvim_create_autocmd('BufWipeout', {
  group = api.nvim_create_augroup('agentik.code', {}),
  callback = function(event)
    waiting[event.buf] = nil
  end,
})

return M
