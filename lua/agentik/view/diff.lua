--- Changes as Neovim shows differences: a tab page with two windows in diff mode, file by file, and a list of the files
--- where there are several; at the end the person is back where they were. Must not answer by itself, and must not
--- write a file.

local bar = require('agentik.view.bar')
local hub = require('agentik.hub')
local keys = require('agentik.view.keys')
local lent = require('agentik.view.lent_keys')
local reveal = require('agentik.view.reveal')
local rows = require('agentik.view.rows')

local M = {}

local api = vim.api
local NARROW = 90
local LIST_HEIGHT = 8

---@class (exact) agentik.Answers
---@field id string of the request
---@field key integer of its conversation
---@field accept? { label: string, run: fun() }
---@field reject? { label: string, run: fun() }

---@class (exact) agentik.DiffView
---@field changes agentik.FileChange[]
---@field labels { title: string, before: string, after: string }
---@field index integer
---@field tab integer
---@field back integer window to return to
---@field typing boolean the person was in insert mode
---@field wins { before: integer, after: integer, list?: integer }
---@field lent fun()[] give keys back that were mapped in a buffer of the person
---@field answers? agentik.Answers
---@field closing boolean

---@type agentik.DiffView[]
local views = {}

---@param view agentik.DiffView
local function release(view)
  for _, give_back in ipairs(view.lent) do
    give_back()
  end
  view.lent = {}
end

--- Ends the view: the tab page goes, and the person is where they were.
---@param view agentik.DiffView
local function close(view)
  if view.closing then
    return
  end
  view.closing = true
  views = vim.tbl_filter(function(other)
    return other ~= view
  end, views)
  release(view)
  if api.nvim_tabpage_is_valid(view.tab) then
    api.nvim_set_current_tabpage(view.tab)
    vim.cmd('silent! diffoff!')
    local ok = #api.nvim_list_tabpages() > 1 and pcall(vim.cmd.tabclose)
    if not ok then
      vim.cmd('silent! only')
    end
  end
  if api.nvim_win_is_valid(view.back) then
    api.nvim_set_current_win(view.back)
    if view.typing then
      api.nvim_feedkeys('gi', 'n', false)
    end
  end
end

--- Names a buffer for bars and tab line; another view may show the same file.
---@param buf integer
---@param short string
local function name(buf, short)
  if not pcall(api.nvim_buf_set_name, buf, 'agentik://' .. short) then
    api.nvim_buf_set_name(buf, ('agentik://%d/%s'):format(buf, short))
  end
end

--- A buffer with a text that only is looked at, in the colours of the file: no language server, no autocommand of a
--- file type.
---@param text string
---@param side string
---@param path string
---@return integer
local function scratch(text, side, path)
  local buf = api.nvim_create_buf(false, true)
  local lines = vim.split(text, '\n', { plain = true })
  if #lines > 1 and lines[#lines] == '' then
    table.remove(lines)
  end
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  name(buf, ('%s/%s'):format(side, vim.fn.fnamemodify(path, ':~:.')))
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  local filetype = vim.filetype.match({ filename = path, contents = lines })
  if filetype then
    local language = vim.treesitter.language.get_lang(filetype) or filetype
    if not pcall(vim.treesitter.start, buf, language) then
      vim.bo[buf].syntax = filetype
    end
  end
  return buf
end

local show

---@param view agentik.DiffView
---@param index integer
local function go(view, index)
  view.index = (index - 1) % #view.changes + 1
  show(view)
end

---@param view agentik.DiffView
---@param answer? { label: string, run: fun() }
---@return fun()?
local function answering(view, answer)
  return answer and function()
    close(view)
    answer.run()
  end
end

---@param view agentik.DiffView
---@return table<string, fun()>
local function actions(view)
  local several = #view.changes > 1
  return {
    accept = answering(view, view.answers and view.answers.accept),
    reject = answering(view, view.answers and view.answers.reject),
    next_file = several and function()
      go(view, view.index + 1)
    end or nil,
    prev_file = several and function()
      go(view, view.index - 1)
    end or nil,
    close = function()
      close(view)
    end,
    help = function()
      keys.help({ 'diff' })
    end,
  }
end

---@param wanted [string, string?][] action, what it does; without the second there is no such key
---@return agentik.Chunk[]
local function hints(wanted)
  local chunks = {}
  for _, hint in ipairs(wanted) do
    local key = hint[2] and keys.of('diff', hint[1])
    if key then
      table.insert(chunks, { ('%s %s  '):format(key, hint[2]), 'BarHint' })
    end
  end
  return chunks
end

---@param view agentik.DiffView
local function write_bars(view)
  local change, count = view.changes[view.index], #view.changes
  local answers = view.answers or {}
  local before = change.is_new and 'a new file' or view.labels.before
  local path = vim.fn.fnamemodify(change.path, ':~:.')
  bar.set(view.wins.before, { { (' %s '):format(path), 'BarTitle' }, { before, 'BarHint' } }, {})
  local after = { { (' %s '):format(view.labels.after), 'BarTitle' } }
  if change.note then
    table.insert(after, { change.note, 'BarWarning' })
  end
  local answer = {
    { 'accept', answers.accept and answers.accept.label },
    { 'reject', answers.reject and answers.reject.label },
  }
  local leave = { { 'close', 'back' }, { 'help', 'keys' } }
  if view.wins.list then
    local title = { { (' %s (%d/%d) '):format(view.labels.title, view.index, count), 'BarTitle' } }
    bar.set(view.wins.list, title, hints({ leave[1], { 'next_file', 'next file' }, leave[2] }))
  else
    vim.list_extend(answer, leave)
  end
  bar.set(view.wins.after, after, hints(answer))
end

--- Shows the view's current file.
---@param view agentik.DiffView
function show(view)
  local change = view.changes[view.index]
  release(view)
  local bufs = { before = scratch(change.before, 'before', change.path) }
  bufs.after = change.is_file and reveal.load(change.path) or scratch(change.after, 'after', change.path)
  for _, side in ipairs({ 'before', 'after' }) do
    api.nvim_win_call(view.wins[side], function()
      vim.cmd('diffoff')
      api.nvim_win_set_buf(0, bufs[side])
    end)
  end
  for _, side in ipairs({ 'before', 'after' }) do
    api.nvim_win_call(view.wins[side], function()
      vim.cmd('diffthis')
    end)
  end
  keys.set(bufs.before, 'diff', actions(view))
  if change.is_file then
    table.insert(view.lent, lent.borrow(bufs.after, 'diff', actions(view)))
  else
    keys.set(bufs.after, 'diff', actions(view))
  end
  write_bars(view)
  if view.wins.list then
    api.nvim_win_set_cursor(view.wins.list, { view.index, 0 })
  end
  api.nvim_win_call(view.wins.after, function()
    vim.cmd('keepjumps normal! gg')
    vim.cmd('silent! keepjumps normal! ]czz')
  end)
end

--- The list of the files, above the two windows.
---@param view agentik.DiffView
local function open_list(view)
  local changes = require('agentik.changes')
  local paths = vim.tbl_map(function(change)
    return vim.fn.fnamemodify(change.path, ':~:.')
  end, view.changes)
  local width = rows.width(paths, math.max(20, vim.o.columns - 24))
  local lines = {}
  for index, change in ipairs(view.changes) do
    local added, removed = changes.size(change)
    local size = ('+%d -%d'):format(added, removed) .. (change.is_new and '  new' or '')
    table.insert(lines, (' %s  %s'):format(rows.cell(paths[index], width), size))
  end
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].filetype = 'agentik-changes'
  name(buf, 'changes')
  local height = math.min(#lines, LIST_HEIGHT) + 1 -- with its bar
  local win = api.nvim_open_win(buf, false, { split = 'above', win = -1, height = height })
  view.wins.list = win
  local options = { winfixheight = true, winfixbuf = true, cursorline = true, number = false, signcolumn = 'no' }
  for name, value in pairs(vim.tbl_extend('error', options, { relativenumber = false, wrap = false, list = false })) do
    api.nvim_set_option_value(name, value, { scope = 'local', win = win })
  end
  local open = {
    open = function()
      go(view, api.nvim_win_get_cursor(0)[1])
      api.nvim_set_current_win(view.wins.after)
    end,
  }
  keys.set(buf, 'diff', vim.tbl_extend('error', actions(view), open))
end

--- Opens a tab page on some changes.
---@param changes agentik.FileChange[]
---@param labels { title: string, before: string, after: string } what this is, what the two sides are
---@param answers? agentik.Answers
function M.open(changes, labels, answers)
  ---@type agentik.DiffView
  local view = {
    changes = changes,
    labels = labels,
    index = 1,
    tab = 0,
    back = api.nvim_get_current_win(),
    typing = api.nvim_get_mode().mode:sub(1, 1) == 'i',
    wins = {},
    lent = {},
    answers = answers,
    closing = false,
  }
  vim.cmd('stopinsert')
  vim.cmd('tabnew')
  vim.bo.bufhidden = 'wipe'
  view.tab = api.nvim_get_current_tabpage()
  view.wins.before = api.nvim_get_current_win()
  local split = vim.o.columns < NARROW and 'below' or 'right'
  view.wins.after = api.nvim_open_win(0, true, { split = split, win = view.wins.before })
  if #changes > 1 then
    open_list(view)
  end
  table.insert(views, view)
  show(view)
end

--- Shows every file that a permission request would change; the answer is the agent's own option that fits.
---@param current agentik.Conversation
---@param permission table
function M.permission(current, permission)
  local diffs = (permission.toolCall or {}).diffs or {}
  if #diffs == 0 then
    hub.say('the agent did not say what it would change')
    return
  end
  for _, view in ipairs(views) do
    if view.answers and view.answers.id == permission.permissionId then
      api.nvim_set_current_win(view.wins.after)
      return
    end
  end
  local permissions = require('agentik.view.permission')
  ---@param kinds string[]
  local function answer(kinds)
    local option = permissions.option_of(permission, kinds)
    return option and {
      label = option.name,
      run = function()
        permissions.send(current, permission, option.optionId)
      end,
    }
  end
  local title = permission.toolCall.title or 'the agent asks'
  local labels = { title = title, before = 'now', after = 'as the agent wants it' }
  M.open(require('agentik.changes').proposed(diffs), labels, {
    id = permission.permissionId,
    key = current.key,
    accept = answer({ 'allow_once', 'allow_always' }),
    reject = answer({ 'reject_once', 'reject_always' }),
  })
end

--- Shows all that the conversation's session changed.
---@param current agentik.Conversation
function M.changes(current)
  require('agentik.conversation').when_ready(current, function(err)
    if err then
      hub.say(err.message, vim.log.levels.WARN)
      return
    end
    require('agentik.host').changes(current.session_id, function(problem, diffs)
      if problem then
        hub.say(problem.message, vim.log.levels.WARN)
        return
      end
      local changes = require('agentik.changes').made(diffs)
      if #changes == 0 then
        hub.say('this session has changed no file')
      else
        M.open(changes, { title = 'Changed', before = 'before the session', after = 'now' })
      end
    end)
  end)
end

-- A request that somebody else answered cannot be answered here any more.
hub.on('changed', function(current, part)
  if part ~= 'permissions' then
    return
  end
  local open = {}
  for _, permission in ipairs(current.permissions) do
    open[permission.permissionId] = true
  end
  for _, view in ipairs(vim.list_slice(views)) do
    if view.answers and view.answers.key == current.key and not open[view.answers.id] then
      close(view)
      hub.say('this request is not open any more')
    end
  end
end)

api.nvim_create_autocmd('WinClosed', {
  group = api.nvim_create_augroup('agentik.diff', {}),
  callback = function(event)
    local win = tonumber(event.match)
    for _, view in ipairs(vim.list_slice(views)) do
      if not view.closing and (view.wins.before == win or view.wins.after == win) then
        vim.schedule(hub.guard(function()
          close(view) -- `:q` in one of them is meant for both
        end))
      end
    end
  end,
})

return M
