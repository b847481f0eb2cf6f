--- Bars over windows, made of pieces of text with their highlight groups: cut to the width there is. Must not know what
--- they say.

local config = require('agentik.config')

local M = {}

local api = vim.api

---@alias agentik.Chunk [string, string] text, group without `Agentik`

--- A text that Neovim's bars show as it is.
---@param text string
---@return string
function M.escaped(text)
  return (text:gsub('%%', '%%%%'):gsub('[\n\r]', ' '))
end

---@param chunks agentik.Chunk[]
---@return string
---@return integer width
local function drawn(chunks)
  local parts, width = {}, 0
  for _, chunk in ipairs(chunks) do
    parts[#parts + 1] = ('%%#Agentik%s#%s'):format(chunk[2], M.escaped(chunk[1]))
    width = width + vim.api.nvim_strwidth(chunk[1])
  end
  return table.concat(parts), width
end

--- What of the chunks has room: the last one that fits in part ends with an ellipsis.
---@param chunks agentik.Chunk[]
---@param room integer
---@return agentik.Chunk[]
local function cut(chunks, room)
  local kept = {}
  for _, chunk in ipairs(chunks) do
    local width = vim.api.nvim_strwidth(chunk[1])
    if width > room then
      local ellipsis = config.icons().ellipsis
      local length = math.max(room - vim.api.nvim_strwidth(ellipsis), 0)
      table.insert(kept, { vim.fn.strcharpart(chunk[1], 0, length) .. ellipsis, chunk[2] })
      return kept
    end
    room = room - width
    table.insert(kept, chunk)
  end
  return kept
end

--- A bar of some width. What stands at the right gives way piece by piece where there is no room, the first one last.
---@param left agentik.Chunk[]
---@param right agentik.Chunk[]
---@param width integer
---@return string
local function bar(left, right, width)
  local text, taken = drawn(cut(left, width))
  for count = #right, 1, -1 do
    local details, more = drawn(vim.list_slice(right, 1, count))
    if taken + more <= width then
      return text .. '%=' .. details .. '%*'
    end
  end
  return text .. '%*'
end

--- Writes the bar of a window, unless it says so already.
---@param win? integer
---@param left agentik.Chunk[]
---@param right agentik.Chunk[]
function M.set(win, left, right)
  if not win or not api.nvim_win_is_valid(win) then
    return
  end
  local text = bar(left, right, api.nvim_win_get_width(win))
  if vim.wo[win].winbar ~= text then
    api.nvim_set_option_value('winbar', text, { scope = 'local', win = win })
  end
end

return M
