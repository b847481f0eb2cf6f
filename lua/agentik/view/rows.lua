--- Rows of the lists that vim.ui.select shows: columns of one width, cut to the screen. Must not know what is listed.

local M = {}

local api = vim.api

--- When something was, as short as it can be said: time of today, else the day.
---@param milliseconds integer since the epoch
---@return string
function M.day(milliseconds)
  local seconds = math.floor(milliseconds / 1000)
  local today = os.date('%Y-%m-%d') == os.date('%Y-%m-%d', seconds)
  return tostring(os.date(today and '%H:%M' or '%Y-%m-%d', seconds))
end

--- A text of one line, filled up or cut to a width in cells. (Not measured by strdisplaywidth(): it counts what the
--- current window would wrap.)
---@param text string
---@param width integer
---@return string
function M.cell(text, width)
  text = text:gsub('%s+', ' ')
  local taken = api.nvim_strwidth(text)
  if taken <= width then
    return text .. (' '):rep(width - taken)
  end
  local count = math.max(width - 1, 0)
  local kept = vim.fn.strcharpart(text, 0, count)
  while count > 0 and api.nvim_strwidth(kept) >= width do
    count = count - 1
    kept = vim.fn.strcharpart(text, 0, count)
  end
  return kept .. '…' .. (' '):rep(width - api.nvim_strwidth(kept) - 1)
end

--- The width of the widest text, but not more than `most`.
---@param texts string[]
---@param most integer
---@return integer
function M.width(texts, most)
  local width = 0
  for _, text in ipairs(texts) do
    width = math.max(width, api.nvim_strwidth(text))
  end
  return math.min(width, most)
end

--- Cells that a row may take: the number that Neovim's own list puts before it has to fit too.
---@return integer
function M.room()
  return vim.o.columns - 7
end

return M
