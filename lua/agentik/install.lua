--- Makes the plugin's own Python environment below stdpath('data'), in the background: :AgentikInstall, and build.lua.
--- Writes nothing into the plugin's folder. Loads no other module at start, so that build.lua can use it by its path.

local M = {}

local root = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h:h')

---@type vim.SystemObj?
local running = nil

--- The folder of the environment.
---@return string
function M.folder()
  return vim.fn.stdpath('data') .. '/agentik/venv'
end

--- What is installed: nil when nothing is, `voice` when dictation is in it.
---@return 'base'|'voice'|nil
function M.installed()
  for _, kind in ipairs({ 'voice', 'base' }) do
    if vim.uv.fs_stat(M.folder() .. '/.agentik-' .. kind) then
      return kind
    end
  end
end

--- Calls `on_line` for each whole line of what comes in pieces.
---@param on_line fun(line: string)
---@return fun(err?: string, piece?: string)
local function by_lines(on_line)
  local rest = ''
  return function(_, piece)
    local lines = vim.split(rest .. (piece or '\n'), '[\r\n]+')
    rest = table.remove(lines)
    for _, line in ipairs(lines) do
      if vim.trim(line) ~= '' then
        vim.schedule(function()
          on_line(line)
        end)
      end
    end
  end
end

--- Installs or brings up to date. An environment with dictation keeps it. Returns at once.
---@param kind 'base'|'voice'
---@param on_line fun(line: string) progress
---@param on_end fun(problem?: string) one line
function M.start(kind, on_line, on_end)
  if running then
    return on_end('an installation is running already')
  end
  if M.installed() == 'voice' then
    kind = 'voice'
  end
  local last = ''
  local function note(line)
    last = line
    on_line(line)
  end
  if not pcall(vim.fn.mkdir, vim.fs.dirname(M.folder()), 'p') then
    return on_end(('%s cannot be made'):format(vim.fs.dirname(M.folder())))
  end
  local command = { 'sh', root .. '/scripts/setup.sh', kind, M.folder() }
  local ok, process = pcall(
    vim.system,
    command,
    { cwd = root, text = true, stdout = by_lines(note), stderr = by_lines(note) },
    function(result)
      vim.schedule(function()
        running = nil
        on_end(result.code ~= 0 and ('the installation failed: %s'):format(last) or nil)
      end)
    end
  )
  if not ok then
    return on_end('the installation needs sh, which cannot be started')
  end
  running = process
end

--- A small window at the bottom that shows what happens; the cursor stays where it is.
---@return integer buf
local function open_log()
  local buf = vim.fn.bufnr('agentik://install')
  if buf == -1 then
    buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_name(buf, 'agentik://install')
    vim.bo[buf].filetype = 'agentik-log'
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, desc = 'close' })
  end
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, {})
  if #vim.fn.win_findbuf(buf) == 0 then
    local win = vim.api.nvim_open_win(buf, false, { split = 'below', win = -1, height = 8 })
    vim.wo[win].winfixheight, vim.wo[win].winfixbuf = true, true
  end
  return buf
end

---@param buf integer
---@param line string
local function append(buf, line)
  if not vim.api.nvim_buf_is_valid(buf) then
    return
  end
  local empty = vim.api.nvim_buf_line_count(buf) == 1 and vim.api.nvim_buf_get_lines(buf, 0, 1, true)[1] == ''
  vim.api.nvim_buf_set_lines(buf, empty and 0 or -1, -1, true, { line })
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    vim.api.nvim_win_set_cursor(win, { vim.api.nvim_buf_line_count(buf), 0 })
  end
end

---@param buf integer
local function close_log(buf)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    -- The last window cannot be closed, and then it does not matter.
    pcall(vim.api.nvim_win_close, win, true)
  end
end

--- What stands above our environment, if anything.
---@return string?
local function other_python()
  local option = require('agentik.config').get().python
  return option and "the option 'python'"
    or vim.g.agentik_python and 'g:agentik_python'
    or vim.env.AGENTIK_PYTHON and '$AGENTIK_PYTHON'
    or nil
end

---@param buf integer
---@param problem? string
local function finish(buf, problem)
  if problem then
    append(buf, problem)
    vim.notify(('agentik: %s (see the log window)'):format(problem), vim.log.levels.ERROR)
    return
  end
  close_log(buf)
  local other = other_python()
  local note = other and (', but %s points elsewhere'):format(other) or ''
  vim.notify('agentik: the Python environment is ready' .. note, vim.log.levels.INFO)
  pcall(vim.cmd.helptags, vim.fn.fnameescape(root .. '/doc')) -- a folder that is read-only has them already, or never
  -- A host that could not start, or runs with the old packages, starts with these.
  if package.loaded['agentik.host'] then
    require('agentik.host').restart()
  end
end

--- :AgentikInstall [voice]
---@param kind? string
function M.command(kind)
  kind = kind ~= '' and kind or 'base'
  if kind ~= 'base' and kind ~= 'voice' then
    vim.notify('agentik: :AgentikInstall takes nothing or "voice" (for dictation)', vim.log.levels.ERROR)
    return
  end
  local buf = open_log()
  append(buf, 'installing into ' .. M.folder())
  M.start(kind --[[@as 'base'|'voice']], function(line)
    append(buf, line)
  end, function(problem)
    finish(buf, problem)
  end)
end

return M
