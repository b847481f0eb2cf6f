--- The bytes of a file and the lines and options of a buffer, one from the other, exactly (B50).
--- Touches no window and changes no buffer. Text is UTF-8 as in the protocol; a byte order mark is never part of it.

local M = {}

local BOM = '\239\187\191'

---@class (exact) agentik.buffers.Content
---@field lines string[] at least one
---@field fileformat 'unix'|'dos'|'mac'
---@field endofline boolean a line end after the last line
---@field bomb boolean

---@param text string
---@param separator string
---@return string[] lines
---@return boolean endofline
local function split(text, separator)
  local lines = vim.split(text, separator, { plain = true })
  local endofline = #lines > 1 and lines[#lines] == ''
  if endofline then
    lines[#lines] = nil
  end
  return lines, endofline
end

--- Every \n has its \r before it, and there is one at least.
---@param text string
---@return boolean
local function is_dos(text)
  if not text:find('\r', 1, true) then
    return false
  end
  local _, all = text:gsub('\n', '')
  local _, pairs_of_both = text:gsub('\r\n', '')
  return all > 0 and all == pairs_of_both
end

--- Lines and options that make Neovim write exactly `text`.
---
--- The line ends are those of the text: \r\n throughout is "dos", anything else "unix", where a stray \r stays in its
--- line. A text without any line end says nothing, so the file keeps its format. A byte order mark in the text sets
--- 'bomb'; a text without one keeps the mark of the file, since agents get the text without it.
---@param text string
---@param buf integer whose format and byte order mark are kept where the text says nothing
---@return agentik.buffers.Content
function M.from_text(text, buf)
  local bomb = vim.bo[buf].bomb
  if vim.startswith(text, BOM) then
    text, bomb = text:sub(#BOM + 1), true
  end
  local fileformat = vim.bo[buf].fileformat
  if vim.bo[buf].binary then
    fileformat = 'unix'
  elseif is_dos(text) then
    fileformat = 'dos'
  elseif text:find('\n', 1, true) then
    fileformat = 'unix'
  elseif fileformat == 'mac' and not text:find('\r', 1, true) then
    fileformat = 'mac'
  elseif fileformat == 'dos' and text:find('\r', 1, true) then
    fileformat = 'unix'
  end
  local lines, endofline = split(text, ({ unix = '\n', dos = '\r\n', mac = '\r' })[fileformat])
  return { lines = lines, fileformat = fileformat, endofline = endofline, bomb = bomb }
end

--- True when the buffer stands for a file without a byte. Its one empty line could as well be a line end alone.
---@param buf integer
---@return boolean
function M.is_empty(buf)
  if vim.api.nvim_buf_line_count(buf) > 1 or vim.api.nvim_buf_get_lines(buf, 0, 1, true)[1] ~= '' then
    return false
  end
  return vim.api.nvim_buf_call(buf, vim.fn.wordcount).bytes == 0
end

--- The text of the buffer with the line ends of its file, and with the final one only where the file has it.
---@param buf integer loaded
---@return string
function M.of_buffer(buf)
  local options = vim.bo[buf]
  if M.is_empty(buf) then
    return ''
  end
  local line_end = options.binary and '\n' or ({ unix = '\n', dos = '\r\n', mac = '\r' })[options.fileformat]
  local text = table.concat(vim.api.nvim_buf_get_lines(buf, 0, -1, false), line_end)
  if options.endofline then
    text = text .. line_end
  end
  -- A CTRL-Z at the end of a DOS file is an option in Neovim, not a character.
  return options.endoffile and text .. '\26' or text
end

--- True when `text` is UTF-8 throughout: nothing else may go over the wire.
---@param text string
---@return boolean
function M.is_utf8(text)
  -- Neovim converts nothing from UTF-8 to UTF-8; what is invalid does not come back from UTF-16.
  local utf16 = vim.iconv(text, 'utf-8', 'utf-16le')
  return utf16 ~= nil and vim.iconv(utf16, 'utf-16le', 'utf-8') == text
end

---@param buf integer
---@return string
local function encoding(buf)
  local fileencoding = vim.bo[buf].fileencoding
  return fileencoding == '' and 'utf-8' or fileencoding
end

--- The bytes that the file must have, or nil when the encoding of the file cannot hold the text.
--- For encodings that this cannot tell (UTF-16 and the like) `exact` is false and Neovim's own check has to do.
---@param text string
---@param buf integer
---@param bomb boolean
---@return string? bytes
---@return boolean exact
function M.to_bytes(text, buf, bomb)
  local name = encoding(buf)
  local bare = vim.startswith(text, BOM) and text:sub(#BOM + 1) or text
  if name == 'utf-8' then
    return (bomb and BOM or '') .. bare, true
  end
  if name:match('^u[tc][fs]%-') then
    return bare, false
  end
  local bytes = vim.iconv(bare, 'utf-8', name)
  -- iconv may put a "?" for what it cannot write: only a text that comes back the same is right.
  if bytes == nil or vim.iconv(bytes, name, 'utf-8') ~= bare then
    return nil, true
  end
  return bytes, true
end

--- The text in the bytes of a file, decoded as the buffer's file is. Nil when they do not fit that encoding.
---@param bytes string
---@param buf integer
---@return string?
function M.from_bytes(bytes, buf)
  local name = encoding(buf)
  if name == 'utf-8' then
    local bare = vim.startswith(bytes, BOM) and bytes:sub(#BOM + 1) or bytes
    return M.is_utf8(bare) and bare or nil
  end
  local text = vim.iconv(bytes, name, 'utf-8')
  return text and (text:gsub('^' .. BOM, '')) or nil
end

return M
