--- The session as Markdown, in a file or a new buffer. The text is the server's.

local host = require('agentik.host')
local hub = require('agentik.hub')
local reveal = require('agentik.view.reveal')

local M = {}

---@param text string
local function warn(text)
  hub.say(text, vim.log.levels.WARN)
end

--- A file name for a session: what of its title is safe in one.
---@param session table Session
---@return string
local function name_of(session)
  local name = vim.trim(session.title):gsub('[%c%s/\\:*?"<>|]+', '-'):gsub('^[.-]+', ''):gsub('-+$', '')
  return (name ~= '' and vim.fn.strcharpart(name, 0, 60) or session.sessionId) .. '.md'
end

---@param path string as a person writes it
---@param session table Session
---@return string absolute
local function target_of(path, session)
  -- Not expand(): `$` and `#` are characters like any other.
  if path == '~' or vim.startswith(path, '~/') then
    path = vim.uv.os_homedir() .. path:sub(2)
  end
  local absolute = vim.startswith(path, '/') and path or vim.fn.getcwd() .. '/' .. path
  if vim.fn.isdirectory(absolute) == 1 then
    return absolute:gsub('/+$', '') .. '/' .. name_of(session)
  end
  return absolute
end

---@param target string
---@param text string
---@return string? problem
local function write(target, text)
  local file, problem = io.open(target, 'wb')
  if not file then
    return problem
  end
  local ok, failure = file:write(text)
  local closed, late = file:close()
  return not ok and failure or not closed and late or nil
end

---@param text string
---@param session table Session
local function show(text, session)
  local buf = vim.api.nvim_create_buf(true, false)
  local lines = vim.split(text, '\n', { plain = true })
  if lines[#lines] == '' then
    table.remove(lines)
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  pcall(vim.api.nvim_buf_set_name, buf, vim.fn.getcwd() .. '/' .. name_of(session))
  vim.bo[buf].filetype = 'markdown'
  vim.bo[buf].modified = false -- looked at and thrown away without a question; `:w` keeps it
  local win = reveal.window()
  vim.api.nvim_win_set_buf(win, buf)
  vim.api.nvim_set_current_win(win)
end

--- Exports a session: to a file, into a folder under its title, or without a path into a buffer.
---@param session table Session
---@param path? string
---@param overwrite? boolean
function M.session(session, path, overwrite)
  host.call('exportSession', { sessionId = session.sessionId, format = 'markdown' }, function(err, result)
    if err then
      return warn(err.message)
    elseif not path or path == '' then
      return show(result.text, session)
    end
    local target = target_of(path, session)
    if vim.uv.fs_stat(target) and not overwrite then
      return warn(('%s exists: add ! to write over it'):format(vim.fn.fnamemodify(target, ':~:.')))
    end
    local problem = write(target, result.text)
    if problem then
      warn('cannot write ' .. problem)
    else
      hub.say('written to ' .. vim.fn.fnamemodify(target, ':~:.'))
    end
  end)
end

return M
