--- Puts a text into an open buffer and onto the disk, both or none. The only place that writes a file of the user.
--- Knows nothing of conflicts: who calls it has made sure that nothing unsaved is lost.

local config = require('agentik.config')
local patch = require('agentik.buffers.patch')
local text_of = require('agentik.buffers.text')

local M = {}

--- The bytes of a file, or nil when it cannot be read.
---@param path string
---@return string?
function M.read_file(path)
  local handle = io.open(path, 'rb')
  local bytes = handle and handle:read('*a')
  if handle then
    handle:close()
  end
  return bytes
end

--- Language servers get didSave from an autocommand that a write without autocommands does not run.
---@param buf integer
---@param text string
local function tell_language_servers(buf, text)
  for _, client in ipairs(vim.lsp.get_clients({ bufnr = buf })) do
    local sync = (client.server_capabilities or {}).textDocumentSync
    local save = type(sync) == 'table' and sync.save
    if save then
      local params = { textDocument = { uri = vim.uri_from_bufnr(buf) } }
      if type(save) == 'table' and save.includeText then
        params.text = text
      end
      if vim.fn.has('nvim-0.11') == 1 then
        client:notify('textDocument/didSave', params)
      else
        client.notify('textDocument/didSave', params)
      end
    end
  end
end

--- Runs `change` with 'modifiable' on. The agent may write what is on disk, so a buffer that is only looked at follows.
---@param buf integer
---@param change fun()
---@return boolean ok
---@return any problem
function M.while_modifiable(buf, change)
  local modifiable = vim.bo[buf].modifiable
  vim.bo[buf].modifiable = true
  local ok, problem = pcall(change)
  vim.bo[buf].modifiable = modifiable
  return ok, problem
end

---@param buf integer
---@param content agentik.buffers.Content
local function set_format(buf, content)
  local options = vim.bo[buf]
  options.fileformat, options.endofline = content.fileformat, content.endofline
  options.bomb, options.endoffile = content.bomb, false
end

---@param buf integer
local function write_file(buf)
  local fixendofline, readonly = vim.bo[buf].fixendofline, vim.bo[buf].readonly
  vim.bo[buf].fixendofline = false
  local quiet = config.get().buffers.autocmds and '' or 'noautocmd '
  local ok, problem = pcall(vim.api.nvim_buf_call, buf, function()
    vim.cmd('silent keepalt ' .. quiet .. 'write!')
  end)
  vim.bo[buf].fixendofline, vim.bo[buf].readonly = fixendofline, readonly
  if not ok then
    error(problem, 0)
  end
end

---@param problem any
---@return string one line
local function one_line(problem)
  local text = tostring(problem):gsub('^.-Vim%b():', ''):gsub('%s*\n%s*', ' ')
  return text
end

--- Puts `text` into the buffer as one undo step and onto the disk. When the disk refuses, the buffer is as before.
---@param buf integer
---@param text string
---@return string? reason nil when done
function M.put(buf, text)
  local content = text_of.from_text(text, buf)
  local bytes, exact = text_of.to_bytes(text, buf, content.bomb)
  if not bytes then
    return ('the text has characters that the encoding of the file (%s) cannot hold'):format(vim.bo[buf].fileencoding)
  end
  local options, path = vim.bo[buf], vim.api.nvim_buf_get_name(buf)
  if vim.uv.fs_stat(path) and not vim.uv.fs_access(path, 'W') then
    return 'the file may not be written'
  end
  local before = {
    lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true),
    fileformat = options.fileformat,
    endofline = options.endofline,
    bomb = options.bomb,
  }
  local modified, endoffile = options.modified, options.endoffile
  local ok, problem = M.while_modifiable(buf, function()
    vim.fn.mkdir(vim.fs.dirname(path), 'p')
    patch.apply(buf, content.lines)
    if content.endofline and text_of.is_empty(buf) then
      vim.api.nvim_buf_set_lines(buf, 0, 1, true, { '' }) -- no longer a file without a byte, but one empty line
    end
    set_format(buf, content)
    write_file(buf)
  end)
  if not ok then
    M.while_modifiable(buf, function()
      patch.apply(buf, before.lines)
      set_format(buf, before)
      options.endoffile, options.modified = endoffile, modified
    end)
    return one_line(problem)
  end
  if not config.get().buffers.autocmds then
    tell_language_servers(buf, text)
    if exact and M.read_file(path) ~= bytes then
      return 'the file on disk does not hold what was written'
    end
  end
  return nil
end

return M
