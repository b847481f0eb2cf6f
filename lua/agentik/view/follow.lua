--- Follow mode: shows the file and line where the agent works, in a window of the person's files. Off by default. Must
--- not take the focus, open a window, or touch the window in which the person is.

local config = require('agentik.config')
local conversation = require('agentik.conversation')
local hub = require('agentik.hub')
local layout = require('agentik.view.layout')
local reveal = require('agentik.view.reveal')

local M = {}

local api = vim.api
local NS = api.nvim_create_namespace('agentik.follow')
local LARGEST = 2 * 1024 * 1024

---@type boolean? nil: as the option says
local switched = nil
---@type integer?
local window = nil
---@type table<string, string> session -> place that was shown last
local shown = {}
---@type integer?
local marked = nil

---@return boolean
function M.is_on()
  if switched ~= nil then
    return switched
  end
  return config.get().follow
end

--- Forgets the mark on the line.
local function unmark()
  if marked and api.nvim_buf_is_valid(marked) then
    api.nvim_buf_clear_namespace(marked, NS, 0, -1)
  end
  marked = nil
end

--- Switches it on or off until Neovim ends.
function M.toggle()
  switched = not M.is_on()
  shown = {}
  unmark()
  hub.say(switched and 'follow mode is on' or 'follow mode is off')
end

--- The window to show places in: the one of the last time, else another window of files that the person is not in.
---@return integer?
local function target()
  local current = api.nvim_get_current_win()
  local previous = vim.fn.win_getid(vim.fn.winnr('#'))
  for _, win in ipairs({ window or 0, previous, unpack(api.nvim_tabpage_list_wins(0)) }) do
    local valid = win ~= 0 and win ~= current and api.nvim_win_is_valid(win)
    local here = valid and api.nvim_win_get_tabpage(win) == api.nvim_get_current_tabpage()
    if here and reveal.is_usable(win) and not vim.wo[win].diff then
      return win
    end
  end
end

---@param path string
---@return boolean
local function is_worth_showing(path)
  local stat = vim.uv.fs_stat(path)
  return stat ~= nil and stat.type == 'file' and stat.size <= LARGEST
end

---@param win integer
---@param buf integer
---@param line? integer 1-based
local function show(win, buf, line)
  if api.nvim_win_get_buf(win) ~= buf then
    local ok = pcall(api.nvim_win_set_buf, win, buf)
    if not ok then
      return -- its buffer is unsaved and 'hidden' is off
    end
  end
  window = win
  unmark()
  if not line then
    return
  end
  line = math.max(1, math.min(line, api.nvim_buf_line_count(buf)))
  api.nvim_win_set_cursor(win, { line, 0 })
  api.nvim_win_call(win, function()
    vim.cmd('keepjumps normal! zvzz')
  end)
  api.nvim_buf_set_extmark(buf, NS, line - 1, 0, { line_hl_group = 'AgentikFollow' })
  marked = buf
end

---@param session_id string
---@param place { path: string, line?: integer }
local function follow(session_id, place)
  local current = conversation.of_session(session_id)
  local name = ('%s:%d'):format(place.path, place.line or 0)
  if not current or not layout.is_visible(current) or shown[session_id] == name then
    return
  end
  local win = is_worth_showing(place.path) and target()
  if not win then
    return
  end
  shown[session_id] = name
  local ok, buf = pcall(reveal.load, place.path)
  if ok then
    show(win, buf, place.line)
  else
    hub.log(('follow: %s: %s'):format(place.path, buf))
  end
end

hub.on('event', function(name, params)
  if not M.is_on() then
    return
  end
  if name == 'messageUpdated' and params.kind == 'tool' and params.locations then
    local place = params.locations[#params.locations]
    if place and type(place.path) == 'string' then
      follow(params.sessionId, place)
    end
  elseif name == 'turnEnded' then
    shown[params.sessionId] = nil
    unmark()
  end
end)

return M
