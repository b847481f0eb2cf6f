--- :checkhealth agentik: each part in turn, and for each problem what to do. Starts the server and, for a real
--- handshake, the chosen agent; changes nothing. Finding out is agentik.diagnosis' work.

local diagnosis = require('agentik.diagnosis')

local M = {}

local health = vim.health

---@param path string
---@return string
local function shown(path)
  return vim.fn.fnamemodify(path, ':~')
end

local function check_neovim()
  health.start('Neovim')
  local version = vim.version()
  local text = ('Neovim %d.%d.%d'):format(version.major, version.minor, version.patch)
  if vim.fn.has('nvim-0.10') == 1 then
    health.ok(text)
  else
    health.error(text .. ' is too old', 'install Neovim 0.10 or newer')
  end
  local problems = require('agentik.config').problems()
  for _, problem in ipairs(problems) do
    health.warn('setup(): ' .. problem, 'see :help agentik-options')
  end
  if #problems == 0 then
    health.ok('options are fine')
  end
  if vim.fn.executable('git') == 0 then
    health.info('git is not installed: files are completed without its ignore rules, changes cannot be attached')
  end
end

---@param python agentik.diagnosis.Python
---@return boolean fine
local function check_python(python)
  health.start('Python environment')
  local install = 'run :AgentikInstall'
  if not python.path or not python.version then
    health.error(python.problem or 'it does not run', install)
    return false
  end
  local older = vim.version.lt(python.version, '3.11')
  if older then
    local advice = 'run :AgentikInstall, or set g:agentik_python to a newer one'
    health.error(('%s is Python %s; 3.11 or newer is needed'):format(shown(python.path), python.version), advice)
    return false
  end
  health.ok(('Python %s: %s'):format(python.version, shown(python.path)))
  local missing, found = {}, {}
  for name, version in vim.spairs(python.packages) do
    table.insert(version and found or missing, version and name .. ' ' .. version or name)
  end
  if #missing > 0 then
    health.error('missing packages: ' .. table.concat(missing, ', '), install)
    return false
  end
  health.ok('packages: ' .. table.concat(found, ', '))
  if python.stale then
    health.warn('the environment was made for another version of the plugin', install)
  end
  return true
end

---@param folder? string
local function check_store(folder)
  if not folder then
    return
  end
  for _, path in ipairs({ folder, folder .. '/agentik.db' }) do
    if vim.uv.fs_stat(path) and not vim.uv.fs_access(path, 'W') then
      local advice = "make it writable for you, or choose another folder with the option 'home'"
      health.error(('%s may not be written: no message can be kept'):format(shown(path)), advice)
      return
    end
  end
  health.ok('messages are kept in ' .. shown(folder))
end

---@param server agentik.diagnosis.Server
---@return boolean fine
local function check_server(server)
  health.start('Server')
  local log = 'see :AgentikLog'
  if server.problem then
    health.error('the server does not answer: ' .. server.problem, log)
    return false
  end
  local status = server.status
  local version = server.about.version or status.version or '?'
  health.ok(('agentik-server %s answers'):format(version))
  local folders = status.folders or {}
  check_store(folders.data or folders.home)
  local store = status.store
  if type(store) == 'table' and store.messages then
    local size = ('%.1f MB'):format((store.bytes or 0) / 1e6)
    local counts = '%d sessions, %d messages, %d waiting, %s'
    health.info(counts:format(store.sessions or 0, store.messages, store.pending or 0, size))
  end
  for _, problem in ipairs(status.settingsProblems or {}) do
    local file = folders.settings and shown(folders.settings) or 'the settings file'
    health.warn('settings: ' .. problem, ('correct it in %s (see :help agentik-settings)'):format(file))
  end
  for _, problem in ipairs(status.lastErrors or {}) do
    health.warn('last error: ' .. problem, log)
  end
  if folders.settings then
    health.info('settings: ' .. shown(folders.settings))
  end
  if folders.log then
    health.info('log: ' .. shown(folders.log))
  end
  return true
end

---@param agents table[] of agentik/listAgents
---@return table? chosen
local function chosen_agent(agents)
  local wanted = require('agentik.config').get().agent
  for _, agent in ipairs(agents) do
    if agent.agentId == wanted or (not wanted and agent.isDefault) then
      return agent
    end
  end
  if wanted then
    health.error(("there is no agent '%s' (option 'agent')"):format(wanted), 'choose one of those below')
  end
end

--- A real ACP handshake: the agent is started, says who it is, and is stopped.
---@param agent table
local function check_handshake(agent)
  local result, err = diagnosis.ask('checkAgent', { agentId = agent.agentId }, 90000)
  local advice = agent.installHint or 'see :AgentikLog'
  if err and err.code == -32601 then
    health.info(('%s was not tried: the server has no agentik/checkAgent'):format(agent.name))
  elseif err then
    health.error(('%s: %s'):format(agent.name, err.message), advice)
  elseif result.ok then
    health.ok(('%s speaks ACP: %s'):format(agent.name, result.detail))
  else
    health.error(('%s does not start: %s'):format(agent.name, result.detail), advice)
  end
end

local function check_agents()
  health.start('Agents')
  local result, err = diagnosis.ask('listAgents', nil, 10000)
  if err then
    health.error('the agents are not known: ' .. err.message, 'see :AgentikLog')
    return
  end
  local chosen = chosen_agent(result.agents)
  if chosen then
    health.info(('new sessions use %s (%s)'):format(chosen.name, chosen.agentId))
    check_handshake(chosen)
  end
  for _, agent in ipairs(result.agents) do
    local line = ('%s (%s)'):format(agent.name, agent.agentId)
    if agent.available then
      health.ok(('%s: %s'):format(line, table.concat(agent.command, ' ')))
    else
      local hint = agent.installHint and '; ' .. agent.installHint or ''
      health.info(('%s is not here: %s%s'):format(line, agent.reason or 'not found', hint))
    end
  end
end

---@param python string
local function check_dictation(python)
  health.start('Dictation')
  local findings, problem = diagnosis.dictation(python)
  if not findings then
    health.warn('dictation could not be checked: ' .. problem, 'run :AgentikInstall voice')
    return
  end
  local levels = { ok = health.ok, info = health.info, warn = health.warn, error = health.error }
  for _, finding in ipairs(findings) do
    levels[finding[1]](finding[2])
  end
end

function M.check()
  check_neovim()
  local python = diagnosis.python()
  if not check_python(python) then
    return
  end
  if check_server(diagnosis.server()) then
    check_agents()
  end
  check_dictation(python.path)
end

return M
