--- Finds the files that fit what is typed, best first. Pure: a list and a pattern in, paths out; knows no buffer.
---
--- matchfuzzy() ranks well but takes too long for 100,000 paths, so a first pass keeps those that have all characters
--- in order, those first whose file name has them, and only these are ranked. Typing on narrows the last result.

local M = {}

local byte = string.byte -- called some million times a key

-- So many of each class go into the ranking.
local RANKED = 500

---@class agentik.complete.Narrowed
---@field list agentik.complete.FileList
---@field count integer length of the list when it was looked through
---@field pattern string
---@field indexes integer[]

---@type agentik.complete.Narrowed?
local last = nil

--- True when `text` has all of `bytes` in order from its place `from` on.
---@param text string
---@param from integer
---@param bytes integer[]
---@return boolean
local function has_in_order(text, from, bytes)
  local wanted, at = bytes[1], 1
  for i = from, #text do
    if byte(text, i) == wanted then
      at = at + 1
      wanted = bytes[at]
      if not wanted then
        return true
      end
    end
  end
  return false
end

---@param text string
---@param from integer
---@param bytes integer[]
---@return boolean
local function begins_at(text, from, bytes)
  for i = 1, #bytes do
    if byte(text, from + i - 1) ~= bytes[i] then
      return false
    end
  end
  return true
end

--- 1: the name begins with the pattern, 2: the name has its characters, 3: the path has them, nil: it does not fit.
---@param text string
---@param start integer where the name begins
---@param bytes integer[] of the pattern
---@return integer?
local function class_of(text, start, bytes)
  if has_in_order(text, start, bytes) then
    return begins_at(text, start, bytes) and 1 or 2
  elseif start > 1 and has_in_order(text, 1, bytes) then
    return 3
  end
end

---@param list agentik.complete.FileList
---@param pattern string
---@return integer[]? indexes nil: the whole list
local function candidates(list, pattern)
  local fits = last and last.list == list and last.count == #list.paths and vim.startswith(pattern, last.pattern)
  return fits and last.indexes or nil
end

---@param list agentik.complete.FileList
---@param pattern string in lower case
---@return string[][] paths of the three classes
local function look_through(list, pattern)
  local bytes = { pattern:byte(1, -1) }
  local from = candidates(list, pattern)
  local classes, indexes = { {}, {}, {} }, {}
  local lower, names = list.lower, list.names
  local function look_at(index)
    local class = class_of(lower[index], names[index], bytes)
    if class then
      indexes[#indexes + 1] = index
      local found = classes[class]
      if #found < RANKED then
        found[#found + 1] = list.paths[index]
      end
    end
  end
  if from then
    for n = 1, #from do
      look_at(from[n])
    end
  else
    for index = 1, #lower do
      look_at(index)
    end
  end
  last = { list = list, count = #lower, pattern = pattern, indexes = indexes }
  return classes
end

--- At most `limit` paths that have all characters of `typed` in order (case does not matter), best first.
---@param list agentik.complete.FileList
---@param typed string
---@param limit integer
---@return string[]
function M.files(list, typed, limit)
  if typed == '' then
    return vim.list_slice(list.paths, 1, limit)
  end
  local result = {}
  for _, found in ipairs(look_through(list, typed:lower())) do
    if #result < limit and #found > 0 then
      -- matchfuzzy() takes a blank for an end of a word; in a path it is a character.
      local ranked = typed:find(' ', 1, true) and found or vim.fn.matchfuzzy(found, typed)
      vim.list_extend(result, ranked, 1, limit - #result)
    end
  end
  return result
end

return M
