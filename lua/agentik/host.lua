--- The Python host: our own process with our own Python. Starts it, starts it again once by itself, hands calls to it
--- and its frames to the hub. Must not know windows, buffers or rules.
---
--- What was called before the host was there waits. A message that was sent and not answered when the host died is sent
--- again under the same id, which the server knows: nothing the person wrote is lost or doubled (B4, B60).

local config = require('agentik.config')
local hub = require('agentik.hub')

local M = {}

---@class (exact) agentik.Error
---@field code integer
---@field message string one line for a person
---@field reason? string PROTOCOL.md, "Errors the caller can act on"

---@alias agentik.Answer fun(err?: agentik.Error, result?: any)

---@class (exact) agentik.host.Call
---@field arguments any[] of the notification to the host, without the number
---@field name string
---@field answer agentik.Answer
---@field repeats boolean sent again to the next host when this one dies

---@type 'stopped'|'starting'|'ready'|'down'
M.state = 'stopped'
--- Why `state` is 'down', one line.
---@type string?
M.problem = nil
--- What the server said of itself: version, databaseId, protocolVersion.
---@type table
M.server = {}

local RESTART_AFTER_MS = 30000
local QUIT_MS = 5000
---@type integer?
local channel = nil
---@type table<integer, agentik.host.Call>
local calls = {}
local number = 0
---@type table<string, boolean>
local watched = {}
local restarted_at = -RESTART_AFTER_MS
--- The host was asked to end because another is wanted.
local restarting = false

local root = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h:h:h')

--- The Python of the plugin's environment, or nil and where it was looked for.
---@return string? python
---@return string? problem one line
function M.python()
  local own = vim.fn.stdpath('data') .. '/agentik/venv/bin/python'
  local chosen = { config.get().python or '', vim.g.agentik_python or '', vim.env.AGENTIK_PYTHON or '', own }
  for _, candidate in ipairs(chosen) do
    if candidate ~= '' then
      local path = vim.fn.expand(candidate)
      if vim.fn.executable(path) == 1 then
        return path
      end
      if candidate ~= own then
        return nil, ('%s is no Python that can be run'):format(candidate)
      end
    end
  end
  return nil, 'the Python environment is missing: run :AgentikInstall'
end

--- Runs inside the host before anything else: our folder first, and the mark by which the plugin knows its own host.
--- It speaks with pipes only: without TLS asyncio is 4 MB smaller and begins 10 ms sooner.
local BOOT = [[
import os, sys
os.environ['AGENTIK_HOST'] = '1'
sys.modules['ssl'] = None
sys.path.insert(0, os.path.dirname(sys.argv[1]))
import agentik
import pynvim
pynvim.start_host()
]]

---@return table options of the host, see front.py
local function options(python)
  local chosen = config.get()
  local keys = {}
  for _, view in ipairs({ 'permission', 'chat' }) do
    for _, mapping in ipairs(config.mappings(view)) do
      keys[mapping.action] = keys[mapping.action] or mapping.lhs
    end
  end
  local settings = vim.deepcopy(chosen.settings)
  return {
    command = vim.g.agentik_server_command or { python, '-E', '-s', '-m', 'agentik_server' },
    cwd = root,
    initialize = {
      home = chosen.home and vim.fn.fnamemodify(vim.fn.expand(chosen.home), ':p') or nil,
      settings = next(settings) and settings or nil,
    },
    look = {
      icons = config.icons(),
      keys = keys,
      fold_thoughts = chosen.fold.thoughts,
      fold_tools = chosen.fold.tools,
    },
  }
end

---@param call agentik.host.Call
---@param id integer
local function transmit(id, call)
  vim.rpcnotify(channel, call.name, id, unpack(call.arguments))
end

---@param problem string
local function fail_calls(problem, all)
  local failed = {}
  for id, call in pairs(calls) do
    if all or not call.repeats then
      failed[#failed + 1] = call
      calls[id] = nil
    end
  end
  for _, call in ipairs(failed) do
    call.answer({ code = -32099, message = problem })
  end
end

---@param state 'stopped'|'starting'|'ready'|'down'
---@param problem? string
local function become(state, problem)
  M.state, M.problem = state, problem
  hub.emit('host', state, problem)
end

---@param lines string[] as on_stderr gets them
local function on_stderr(_, lines)
  for _, line in ipairs(lines) do
    if line ~= '' then
      hub.log(line)
    end
  end
end

---@param id integer
---@param code integer
local function on_exit(id, code)
  if id ~= channel or vim.v.exiting ~= vim.NIL then
    return
  end
  channel = nil
  if restarting then
    restarting = false
    M.start()
    return
  end
  local problem = ('the plugin host stopped (exit code %d, see :AgentikLog)'):format(code)
  fail_calls(problem, false)
  local now = vim.uv.now()
  if M.state ~= 'starting' and now - restarted_at > RESTART_AFTER_MS then
    restarted_at = now
    become('starting', problem)
    vim.defer_fn(M.start, 100)
    return
  end
  fail_calls(problem, true)
  become('down', problem)
  hub.say(problem, vim.log.levels.ERROR)
end

--- What the last host knew and did: the sessions that are shown first, then what it had not answered.
local function take_up()
  for session_id in pairs(watched) do
    M.watch(session_id)
  end
  for id, entry in vim.spairs(calls) do
    if entry.repeats then
      transmit(id, entry)
    end
  end
end

--- Starts the host unless it runs. False when it cannot be started; `M.problem` says why.
---@return boolean
function M.start()
  if channel then
    return true
  end
  local python, problem = M.python()
  if not python then
    become('down', problem)
    return false
  end
  local command = { python, '-E', '-s', '-c', BOOT, root .. '/rplugin/python3/agentik' }
  local ok, id = pcall(vim.fn.jobstart, command, { rpc = true, cwd = root, on_stderr = on_stderr, on_exit = on_exit })
  if not ok or id <= 0 then
    become('down', ('cannot start %s'):format(python))
    return false
  end
  channel = id
  become('starting')
  vim.rpcnotify(channel, 'agentik.start', options(python))
  take_up()
  return true
end

---@param name string
---@param answer? agentik.Answer
---@param repeats boolean
local function call(name, answer, repeats, ...)
  number = number + 1
  local id = number
  local entry = { name = name, arguments = { ... }, answer = answer or function() end, repeats = repeats }
  if not M.start() then
    local problem = { code = -32099, message = M.problem }
    vim.schedule(function()
      entry.answer(problem)
    end)
    return
  end
  calls[id] = entry
  transmit(id, entry)
end

--- Calls the server (PROTOCOL.md, "Requests from the client").
---@param method string without `agentik/`
---@param params? table
---@param answer? agentik.Answer on the main loop
function M.call(method, params, answer)
  call('agentik.call', answer, false, 'agentik/' .. method, params or vim.empty_dict())
end

--- `sendMessage`; `params.messageId` is the caller's.
---@param params table
---@param answer agentik.Answer
function M.send(params, answer)
  call('agentik.send', answer, true, params)
end

--- Draws and follows a session from now on.
---@param session_id string
---@param answer? agentik.Answer
function M.watch(session_id, answer)
  watched[session_id] = true
  call('agentik.watch', answer, false, session_id)
end

---@param session_id string
function M.unwatch(session_id)
  watched[session_id] = nil
  if channel then
    vim.rpcnotify(channel, 'agentik.unwatch', session_id)
  end
end

--- The chat buffer of the session is new or not what it was.
---@param session_id string
function M.redraw(session_id)
  if channel then
    vim.rpcnotify(channel, 'agentik.redraw', session_id)
  end
end

--- Loads a page of older messages.
---@param session_id string
function M.older(session_id)
  if channel then
    vim.rpcnotify(channel, 'agentik.older', session_id)
  end
end

--- What stands in the chat `offset` lines below the start of a block.
---@param session_id string
---@param block integer
---@param offset integer
---@param answer agentik.Answer result { kind, id, path?, line?, text?, output?, tool?, status?, turnId? }
function M.find(session_id, block, offset, answer)
  call('agentik.find', answer, false, session_id, block, offset)
end

--- The diffs of all finished tool calls of a session, oldest first.
---@param session_id string
---@param answer agentik.Answer result { path, oldText?, newText }[]
function M.changes(session_id, answer)
  call('agentik.changes', answer, false, session_id)
end

--- Loads a session's older messages until one of them is there.
---@param session_id string
---@param message_id string
---@param answer agentik.Answer result: whether the chat has it now
function M.reach(session_id, message_id, answer)
  call('agentik.reach', answer, false, session_id, message_id)
end

--- Ends server and host in order and starts others, with the environment as it is now.
function M.restart()
  if not channel then
    M.start()
    return
  end
  restarting = true
  become('starting')
  fail_calls('the plugin is restarting', false)
  local old = channel
  vim.rpcnotify(old, 'agentik.quit')
  vim.defer_fn(function()
    if channel == old then
      vim.fn.jobstop(old)
    end
  end, QUIT_MS)
end

--- Asks the host at once (health check, tests); nil when it does not run.
---@return table? { server, frames, sessions, stderr }
function M.status()
  return channel and vim.rpcrequest(channel, 'agentik.status')
end

--- Process of the host; nil when it does not run.
---@return integer?
function M.pid()
  return channel and vim.fn.jobpid(channel)
end

-- What the host calls

---@param name string
---@param params table
local function happened(name, params)
  if name == 'ready' then
    M.server = params
    become('ready')
  elseif name == 'serverDown' then
    become(params.restarts and 'starting' or 'down', params.detail)
    if not params.restarts then
      hub.say(params.detail, vim.log.levels.ERROR)
    end
  elseif name == 'sessionGone' then
    watched[params.sessionId] = nil
  end
  hub.emit('event', name, params)
  local pattern = 'Agentik' .. name:sub(1, 1):upper() .. name:sub(2)
  vim.api.nvim_exec_autocmds('User', { pattern = pattern, data = params, modeline = false })
end

--- One frame: patches first, then what changed beside the transcript, then events and answers, in order.
---@param frame table
---@return string[] sessions whose chat has to be drawn anew
function M.frame(frame)
  local broken = {}
  for session_id, chat in pairs(frame.chats or {}) do
    local ok, fine = xpcall(M.draw, debug.traceback, session_id, chat)
    if not ok then
      hub.log('draw: ' .. fine)
    elseif fine == false then
      table.insert(broken, session_id)
    end
  end
  for session_id, state in pairs(frame.states or {}) do
    hub.emit('state', session_id, state)
  end
  for _, event in ipairs(frame.events or {}) do
    local ok, problem = xpcall(happened, debug.traceback, event[1], event[2] or {})
    if not ok then
      hub.log(('event %s: %s'):format(event[1], problem))
    end
  end
  for _, result in ipairs(frame.results or {}) do
    local entry = calls[result.number]
    calls[result.number] = nil
    if entry then
      local ok, problem = xpcall(entry.answer, debug.traceback, result.error, result.result)
      if not ok then
        hub.log(('answer of %s: %s'):format(entry.name, problem))
      end
    end
  end
  return broken
end

--- Draws the patches of a session: set by the chat view. False: the buffer is not what the host thinks.
---@type fun(session_id: string, chat: { reset: boolean, patches: table[] }): boolean?
M.draw = function() end

---@param params { path: string }
function M.read_buffer(params)
  return require('agentik.buffers').read(params.path)
end

---@param params { path: string, text: string }
function M.write_buffer(params)
  return require('agentik.buffers').write(params.path, params.text)
end

return M
