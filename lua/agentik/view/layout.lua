--- The windows of a conversation in one tab page: chat, pending list above the compose window, compose. Opens, sizes
--- and closes them, and keeps the rest of the screen as it was. Knows buffers, not what is in them.

local chat = require('agentik.view.chat')
local compose = require('agentik.view.compose')
local config = require('agentik.config')
local conversation = require('agentik.conversation')
local geometry = require('agentik.view.geometry')
local hub = require('agentik.hub')
local pending = require('agentik.view.pending')

local M = {}

local api = vim.api

---@alias agentik.Part 'chat'|'pending'|'compose'

---@class (exact) agentik.Layout
---@field tab integer
---@field conversation agentik.Conversation
---@field wins table<agentik.Part, integer>
---@field closing boolean we close the windows ourselves

---@type table<integer, agentik.Layout> by tab page
local layouts = {}
---@type table<agentik.Part, { buffer: fun(current: agentik.Conversation): integer, dress: fun(win: integer) }>
local VIEWS = { chat = chat, pending = pending, compose = compose }
local PARTS = { 'chat', 'pending', 'compose' }

---@param win? integer
---@return boolean
local function is_valid(win)
  return win ~= nil and api.nvim_win_is_valid(win)
end

--- Runs `change` without Neovim making all windows of the screen the same size.
---@param change fun()
local function quietly(change)
  local equal = vim.o.equalalways
  vim.o.equalalways = false
  local ok, problem = pcall(change)
  vim.o.equalalways = equal
  if not ok then
    error(problem, 0)
  end
end

--- The layout of a tab page.
---@param tab? integer
---@return agentik.Layout?
function M.of_tab(tab)
  local layout = layouts[tab or api.nvim_get_current_tabpage()]
  return layout and is_valid(layout.wins.chat) and layout or nil
end

--- Every layout that is open.
---@return agentik.Layout[]
function M.all()
  return vim.tbl_filter(function(layout)
    return is_valid(layout.wins.chat)
  end, vim.tbl_values(layouts))
end

--- The layout and the part that a window is.
---@param win integer
---@return agentik.Layout?
---@return agentik.Part?
function M.of_window(win)
  for _, layout in pairs(layouts) do
    for _, part in ipairs(PARTS) do
      if layout.wins[part] == win then
        return layout, part
      end
    end
  end
end

--- Whether the conversation's chat is on the screen now.
---@param current agentik.Conversation
---@return boolean
function M.is_visible(current)
  local layout = M.of_tab()
  return layout ~= nil and layout.conversation == current
end

--- Windows of the layout's tab page that are not ours and not floats.
---@param layout agentik.Layout
---@return integer[]
local function others(layout)
  return vim.tbl_filter(function(win)
    return api.nvim_win_get_config(win).relative == '' and not vim.tbl_contains(vim.tbl_values(layout.wins), win)
  end, api.nvim_tabpage_list_wins(layout.tab))
end

---@param layout agentik.Layout
---@param part agentik.Part
local function fill(layout, part)
  local win = layout.wins[part]
  vim.wo[win].winfixbuf = false
  api.nvim_win_set_buf(win, VIEWS[part].buffer(layout.conversation))
  VIEWS[part].dress(win)
  vim.wo[win].winfixbuf = true
end

---@param layout agentik.Layout
---@param part agentik.Part
local function open(layout, part)
  local buf = VIEWS[part].buffer(layout.conversation)
  quietly(function()
    layout.wins[part] = geometry.open(layout, part, buf)
  end)
  fill(layout, part)
end

---@param layout agentik.Layout
---@param part agentik.Part
local function shut(layout, part)
  local win = layout.wins[part]
  layout.wins[part] = nil
  if is_valid(win) then
    quietly(function()
      pcall(api.nvim_win_close, win, true)
    end)
  end
end

--- Opens or closes the pending window and gives each window the height that its text needs.
---@param layout agentik.Layout
function M.fit(layout)
  if not is_valid(layout.wins.chat) or not is_valid(layout.wins.compose) then
    return
  end
  local wanted = pending.is_wanted(layout.conversation)
  local editing = is_valid(layout.wins.pending) and api.nvim_get_current_win() == layout.wins.pending
  if wanted and not is_valid(layout.wins.pending) and geometry.has_room(layout) then
    open(layout, 'pending')
    hub.emit('layout', layout)
  elseif not wanted and not editing and is_valid(layout.wins.pending) then
    shut(layout, 'pending')
  end
  quietly(function()
    geometry.fit(layout)
  end)
end

---@param layout agentik.Layout
local function to_the_end(layout)
  local win = layout.wins.chat
  local buf = api.nvim_win_get_buf(win)
  local last = api.nvim_buf_line_count(buf)
  api.nvim_win_set_cursor(win, { last, #api.nvim_buf_get_lines(buf, last - 1, last, true)[1] })
end

--- Shows a conversation in the current tab page.
---@param current agentik.Conversation
---@param focus boolean go to the compose window
---@return agentik.Layout
function M.open(current, focus)
  local tab = api.nvim_get_current_tabpage()
  local layout = M.of_tab(tab)
  if layout and layout.conversation ~= current then
    layout.conversation = current
    for _, part in ipairs(PARTS) do
      if is_valid(layout.wins[part]) then
        fill(layout, part)
      end
    end
    to_the_end(layout)
  elseif not layout then
    layout = { tab = tab, conversation = current, wins = {}, closing = false }
    geometry.begin(layout)
    layouts[layout.tab] = layout
    open(layout, 'chat')
    open(layout, 'compose')
    to_the_end(layout)
  elseif not is_valid(layout.wins.compose) then
    open(layout, 'compose')
  end
  conversation.used(current)
  M.fit(layout)
  hub.emit('layout', layout)
  if focus then
    api.nvim_set_current_win(layout.wins.compose)
  end
  return layout
end

--- Closes the windows; the work goes on.
---@param layout agentik.Layout
function M.close(layout)
  layout.closing = true
  if #others(layout) == 0 and #api.nvim_list_tabpages() == 1 then
    -- Neovim wants one window: the person's last buffer, or an empty one.
    local listed = vim.tbl_filter(function(buf)
      return vim.bo[buf].buflisted
    end, api.nvim_list_bufs())
    local buf = listed[#listed] or api.nvim_create_buf(true, false)
    api.nvim_open_win(buf, true, { split = 'left', win = -1 })
  end
  layouts[layout.tab] = nil
  for _, part in ipairs({ 'pending', 'compose', 'chat' }) do
    shut(layout, part)
  end
end

--- One of our windows was closed by the person: the others go too, unless nothing else is left (`:only`).
---@param layout agentik.Layout
---@param part agentik.Part
local function repair(layout, part)
  if layouts[layout.tab] ~= layout or not api.nvim_tabpage_is_valid(layout.tab) then
    return
  end
  if part == 'pending' then
    M.fit(layout)
  elseif #others(layout) > 0 then
    M.close(layout)
  elseif is_valid(layout.wins.chat) then
    open(layout, 'compose')
    M.fit(layout)
  elseif is_valid(layout.wins.compose) then
    open(layout, 'chat')
    to_the_end(layout)
    M.fit(layout)
  else
    layouts[layout.tab] = nil
  end
  hub.emit('layout', layout)
end

---@param win integer
local function on_closed(win)
  local layout, part = M.of_window(win)
  if not layout or not part or layout.closing then
    return
  end
  layout.wins[part] = nil
  vim.schedule(function()
    repair(layout, part)
  end)
end

--- `:q` in our last windows is meant for all of them.
local function on_quit()
  local win = api.nvim_get_current_win()
  local layout, part = M.of_window(win)
  if not layout or part == 'pending' or #others(layout) > 0 then
    return
  end
  layout.closing = true
  for _, other in ipairs(PARTS) do
    if layout.wins[other] ~= win then
      shut(layout, other)
    end
  end
  vim.schedule(function()
    layout.closing = false
    if is_valid(win) and part then
      repair(layout, part == 'chat' and 'compose' or 'chat') -- the quit was refused
    end
  end)
end

local group = api.nvim_create_augroup('agentik.layout', {})

api.nvim_create_autocmd('WinClosed', {
  group = group,
  callback = hub.guard(function(event)
    on_closed(tonumber(event.match) or 0)
  end),
})

-- `:edit!` and its like put a file into one of our windows all the same: then it is the person's.
api.nvim_create_autocmd('BufWinEnter', {
  group = group,
  callback = hub.guard(function(event)
    local win = api.nvim_get_current_win()
    local layout, part = M.of_window(win)
    if layout and part and api.nvim_win_get_buf(win) == event.buf and event.buf ~= layout.conversation.bufs[part] then
      layout.wins[part] = nil
      vim.wo[win].winfixbuf = false
      api.nvim_set_option_value('winbar', '', { scope = 'local', win = win })
      vim.schedule(function()
        repair(layout, part)
      end)
    end
  end),
})

api.nvim_create_autocmd('QuitPre', { group = group, callback = hub.guard(on_quit) })

api.nvim_create_autocmd('WinEnter', {
  group = group,
  callback = hub.guard(function()
    local layout = M.of_window(api.nvim_get_current_win())
    if layout then
      conversation.used(layout.conversation)
    end
  end),
})

api.nvim_create_autocmd('VimResized', {
  group = group,
  callback = hub.guard(function()
    for _, layout in ipairs(M.all()) do
      M.fit(layout)
    end
  end),
})

api.nvim_create_autocmd('TabClosed', {
  group = group,
  callback = hub.guard(function()
    for tab in pairs(layouts) do
      if not api.nvim_tabpage_is_valid(tab) then
        layouts[tab] = nil
      end
    end
  end),
})

---@param current agentik.Conversation
local function fit_all(current)
  for _, layout in ipairs(M.all()) do
    if layout.conversation == current then
      M.fit(layout)
    end
  end
end

hub.on('changed', function(current, part)
  if part == 'pending' then
    fit_all(current)
  end
end)
hub.on('resize', fit_all)

hub.on('gone', function(current)
  for _, layout in ipairs(M.all()) do
    if layout.conversation == current then
      M.close(layout)
    end
  end
end)

return M
