--- Dictation as the person sees it: starts and ends it, shows what is heard and that the microphone is open, and
--- carries spoken commands out. Sound and words are the server's. The microphone is never open out of sight: when the
--- compose window goes, dictation ends.

local compose = require('agentik.view.compose')
local config = require('agentik.config')
local conversation = require('agentik.conversation')
local host = require('agentik.host')
local hub = require('agentik.hub')
local layout = require('agentik.view.layout')
local names = require('agentik.dictation.names')
local push = require('agentik.dictation.push')
local words_in = require('agentik.dictation.words')

local M = {}

local api = vim.api
local METER = 8
local NOTHING_SAID_MS = 10000

---@class (exact) agentik.Dictation
---@field current agentik.Conversation
---@field words agentik.Words
---@field id? string nil until the server has begun
---@field state 'starting'|'loading'|'listening'|'speech'|'transcribing'|'finishing'
---@field level number 0 to 1
---@field loading? string how far the model is loaded
---@field partial string
---@field stable string begin of `partial` that will hardly change
---@field said boolean something was heard
---@field wanted? 'stop'|'cancel' as soon as the server has begun
---@field again boolean start another one when this one has ended
---@field pushed boolean by push to talk

---@type agentik.Dictation?
local live = nil
---@type string? of the dictation before: news of it may still come
local ended_id = nil

---@param dictation agentik.Dictation
local function draw(dictation)
  if not api.nvim_buf_is_valid(dictation.words.buf) then
    return
  end
  local chunks = {}
  if dictation.partial ~= '' then
    local tail = dictation.partial:sub(#dictation.stable + 1)
    chunks = { { dictation.stable, 'AgentikDictation' }, { tail, 'AgentikDictationTail' } }
  elseif compose.text(dictation.current) == '' and dictation.state ~= 'finishing' then
    chunks = { { dictation.state == 'listening' and 'speak now' or '…', 'AgentikHint' } }
  end
  words_in.show(dictation.words, chunks)
  compose.changed(dictation.current)
end

---@param dictation agentik.Dictation
---@param state string
local function become(dictation, state)
  dictation.state = state
  draw(dictation)
  hub.emit('draft', dictation.current)
end

--- It is over. What was said stands in the compose buffer.
---@param dictation agentik.Dictation
---@param problem? string
---@param level? integer
local function finish(dictation, problem, level)
  if live ~= dictation then
    return
  end
  live, ended_id = nil, dictation.id
  push.finish()
  words_in.finish(dictation.words)
  compose.draft(dictation.current).dictating = false
  if api.nvim_buf_is_valid(dictation.words.buf) then
    compose.changed(dictation.current)
    compose.save(dictation.current)
  end
  hub.emit('draft', dictation.current)
  if problem then
    hub.say(problem, level or vim.log.levels.INFO)
  end
  if dictation.again then
    M.start(dictation.current)
  end
end

---@param dictation agentik.Dictation
---@param method 'stopDictation'|'cancelDictation'
local function end_by(dictation, method)
  host.call(method, { dictationId = dictation.id }, function(err)
    finish(dictation, err and err.message, vim.log.levels.ERROR)
  end)
end

--- Ends the dictation after the last words.
function M.stop()
  local dictation = live
  if not dictation or dictation.wanted then
    return
  end
  dictation.wanted = 'stop'
  push.finish()
  become(dictation, 'finishing')
  if dictation.id then
    end_by(dictation, 'stopDictation')
  end
end

--- Ends the dictation and takes out what was said.
function M.cancel()
  local dictation = live
  if not dictation or dictation.wanted == 'cancel' then
    return
  end
  local begun = dictation.wanted == nil and dictation.id
  dictation.wanted, dictation.again, dictation.partial = 'cancel', false, ''
  push.finish()
  words_in.forget(dictation.words)
  become(dictation, 'finishing')
  if begun then
    end_by(dictation, 'cancelDictation')
  end
end

---@param dictation agentik.Dictation
---@param id string
local function begun(dictation, id)
  if dictation.id then
    return
  end
  dictation.id = id
  if dictation.wanted then
    end_by(dictation, dictation.wanted == 'stop' and 'stopDictation' or 'cancelDictation')
  end
end

--- Starts to listen. The words go to the cursor of the conversation's compose window.
---@param current agentik.Conversation
function M.start(current)
  local shown = layout.of_tab()
  local win = shown and shown.conversation == current and shown.wins.compose
  if live or not win then
    return
  end
  local chosen = config.get().dictation
  ---@type agentik.Dictation
  local dictation = {
    current = current,
    words = words_in.begin(win),
    state = 'starting',
    level = 0,
    partial = '',
    stable = '',
    said = false,
    again = false,
    pushed = false,
  }
  live = dictation
  compose.draft(current).dictating = true
  become(dictation, 'starting')
  local hotwords = chosen.hotwords
  if chosen.identifiers then
    hotwords = names.collect(hotwords, compose.draft(current).attachments)
  end
  local params = { language = chosen.language, device = chosen.device, hotwords = #hotwords > 0 and hotwords or nil }
  host.call('startDictation', params, function(err, result)
    if err then
      finish(dictation, err.message, vim.log.levels.ERROR)
    elseif live == dictation then
      begun(dictation, result.dictationId)
    else
      host.call('cancelDictation', { dictationId = result.dictationId })
    end
  end)
end

--- Starts dictation, or ends it; `cancel` also takes out what was said.
---@param current agentik.Conversation
---@param cancel? boolean
function M.toggle(current, cancel)
  if cancel and live then
    M.cancel()
  elseif cancel then
    hub.say('nothing is being dictated')
  elseif live and live.wanted then
    live.again = true -- the last words of the one before are still being written
  elseif live then
    M.stop()
  else
    M.start(current)
  end
end

--- Talks while the key is held; a key that was only touched talks until the next key, or until silence.
---@param current agentik.Conversation
function M.push(current)
  push.press(function()
    M.start(current)
    local dictation = live
    if dictation then
      dictation.pushed = true
      vim.defer_fn(function()
        if live == dictation and not dictation.said then
          push.silent()
        end
      end, NOTHING_SAID_MS)
    end
  end, M.stop)
end

--- Whether the microphone is open, or about to be.
---@return boolean
function M.is_on()
  return live ~= nil
end

local COMMANDS = {
  newline = function(dictation)
    words_in.new_line(dictation.words)
  end,
  scratch = function(dictation)
    words_in.scratch(dictation.words)
  end,
  send = function(dictation)
    compose.send(dictation.current, false)
  end,
}

---@type table<string, fun(dictation: agentik.Dictation, params: table)>
local HEARD = {
  dictationState = function(dictation, params)
    if params.state == 'stopped' then
      finish(dictation, params.detail)
    elseif params.state == 'failed' then
      finish(dictation, params.detail or 'dictation failed', vim.log.levels.ERROR)
    else
      dictation.said = dictation.said or params.state == 'speech'
      if params.detail then
        hub.say(params.detail, vim.log.levels.WARN)
      end
      if not dictation.wanted then
        become(dictation, params.state)
      end
    end
  end,
  dictationPartial = function(dictation, params)
    dictation.partial, dictation.stable = params.text, params.stable or ''
    draw(dictation)
  end,
  dictationFinal = function(dictation, params)
    dictation.partial, dictation.stable = '', ''
    words_in.show(dictation.words, {})
    local run = COMMANDS[params.command]
    if run then
      run(dictation)
    elseif params.text ~= '' then
      words_in.add(dictation.words, params.text)
    end
    draw(dictation)
    if dictation.pushed then
      push.silent()
    end
  end,
  dictationLevel = function(dictation, params)
    dictation.level = params.level
    hub.emit('level', dictation.current)
  end,
}

hub.on('event', function(name, params)
  local hear, dictation = HEARD[name], live
  if not hear or not dictation then
    return
  end
  if not dictation.id and params.dictationId ~= ended_id then
    begun(dictation, params.dictationId) -- its news may come before the answer that names it
  end
  if params.dictationId == dictation.id and api.nvim_buf_is_loaded(dictation.words.buf) then
    if dictation.wanted ~= 'cancel' or name == 'dictationState' then
      hear(dictation, params)
    end
  end
end)

hub.on('event', function(name, params)
  if name == 'progress' and live and params.kind == 'report' then
    live.loading = params.percentage and ('%s %d %%'):format(params.message, params.percentage) or params.message
    hub.emit('level', live.current)
  end
end)

hub.on('host', function(state)
  if live and state ~= 'ready' then
    finish(live, 'dictation ended, because the server did; what was written is kept', vim.log.levels.ERROR)
  end
end)

hub.on('gone', function(current)
  if live and live.current == current then
    M.cancel()
  end
end)

-- The microphone is open only in sight.
api.nvim_create_autocmd({ 'WinClosed', 'TabEnter', 'BufWinEnter' }, {
  group = api.nvim_create_augroup('agentik.dictation', {}),
  callback = vim.schedule_wrap(hub.guard(function()
    if live and not layout.is_visible(live.current) then
      M.stop()
    end
  end)),
})

api.nvim_create_autocmd('VimSuspend', { group = 'agentik.dictation', callback = hub.guard(M.stop) })

local WORDS = {
  starting = 'starting',
  loading = 'loading the speech model',
  listening = 'listening',
  speech = 'hearing you',
  transcribing = 'writing',
  finishing = 'finishing',
}

--- What the bar over the compose window says of it; nil when the conversation is not dictated into.
---@param current agentik.Conversation
---@return agentik.Chunk[]?
function M.bar(current)
  if not live or live.current ~= current then
    return nil
  end
  local icons = config.icons()
  local filled = live.state == 'finishing' and 0 or math.floor(live.level * METER + 0.5)
  local meter = icons.meter_on:rep(filled) .. icons.meter_off:rep(METER - filled)
  local text = live.state == 'loading' and live.loading or WORDS[live.state]
  return {
    { (' %s '):format(icons.microphone), 'DictationBar' },
    { meter, 'DictationBar' },
    { (' %s '):format(text), 'BarBusy' },
  }
end

return M
