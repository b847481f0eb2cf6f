--- Edits as Neovim shows differences: a tab page with two windows in diff mode, file by file; at the end the person is
--- back where they were. Must not answer by itself, and must not write a file.

local conversation = require('agentik.conversation')
local host = require('agentik.host')
local hub = require('agentik.hub')
local keys = require('agentik.view.keys')

local M = {}

local api = vim.api

---@class (exact) agentik.FileChange
---@field path string
---@field before string
---@field after string
---@field live boolean the second window shows the file itself

---@class (exact) agentik.DiffView
---@field changes agentik.FileChange[]
---@field index integer
---@field tab integer
---@field back integer window to return to
---@field bufs integer[] to be wiped out
---@field accept? fun()
---@field reject? fun()

--- The first place of `part` in `text`, taken literally, replaced by `by`; nil when it is not there.
---@param text string
---@param part string
---@param by string
---@return string?
local function replaced(text, part, by)
  local first, last = text:find(part, 1, true)
  return first and text:sub(1, first - 1) .. by .. text:sub(last + 1) or nil
end

--- What a file holds: its buffer where one is loaded, else the disk; '' when there is none.
---@param path string
---@return string
local function content(path)
  local state = require('agentik.buffers').read(path)
  if state.modified and state.text then
    return state.text
  end
  local file = io.open(path, 'rb')
  if not file then
    return ''
  end
  local text = file:read('*a')
  file:close()
  return text
end

--- What the agent's diff would make of the file. Many agents send only the piece that changes.
---@param diff { path: string, oldText?: string, newText: string }
---@return agentik.FileChange
local function proposed(diff)
  local now = content(diff.path)
  local old = diff.oldText
  local whole = old and old ~= '' and now ~= old and replaced(now, old, diff.newText)
  if whole then
    return { path = diff.path, before = now, after = whole, live = false }
  end
  return { path = diff.path, before = old or '', after = diff.newText, live = false }
end

---@param text string
---@param name string
---@param path string
---@return integer
local function scratch(text, name, path)
  local buf = api.nvim_create_buf(false, true)
  local lines = vim.split(text, '\n', { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  end
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  api.nvim_buf_set_name(buf, ('agentik://%s/%d/%s'):format(name, buf, vim.fs.basename(path)))
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  local filetype = vim.filetype.match({ filename = path, contents = lines })
  if filetype then
    vim.bo[buf].filetype = filetype
  end
  return buf
end

---@param view agentik.DiffView
---@return string
local function title(view)
  local change = view.changes[view.index]
  local which = #view.changes > 1 and (' (%d/%d)'):format(view.index, #view.changes) or ''
  return vim.fn.fnamemodify(change.path, ':~:.') .. which
end

---@param view agentik.DiffView
local function close(view)
  if api.nvim_tabpage_is_valid(view.tab) and #api.nvim_list_tabpages() > 1 then
    vim.cmd.tabclose(api.nvim_tabpage_get_number(view.tab))
  end
  if api.nvim_win_is_valid(view.back) then
    api.nvim_set_current_win(view.back)
  end
end

local show

---@param view agentik.DiffView
---@param step 1|-1
local function turn(view, step)
  view.index = (view.index - 1 + step) % #view.changes + 1
  show(view)
end

---@param view agentik.DiffView
---@return table<string, fun()>
local function actions(view)
  return {
    accept = view.accept and function()
      close(view)
      view.accept()
    end,
    reject = view.reject and function()
      close(view)
      view.reject()
    end,
    next_file = function()
      turn(view, 1)
    end,
    prev_file = function()
      turn(view, -1)
    end,
    close = function()
      close(view)
    end,
    help = function()
      keys.help({ 'diff' })
    end,
  }
end

---@param view agentik.DiffView
---@param side 'before'|'after'
---@param width integer
---@return string
local function bar(view, side, width)
  if side == 'before' then
    return ('%%#AgentikBarTitle# %s %%#AgentikBarHint#before'):format((title(view):gsub('%%', '%%%%')))
  end
  local words = view.accept and ' proposed' or ' now'
  local hints, taken = {}, #words + 1
  for _, hint in ipairs({ { 'accept', view.accept }, { 'reject', view.reject }, { 'close', true } }) do
    local key = hint[2] and keys.of('diff', hint[1])
    local text = key and ('%s %s  '):format(key, hint[1])
    if text and taken + #text <= width then
      taken = taken + #text
      table.insert(hints, text)
    end
  end
  return ('%%#AgentikBarTitle#%s%%=%%#AgentikBarHint#%s'):format(words, (table.concat(hints):gsub('%%', '%%%%')))
end

--- Shows the view's current file in its tab page.
---@param view agentik.DiffView
function show(view)
  local change = view.changes[view.index]
  vim.cmd('silent! only')
  vim.cmd('diffoff!')
  local before = scratch(change.before, 'before', change.path)
  local after
  if change.live then
    after = vim.fn.bufadd(change.path)
    vim.fn.bufload(after)
  else
    after = scratch(change.after, 'after', change.path)
  end
  local left = api.nvim_get_current_win()
  api.nvim_win_set_buf(left, before)
  local right = api.nvim_open_win(after, true, { split = 'right', win = left })
  for win, side in pairs({ [left] = 'before', [right] = 'after' }) do
    api.nvim_win_call(win, function()
      vim.cmd('diffthis')
    end)
    api.nvim_set_option_value('winbar', bar(view, side, api.nvim_win_get_width(win)), { scope = 'local', win = win })
  end
  for _, buf in ipairs(change.live and { before } or { before, after }) do
    keys.set(buf, 'diff', actions(view))
  end
  api.nvim_win_set_cursor(right, { 1, 0 })
  vim.cmd('silent! normal! ]c')
end

--- Opens a tab page on some changes.
---@param changes agentik.FileChange[]
---@param answers? { accept?: fun(), reject?: fun() }
function M.open(changes, answers)
  answers = answers or {}
  ---@type agentik.DiffView
  local view = {
    changes = changes,
    index = 1,
    back = api.nvim_get_current_win(),
    tab = 0,
    bufs = {},
    accept = answers.accept,
    reject = answers.reject,
  }
  vim.cmd('stopinsert')
  vim.cmd.tabnew()
  vim.bo.bufhidden = 'wipe'
  view.tab = api.nvim_get_current_tabpage()
  show(view)
end

--- Shows every file that a permission request would change.
---@param current agentik.Conversation
---@param permission table
function M.permission(current, permission)
  local diffs = (permission.toolCall or {}).diffs or {}
  if #diffs == 0 then
    hub.say('the agent did not say what it would change')
    return
  end
  local permissions = require('agentik.view.permission')
  local function answer(kinds)
    return function()
      if not permissions.answer_kind(current, permission, kinds) then
        hub.say('the agent offers no such answer: choose one of its own', vim.log.levels.WARN)
      end
    end
  end
  M.open(vim.tbl_map(proposed, diffs), {
    accept = answer({ 'allow_once', 'allow_always' }),
    reject = answer({ 'reject_once', 'reject_always' }),
  })
end

--- What the session made of each file: the diffs of its tool calls taken back from what the file holds now.
---@param diffs { path: string, oldText?: string, newText: string }[] oldest first
---@return agentik.FileChange[]
function M.summed(diffs)
  local order, by_path = {}, {}
  for _, diff in ipairs(diffs) do
    if not by_path[diff.path] then
      by_path[diff.path] = {}
      table.insert(order, diff.path)
    end
    table.insert(by_path[diff.path], diff)
  end
  local changes = {}
  for _, path in ipairs(order) do
    local now = content(path)
    local before = now
    for index = #by_path[path], 1, -1 do
      local diff = by_path[path][index]
      before = replaced(before, diff.newText, diff.oldText or '') or before
    end
    if before ~= now then
      table.insert(changes, { path = path, before = before, after = now, live = true })
    end
  end
  return changes
end

--- Shows all that the conversation's session changed.
---@param current agentik.Conversation
function M.changes(current)
  conversation.when_ready(current, function(err)
    if err then
      hub.say(err.message, vim.log.levels.WARN)
      return
    end
    host.changes(current.session_id, function(problem, diffs)
      local changes = not problem and M.summed(diffs) or {}
      if problem then
        hub.say(problem.message, vim.log.levels.WARN)
      elseif #changes == 0 then
        hub.say('this session has changed no file')
      else
        M.open(changes)
      end
    end)
  end)
end

return M
