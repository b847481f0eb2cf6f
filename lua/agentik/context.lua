--- Makes attachments (PROTOCOL.md) of what is in the editor: selection, file, unsaved buffer, diagnostics, quickfix
--- list, changes in git, images. Sends nothing and keeps nothing; a snapshot is taken at the moment of the call.
---
--- Every function gives an attachment, or nil and one line that says why there is none. Ranges are as in LSP: 0-based
--- lines, characters in UTF-16 code units, the end exclusive; whole lines end at the start of the line after.

local region = require('agentik.context.region')
local text_of = require('agentik.buffers.text')

local M = {}

---@class (exact) agentik.Attachment
---@field path string absolute path; a name for what is no file
---@field name? string how to show it
---@field range? agentik.Range what part of the file `text` is
---@field text? string a snapshot; left out: the file itself
---@field languageId? string
---@field mimeType? string

local IMAGE_TYPES = {
  png = 'image/png',
  jpg = 'image/jpeg',
  jpeg = 'image/jpeg',
  gif = 'image/gif',
  webp = 'image/webp',
  bmp = 'image/bmp',
  svg = 'image/svg+xml',
}

--- Absolute path of the file of a buffer; for a buffer without one a name such as `unnamed 3`.
---@param buf integer
---@return string
local function path_of(buf)
  buf = buf == 0 and vim.api.nvim_get_current_buf() or buf
  local name = vim.api.nvim_buf_get_name(buf)
  if name == '' then
    return 'unnamed ' .. buf
  end
  return vim.bo[buf].buftype == '' and vim.fn.fnamemodify(name, ':p') or name
end

--- A path as a person reads it: below the working directory or the home folder without their names.
---@param path string
---@return string
local function shown(path)
  return vim.fn.fnamemodify(path, ':~:.')
end

---@param buf integer
---@return string?
local function language_of(buf)
  local filetype = vim.bo[buf].filetype
  return filetype ~= '' and filetype or nil
end

---@param attachment agentik.Attachment
---@return agentik.Attachment?
---@return string? problem
local function checked(attachment)
  if not text_of.is_utf8(attachment.text) then
    return nil, ('%s is not text in UTF-8'):format(attachment.name)
  end
  return attachment
end

---@param chosen agentik.Region
---@return agentik.Attachment?
---@return string? problem
local function of_region(chosen)
  local path = path_of(0)
  local lines = chosen.first == chosen.last and chosen.first or ('%d-%d'):format(chosen.first, chosen.last)
  return checked({
    path = path,
    name = ('%s:%s'):format(vim.fs.basename(path), lines),
    range = chosen.range,
    text = chosen.text,
    languageId = language_of(0),
  })
end

--- True when the range of a command is that of the last visual selection, which may be parts of lines.
---@param command agentik.CommandRange
---@return boolean
local function is_visual_range(command)
  return command.range == 2
    and command.line1 == vim.fn.line("'<")
    and command.line2 == vim.fn.line("'>")
    and vim.fn.visualmode() ~= 'V'
end

---@class agentik.CommandRange what a user command gets, see |nvim_create_user_command()|
---@field range integer number of items in the range: 0, 1 or 2
---@field line1 integer
---@field line2 integer

--- What is selected in the current window: the running visual mode, or the range of a command (a count is a range too).
---@param command? agentik.CommandRange
---@return agentik.Attachment?
---@return string? problem
function M.selection(command)
  if region.in_visual_mode() then
    return of_region(region.visual())
  elseif not command or command.range == 0 then
    return nil, 'nothing is selected'
  elseif is_visual_range(command) then
    return of_region(region.last_visual())
  end
  return of_region(region.lines(command.line1, command.line2))
end

--- A file on disk, or an image.
---@param path string absolute or relative to the working directory; `~` is the home folder
---@return agentik.Attachment?
---@return string? problem
function M.file(path)
  -- Not expand(): `$` and `#` are characters like any other.
  if path == '~' or vim.startswith(path, '~/') then
    path = vim.uv.os_homedir() .. path:sub(2)
  end
  local absolute = vim.fs.normalize(vim.startswith(path, '/') and path or vim.uv.cwd() .. '/' .. path, {
    expand_env = false,
  })
  local stat = vim.uv.fs_stat(absolute)
  if not stat then
    return nil, ('there is no file %s'):format(shown(absolute))
  elseif stat.type ~= 'file' then
    return nil, ('%s is not a file'):format(shown(absolute))
  elseif not vim.uv.fs_access(absolute, 'R') then
    return nil, ('%s may not be read'):format(shown(absolute))
  end
  local extension = absolute:match('%.(%w+)$')
  return {
    path = absolute,
    name = vim.fs.basename(absolute),
    mimeType = extension and IMAGE_TYPES[extension:lower()],
  }
end

--- A whole buffer: its text when it is unsaved or has no file, else the file.
---@param buf? integer
---@return agentik.Attachment?
---@return string? problem
function M.buffer(buf)
  buf = (buf or 0) == 0 and vim.api.nvim_get_current_buf() or buf
  local path = path_of(buf)
  local saved = not vim.bo[buf].modified and vim.bo[buf].buftype == '' and vim.uv.fs_stat(path)
  if saved then
    local attachment, problem = M.file(path)
    if attachment then
      attachment.languageId = language_of(buf)
    end
    return attachment, problem
  end
  local text = text_of.of_buffer(buf)
  if text == '' then
    return nil, ('%s is empty'):format(shown(path))
  end
  return checked({ path = path, name = vim.fs.basename(path), text = text, languageId = language_of(buf) })
end

--- An image file.
---@param path string
---@return agentik.Attachment?
---@return string? problem
function M.image(path)
  local attachment, problem = M.file(path)
  if attachment and not attachment.mimeType then
    return nil, ('%s is not an image that agents take (png, jpg, gif, webp, bmp, svg)'):format(attachment.name)
  end
  return attachment, problem
end

local SEVERITIES = { 'error', 'warning', 'info', 'hint' }

---@param diagnostic vim.Diagnostic
---@param path string
---@return string
local function diagnostic_lines(diagnostic, path)
  local from = table.concat(
    vim.tbl_filter(function(part)
      return part ~= ''
    end, { diagnostic.source or '', tostring(diagnostic.code or '') }),
    ' '
  )
  local line = vim.api.nvim_buf_get_lines(diagnostic.bufnr, diagnostic.lnum, diagnostic.lnum + 1, false)[1]
  return ('%s:%d:%d: %s: %s%s\n    %s'):format(
    path,
    diagnostic.lnum + 1,
    diagnostic.col + 1,
    SEVERITIES[diagnostic.severity],
    diagnostic.message,
    from ~= '' and (' [%s]'):format(from) or '',
    line or ''
  )
end

--- Diagnostics of the cursor's line or of the whole buffer, each with its line of code.
---@param scope 'line'|'buffer'
---@param buf? integer
---@return agentik.Attachment?
---@return string? problem
function M.diagnostics(scope, buf)
  buf = (buf or 0) == 0 and vim.api.nvim_get_current_buf() or buf
  local lnum = scope == 'line' and vim.api.nvim_win_get_cursor(0)[1] - 1 or nil
  local found = vim.diagnostic.get(buf, { lnum = lnum })
  if #found == 0 then
    return nil, ('no diagnostics in this %s'):format(scope)
  end
  table.sort(found, function(a, b)
    return a.lnum < b.lnum or (a.lnum == b.lnum and a.col < b.col)
  end)
  local path = shown(path_of(buf))
  local lines = vim.tbl_map(function(diagnostic)
    return diagnostic_lines(diagnostic, path)
  end, found)
  local where = vim.fs.basename(path) .. (lnum and ':' .. lnum + 1 or '')
  local name = ('%d diagnostic%s of %s'):format(#found, #found == 1 and '' or 's', where)
  return checked({ path = 'diagnostics of ' .. path, name = name, text = table.concat(lines, '\n') .. '\n' })
end

--- The quickfix list.
---@return agentik.Attachment?
---@return string? problem
function M.quickfix()
  local list = vim.fn.getqflist({ items = 0, title = 0 })
  if #list.items == 0 then
    return nil, 'the quickfix list is empty'
  end
  local lines = vim.tbl_map(function(item)
    local path = item.bufnr > 0 and shown(path_of(item.bufnr)) .. ':' or ''
    local place = item.lnum > 0 and ('%d:%d:'):format(item.lnum, math.max(1, item.col)) or ''
    return vim.trim(('%s%s %s'):format(path, place, item.text))
  end, list.items)
  local title = list.title ~= '' and (' (%s)'):format(list.title) or ''
  local name = ('quickfix list of %d%s'):format(#list.items, title):gsub('%c', ' ')
  return checked({ path = 'quickfix list', name = name, text = table.concat(lines, '\n') .. '\n' })
end

--- Asks git for all changes against the last commit, without stopping the editor.
---@param done fun(attachment?: agentik.Attachment, problem?: string)
---@param cwd? string
function M.git_diff(done, cwd)
  local function finish(result)
    local text = result.stdout
    if result.code ~= 0 then
      local said = vim.split(vim.trim(result.stderr or ''), '\n')[1]
      done(nil, 'git: ' .. (said ~= '' and said or 'failed with code ' .. result.code))
    elseif text == '' then
      done(nil, 'nothing is changed since the last commit')
    else
      done(checked({ path = 'git diff', name = 'git diff', text = text, languageId = 'diff' }))
    end
  end
  local command = { 'git', '-c', 'core.quotePath=false', 'diff', '--no-color', '--no-ext-diff', 'HEAD' }
  local ok = pcall(vim.system, command, { cwd = cwd or vim.uv.cwd(), text = true }, vim.schedule_wrap(finish))
  if not ok then
    done(nil, 'git is not installed')
  end
end

return M
