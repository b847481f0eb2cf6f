--- Where the windows of a layout stand and how large they are. Must not decide which of them are open.

local config = require('agentik.config')

local M = {}

local api = vim.api
local LEAST_WIDTH = 42
local LEAST_CHAT = 3

---@param wanted number columns or lines, or a part of `room` below 1
---@param room integer
---@param least integer
---@return integer
local function size(wanted, room, least)
  local absolute = wanted < 1 and math.floor(room * wanted) or math.floor(wanted)
  return math.max(1, math.min(math.max(absolute, least), room - 10))
end

---@return integer
local function lines_on_screen()
  return vim.o.lines - vim.o.cmdheight - 1
end

---@class (exact) agentik.Box
---@field row integer
---@field col integer
---@field width integer
---@field height integer of all windows together, borders not counted

---@return agentik.Box
local function float_box()
  local options = config.get().layout
  local width = size(math.max(options.width, 0.7), vim.o.columns, LEAST_WIDTH)
  local height = size(math.max(options.height, 0.8), lines_on_screen(), 15)
  local row = math.max(0, math.floor((lines_on_screen() - height) / 2) - 1)
  return { row = row, col = math.floor((vim.o.columns - width) / 2), width = width, height = height }
end

--- Makes the tab page of a layout that wants one of its own.
---@param layout agentik.Layout
function M.begin(layout)
  if config.get().layout.position == 'tab' then
    vim.cmd('tab split')
    layout.tab = api.nvim_get_current_tabpage()
  end
end

---@param layout agentik.Layout
---@param buf integer
---@return integer win
local function open_chat(layout, buf)
  local options = config.get().layout
  local position = options.position
  if layout.wins.compose then -- it was closed alone
    return api.nvim_open_win(buf, false, { split = 'above', win = layout.wins.compose })
  elseif position == 'tab' then
    return api.nvim_get_current_win()
  elseif position == 'left' or position == 'right' then
    local width = size(options.width, vim.o.columns, LEAST_WIDTH)
    return api.nvim_open_win(buf, false, { split = position, win = -1, width = width })
  end
  local split = position == 'top' and 'above' or 'below'
  local height = size(options.height, lines_on_screen(), 10)
  return api.nvim_open_win(buf, false, { split = split, win = -1, height = height })
end

---@param buf integer
---@param part agentik.Part
---@return integer win
local function open_float(buf, part)
  local box = float_box()
  return api.nvim_open_win(buf, false, {
    relative = 'editor',
    row = box.row,
    col = box.col,
    width = box.width,
    height = 2, -- the bar needs one of them
    border = 'rounded',
    zindex = part == 'chat' and 40 or 41,
  })
end

--- Whether the screen has room for the window of the pending list.
---@param layout agentik.Layout
---@return boolean
function M.has_room(layout)
  local floats = config.get().layout.position == 'float'
  return floats or api.nvim_win_get_height(layout.wins.chat) >= LEAST_CHAT + 4
end

--- Opens the window of a part, without going there.
---@param layout agentik.Layout
---@param part agentik.Part
---@param buf integer
---@return integer win
function M.open(layout, part, buf)
  local win
  if config.get().layout.position == 'float' then
    win = open_float(buf, part)
  elseif part == 'chat' then
    win = open_chat(layout, buf)
  elseif part == 'compose' then
    local height = config.get().layout.compose_min_height + 1
    win = api.nvim_open_win(buf, false, { split = 'below', win = layout.wins.chat, height = height })
  else
    win = api.nvim_open_win(buf, false, { split = 'below', win = layout.wins.chat, height = 2 })
  end
  vim.wo[win].winfixheight = part ~= 'chat'
  vim.wo[win].winfixwidth = vim.list_contains({ 'left', 'right' }, config.get().layout.position)
  return win
end

--- Lines that the text of a window takes on the screen, with its bar.
---@param win integer
---@param most integer
---@return integer
local function text_height(win, most)
  -- Counting stops early: a pasted file of a megabyte must not be measured at each key.
  local rows = math.min(api.nvim_buf_line_count(api.nvim_win_get_buf(win)), most)
  local height = api.nvim_win_text_height(win, { start_row = 0, end_row = rows - 1 }).all
  return math.min(height, most) + (vim.wo[win].winbar ~= '' and 1 or 0)
end

---@param layout agentik.Layout
---@return integer compose
---@return integer? pending
local function heights(layout)
  local options = config.get().layout
  local compose = math.max(text_height(layout.wins.compose, options.compose_max_height), options.compose_min_height + 1)
  local pending = layout.wins.pending and text_height(layout.wins.pending, options.pending_height)
  return compose, pending
end

---@param win integer
---@param height integer
local function set_height(win, height)
  if api.nvim_win_get_height(win) ~= height then
    api.nvim_win_set_height(win, height)
  end
end

--- A window that shows all of its text begins with the first line.
---@param win? integer
local function show_from_top(win)
  if not win then
    return
  end
  api.nvim_win_call(win, function()
    if vim.fn.line('w0') > 1 and api.nvim_win_text_height(win, {}).all <= api.nvim_win_get_height(win) then
      vim.fn.winrestview({ topline = 1 })
    end
  end)
end

---@param layout agentik.Layout
local function fit_floats(layout)
  local box = float_box()
  local compose, pending = heights(layout)
  local borders = pending and 6 or 4
  local chat = math.max(LEAST_CHAT, box.height - compose - (pending or 0) - borders)
  local row = box.row
  for _, part in ipairs({ { 'chat', chat }, { 'pending', pending }, { 'compose', compose } }) do
    local win = layout.wins[part[1]]
    if win and part[2] then
      local place = { relative = 'editor', row = row, col = box.col, width = box.width, height = part[2] }
      api.nvim_win_set_config(win, place)
      row = row + part[2] + 2
    end
  end
end

--- Gives every window of the layout the height that its text needs; the chat gets the rest.
---@param layout agentik.Layout
function M.fit(layout)
  if config.get().layout.position == 'float' then
    fit_floats(layout)
    return
  end
  local compose, pending = heights(layout)
  local room = api.nvim_win_get_height(layout.wins.chat) + api.nvim_win_get_height(layout.wins.compose)
  if layout.wins.pending then
    room = room + api.nvim_win_get_height(layout.wins.pending)
  end
  compose = math.max(2, math.min(compose, room - LEAST_CHAT - (pending or 0)))
  if pending and layout.wins.pending then
    set_height(layout.wins.pending, math.max(1, math.min(pending, room - LEAST_CHAT - compose)))
  end
  set_height(layout.wins.compose, compose)
  for _, part in ipairs({ 'pending', 'compose' }) do
    show_from_top(layout.wins[part])
  end
end

return M
