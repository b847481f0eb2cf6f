--- Completion in the compose buffer by Neovim's own means: `@` gives files, `/` at the very start the agent's commands.
--- An omnifunc, so that <C-x><C-o> and the omni sources of nvim-cmp and blink.cmp work alike. Never waits for anything.
---
--- A file is written as `@path`, blanks in it as `\ `. mentions() gives the files that a text names so.

local files = require('agentik.complete.files')
local match = require('agentik.complete.match')

local M = {}

local MAX_ITEMS = 50
-- A letter before the @ would make it a mail address.
local BEFORE_MENTION = '[%s%(%[{"\'`,:]'

---@class (exact) agentik.complete.Command an agent's command as in Session.commands
---@field name string
---@field description? string
---@field hint? string

---@class (exact) agentik.complete.Source
---@field root fun(): string folder that paths are relative to
---@field commands fun(): agentik.complete.Command[]
---@field opened_at? string where the menu was opened by itself last

---@type table<integer, agentik.complete.Source> by buffer
local sources = {}

---@param path string
---@return string
local function escaped(path)
  return (path:gsub('[%s\\]', '\\%0'))
end

---@param text string
---@return string
local function unescaped(text)
  return (text:gsub('\\(.)', '%1'))
end

--- Byte where the `@` or `/` begins that the text before the cursor ends with, and which of the two; nil for neither.
---@param before string text of the line before the cursor
---@param first_line boolean
---@return integer? start 0-based
---@return '@'|'/'|nil kind
local function find_start(before, first_line)
  if first_line and before:match('^/%S*$') then
    return 0, '/'
  end
  -- The last @ with nothing but escaped blanks behind it.
  for at = #before, 1, -1 do
    if before:byte(at) == 64 then
      local rest = before:sub(at + 1):gsub('\\.', 'x')
      local lead = before:sub(at - 1, at - 1)
      if not rest:find('%s') and (at == 1 or lead:match(BEFORE_MENTION)) then
        return at - 1, '@'
      end
    end
  end
end

--- Files of open buffers below the folder, last used first: what one most likely means before anything is typed.
---@param root string
---@return string[]
local function open_files(root)
  local found = {}
  for _, buf in ipairs(vim.fn.getbufinfo({ buflisted = 1 })) do
    local inside = vim.startswith(buf.name, root .. '/') and vim.bo[buf.bufnr].buftype == ''
    if inside then
      table.insert(found, { path = buf.name:sub(#root + 2), lastused = buf.lastused })
    end
  end
  table.sort(found, function(a, b)
    return a.lastused > b.lastused or (a.lastused == b.lastused and a.path < b.path)
  end)
  return vim.tbl_map(function(entry)
    return entry.path
  end, found)
end

---@param buf integer
---@param typed string
---@return table[] items
local function file_items(buf, typed)
  local root = sources[buf].root()
  local list = files.get(root, function()
    M.refresh_menu(buf)
  end)
  local paths = list and match.files(list, unescaped(typed), MAX_ITEMS) or {}
  if typed == '' then
    paths = vim.list_extend(open_files(root), paths)
  end
  local items, seen = {}, {}
  for _, path in ipairs(paths) do
    -- git also lists files that are deleted but not yet committed so.
    if #items < MAX_ITEMS and not seen[path] and vim.uv.fs_stat(root .. '/' .. path) then
      seen[path] = true
      local data = { agentik = 'file', path = root .. '/' .. path }
      table.insert(items, { word = '@' .. escaped(path), abbr = path, kind = 'file', user_data = data })
    end
  end
  return items
end

---@param buf integer
---@param typed string
---@return table[] items
local function command_items(buf, typed)
  local commands = sources[buf].commands()
  if typed ~= '' then
    commands = vim.fn.matchfuzzy(commands, typed, { key = 'name' })
  end
  return vim.tbl_map(function(command)
    local description = command.description or ''
    local hint = command.hint
    return {
      word = '/' .. command.name,
      abbr = '/' .. command.name .. (hint and ' ' .. hint or ''),
      menu = vim.fn.strcharpart(vim.split(description, '\n')[1], 0, 60),
      info = description,
      kind = 'command',
      user_data = { agentik = 'command', name = command.name },
    }
  end, commands)
end

--- Neovim's omnifunc (:help complete-functions).
---@param findstart 0|1
---@param base string
---@return integer|table
function M.omnifunc(findstart, base)
  local buf = vim.api.nvim_get_current_buf()
  if not sources[buf] then
    return findstart == 1 and -3 or {}
  end
  if findstart == 1 then
    local row, col = unpack(vim.api.nvim_win_get_cursor(0))
    return (find_start(vim.api.nvim_get_current_line():sub(1, col), row == 1)) or -3
  end
  local kind, typed = base:sub(1, 1), base:sub(2)
  local items = kind == '/' and command_items(buf, typed) or kind == '@' and file_items(buf, typed) or {}
  return { words = items, refresh = 'always' }
end

local function feed(keys)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), 'n', false)
end

---@param buf integer
---@return '@'|'/'|nil kind what the cursor stands behind in insert mode
local function kind_at_cursor(buf)
  if vim.api.nvim_get_current_buf() ~= buf or not vim.api.nvim_get_mode().mode:match('^i') then
    return nil
  end
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local _, kind = find_start(vim.api.nvim_get_current_line():sub(1, col), row == 1)
  return kind
end

--- Shows the menu again with what has come to be known, unless the user has already chosen something in it.
---@param buf integer
function M.refresh_menu(buf)
  if kind_at_cursor(buf) == '@' and vim.fn.complete_info({ 'selected' }).selected == -1 then
    feed(vim.fn.pumvisible() == 1 and '<C-e><C-x><C-o>' or '<C-x><C-o>')
  end
end

--- A completion plugin opens the menu itself.
---@return boolean
local function has_plugin()
  return package.loaded['cmp'] ~= nil or package.loaded['blink.cmp'] ~= nil
end

--- Opens the menu once for each `@` or `/`: whoever closes it and types on does not want it back.
---@param source agentik.complete.Source
local function open_menu_when_typed(source)
  local row, col = unpack(vim.api.nvim_win_get_cursor(0))
  local start, kind = find_start(vim.api.nvim_get_current_line():sub(1, col), row == 1)
  local place = start and ('%d:%d%s'):format(row, start, kind)
  if place and place ~= source.opened_at and vim.fn.pumvisible() == 0 and not has_plugin() then
    feed('<C-x><C-o>')
  end
  source.opened_at = place
end

--- Nothing is put into the text before the user chooses, and there is no message when nothing fits.
---@param group integer
---@param buf integer
local function set_options(group, buf)
  local wanted = 'menuone,noinsert,noselect,popup'
  if vim.fn.has('nvim-0.11') == 1 then
    vim.api.nvim_set_option_value('completeopt', wanted, { buf = buf })
    return
  end
  -- In 0.10 the option is global: only while typing here.
  local own
  vim.api.nvim_create_autocmd('InsertEnter', {
    group = group,
    buffer = buf,
    callback = function()
      own, vim.o.completeopt = vim.o.completeopt, wanted
    end,
  })
  vim.api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave' }, {
    group = group,
    buffer = buf,
    callback = function()
      vim.o.completeopt, own = own or vim.o.completeopt, nil
    end,
  })
end

--- Makes a buffer complete files and commands. Begins to list the files soon, so that they are there when needed.
---@param buf integer
---@param source agentik.complete.Source
function M.attach(buf, source)
  sources[buf] = source
  vim.bo[buf].omnifunc = "v:lua.require'agentik.complete'.omnifunc"
  local group = vim.api.nvim_create_augroup('agentik.complete.' .. buf, { clear = true })
  set_options(group, buf)
  vim.api.nvim_create_autocmd('TextChangedI', {
    group = group,
    buffer = buf,
    callback = function()
      open_menu_when_typed(source)
    end,
  })
  vim.api.nvim_create_autocmd('InsertEnter', {
    group = group,
    buffer = buf,
    callback = function()
      files.get(source.root())
    end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = group,
    buffer = buf,
    callback = function()
      sources[buf] = nil
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  vim.schedule(function()
    files.get(source.root())
  end)
end

--- The word that begins at a byte: up to a blank that is not escaped.
---@param line string
---@param at integer
---@return string
local function word_at(line, at)
  local word = {}
  while at <= #line do
    local character = line:sub(at, at)
    if character == '\\' and at < #line then
      at = at + 1
      character = line:sub(at, at)
    elseif character:match('%s') then
      break
    end
    table.insert(word, character)
    at = at + 1
  end
  return table.concat(word)
end

--- The file that a word names; what ends a sentence or a bracket does not belong to it.
---@param word string
---@param root string
---@return string? path absolute
local function file_named(word, root)
  while word ~= '' do
    local path = vim.startswith(word, '/') and word or root .. '/' .. word
    local stat = vim.uv.fs_stat(path)
    if stat then
      return stat.type == 'file' and path or nil
    elseif not word:match('[%.,;:!%?%)%]}"\'`]$') then
      return nil
    end
    word = word:sub(1, -2)
  end
end

--- The existing files that a text mentions as `@path`, absolute, each once, in order.
---@param text string
---@param root string folder that relative paths begin at
---@return string[]
function M.mentions(text, root)
  local found = {}
  for line in vim.gsplit(text, '\n', { plain = true }) do
    for at in line:gmatch('()@') do
      local begins = at == 1 or line:sub(at - 1, at - 1):match(BEFORE_MENTION)
      local path = begins and file_named(word_at(line, at + 1), root)
      if path and not vim.list_contains(found, path) then
        table.insert(found, path)
      end
    end
  end
  return found
end

return M
