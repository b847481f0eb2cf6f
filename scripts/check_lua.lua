-- Run by scripts/check_lua.py inside Neovim: nvim --clean -l scripts/check_lua.lua FILE...
-- Prints a JSON list of { file, line, message }.
-- Globals are found in compiled bytecode, where comments and strings cannot mislead.

local util = require('jit.util')

-- Opcodes differ between versions of LuaJIT: learn those of reading and writing a global from two known functions.
local function opcode(source)
  local chunk = assert(loadstring(source))
  for pc = 1, 10 do
    local instruction = util.funcbc(chunk, pc)
    local constant = util.funck(chunk, -bit.rshift(instruction, 16) - 1)
    if constant == 'probe' then
      return bit.band(instruction, 0xff)
    end
  end
  error('cannot learn the opcode of: ' .. source)
end
local READ, WRITE = opcode('return probe'), opcode('probe = 7')

---@param names string separated by blanks
---@return table<string, true>
local function set(names)
  local result = {}
  for name in names:gmatch('%S+') do
    result[name] = true
  end
  return result
end
local ALLOWED = set([[_G arg assert bit collectgarbage coroutine debug dofile error getmetatable io ipairs jit loadfile
  loadstring math next os package pairs pcall print rawequal rawget rawset require select setfenv setmetatable string
  table tonumber tostring type unpack vim xpcall]])
-- Parts of vim that answer to any name.
local DYNAMIC = set('b bo cmd env fn g go o opt opt_local opt_global t v w wo')

local MAX_FUNCTION_LINES = 60 -- style rule of the project
local OLDEST_API_LEVEL = 12 -- Neovim 0.10, the oldest that is supported

local api_level = {}
for _, fn in ipairs(vim.fn.api_info().functions) do
  api_level[fn.name] = fn.since
end

local findings = {}
local function report(file, line, message, ...)
  table.insert(findings, { file = file, line = line, message = message:format(...) })
end

---@param chain string e.g. `vim.api.nvim_buf_set_lines`
local function check_chain(file, line, chain)
  local parts = vim.split(chain, '.', { plain = true })
  if parts[2] == 'api' and parts[3] then
    local since = api_level[parts[3]]
    if not since then
      report(file, line, 'no such function: %s', chain)
    elseif since > OLDEST_API_LEVEL then
      report(file, line, '%s is newer than Neovim 0.10', chain)
    end
  elseif parts[2] == 'fn' and parts[3] then
    if vim.fn.exists('*' .. parts[3]) == 0 then
      report(file, line, 'no such function: %s', chain)
    end
  elseif parts[2] and not DYNAMIC[parts[2]] then
    local value = vim
    for i = 2, #parts do
      if type(value) ~= 'table' then
        return
      end
      value = value[parts[i]]
      if value == nil then
        report(file, line, 'no such name: %s', chain)
        return
      end
    end
  end
end

---@param path string
---@param proto any a prototype or function
local function check_prototype(file, proto)
  local info = util.funcinfo(proto)
  local length = info.lastlinedefined - info.linedefined + 1
  if info.linedefined > 0 and length > MAX_FUNCTION_LINES then
    report(file, info.linedefined, 'function of %d lines (at most %d)', length, MAX_FUNCTION_LINES)
  end
  for pc = 1, info.bytecodes - 1 do
    local instruction = util.funcbc(proto, pc)
    local code = bit.band(instruction, 0xff)
    if code == READ or code == WRITE then
      local name = util.funck(proto, -bit.rshift(instruction, 16) - 1)
      local line = util.funcinfo(proto, pc).currentline
      if code == WRITE then
        report(file, line, 'writes the global %s', name)
      elseif not ALLOWED[name] then
        report(file, line, 'reads the global %s', name)
      end
    end
  end
  for index = -1, -info.gcconsts, -1 do
    local constant = util.funck(proto, index)
    if type(constant) == 'proto' then
      check_prototype(file, constant)
    end
  end
end

---@param text string
local function check_source(file, text)
  local number = 0
  for line in vim.gsplit(text:gsub('\n$', ''), '\n', { plain = true }) do
    number = number + 1
    if vim.fn.strchars(line) > 120 then
      report(file, number, 'line of more than 120 characters')
    end
    if line:find('\t') or line:find('%s$') then
      report(file, number, 'tab or blank at the end of the line')
    end
    local code = line:gsub('%-%-.*$', '')
    for chain in code:gmatch('%f[%w_.]vim%.[%a_][%w_.]*') do
      check_chain(file, number, (chain:gsub('%.+$', '')))
    end
  end
  if number > 500 then
    report(file, number, 'module of %d lines (at most 500)', number)
  end
end

for _, file in ipairs(arg) do
  local handle = assert(io.open(file, 'rb'))
  local text = handle:read('*a')
  handle:close()
  local chunk, problem = loadstring(text, '@' .. file)
  if chunk then
    check_prototype(file, chunk)
  else
    report(file, tonumber(problem:match(':(%d+):')) or 1, 'does not compile: %s', problem)
  end
  check_source(file, text)
end
io.stdout:write(vim.json.encode(findings))
