--- Finds out how the parts of the plugin are: Neovim, Python, server, agents, dictation. For :checkhealth agentik and
--- :AgentikReport. Waits for answers (with a limit): in a coroutine the coroutine waits, else the editor does, so it
--- must not be used like that while somebody works. Judges nothing.

local M = {}

local root = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h:h')

--- What the host and the server import; the names of the packages.
local PACKAGES = {
  'pynvim',
  'greenlet',
  'msgspec',
  'pygls',
  'lsprotocol',
  'pydantic',
  'aiosqlite',
  'platformdirs',
  'json5',
  'agent-client-protocol',
}

local LIST_PACKAGES = [[
import importlib.metadata as metadata, json, platform, sys
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
print(json.dumps({"version": platform.python_version(), "packages": {name: version(name) for name in sys.argv[1:]}}))
]]

local CHECK_DICTATION = [[
import json, sys
from agentik_server.folders import find_folders
from agentik_server.program import dictation_settings
from agentik_server.settings import load
from agentik_server.voice.health import check
options = json.loads(sys.argv[1])
settings, _ = load(find_folders(options.get("home")).settings, options.get("settings") or {})
print(json.dumps(check(dictation_settings(settings))))
]]

--- Waits without a message on the screen: what goes wrong meanwhile is in the findings, and an error message in the
--- middle of a command would end the command.
---@param limit_ms integer
---@param condition fun(): boolean
local function wait_quietly(limit_ms, condition)
  local notify = vim.notify
  vim.notify = function() end ---@diagnostic disable-line: duplicate-set-field
  local ok, problem = pcall(vim.wait, limit_ms, condition, 10)
  vim.notify = notify
  if not ok then
    error(problem, 0)
  end
end

--- Waits for an answer.
---@param limit_ms integer
---@param ask fun(done: fun(answer: any)) calls `done` later
---@return any answer nil: none in time
local function await(limit_ms, ask)
  local thread = coroutine.running()
  local ended, answer = false, nil
  local function done(value)
    if not ended then
      ended, answer = true, value
      if thread then
        local ok, problem = coroutine.resume(thread)
        if not ok then
          require('agentik.hub').log(debug.traceback(thread, tostring(problem)))
        end
      end
    end
  end
  ask(vim.schedule_wrap(done))
  if thread then
    vim.defer_fn(done, limit_ms)
    coroutine.yield()
  else
    wait_quietly(limit_ms, function()
      return ended
    end)
  end
  return answer
end

---@param command string[]
---@param limit_ms integer
---@return string? output
---@return string? problem one line
local function run(command, limit_ms)
  local result = await(limit_ms + 1000, function(done)
    local options = { cwd = root, text = true, timeout = limit_ms }
    local ok = pcall(vim.system, command, options, done)
    if not ok then
      done({ code = -1, stderr = ('%s cannot be started'):format(command[1]) })
    end
  end)
  if not result or result.code == 124 then
    return nil, ('no answer in %d s'):format(limit_ms / 1000)
  elseif result.code == 0 then
    return result.stdout
  end
  local said = vim.split(vim.trim(result.stderr or ''), '\n')
  return nil, said[#said] ~= '' and said[#said] or ('exit code %d'):format(result.code)
end

---@class (exact) agentik.diagnosis.Python
---@field path? string
---@field problem? string one line
---@field version? string
---@field packages table<string, string|false> false: missing
---@field stale boolean made by :AgentikInstall for an older version of the plugin

--- True when our own environment was made from other lock files than the plugin has now.
---@param path string
---@return boolean
local function is_stale(path)
  local install = require('agentik.install')
  local kind = install.installed()
  if not kind or not vim.startswith(path, install.folder() .. '/') then
    return false
  end
  -- The same as in scripts/setup.sh.
  local sum = run({ 'sh', '-c', ('cat requirements/%s.lock scripts/setup.sh | cksum'):format(kind) }, 5000)
  local stamp = vim.fn.readblob(install.folder() .. '/.agentik-' .. kind)
  return sum ~= nil and vim.trim(sum) ~= vim.trim(stamp)
end

---@return agentik.diagnosis.Python
function M.python()
  local path, problem = require('agentik.host').python()
  local result = { path = path, problem = problem, packages = {}, stale = false }
  if not path then
    return result
  end
  local output
  output, result.problem = run(vim.list_extend({ path, '-E', '-s', '-c', LIST_PACKAGES }, PACKAGES), 10000)
  if not output then
    return result
  end
  local facts = vim.json.decode(output, { luanil = { object = true } })
  result.version = facts.version
  for _, name in ipairs(PACKAGES) do
    result.packages[name] = facts.packages[name] or false
  end
  result.stale = is_stale(path)
  return result
end

--- Waits for the answer of the server.
---@param method string without `agentik/`
---@param params? table
---@param limit_ms integer
---@return any result
---@return agentik.Error? err
function M.ask(method, params, limit_ms)
  local answer = await(limit_ms, function(done)
    require('agentik.host').call(method, params, function(err, result)
      done({ err = err, result = result })
    end)
  end)
  if not answer then
    return nil, { code = 0, message = ('no answer in %d s'):format(limit_ms / 1000) }
  end
  return answer.result, answer.err
end

---@class (exact) agentik.diagnosis.Server
---@field state string of the host
---@field problem? string one line
---@field about table what the server said at initialize
---@field status table agentik/status

--- Starts host and server when they do not run, and asks how it is.
---@return agentik.diagnosis.Server
function M.server()
  local host = require('agentik.host')
  host.start()
  local status, err = M.ask('status', nil, 10000)
  return {
    state = host.state,
    problem = host.problem or err and err.message,
    about = host.server or {},
    status = status or {},
  }
end

--- Findings about dictation: { level, text } with the levels ok, info, warn, error.
---@param python string
---@return [string, string][]? findings
---@return string? problem
function M.dictation(python)
  local config = require('agentik.config').get()
  local settings = next(config.settings) and config.settings or vim.empty_dict()
  local options = vim.json.encode({ home = config.home and vim.fn.expand(config.home), settings = settings })
  local output, problem = run({ python, '-E', '-s', '-c', CHECK_DICTATION, options }, 20000)
  return output and vim.json.decode(output), problem
end

--- The last lines of a file that hold more than blanks.
---@param path string
---@param count integer
---@return string[]
function M.tail(path, count)
  local handle = io.open(path, 'rb')
  if not handle then
    return {}
  end
  local size = handle:seek('end')
  handle:seek('set', math.max(0, size - count * 400))
  local lines = vim.split(handle:read('*a'), '\n', { trimempty = true })
  handle:close()
  return vim.list_slice(lines, math.max(1, #lines - count + 1))
end

return M
