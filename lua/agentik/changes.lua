--- What diffs of an agent mean for whole files: before and after, to be compared. Agents send a whole file or only the
--- piece that changes; both are placed into what the file holds now. Reads files and buffers; must not change any, nor
--- know windows.

local buffers = require('agentik.buffers')
local text_of = require('agentik.buffers.text')

local M = {}

---@class (exact) agentik.Diff
---@field path string
---@field oldText? string left out: a new file
---@field newText string

---@class (exact) agentik.FileChange
---@field path string
---@field before string lines end with \n
---@field after string
---@field is_new boolean there was no such file
---@field is_file boolean `after` is what the file holds now: the file itself can be shown
---@field note? string why this is not the whole file

--- The first place of `part` in `text`, taken literally, replaced by `by`; nil when it is not there.
---@param text string
---@param part string
---@param by string
---@return string?
local function replaced(text, part, by)
  if part == '' then
    return nil
  end
  local first, last = text:find(part, 1, true)
  return first and text:sub(1, first - 1) .. by .. text:sub(last + 1) or nil
end

---@param text string?
---@return string
local function with_plain_line_ends(text)
  return (text or ''):gsub('\r\n', '\n')
end

--- What a file holds, unsaved text of its buffer included; nil when there is none.
---@param path string
---@return string?
function M.content(path)
  local buf = buffers.find(path)
  if buf then
    return with_plain_line_ends(text_of.of_buffer(buf))
  end
  local file = io.open(path, 'rb')
  local text = file and file:read('*a')
  if file then
    file:close()
  end
  return text and with_plain_line_ends(text)
end

--- The diffs of each file, in the order in which the files come first.
---@param diffs agentik.Diff[]
---@return { path: string, diffs: { old?: string, new: string }[] }[]
local function by_file(diffs)
  local files, known = {}, {}
  for _, diff in ipairs(diffs) do
    if not known[diff.path] then
      known[diff.path] = { path = diff.path, diffs = {} }
      table.insert(files, known[diff.path])
    end
    local old = diff.oldText
    table.insert(known[diff.path].diffs, {
      old = old and old ~= '' and with_plain_line_ends(old) or nil,
      new = with_plain_line_ends(diff.newText),
    })
  end
  return files
end

--- Carries a diff out in a text; nil when it does not fit there.
---@param text string
---@param diff { old?: string, new: string }
---@return string?
local function applied(text, diff)
  if not diff.old or text == diff.old then
    return diff.new
  end
  return replaced(text, diff.old, diff.new)
end

--- Takes a diff back; nil when the text does not hold what it made.
---@param text string
---@param diff { old?: string, new: string }
---@return string?
local function taken_back(text, diff)
  if not diff.old or text == diff.new then
    return diff.old or ''
  end
  return replaced(text, diff.new, diff.old)
end

---@param path string
---@param diff { old?: string, new: string }
---@return agentik.FileChange
local function piece(path, diff)
  local note = 'only the piece that changes: the file does not hold it as the agent knows it'
  local before = diff.old or ''
  return { path = path, before = before, after = diff.new, is_new = false, is_file = false, note = note }
end

--- What the files would become: the diffs carried out in what they hold now.
---@param diffs agentik.Diff[] of one request
---@return agentik.FileChange[]
function M.proposed(diffs)
  local changes = {}
  for _, file in ipairs(by_file(diffs)) do
    local now = M.content(file.path)
    local after, pieces = now or '', {}
    for _, diff in ipairs(file.diffs) do
      local text = applied(after, diff)
      if text then
        after = text
      else
        table.insert(pieces, piece(file.path, diff))
      end
    end
    if after ~= (now or '') or #pieces == 0 then
      local before = now or ''
      table.insert(changes, { path = file.path, before = before, after = after, is_new = not now, is_file = false })
    end
    vim.list_extend(changes, pieces)
  end
  return changes
end

--- The file before the diffs, from what it holds now; nil when it was changed so that they cannot be taken back.
---@param now string
---@param diffs { old?: string, new: string }[]
---@return string?
local function rewound(now, diffs)
  local before = now
  for index = #diffs, 1, -1 do
    local text = taken_back(before, diffs[index])
    if not text then
      return nil
    end
    before = text
  end
  return before
end

--- What the diffs make of the text that the first of them begins with; nil when they do not follow one another.
---@param diffs { old?: string, new: string }[]
---@return string?
local function played(diffs)
  local after = diffs[1].old or ''
  for _, diff in ipairs(diffs) do
    local text = applied(after, diff)
    if not text then
      return nil
    end
    after = text
  end
  return after
end

--- What was made of the files: the diffs taken back from what they hold now, else as the agent told it.
---@param diffs agentik.Diff[] of finished tool calls, oldest first
---@return agentik.FileChange[]
function M.made(diffs)
  local changes = {}
  for _, file in ipairs(by_file(diffs)) do
    local now = M.content(file.path)
    local before = now and rewound(now, file.diffs)
    local after = not before and played(file.diffs)
    local is_new = file.diffs[1].old == nil
    if now and before then
      if before ~= now then
        table.insert(changes, { path = file.path, before = before, after = now, is_new = is_new, is_file = true })
      end
    elseif after then
      local note = now and 'as the agent left it: the file was changed since' or 'the file is gone since'
      local old = file.diffs[1].old or ''
      table.insert(changes, {
        path = file.path,
        before = old,
        after = after,
        is_new = is_new,
        is_file = false,
        note = note,
      })
    else
      for _, diff in ipairs(file.diffs) do
        table.insert(changes, piece(file.path, diff))
      end
    end
  end
  return changes
end

--- Lines that a change adds and removes.
---@param change agentik.FileChange
---@return integer added
---@return integer removed
function M.size(change)
  local added, removed = 0, 0
  local hunks = vim.diff(change.before, change.after, { result_type = 'indices' })
  for _, hunk in ipairs(hunks --[[@as integer[][] ]]) do
    removed, added = removed + hunk[2], added + hunk[4]
  end
  return added, removed
end

return M
