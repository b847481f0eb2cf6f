--- The identifiers that the person has in view: what is said is written as one of them where it sounds so. Collected
--- once, when a dictation starts, and cheaply: it must not be felt. Must not know what is done with them.

local M = {}

local api = vim.api
local MOST = 1500
local NEAR = 150
local LINES = 1000
local LONGEST_LINE = 500

---@class (exact) agentik.Names
---@field list string[]
---@field seen table<string, boolean> words, and pieces of buffers, that were looked at

--- Whether a word is made of several: only such a name is written differently from how it is said.
---@param word string
---@return boolean
local function is_compound(word)
  for _, joint in ipairs({ '%w_+%w', '%l%u', '%a%d', '%u%u%l' }) do
    if word:find(joint) then
      return true
    end
  end
  return false
end

---@param names agentik.Names
---@param word string
local function add(names, word)
  names.seen[word] = true
  if #names.list < MOST and #word <= 64 then
    table.insert(names.list, word)
  end
end

---@param names agentik.Names
---@param lines string[]
local function add_lines(names, lines)
  for _, line in ipairs(lines) do
    if #line <= LONGEST_LINE then -- longer ones are data, not code
      for word in line:gmatch('[%a_][%w_]+') do
        if not names.seen[word] then
          names.seen[word] = true
          if is_compound(word) then
            add(names, word)
          end
        end
      end
    end
  end
end

---@param names agentik.Names
---@param buf integer
---@param first integer 0-based
---@param last integer exclusive
local function add_buffer(names, buf, first, last)
  local key = ('%d:%d:%d'):format(buf, first, last)
  if not names.seen[key] then
    names.seen[key] = true
    add_lines(names, api.nvim_buf_get_lines(buf, math.max(0, first), math.max(0, last), false))
  end
end

--- The loaded buffer of a path.
---@param path string
---@return integer?
local function loaded(path)
  local buf = vim.fn.bufnr('^' .. vim.fn.escape(path, '[]*?{}\\^$') .. '$')
  return buf > 0 and api.nvim_buf_is_loaded(buf) and buf or nil
end

---@param names agentik.Names
---@param attachments agentik.Attachment[]
local function add_attachments(names, attachments)
  for _, attachment in ipairs(attachments) do
    add(names, vim.fs.basename(attachment.path))
    local buf = loaded(attachment.path)
    if attachment.text then
      add_lines(names, vim.list_slice(vim.split(attachment.text, '\n', { plain = true }), 1, LINES))
    elseif buf then
      add_buffer(names, buf, 0, LINES)
    end
  end
end

--- Names in the windows of this tab page and in the attachments, the nearest to what the person looks at first.
---@param own string[] names that come before all others
---@param attachments agentik.Attachment[]
---@return string[]
function M.collect(own, attachments)
  ---@type agentik.Names
  local names = { list = {}, seen = {} }
  for _, word in ipairs(own) do
    add(names, word)
  end
  local wins = api.nvim_tabpage_list_wins(0)
  for _, win in ipairs(wins) do
    local buf = api.nvim_win_get_buf(win)
    if vim.bo[buf].buftype == '' and api.nvim_buf_get_name(buf) ~= '' then
      add(names, vim.fs.basename(api.nvim_buf_get_name(buf)))
    end
    add_buffer(names, buf, vim.fn.line('w0', win) - 1 - NEAR, vim.fn.line('w$', win) + NEAR)
  end
  add_attachments(names, attachments)
  for _, win in ipairs(wins) do
    add_buffer(names, api.nvim_win_get_buf(win), 0, LINES)
  end
  return names.list
end

return M
