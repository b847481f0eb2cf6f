--- The compose window's buffer: what the person writes, its attachments, and its way to the server. Text leaves the
--- buffer only when the server has it (B1): until then it stands there, and what was refused still does. Must not
--- decide whether a message is sent or queued, nor know windows.

local complete = require('agentik.complete')
local conversation = require('agentik.conversation')
local drafts = require('agentik.drafts')
local host = require('agentik.host')
local hub = require('agentik.hub')
local keys = require('agentik.view.keys')
local own = require('agentik.view.own')

local M = {}

local api = vim.api
local HINT = api.nvim_create_namespace('agentik.compose.hint')

---@class (exact) agentik.Sending
---@field text string
---@field attachments agentik.Attachment[]
---@field now? boolean
---@field messageId string
---@field since integer uv.now()

---@class (exact) agentik.Draft
---@field attachments agentik.Attachment[]
---@field sending agentik.Sending[] in order, not acknowledged yet
---@field problem? string why the last message was refused
---@field saved? string what is on disk
---@field browsed? integer place in the history
---@field kept? string what stood there before the history was browsed
---@field dictating? boolean spoken words are shown where the text goes on

---@type table<integer, agentik.Draft> by key of the conversation
local drafts_of = {}

---@param current agentik.Conversation
---@return agentik.Draft
function M.draft(current)
  local draft = drafts_of[current.key]
  if not draft then
    draft = { attachments = {}, sending = {} }
    drafts_of[current.key] = draft
  end
  return draft
end

---@param current agentik.Conversation
---@return string
function M.text(current)
  return table.concat(api.nvim_buf_get_lines(M.buffer(current), 0, -1, true), '\n')
end

--- Replaces the text, as one undo step.
---@param current agentik.Conversation
---@param text string
function M.set_text(current, text)
  local buf = M.buffer(current)
  api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(text, '\n', { plain = true }))
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    local last = api.nvim_buf_line_count(buf)
    api.nvim_win_set_cursor(win, { last, #api.nvim_buf_get_lines(buf, last - 1, last, true)[1] })
  end
  M.changed(current)
end

--- Adds text below what stands there.
---@param current agentik.Conversation
---@param text string
function M.add_text(current, text)
  local old = M.text(current)
  M.set_text(current, old == '' and text or old .. '\n' .. text)
end

--- Puts a text that was refused back, above what was typed meanwhile.
---@param current agentik.Conversation
---@param text string
local function put_back(current, text)
  local written = M.text(current)
  M.set_text(current, written == '' and text or text .. '\n' .. written)
end

---@param current agentik.Conversation
---@param text string
---@return 'command'|'text'
local function kind_of(current, text)
  local name = text:match('^/(%S+)')
  for _, command in ipairs(name and current.session.commands or {}) do
    if type(command) == 'table' and command.name == name then
      return 'command'
    end
  end
  return 'text'
end

--- A new message id: a random UUID.
---@return string
local function uuid()
  local bytes = { (vim.uv.random(16)):byte(1, 16) }
  bytes[7] = bytes[7] % 16 + 64
  bytes[9] = bytes[9] % 64 + 128
  return ('%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x'):format(unpack(bytes))
end

--- Sends a message to the conversation's session, with the files that its text mentions. Draws nothing.
---@param current agentik.Conversation
---@param message { text: string, attachments?: agentik.Attachment[], now?: boolean, messageId?: string }
---@param answer agentik.Answer
function M.submit(current, message, answer)
  local attachments = vim.list_slice(message.attachments or {})
  local mentions = require('agentik.context.mentions')
  vim.list_extend(attachments, mentions.attachments(message.text, current.cwd, attachments))
  conversation.when_ready(current, function(err)
    if err then
      answer(err)
      return
    end
    host.send({
      sessionId = current.session_id,
      messageId = message.messageId or uuid(),
      text = message.text,
      attachments = #attachments > 0 and attachments or nil,
      kind = kind_of(current, message.text),
      now = message.now or nil,
    }, answer)
  end)
end

---@param current agentik.Conversation
---@param sending agentik.Sending
---@param err? agentik.Error
local function settled(current, sending, err)
  local draft = M.draft(current)
  draft.sending = vim.tbl_filter(function(each)
    return each ~= sending
  end, draft.sending)
  draft.problem = err and err.message or nil
  if err then
    hub.say('not sent: ' .. err.message, vim.log.levels.WARN)
    draft.attachments = vim.list_extend(vim.list_slice(sending.attachments), draft.attachments)
    put_back(current, sending.text)
  else
    drafts.remember(sending.text)
  end
  M.save(current)
  hub.emit('draft', current)
end

---@param current agentik.Conversation
---@param sending agentik.Sending
local function dispatch(current, sending)
  table.insert(M.draft(current).sending, sending)
  M.submit(current, sending, function(err)
    settled(current, sending, err)
  end)
  hub.emit('draft', current)
end

--- Sends what stands in the compose buffer, with its attachments. The buffer is free for the next text at once; what
--- is refused comes back.
---@param current agentik.Conversation
---@param now? boolean stop the running turn and send this first
---@return boolean sent false when there is nothing to send
function M.send(current, now)
  local draft = M.draft(current)
  local text = M.text(current)
  local attachments = draft.attachments
  if not text:find('%S') and #attachments == 0 then
    return false
  end
  draft.browsed = nil
  ---@type agentik.Sending
  local sending = { text = text, attachments = attachments, now = now, messageId = uuid(), since = vim.uv.now() }
  draft.attachments = {}
  M.set_text(current, '')
  dispatch(current, sending)
  M.save(current)
  return true
end

--- Sends a text that does not stand in the compose buffer; refused, it is put there.
---@param current agentik.Conversation
---@param text string
---@param now? boolean
function M.send_text(current, text, now)
  local draft = M.draft(current)
  local attachments = draft.attachments
  draft.attachments = {}
  M.submit(current, { text = text, attachments = attachments, now = now }, function(err)
    if err then
      draft.attachments = vim.list_extend(attachments, draft.attachments)
      draft.problem = err.message
      M.add_text(current, text)
      hub.say('not sent: ' .. err.message, vim.log.levels.WARN)
    else
      drafts.remember(text)
    end
    hub.emit('draft', current)
  end)
end

--- Adds an attachment to the draft.
---@param current agentik.Conversation
---@param attachment agentik.Attachment
function M.attach(current, attachment)
  local attachments = M.draft(current).attachments
  for _, known in ipairs(attachments) do
    if vim.deep_equal(known, attachment) then
      return
    end
  end
  table.insert(attachments, attachment)
  M.save(current)
  hub.emit('draft', current)
end

--- Drops an attachment of the draft: the last one, or the one that the person chooses.
---@param current agentik.Conversation
function M.detach(current)
  local attachments = M.draft(current).attachments
  local function drop(attachment)
    for index, each in ipairs(attachments) do
      if each == attachment then
        table.remove(attachments, index)
      end
    end
    hub.emit('draft', current)
  end
  if #attachments < 2 then
    drop(attachments[1])
    return
  end
  local options = { prompt = 'Drop which attachment?', format_item = M.label }
  vim.ui.select(attachments, options, function(chosen)
    if chosen then
      drop(chosen)
    end
  end)
end

--- How an attachment is called.
---@param attachment agentik.Attachment
---@return string
function M.label(attachment)
  return attachment.name or vim.fs.basename(attachment.path)
end

--- Walks through the texts that were sent before.
---@param current agentik.Conversation
---@param step 1|-1 1: newer
function M.browse(current, step)
  local draft = M.draft(current)
  local history = drafts.history()
  local at = (draft.browsed or #history + 1) + step
  if at < 1 or at > #history + 1 then
    return
  end
  if not draft.browsed then
    draft.kept = M.text(current)
  end
  draft.browsed = at <= #history and at or nil
  M.set_text(current, history[at] or draft.kept or '')
end

--- Keeps the draft over restarts.
---@param current agentik.Conversation
function M.save(current)
  local buf = current.bufs.compose
  if not current.session_id or not buf or not api.nvim_buf_is_loaded(buf) then
    return
  end
  local draft = M.draft(current)
  local stored = { text = M.text(current), attachments = draft.attachments, sending = draft.sending }
  draft.saved = drafts.save(current.session_id, stored, draft.saved)
end

--- Takes the draft up again, and what was on its way when Neovim ended: the server knows the id of what it has, so
--- that it arrives once (B4).
---@param current agentik.Conversation
local function restore(current)
  local stored = drafts.load(current.session_id)
  for _, sending in ipairs(stored and stored.sending or {}) do
    dispatch(current, vim.tbl_extend('force', sending, { since = vim.uv.now() }))
  end
  if stored and M.text(current) == '' and #M.draft(current).attachments == 0 then
    M.draft(current).attachments = stored.attachments or {}
    M.set_text(current, stored.text or '')
    hub.emit('draft', current)
  end
end

--- The text changed: hint, height.
---@param current agentik.Conversation
function M.changed(current)
  local buf = current.bufs.compose
  api.nvim_buf_clear_namespace(buf, HINT, 0, -1)
  local empty = api.nvim_buf_line_count(buf) == 1 and api.nvim_buf_get_lines(buf, 0, 1, true)[1] == ''
  if empty and not M.draft(current).dictating then
    local hint = { { 'Message', 'AgentikHint' } }
    api.nvim_buf_set_extmark(buf, HINT, 0, 0, { virt_text = hint, virt_text_pos = 'overlay' })
  end
  hub.emit('resize', current)
end

---@param current agentik.Conversation
---@return table<string, fun()>
local function actions(current)
  local function public(name, ...)
    local arguments = { ... }
    return function()
      require('agentik')[name](unpack(arguments))
    end
  end
  return {
    send = function()
      M.send(current, false)
    end,
    send_now = function()
      M.send(current, true)
    end,
    history_prev = function()
      M.browse(current, -1)
    end,
    history_next = function()
      M.browse(current, 1)
    end,
    attach = public('attach'),
    detach = function()
      M.detach(current)
    end,
    dictate = public('dictate'),
    stop = public('stop'),
    sessions = public('sessions'),
    modes = public('options'),
    pending = public('pending'),
    close = public('close'),
    help = function()
      keys.help({ 'compose', 'permission' })
    end,
  }
end

---@param current agentik.Conversation
local function create(current)
  local buf = own.create(('compose/%d'):format(current.key), 'agentik-compose')
  current.bufs.compose = buf
  keys.set(buf, 'compose', actions(current))
  complete.attach(buf, {
    root = function()
      return current.cwd
    end,
    commands = function()
      return current.session.commands or {}
    end,
  })
  local group = api.nvim_create_augroup(('agentik.compose.%d'):format(current.key), {})
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    group = group,
    buffer = buf,
    callback = hub.guard(function()
      M.changed(current)
    end),
  })
  api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave', 'CursorHoldI', 'CursorHold' }, {
    group = group,
    buffer = buf,
    callback = hub.guard(function()
      M.save(current)
    end),
  })
  M.changed(current)
end

--- The buffer in which the conversation's next message is written.
---@param current agentik.Conversation
---@return integer
function M.buffer(current)
  local buf = current.bufs.compose
  if not buf or not api.nvim_buf_is_loaded(buf) then
    if buf and api.nvim_buf_is_valid(buf) then
      api.nvim_buf_delete(buf, { force = true })
    end
    create(current)
  end
  return current.bufs.compose
end

--- Options of a window that shows a compose buffer.
---@param win integer
function M.dress(win)
  local values = {
    wrap = true,
    linebreak = true,
    number = false,
    relativenumber = false,
    signcolumn = 'yes:1',
    foldcolumn = '0',
    foldenable = false,
    cursorline = false,
    colorcolumn = '',
    fillchars = 'eob: ',
    list = false,
  }
  for name, value in pairs(values) do
    api.nvim_set_option_value(name, value, { scope = 'local', win = win })
  end
end

api.nvim_create_autocmd({ 'VimLeavePre', 'FocusLost' }, {
  group = api.nvim_create_augroup('agentik.compose', {}),
  callback = hub.guard(function()
    for _, current in ipairs(conversation.all()) do
      M.save(current)
    end
  end),
})

hub.on('conversation', create)
hub.on('bound', restore)
hub.on('gone', function(current)
  drafts_of[current.key] = nil
end)

return M
