-- A real run without a terminal: a free send, a queued one that is seen in the pending list, and its drain.
-- Prints chat and pending list; ends with 0 only when all of it happened.

local agentik = require('agentik')
local LIMIT_MS = 60000

---@type string[]
local events = {}
vim.api.nvim_create_autocmd('User', {
  pattern = 'Agentik*',
  callback = function(event)
    table.insert(events, (event.match:gsub('^Agentik', '')))
  end,
})

---@param text string
local function say(text)
  io.stdout:write(text, '\n')
end

---@param part 'chat'|'pending'
---@return string
local function buffer(part)
  local current = agentik.current()
  return table.concat(vim.api.nvim_buf_get_lines(current.bufs[part], 0, -1, true), '\n')
end

---@param title string
---@param part 'chat'|'pending'
local function show(title, part)
  say(('\n== %s =='):format(title))
  say(buffer(part))
end

---@param what string
---@param condition fun(): boolean?
local function await(what, condition)
  if not vim.wait(LIMIT_MS, condition, 10) then
    say(('\nwaited in vain for %s'):format(what))
    say(table.concat(require('agentik.hub').logged(), '\n'))
    say(table.concat(events, ' '))
    vim.cmd('cquit 1')
  end
end

---@param name string
---@return integer
local function count(name)
  return vim.iter(events):fold(0, function(sum, event)
    return sum + (event == name and 1 or 0)
  end)
end

local function run()
  agentik.new('demo')
  agentik.send('Hello, what are you?')
  await('the first turn', function()
    return count('TurnStarted') == 1 and buffer('chat'):find('demo agent', 1, true) ~= nil
  end)
  assert(count('MessageQueued') == 0, 'a message to a free session must not be queued')
  say('A message to a free session is answered at once; while the agent talks, a second one is sent.')

  agentik.send('And this one waits for its turn.')
  await('the second message in the pending list', function()
    return count('MessageQueued') == 1 and buffer('pending') == 'And this one waits for its turn.'
  end)
  show('chat, while the agent talks', 'chat')
  show('pending list', 'pending')

  await('the end of both turns', function()
    return count('TurnEnded') == 2 and buffer('pending') == ''
  end)
  show('chat, at the end', 'chat')
  show('pending list, at the end (empty)', 'pending')

  local chat = buffer('chat')
  local first = chat:find('Hello, what are you?', 1, true)
  local second = chat:find('And this one waits for its turn.', 1, true)
  assert(first and second and first < second, 'both messages stand in the chat, in order')
  assert(count('MessageReceived') == 2, 'each message was received once')
  say('\nThe first message was sent at once, the second waited and was delivered when its turn came.')
end

local ok, problem = xpcall(run, debug.traceback)
if not ok then
  say(problem)
  vim.cmd('cquit 1')
end
vim.cmd('qall!')
