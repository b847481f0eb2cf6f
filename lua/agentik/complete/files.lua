--- The files below a folder, as git, ripgrep, fd or find list them, kept per folder. Listing runs in another process
--- and arrives in pieces: nothing here waits, also in a tree of 100,000 files. Ranks nothing (agentik.complete.match).

local M = {}

-- A longer list is cut: it is no longer of help to a person.
local MAX_FILES = 200000
-- An older list is made anew in the background while it is still used.
local FRESH_NS = 5 * 1e9

---@class agentik.complete.FileList
---@field root string
---@field paths string[] relative to root
---@field lower string[] the same in lower case
---@field names integer[] place in the path where the name of the file begins
---@field complete boolean
---@field cut boolean more than MAX_FILES
---@field made integer hrtime of the end of listing

---@type table<string, agentik.complete.FileList> by root; the newest that is worth showing
local lists = {}
---@type table<string, vim.SystemObj>
local running = {}
---@type table<string, fun()[]>
local waiting = {}

--- Commands that print paths, each ended by a NUL, from best to last resort. All but find leave out what git ignores.
---@param root string
---@return string[][]
local function commands(root)
  local result = {}
  local function add(program, command)
    if vim.fn.executable(program) == 1 then
      table.insert(result, command)
    end
  end
  if vim.fs.find('.git', { path = root, upward = true, limit = 1 })[1] then
    add('git', { 'git', 'ls-files', '-z', '--cached', '--others', '--exclude-standard' })
  end
  add('rg', { 'rg', '--files', '--null', '--hidden', '--glob', '!.git' })
  for _, fd in ipairs({ 'fd', 'fdfind' }) do
    add(fd, { fd, '--type', 'file', '--print0', '--hidden', '--exclude', '.git', '--strip-cwd-prefix' })
  end
  local hidden = { '(', '-name', '.?*', '-o', '-name', 'node_modules', ')', '-prune', '-o', '-type', 'f', '-print0' }
  add('find', vim.list_extend({ 'find', '.', '-mindepth', '1' }, hidden))
  return result
end

--- Takes the paths of one piece of output into the list. Runs outside of Neovim's main loop: plain Lua only.
---@param list agentik.complete.FileList
---@param piece string
---@return string rest the beginning of a path that is not complete yet
local function take(list, piece)
  local from = 1
  while true do
    local stop = piece:find('\0', from, true)
    if not stop then
      return piece:sub(from)
    end
    if #list.paths >= MAX_FILES then
      list.cut = true
      return ''
    end
    local path = piece:sub(from, stop - 1):gsub('^%./', '')
    local count = #list.paths
    -- In a merge git lists a file in conflict once for each side.
    if path ~= list.paths[count] then
      list.paths[count + 1] = path
      list.lower[count + 1] = path:lower()
      list.names[count + 1] = path:match('.*/()') or 1
    end
    from = stop + 1
  end
end

---@param root string
local function finished(root)
  local callbacks = waiting[root] or {}
  waiting[root], running[root] = nil, nil
  for _, callback in ipairs(callbacks) do
    callback()
  end
end

---@param root string
---@param candidates string[][] tried in turn until one does not fail
local function build(root, candidates)
  local command = table.remove(candidates, 1)
  if not command then
    finished(root)
    return
  end
  ---@type agentik.complete.FileList
  local list = { root = root, paths = {}, lower = {}, names = {}, complete = false, cut = false, made = 0 }
  -- The first list is shown while it grows; a later one takes its place when it is complete.
  lists[root] = lists[root] or list
  local rest = ''
  local function on_stdout(_, piece)
    if not piece then
      return
    end
    rest = take(list, rest .. piece)
    if list.cut and running[root] then
      running[root]:kill('sigterm')
    end
  end
  local ok, process = pcall(
    vim.system,
    command,
    { cwd = root, stdout = on_stdout, text = false },
    vim.schedule_wrap(function(result)
      if result.code ~= 0 and not list.cut and #list.paths == 0 then
        lists[root] = lists[root] ~= list and lists[root] or nil
        return build(root, candidates)
      end
      list.complete, list.made = true, vim.uv.hrtime()
      lists[root] = list
      finished(root)
    end)
  )
  if ok then
    running[root] = process
  else
    lists[root] = lists[root] ~= list and lists[root] or nil
    build(root, candidates)
  end
end

--- The files of a folder as far as they are known, and a new listing in the background when that is old.
---@param root string
---@param on_complete? fun() called once, when a listing that is still running has ended; never for a fresh list
---@return agentik.complete.FileList? nil when nothing is known yet
function M.get(root, on_complete)
  local list = lists[root]
  local fresh = list and list.complete and vim.uv.hrtime() - list.made < FRESH_NS
  if not fresh then
    waiting[root] = waiting[root] or {}
    if on_complete and not (list and list.complete) then
      table.insert(waiting[root], on_complete)
    end
    if not running[root] then
      build(root, commands(root))
    end
  end
  return list or lists[root]
end

--- True while a listing of the folder runs.
---@param root string
---@return boolean
function M.is_listing(root)
  return running[root] ~= nil
end

return M
