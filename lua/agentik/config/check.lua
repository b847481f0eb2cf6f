--- Checks a value against a type in LuaCATS notation and finds "did you mean". Pure: knows no option, shows nothing.

local M = {}

local WORDS = {
  boolean = 'true or false',
  string = 'a string',
  integer = 'a whole number',
  number = 'a number',
  table = 'a table',
  ['string[]'] = 'a list of strings',
}

--- How a type reads in a message: `"right"|"left"` → `"right" or "left"`.
---@param type_name string
---@return string
function M.describe(type_name)
  local bare = type_name:gsub('%?$', '')
  local words = {}
  for _, base in ipairs(vim.split(bare, '|', { plain = true })) do
    table.insert(words, WORDS[base] or base)
  end
  local last = table.remove(words)
  return #words == 0 and last or table.concat(words, ', ') .. ' or ' .. last
end

---@param value any
---@param base string one member of a union
---@return boolean
local function is(value, base)
  local literal = base:match('^"(.*)"$')
  if literal then
    return value == literal
  end
  local item = base:match('^(.*)%[%]$')
  if item then
    return type(value) == 'table'
      and vim.islist(value)
      and vim.iter(value):all(function(v)
        return is(v, item)
      end)
  end
  if base == 'integer' then
    return type(value) == 'number' and value % 1 == 0
  end
  return type(value) == base
end

--- True when `value` fits `type_name`; nil fits only a type that ends in `?`.
---@param value any
---@param type_name string
---@return boolean
function M.fits(value, type_name)
  local bare, optional = type_name:gsub('%?$', '')
  if value == nil then
    return optional == 1
  end
  for _, base in ipairs(vim.split(bare, '|', { plain = true })) do
    if is(value, base) then
      return true
    end
  end
  return false
end

--- Edit distance (insert, delete, replace, swap of neighbours).
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local rows = { [0] = {} }
  for j = 0, #b do
    rows[0][j] = j
  end
  for i = 1, #a do
    rows[i] = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      local best = math.min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, rows[i - 2][j - 2] + 1)
      end
      rows[i][j] = best
    end
  end
  return rows[#a][#b]
end

--- The known name that was most likely meant, or nil when none is near.
---@param name string
---@param known string[]
---@return string?
function M.nearest(name, known)
  local best, best_distance = nil, math.max(1, math.floor(#name / 3)) + 1
  for _, candidate in ipairs(known) do
    local d = distance(name:lower(), candidate:lower())
    if d < best_distance then
      best, best_distance = candidate, d
    end
  end
  return best
end

--- A value as it reads in a message: one line, not longer than 40 characters.
---@param value any
---@return string
function M.show(value)
  local text = vim.inspect(value, { newline = ' ', indent = '' })
  text = text:gsub('%s+', ' ')
  if #text > 40 then
    text = vim.fn.strcharpart(text, 0, 39) .. '…'
  end
  return text
end

return M
