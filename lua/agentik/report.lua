--- :AgentikReport: what a bug report needs, as Markdown in a scratch buffer that the user reads before sending it.
--- Must hold no secret and no text of a message: no value of the environment, no string of the options, no titles and
--- paths of sessions; home folders are shortened, what looks like a key is taken out.

local diagnosis = require('agentik.diagnosis')

local M = {}

local LOG_LINES = 40

--- Patterns for the names of secrets, in any case of letters.
---@type string[]
local SECRETS = vim.tbl_map(function(name)
  return (name:gsub('%a', function(letter)
    return ('[%s%s]'):format(letter, letter:upper())
  end))
end, { 'key', 'token', 'secret', 'password', 'passwd', 'authorization', 'cookie' })

--- Takes out of a line what tells who the user is, or gives access.
---@param text string
---@return string
function M.redact(text)
  local home = vim.uv.os_homedir()
  if home and #home > 1 then
    text = text:gsub(vim.pesc(home), '~')
  end
  local user = vim.env.USER
  if user and #user > 2 and user ~= 'root' then
    text = text:gsub('%f[%w]' .. vim.pesc(user) .. '%f[%W]', 'USER')
  end
  text = text:gsub('/home/[^/%s]+', '/home/USER'):gsub('/Users/[^/%s]+', '/Users/USER')
  text = text:gsub('[%w%.%+%-_]+@[%w%-]+%.[%w%.%-]+', '[mail address]')
  -- name=value and "name": "value" where the name speaks of a secret, and what has the form of a key
  for _, name in ipairs(SECRETS) do
    text = text:gsub('(' .. name .. '[%w_]*["\']?%s*[:=]%s*["\']?)[^%s"\',}]+', '%1[removed]')
  end
  text = text:gsub('([Bb]earer )%S+', '%1[removed]')
  text = text:gsub('%f[%w]%a%a+[%-_][%w_%-]*%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w%w+', '[removed]')
  text = text:gsub('%f[%w]%w' .. ('%w'):rep(31) .. '+', '[removed]')
  text = text:gsub('input_value=.*', 'input_value=[removed]')
  return text
end

--- A line of the server's log that cannot hold a message: an event above DEBUG, or a place in a traceback.
---@param line string
---@return boolean
local function is_harmless(line)
  return line:match('^%d%d%d%d%-%d%d%-%d%d .- %d+ %u+ ') ~= nil and not line:find(' DEBUG ', 1, true)
    or line:match('^%s+File ".*", line %d+') ~= nil
end

--- The names of options that differ from their defaults; values only where they say nothing about the user.
---@return string[]
local function changed_options()
  local config = require('agentik.config')
  local lines = {}
  local function compare(path, given, default)
    if type(given) == 'table' and not vim.islist(given) then
      for key, value in vim.spairs(given) do
        local below = nil
        if type(default) == 'table' then
          below = default[key]
        end
        compare(path == '' and key or path .. '.' .. key, value, below)
      end
    elseif not vim.deep_equal(given, default) then
      local plain = type(given) == 'number' or type(given) == 'boolean' or vim.startswith(path, 'layout.')
      table.insert(lines, ('- `%s`%s'):format(path, plain and ': ' .. tostring(given) or ' is set'))
    end
  end
  compare('', config.get(), config.defaults())
  return #lines > 0 and lines or { '- none' }
end

---@param lines string[]
---@param title string
---@param body string[]
local function section(lines, title, body)
  vim.list_extend(lines, { '', '## ' .. title })
  vim.list_extend(lines, body)
end

---@return string[]
local function versions()
  local version, uname = vim.version(), vim.uv.os_uname()
  local ui = vim.api.nvim_list_uis()[1] or {}
  local python = diagnosis.python()
  local lines = {
    ('- Neovim: %s, %s'):format(tostring(version), jit.version),
    ('- system: %s %s %s'):format(uname.sysname, uname.release, uname.machine),
    ('- screen: %dx%d, %s'):format(vim.o.columns, vim.o.lines, ui.chan and ui.chan > 0 and 'remote UI' or 'terminal'),
    ('- Python: %s'):format(python.version or python.problem or 'not found'),
    ('- environment: %s%s'):format(python.path or 'missing', python.stale and ', made for another version' or ''),
  }
  for name, found in vim.spairs(python.packages) do
    table.insert(lines, ('  - %s: %s'):format(name, found or 'missing'))
  end
  return lines
end

---@param server agentik.diagnosis.Server
---@return string[]
local function server_lines(server)
  local status, store = server.status, server.status.store or {}
  local lines = {
    ('- state: %s%s'):format(server.state, server.problem and ', ' .. server.problem or ''),
    ('- version: %s, protocol %s'):format(server.about.version or '?', server.about.protocolVersion or '?'),
    ('- store: schema %s, %s sessions, %s messages, %s waiting, %s bytes'):format(
      store.schemaVersion or '?',
      store.sessions or '?',
      store.messages or '?',
      store.pending or '?',
      store.bytes or '?'
    ),
  }
  for name, version in vim.spairs(status.versions or {}) do
    table.insert(lines, ('  - %s: %s'):format(name, version))
  end
  for _, session in ipairs(status.sessions or {}) do
    local words = { session.agentId, session.state, session.connection, session.paused and 'paused' or nil }
    table.insert(lines, ('- session: %s, %d waiting'):format(table.concat(words, ', '), session.pending or 0))
  end
  for _, problem in ipairs(status.settingsProblems or {}) do
    table.insert(lines, '- settings: ' .. problem)
  end
  for _, problem in ipairs(status.lastErrors or {}) do
    table.insert(lines, '- last error: ' .. problem)
  end
  return lines
end

---@return string[]
local function agent_lines()
  local result = diagnosis.ask('listAgents', nil, 5000)
  local lines = {}
  for _, agent in ipairs(result and result.agents or {}) do
    if agent.available then
      table.insert(lines, ('- %s%s'):format(agent.agentId, agent.isDefault and ' (default)' or ''))
    end
  end
  return #lines > 0 and lines or { '- none' }
end

---@param log? string path of the server's log
---@return string[]
local function log_lines(log)
  local lines, own = { '```' }, require('agentik.hub').logged()
  vim.list_extend(lines, own, math.max(1, #own - LOG_LINES + 1))
  local server = log and vim.tbl_filter(is_harmless, diagnosis.tail(log, LOG_LINES)) or {}
  vim.list_extend(lines, server)
  table.insert(lines, '```')
  return lines
end

--- The report, line by line. Waits for answers: see agentik.diagnosis.
---@return string[]
function M.lines()
  local lines = {
    '# Agentik: bug report',
    '',
    'What I did:',
    '',
    'What I expected, and what happened:',
  }
  local server = diagnosis.server()
  section(lines, 'Versions', versions())
  section(lines, 'Server', server_lines(server))
  section(lines, 'Agents that can start', agent_lines())
  section(lines, 'Options that are not at their default', changed_options())
  section(lines, 'Log', log_lines((server.status.folders or {}).log))
  return vim.tbl_map(M.redact, lines)
end

---@param lines string[]
local function show(lines)
  vim.cmd('tabnew')
  local buf = vim.api.nvim_get_current_buf()
  vim.bo[buf].buftype, vim.bo[buf].bufhidden, vim.bo[buf].swapfile = 'nofile', 'wipe', false
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].filetype = 'markdown'
  require('agentik.hub').say('read the report before you send it; nothing was sent')
end

--- Shows the report in a new tab page, as soon as everything has answered.
function M.open()
  coroutine.wrap(function()
    show(M.lines())
  end)()
end

return M
