--- What an edited pending list means: from the list as it was and the buffer as it is to edits for the server.
--- Pure: tables in, tables out. Must not know buffers, nor whether an edit is allowed.

local M = {}

---@class (exact) agentik.Segment
---@field id string
---@field lines string[]

---@class (exact) agentik.Edit
---@field op 'edit'|'move'|'remove'
---@field messageId string
---@field text? string
---@field position? integer

---@param lines string[]
---@return string
local function text_of(lines)
  return table.concat(lines, '\n')
end

--- Every place where `needle` begins in `lines`.
---@param lines string[]
---@param needle string[]
---@return integer[]
local function places(lines, needle)
  local found = {}
  for start = 1, #lines - #needle + 1 do
    local same = true
    for offset, line in ipairs(needle) do
      if lines[start + offset - 1] ~= line then
        same = false
        break
      end
    end
    if same then
      table.insert(found, start)
    end
  end
  return found
end

---@param lines string[]
---@param start integer
---@param count integer
---@return string[] before
---@return string[] after
local function without(lines, start, count)
  return vim.list_slice(lines, 1, start - 1), vim.list_slice(lines, start + count)
end

--- Where the lines of a missing item were put into those of another: nil when they are the other's own.
---@param segment agentik.Segment
---@param own string[] lines of that other item before
---@param missing string[]
---@param is_first boolean
---@return integer?
local function put_at(segment, own, missing, is_first)
  local found = places(segment.lines, missing)
  if #segment.lines <= #missing or #found <= #places(own, missing) then
    return nil
  end
  for _, start in ipairs(found) do
    local before, after = without(segment.lines, start, #missing)
    if #places(vim.list_extend(before, after), own) > 0 then
      return start
    end
  end
  -- The other was changed as well. Its first line is its own, unless the missing one was put above the first of all.
  local last = found[#found]
  return (last > 1 or is_first) and last or nil
end

--- Items that were deleted and put elsewhere (`dd`, `p`): their lines stand among those of another item.
---@param base agentik.Segment[]
---@param segments agentik.Segment[]
---@return agentik.Segment[]
local function with_moved(base, segments)
  local present, own = {}, {}
  for _, segment in ipairs(segments) do
    present[segment.id] = true
  end
  for _, item in ipairs(base) do
    own[item.id] = item.lines
  end
  -- What `u` brought back after it was removed for good is nobody's: not an item, and not a part of another.
  segments = vim.tbl_filter(function(segment)
    return own[segment.id] ~= nil
  end, segments)
  local missing = vim.tbl_filter(function(item)
    return not present[item.id] and text_of(item.lines):find('%S') ~= nil
  end, base)
  -- Longest first: a short item may be part of a long one.
  table.sort(missing, function(a, b)
    return #a.lines > #b.lines
  end)
  for _, item in ipairs(missing) do
    for index, segment in ipairs(segments) do
      local start = put_at(segment, own[segment.id] or {}, item.lines, index == 1)
      if start then
        local before, after = without(segment.lines, start, #item.lines)
        table.insert(segments, #before == 0 and index or index + 1, { id = item.id, lines = item.lines })
        -- What stands below the moved lines still belongs to the item above them.
        segment.lines = vim.list_extend(before, after)
        break
      end
    end
  end
  return segments
end

--- Positions (in `current`) of a longest run that is in order already: the others are moved.
---@param target string[]
---@param current string[]
---@return table<string, boolean>
local function in_order(target, current)
  local place = {}
  for index, id in ipairs(current) do
    place[id] = index
  end
  local best, before = {}, {}
  local last = 0
  for index, id in ipairs(target) do
    best[index] = 1
    for earlier = 1, index - 1 do
      if place[target[earlier]] < place[id] and best[earlier] + 1 > best[index] then
        best[index], before[index] = best[earlier] + 1, earlier
      end
    end
    if last == 0 or best[index] > best[last] then
      last = index
    end
  end
  local kept = {}
  while last ~= 0 and last do
    kept[target[last]] = true
    last = before[last]
  end
  return kept
end

---@param target string[]
---@param current string[] is changed
---@return agentik.Edit[]
local function moves(target, current)
  local kept = in_order(target, current)
  local edits = {}
  for index, id in ipairs(target) do
    if not kept[id] then
      local from = 0
      for at, each in ipairs(current) do
        from = each == id and at or from
      end
      table.remove(current, from)
      local position = 0
      for at, each in ipairs(current) do
        position = each == target[index - 1] and at or position
      end
      table.insert(current, position + 1, id)
      table.insert(edits, { op = 'move', messageId = id, position = position })
    end
  end
  return edits
end

--- The edits that lead from `base` to `segments`, in the order in which they are to be carried out: removals, texts,
--- moves (each position as it is after the edits before it).
---@param base agentik.Segment[] the list as it was shown
---@param segments agentik.Segment[] what stands in the buffer; lines of a missing item may be part of another's
---@return agentik.Edit[]
function M.plan(base, segments)
  segments = with_moved(base, vim.deepcopy(segments))
  local wanted = {}
  for _, segment in ipairs(segments) do
    wanted[segment.id] = segment
  end
  local edits, current, target = {}, {}, {}
  for _, item in ipairs(base) do
    if not wanted[item.id] then
      table.insert(edits, { op = 'remove', messageId = item.id })
    else
      table.insert(current, item.id)
    end
  end
  for _, item in ipairs(base) do
    local segment = wanted[item.id]
    if segment and text_of(segment.lines) ~= text_of(item.lines) then
      table.insert(edits, { op = 'edit', messageId = item.id, text = text_of(segment.lines) })
    end
  end
  for _, segment in ipairs(segments) do
    table.insert(target, segment.id)
  end
  return vim.list_extend(edits, moves(target, current))
end

--- The list that results when all edits are applied: the next base.
---@param base agentik.Segment[]
---@param segments agentik.Segment[]
---@return agentik.Segment[]
function M.result(base, segments)
  return with_moved(base, vim.deepcopy(segments))
end

return M
