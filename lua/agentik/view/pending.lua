--- The pending list as a buffer that is edited like text: `dd` drops, `p` moves, changed text edits. Which line belongs
--- to which message is known by extmarks, so no text can look like a separator. The difference is planned as data
--- (pending_plan), then sent in one piece. Must not decide what may be edited: the server says.

local conversation = require('agentik.conversation')
local config = require('agentik.config')
local hold = require('agentik.view.hold')
local hub = require('agentik.hub')
local keys = require('agentik.view.keys')
local own = require('agentik.view.own')
local plan = require('agentik.view.pending_plan')

local M = {}

local api = vim.api
local NS = api.nvim_create_namespace('agentik.pending')
local INFO = api.nvim_create_namespace('agentik.pending.info')
--- A removal waits so long for the `p` that makes a move of it.
local MOVE_MS = 2000

---@class (exact) agentik.PendingList
---@field base agentik.Segment[] what the server has, as far as we were told or asked for
---@field marks table<integer, string> extmark -> message
---@field items table<string, table> PendingItem by message
---@field dirty integer edits that are not sent
---@field sent integer requests that are not answered
---@field generation integer grows with each change, so that a late timer does nothing

---@type table<integer, agentik.PendingList> by key of the conversation
local lists = {}

---@param current agentik.Conversation
---@return agentik.PendingList
local function list_of(current)
  local list = lists[current.key]
  if not list then
    list = { base = {}, marks = {}, items = {}, dirty = 0, sent = 0, generation = 0 }
    lists[current.key] = list
  end
  return list
end

--- Where each item begins. `empty`: nothing is left of its lines.
---@param current agentik.Conversation
---@return { id: string, row: integer, empty: boolean, order: integer }[] from top to bottom
local function marks_of(current)
  local list, found = list_of(current), {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(M.buffer(current), NS, 0, -1, { details = true })) do
    local id, row, end_row = list.marks[mark[1]], mark[2], mark[4].end_row
    if id then
      -- Lines that were replaced as a whole push the start behind the end.
      local empty = row == end_row and mark[3] == mark[4].end_col
      table.insert(found, { id = id, row = math.min(row, end_row), empty = empty, order = #found })
    end
  end
  table.sort(found, function(a, b)
    return a.row < b.row or a.row == b.row and a.order < b.order
  end)
  return found
end

--- The items as they stand in the buffer now, from top to bottom.
---@param current agentik.Conversation
---@return agentik.Segment[]
local function segments(current)
  local buf, starts = M.buffer(current), {}
  local count = api.nvim_buf_line_count(buf)
  if count == 1 and api.nvim_buf_get_lines(buf, 0, 1, true)[1] == '' then
    return {} -- the last of them was deleted
  end
  for _, each in ipairs(marks_of(current)) do
    local last = starts[#starts]
    local taken = last and last.row == each.row
    if each.row < count and not (taken and not last.empty) then
      -- The mark of a deleted item stands where the next one begins: that one owns the line.
      if taken then
        table.remove(starts)
      end
      table.insert(starts, each)
    end
  end
  local found = {}
  for index, start in ipairs(starts) do
    local first = index == 1 and 0 or start.row
    local last = starts[index + 1] and starts[index + 1].row or count
    table.insert(found, { id = start.id, lines = api.nvim_buf_get_lines(buf, first, last, true) })
  end
  return found
end

---@param milliseconds integer
---@return string
local function age(milliseconds)
  local seconds = math.max(0, os.time() - math.floor(milliseconds / 1000))
  if seconds < 60 then
    return ('%d s'):format(seconds)
  elseif seconds < 3600 then
    return ('%d min'):format(math.floor(seconds / 60))
  end
  return ('%d h'):format(math.floor(seconds / 3600))
end

--- Numbers, ages and attachments, beside the text.
---@param current agentik.Conversation
local function draw_info(current)
  local buf, list, icons = M.buffer(current), list_of(current), config.icons()
  api.nvim_buf_clear_namespace(buf, INFO, 0, -1)
  local number = 0
  for _, mark in ipairs(marks_of(current)) do
    local item = list.items[mark.id]
    if item and not mark.empty and mark.row < api.nvim_buf_line_count(buf) then
      number = number + 1
      local parts = {}
      for _, attachment in ipairs(item.attachments or {}) do
        table.insert(parts, icons.attachment .. (attachment.name or vim.fs.basename(attachment.path)))
      end
      if item.state == 'claimed' then
        table.insert(parts, 'being sent')
      elseif item.createdAt then
        table.insert(parts, age(item.createdAt))
      end
      api.nvim_buf_set_extmark(buf, INFO, mark.row, 0, {
        sign_text = tostring(number % 100),
        sign_hl_group = 'AgentikPendingNumber',
        virt_text = { { '  ' .. table.concat(parts, '  '), 'AgentikPendingInfo' } },
      })
    end
  end
end

---@param items table[]
---@return agentik.Segment[]
local function segments_of(items)
  return vim.tbl_map(function(item)
    return { id = item.messageId, lines = vim.split(item.text, '\n', { plain = true }) }
  end, items)
end

--- Puts lines into the buffer. What the server did cannot be undone here: a text that `u` brought back would belong to
--- no message.
---@param buf integer
---@param lines string[]
---@param forget boolean also when the lines are there already
local function set_lines(buf, lines, forget)
  local old = api.nvim_buf_get_lines(buf, 0, -1, true)
  if not forget and vim.deep_equal(old, lines) then
    return
  end
  local levels = vim.bo[buf].undolevels
  vim.bo[buf].undolevels = -1
  api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].undolevels = levels
end

--- Draws what the server has.
---@param current agentik.Conversation
---@param forget? boolean nothing can be undone from here on
local function draw(current, forget)
  local buf, list = M.buffer(current), list_of(current)
  list.base = segments_of(current.pending.items)
  list.dirty = 0
  local lines = {}
  for _, segment in ipairs(list.base) do
    vim.list_extend(lines, segment.lines)
  end
  set_lines(buf, #lines > 0 and lines or { '' }, forget or false)
  api.nvim_buf_clear_namespace(buf, NS, 0, -1)
  list.marks, list.items = {}, {}
  local row = 0
  for index, item in ipairs(current.pending.items) do
    local last = row + #list.base[index].lines
    local mark = api.nvim_buf_set_extmark(buf, NS, row, 0, {
      end_row = last,
      end_col = 0,
      strict = false,
    })
    list.marks[mark] = item.messageId
    list.items[item.messageId] = item
    row = last
  end
  vim.bo[buf].modified = false
  draw_info(current)
  hub.emit('resize', current)
end

---@param edits agentik.Edit[]
---@return boolean
local function removes(edits)
  return vim.iter(edits):any(function(edit)
    return edit.op == 'remove'
  end)
end

---@param current agentik.Conversation
---@return agentik.Edit[]
local function edits_of(current)
  return plan.plan(list_of(current).base, segments(current))
end

--- An edit that came too late: its text goes where the person can use it.
---@param current agentik.Conversation
---@param edits agentik.Edit[]
---@param results table[]
local function report(current, edits, results)
  local texts = {}
  for _, edit in ipairs(edits) do
    texts[edit.messageId] = edit.text or texts[edit.messageId]
  end
  for _, result in ipairs(results) do
    if not result.applied then
      local late = result.reason == 'alreadyDelivered' or result.reason == 'unknownMessage'
      local text = late and texts[result.messageId]
      if text then
        hub.emit('keep_text', current, text)
        hub.say('too late, the message was sent already: your text is in the compose window', vim.log.levels.WARN)
      elseif late then
        hub.say('too late, the message was sent already', vim.log.levels.WARN)
      else
        hub.say(('the list was not changed: %s'):format(result.reason or 'refused'), vim.log.levels.WARN)
      end
      texts[result.messageId] = nil
    end
  end
end

--- Sends what was edited. The buffer counts as the new list until the server says otherwise.
---@param current agentik.Conversation
---@param done? fun()
function M.apply(current, done)
  local list = list_of(current)
  local edits = edits_of(current)
  list.generation = list.generation + 1
  list.dirty = 0
  vim.bo[M.buffer(current)].modified = false
  if #edits == 0 then
    if done then
      done()
    end
    return
  end
  list.base = plan.result(list.base, segments(current))
  list.sent = list.sent + 1
  conversation.call(current, 'applyPendingEdits', { edits = edits }, function(err, result)
    list.sent = list.sent - 1
    if err then
      hub.say(err.message, vim.log.levels.WARN)
      if err.code ~= 4000 then
        report(current, edits, {})
      end
    else
      report(current, edits, result.results)
    end
    if list.dirty == 0 and list.sent == 0 then
      draw(current, removes(edits))
    end
    if done then
      done()
    end
  end)
end

--- The person changed the buffer: a text or a move goes to the server at once, a removal when no `p` follows.
---@param current agentik.Conversation
local function consider(current)
  local list = list_of(current)
  local edits = edits_of(current)
  list.generation = list.generation + 1
  list.dirty = #edits
  draw_info(current)
  hub.emit('changed', current, 'draft')
  hub.emit('resize', current)
  if #edits == 0 then
    vim.bo[M.buffer(current)].modified = false
    return
  end
  hold.start(current)
  if not removes(edits) then
    M.apply(current)
    return
  end
  local generation = list.generation
  vim.defer_fn(function()
    if list.generation == generation and api.nvim_get_mode().mode:sub(1, 1) ~= 'i' then
      M.apply(current)
    end
  end, MOVE_MS)
end

--- Forgets what was edited.
---@param current agentik.Conversation
function M.discard(current)
  list_of(current).generation = list_of(current).generation + 1
  draw(current)
end

---@param current agentik.Conversation
---@return table? PendingItem under the cursor
local function item_under_cursor(current)
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local found
  for _, mark in ipairs(marks_of(current)) do
    if mark.row <= row and not mark.empty then
      found = list_of(current).items[mark.id]
    end
  end
  return found
end

--- Calls the server about the item under the cursor, after the edits.
---@param current agentik.Conversation
---@param method string
---@param done? fun(item: table)
local function with_item(current, method, done)
  local item = item_under_cursor(current)
  if not item then
    return
  end
  M.apply(current, function()
    conversation.call(current, method, { messageId = item.messageId }, function(err)
      if err then
        hub.say(err.message, vim.log.levels.WARN)
      elseif done then
        done(item)
      end
    end)
  end)
end

--- Pauses or resumes.
---@param current agentik.Conversation
function M.toggle_pause(current)
  conversation.call(current, current.pending.paused and 'resumeQueue' or 'pauseQueue')
end

---@param current agentik.Conversation
---@return table<string, fun()>
local function actions(current)
  return {
    apply = function()
      vim.cmd('stopinsert')
      M.apply(current)
    end,
    send_now = function()
      with_item(current, 'sendPendingNow')
    end,
    edit = function()
      with_item(current, 'removePending', function(item)
        hub.emit('keep_text', current, item.text, item.attachments)
        require('agentik').compose()
      end)
    end,
    remove = function()
      with_item(current, 'removePending')
    end,
    clear = function()
      local question = ('Remove all %d waiting messages?'):format(#current.pending.items)
      vim.ui.select({ 'Remove them', 'Keep them' }, { prompt = question }, function(_, index)
        if index == 1 then
          conversation.call(current, 'clearPending')
        end
      end)
    end,
    pause = function()
      M.toggle_pause(current)
    end,
    discard = function()
      M.discard(current)
    end,
    close = function()
      require('agentik').compose()
    end,
    help = function()
      keys.help({ 'pending' })
    end,
  }
end

---@param current agentik.Conversation
---@param buf integer
local function listen(current, buf)
  local group = api.nvim_create_augroup(('agentik.pending.%d'):format(current.key), {})
  local function on(events, callback)
    api.nvim_create_autocmd(events, { group = group, buffer = buf, callback = hub.guard(callback) })
  end
  on({ 'TextChanged', 'InsertLeave' }, function()
    consider(current)
  end)
  on('TextChangedI', function()
    list_of(current).dirty = 1
    hold.start(current)
    hub.emit('resize', current)
  end)
  on({ 'BufEnter', 'CursorMoved', 'InsertEnter' }, function()
    if #current.pending.items > 0 then
      hold.start(current)
    end
  end)
  on('BufLeave', function()
    if keys.showing then
      return -- the person only reads the keys of this window
    end
    M.apply(current, function()
      hold.stop(current)
      hub.emit('resize', current)
    end)
  end)
  on('BufWriteCmd', function()
    M.apply(current)
  end)
end

---@param current agentik.Conversation
local function create(current)
  local buf = own.create(('pending/%d'):format(current.key), 'agentik-pending')
  current.bufs.pending = buf
  vim.bo[buf].buftype = 'acwrite'
  keys.set(buf, 'pending', actions(current))
  listen(current, buf)
  draw(current)
end

--- The buffer of the conversation's pending list.
---@param current agentik.Conversation
---@return integer
function M.buffer(current)
  local buf = current.bufs.pending
  if not buf or not api.nvim_buf_is_loaded(buf) then
    if buf and api.nvim_buf_is_valid(buf) then
      api.nvim_buf_delete(buf, { force = true })
    end
    create(current)
  end
  return current.bufs.pending
end

--- Whether there is something to show.
---@param current agentik.Conversation
---@return boolean
function M.is_wanted(current)
  return #current.pending.items > 0 or current.pending.paused
end

--- Options of a window that shows a pending list.
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

--- Whether the list holds edits that were not sent.
---@param current agentik.Conversation
---@return boolean
function M.is_edited(current)
  return list_of(current).dirty > 0
end

hub.on('conversation', create)

hub.on('changed', function(current, part)
  if part ~= 'pending' then
    return
  end
  local list = list_of(current)
  local inserting = api.nvim_get_mode().mode:sub(1, 1) == 'i' and api.nvim_get_current_buf() == current.bufs.pending
  -- What the person is typing is never replaced; the answer to their edits brings the list up to date.
  if list.sent == 0 and not inserting and #edits_of(current) == 0 then
    draw(current)
  end
end)

hub.on('tick', function()
  for _, current in ipairs(conversation.all()) do
    if #current.pending.items > 0 and #vim.fn.win_findbuf(current.bufs.pending) > 0 then
      draw_info(current)
    end
  end
end)

hub.on('gone', function(current)
  lists[current.key] = nil
  hold.forget(current)
end)

return M
