--- Files of the agent that are open here (B50): answers agentik/readBuffer and agentik/writeBuffer, and shows what
--- the agent wrote on disk. Must never overwrite unsaved edits without a word, nor write a byte that nobody asked for.
---
--- Autocommands: what the agent writes is stored without BufWrite autocommands, so that a formatter cannot change it
--- behind the agent's back; language servers hear of the save all the same. `buffers.autocmds = true` runs them.
--- `User AgentikFileWritten` (data: path, buf) comes after each write.

local config = require('agentik.config')
local patch = require('agentik.buffers.patch')
local save = require('agentik.buffers.save')
local text_of = require('agentik.buffers.text')

local M = {}

---@class (exact) agentik.buffers.ReadResult
---@field loaded boolean
---@field modified boolean
---@field text? string only when modified: else the disk has it
---@field reason? string why there is no text although modified

---@class (exact) agentik.buffers.WriteResult
---@field applied boolean
---@field loaded boolean false: not open here, the file on disk is the server's to write
---@field reason? string one line; only when refused

--- What tells one file from another, links resolved; also for a file that does not exist yet.
---@param path string
---@return string
local function identity(path)
  local stat = vim.uv.fs_stat(path)
  if stat then
    return stat.dev .. ':' .. stat.ino
  end
  local folder = vim.uv.fs_realpath(vim.fs.dirname(path))
  return (folder or vim.fs.dirname(path)) .. '/' .. vim.fs.basename(path)
end

---@param buf integer
---@return boolean
local function holds_file(buf)
  return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and vim.api.nvim_buf_get_name(buf) ~= ''
end

--- The loaded buffer of a file, by what the path leads to; the one with unsaved changes where there are several.
---@param path string absolute
---@return integer?
function M.find(path)
  local wanted, found = identity(path), nil
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if holds_file(buf) and identity(vim.api.nvim_buf_get_name(buf)) == wanted then
      if vim.bo[buf].modified then
        return buf
      end
      found = found or buf
    end
  end
  return found
end

--- Answers agentik/readBuffer.
---@param path string absolute
---@return agentik.buffers.ReadResult
function M.read(path)
  local buf = M.find(path)
  if not buf then
    return { loaded = false, modified = false }
  end
  if not vim.bo[buf].modified then
    return { loaded = true, modified = false }
  end
  local text = text_of.of_buffer(buf)
  if not text_of.is_utf8(text) then
    return { loaded = true, modified = true, reason = 'the unsaved text is not UTF-8' }
  end
  return { loaded = true, modified = true, text = text }
end

--- True when the text has all that the user changed since the file was saved.
---@param buf integer
---@param text string
---@return boolean
local function keeps_unsaved_edits(buf, text)
  local lines = vim.api.nvim_buf_get_lines(buf, 0, -1, true)
  local bytes = save.read_file(vim.api.nvim_buf_get_name(buf)) or ''
  local saved = text_of.from_bytes(bytes, buf)
  return saved ~= nil
    and patch.keeps_changes(text_of.from_text(saved, buf).lines, lines, text_of.from_text(text, buf).lines)
end

---@param path string
---@param buf integer
local function announce(path, buf)
  vim.api.nvim_exec_autocmds('User', { pattern = 'AgentikFileWritten', data = { path = path, buf = buf } })
end

--- Puts the text into the buffer and the file whatever is unsaved there (it stays in the undo history).
---@param path string
---@param buf integer
---@param text string
---@return agentik.buffers.WriteResult
function M.take(path, buf, text)
  local reason = save.put(buf, text)
  if reason then
    return { applied = false, loaded = true, reason = reason }
  end
  announce(path, buf)
  return { applied = true, loaded = true }
end

--- Answers agentik/writeBuffer. Unsaved edits that `text` does not hold are kept: the write is refused with the reason,
--- and the user is asked which of the two shall be (agentik.buffers.conflict).
---@param path string absolute
---@param text string
---@return agentik.buffers.WriteResult
function M.write(path, text)
  local buf = M.find(path)
  if not buf then
    return { applied = false, loaded = false }
  end
  local unsaved = vim.bo[buf].modified and not keeps_unsaved_edits(buf, text)
  if unsaved and config.get().buffers.conflict ~= 'take' then
    local conflict = require('agentik.buffers.conflict')
    return { applied = false, loaded = true, reason = conflict.open(path, buf, text) }
  end
  return M.take(path, buf, text)
end

--- Makes the buffer what the disk has before Neovim reloads it: so marks, folds and extmarks stay with their lines.
---@param buf integer not modified
---@return string choice for v:fcs_choice
local function prepare_reload(buf)
  local bytes = save.read_file(vim.api.nvim_buf_get_name(buf))
  local text = bytes and text_of.from_bytes(bytes, buf)
  local content = text and text_of.from_text(text, buf)
  if not content or content.fileformat ~= vim.bo[buf].fileformat then
    return 'edit' -- another encoding or line end: Neovim has to detect them anew
  end
  save.while_modifiable(buf, function()
    patch.apply(buf, content.lines)
  end)
  vim.bo[buf].modified = false
  return 'reload'
end

--- Lets Neovim compare the buffer's file with the disk and asks `choose` what to do when it changed. No other question
--- is asked and no warning given. Only Neovim knows the time of the file it read, so it has to be the one to compare.
---@param buf integer
---@param choose fun(reason: string): string
local function compare_with_disk(buf, choose)
  local autocmd = vim.api.nvim_create_autocmd('FileChangedShell', {
    buffer = buf,
    callback = function()
      vim.v.fcs_choice = choose(vim.v.fcs_reason)
    end,
  })
  vim.api.nvim_buf_call(buf, function()
    vim.cmd('setlocal noautoread') -- else Neovim would reload without asking
    vim.cmd('silent! checktime ' .. buf)
    vim.cmd('setlocal autoread<')
  end)
  vim.api.nvim_del_autocmd(autocmd)
end

---@param buf integer
---@return boolean reloaded
local function refresh_buffer(buf)
  local reloaded = false
  compare_with_disk(buf, function(reason)
    if reason == 'conflict' then
      local path = vim.api.nvim_buf_get_name(buf)
      local text = text_of.from_bytes(save.read_file(path) or '', buf)
      if text then
        require('agentik.buffers.conflict').open(path, buf, text)
      end
      return ''
    elseif reason == 'deleted' then
      return ''
    end
    reloaded = true
    return prepare_reload(buf)
  end)
  return reloaded
end

--- Shows in open buffers what changed on disk, as `:checktime` does, but without a question in the middle of typing:
--- a buffer with unsaved edits stays as it is and the user is asked when there is time.
---@param paths? string[] absolute; left out: every open file
---@return string[] names of the buffers that were reloaded
function M.refresh(paths)
  local wanted = {}
  for _, path in ipairs(paths or {}) do
    wanted[identity(path)] = true
  end
  local reloaded = {}
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    local name = vim.api.nvim_buf_get_name(buf)
    if holds_file(buf) and (not paths or wanted[identity(name)]) and refresh_buffer(buf) then
      table.insert(reloaded, name)
    end
  end
  return reloaded
end

return M
