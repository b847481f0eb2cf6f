--- Shows a file, or a long text, without taking one of our own windows for it. Must not know the chat.

local M = {}

local api = vim.api

---@param win integer
---@return boolean
local function is_ours(win)
  return vim.bo[api.nvim_win_get_buf(win)].filetype:match('^agentik%-') ~= nil
end

--- Whether a window is an ordinary one that may show a file.
---@param win integer
---@return boolean
function M.is_usable(win)
  local buf = api.nvim_win_get_buf(win)
  return not is_ours(win)
    and api.nvim_win_get_config(win).relative == ''
    and vim.bo[buf].buftype == ''
    and not vim.wo[win].winfixbuf
    and not vim.wo[win].previewwindow
end

--- The window in which the person works on files: this one, the last one, another ordinary one of the tab page.
---@return integer?
function M.find()
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  for _, win in ipairs({ api.nvim_get_current_win(), previous, unpack(api.nvim_tabpage_list_wins(0)) }) do
    if win ~= 0 and M.is_usable(win) then
      return win
    end
  end
end

--- A window for a file: that of the person, else a new one beside ours.
---@return integer
function M.window()
  return M.find() or api.nvim_open_win(api.nvim_create_buf(true, false), false, { split = 'left', win = -1 })
end

--- The loaded buffer of a file. A swap file that is there is no reason for a question.
---@param path string absolute
---@return integer
function M.load(path)
  local buf = vim.fn.bufadd(path)
  if not api.nvim_buf_is_loaded(buf) then
    local shortmess = vim.o.shortmess
    vim.o.shortmess = shortmess .. 'A'
    local ok, problem = pcall(vim.fn.bufload, buf)
    vim.o.shortmess = shortmess
    if not ok then
      error(problem, 0)
    end
    vim.bo[buf].buflisted = true
  end
  return buf
end

--- Goes to a place in a file.
---@param path string absolute
---@param line? integer 1-based
function M.file(path, line)
  local win = M.window()
  api.nvim_set_current_win(win)
  if api.nvim_buf_get_name(0) ~= path then
    vim.cmd.edit({ args = { path }, magic = { file = false, bar = false } })
  end
  if line then
    api.nvim_win_set_cursor(0, { math.max(1, math.min(line, api.nvim_buf_line_count(0))), 0 })
    vim.cmd('normal! zvzz')
  end
end

--- Shows a text in a float that `q` and `<Esc>` close.
---@param text string
---@param title string
function M.text(text, title)
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(text, '\n', { plain = true }))
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  local width, height = math.floor(vim.o.columns * 0.8), math.floor(vim.o.lines * 0.8)
  local win = api.nvim_open_win(buf, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.floor((vim.o.lines - height) / 2) - 1,
    col = math.floor((vim.o.columns - width) / 2),
    style = 'minimal',
    border = 'rounded',
    title = (' %s '):format(title),
  })
  for _, lhs in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', lhs, function()
      api.nvim_win_close(win, true)
    end, { buffer = buf, nowait = true })
  end
end

return M
