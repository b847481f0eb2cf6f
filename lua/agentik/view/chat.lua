--- The chat: one buffer a conversation, drawn by the host's patches; keys to move in it and to use what stands there.
--- Must not change its text (agentik.view.patches does) nor know which windows show it.

local conversation = require('agentik.conversation')
local code = require('agentik.view.code')
local folds = require('agentik.view.folds')
local host = require('agentik.host')
local hub = require('agentik.hub')
local keys = require('agentik.view.keys')
local own = require('agentik.view.own')
local patches = require('agentik.view.patches')
local reveal = require('agentik.view.reveal')

local M = {}

local api = vim.api
local HINT = api.nvim_create_namespace('agentik.chat.hint')

--- Goes to the next or previous block of some kinds.
---@param kinds table<string, boolean>
---@param step 1|-1
local function go(kinds, step)
  local buf = api.nvim_get_current_buf()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  for block in patches.from(buf, row, step) do
    -- The first line of most blocks is the blank one that sets them apart.
    local first = block.row + (api.nvim_buf_get_lines(buf, block.row, block.row + 1, false)[1] == '' and 1 or 0)
    if kinds[block.meta.kind] and (first - row) * step > 0 then
      vim.cmd("normal! m'")
      api.nvim_win_set_cursor(0, { math.min(first + 1, api.nvim_buf_line_count(buf)), 0 })
      return
    end
  end
end

local MESSAGES = { user = true, agent = true }
local TOOLS = { tool = true }

---@return agentik.Block? block
---@return integer offset of the cursor's line in it
local function under_cursor()
  local row = api.nvim_win_get_cursor(0)[1] - 1
  local block = patches.at(api.nvim_get_current_buf(), row)
  return block, block and row - block.row or 0
end

--- What the host knows of the line under the cursor.
---@param use fun(found: table)
local function find(use)
  local current = conversation.of_buffer()
  local block, offset = under_cursor()
  if not current or not current.session_id or not block then
    return
  end
  host.find(current.session_id, block.number, offset, function(err, found)
    if err then
      hub.say(err.message, vim.log.levels.WARN)
    else
      use(found)
    end
  end)
end

local function goto_place()
  find(function(found)
    if found.path then
      reveal.file(found.path, found.line)
    else
      hub.say('no file on this line')
    end
  end)
end

--- Fold, full output, older messages, a form: what the line offers.
local function open()
  local block, offset = under_cursor()
  local current = conversation.of_buffer()
  if not block or not current then
    return
  end
  local fold = block.meta.fold
  if block.meta.kind == 'more' then
    host.older(current.session_id)
  elseif block.meta.kind == 'ask' then
    local blank = api.nvim_buf_get_lines(0, block.row, block.row + 1, false)[1] == ''
    hub.emit('ask', current, block.meta.id, blank and offset - 1 or offset)
  elseif fold and (offset <= fold[1] or vim.fn.foldclosed('.') ~= -1) then
    vim.cmd('normal! za')
  elseif block.meta.kind == 'tool' then
    find(function(found)
      reveal.text(found.output ~= '' and found.output or vim.inspect(found.tool), 'output')
    end)
  end
end

local function open_link()
  local line = api.nvim_get_current_line()
  local column = api.nvim_win_get_cursor(0)[2] + 1
  for first, url, last in line:gmatch('()(https?://[^%s<>"\'`%)%]]+)()') do
    local start = line:sub(1, first - 1):match('()%[[^%]]*%]%($') or first
    if start <= column and column <= last then
      vim.ui.open((url:gsub('[.,;:!?]+$', ''))) -- what ends the sentence
      return
    end
  end
  hub.say('no link under the cursor')
end

local function yank_code()
  local lines = code.at(api.nvim_get_current_buf(), api.nvim_win_get_cursor(0)[1] - 1)
  if not lines then
    hub.say('no code block under the cursor')
    return
  end
  local register = vim.v.register
  vim.fn.setreg(register, lines, 'l')
  hub.say(('yanked %d lines of code'):format(#lines))
end

local function resend()
  local current = conversation.of_buffer()
  find(function(found)
    if found.kind ~= 'user' or not vim.list_contains({ 'unknown', 'interrupted', 'failed' }, found.status) then
      hub.say('only a message of yours that was not answered can be sent again')
      return
    end
    conversation.call(current, 'resendMessage', { messageId = found.id })
  end)
end

---@param name string of a public function
local function public(name, ...)
  local arguments = { ... }
  return function()
    require('agentik')[name](unpack(arguments))
  end
end

local ACTIONS = {
  next_message = function()
    go(MESSAGES, 1)
  end,
  prev_message = function()
    go(MESSAGES, -1)
  end,
  next_tool = function()
    go(TOOLS, 1)
  end,
  prev_tool = function()
    go(TOOLS, -1)
  end,
  open = open,
  goto_place = goto_place,
  open_link = open_link,
  yank_code = yank_code,
  resend = resend,
  compose = public('compose'),
  stop = public('stop'),
  sessions = public('sessions'),
  modes = public('options'),
  changes = public('changes'),
  pending = public('pending'),
  close = public('close'),
  help = function()
    keys.help({ 'chat', 'permission' })
  end,
}

---@param current agentik.Conversation
local function create(current)
  local buf = own.create(('chat/%d'):format(current.key), 'agentik-chat')
  current.bufs.chat = buf
  vim.bo[buf].undolevels = -1 -- one `u` would take an answer away
  vim.bo[buf].modifiable = false
  keys.set(buf, 'chat', ACTIONS)
  patches.attach(buf)
  M.hint(current)
end

--- A line in pieces that fit into the narrowest window of a buffer: virtual lines are not wrapped by Neovim.
---@param line string
---@param buf integer
---@return string[]
local function wrapped(line, buf)
  local room = vim.o.columns
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    room = math.min(room, api.nvim_win_get_width(win) - 3)
  end
  local parts = { '' }
  for word in line:gmatch('%S+') do
    local longer = parts[#parts] == '' and word or parts[#parts] .. ' ' .. word
    if vim.api.nvim_strwidth(longer) > room and parts[#parts] ~= '' then
      table.insert(parts, word)
    else
      parts[#parts] = longer
    end
  end
  return parts
end

--- What an empty chat says.
---@param current agentik.Conversation
function M.hint(current)
  local buf = current.bufs.chat
  api.nvim_buf_clear_namespace(buf, HINT, 0, -1)
  if api.nvim_buf_line_count(buf) > 1 or api.nvim_buf_get_lines(buf, 0, 1, false)[1] ~= '' then
    return
  end
  local help = keys.of('chat', 'help')
  local lines = { 'Ask something below.', help and ('%s shows the keys.'):format(help) }
  if current.problem then
    lines = { current.problem }
  end
  local virtual = {}
  for _, line in ipairs(lines) do
    for _, part in ipairs(wrapped(line, buf)) do
      virtual[#virtual + 1] = { { part, current.problem and 'AgentikError' or 'AgentikHint' } }
    end
  end
  api.nvim_buf_set_extmark(buf, HINT, 0, 0, { virt_lines = virtual })
end

hub.on('conversation', create)

--- So many lines below the oldest message older ones are loaded, before the person comes to them.
local AHEAD = 200

api.nvim_create_autocmd('WinScrolled', {
  group = api.nvim_create_augroup('agentik.chat', {}),
  callback = function()
    for id in pairs(vim.v.event) do
      local win = tonumber(id)
      local current = win and api.nvim_win_is_valid(win) and conversation.of_buffer(api.nvim_win_get_buf(win))
      local is_chat = current and current.more and api.nvim_win_get_buf(win) == current.bufs.chat
      if is_chat and vim.fn.line('w0', win) <= AHEAD then
        host.older(current.session_id)
      end
    end
  end,
})

hub.on('bound', function(current)
  -- A buffer that was deleted (`:bwipeout`) is made again.
  if not api.nvim_buf_is_valid(current.bufs.chat) then
    create(current)
  end
end)

hub.on('changed', function(current, part)
  if part == 'session' and api.nvim_buf_is_valid(current.bufs.chat) then
    M.hint(current)
  end
end)

hub.on('gone', function(current)
  for _, buf in pairs(current.bufs) do
    if api.nvim_buf_is_valid(buf) then
      api.nvim_buf_delete(buf, { force = true })
    end
  end
end)

host.draw = function(session_id, chat)
  local current = conversation.of_session(session_id)
  if not current then
    return
  end
  if not api.nvim_buf_is_valid(current.bufs.chat) or not api.nvim_buf_is_loaded(current.bufs.chat) then
    create(current)
    return chat.reset and patches.apply(current.bufs.chat, chat)
  end
  local fine = patches.apply(current.bufs.chat, chat)
  M.hint(current)
  return fine
end

---@param current agentik.Conversation
---@param message_id string
local function show_message(current, message_id)
  local buf = current.bufs.chat
  local block = patches.of_item(buf, message_id)
  if not block then
    return
  end
  local blank = api.nvim_buf_get_lines(buf, block.row, block.row + 1, false)[1] == ''
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    api.nvim_win_set_cursor(win, { math.min(block.row + (blank and 2 or 1), api.nvim_buf_line_count(buf)), 0 })
    api.nvim_win_call(win, function()
      vim.cmd('normal! zvzt')
    end)
  end
end

--- Goes to a message in the windows that show the conversation's chat; older pages are loaded until it is there.
---@param current agentik.Conversation
---@param message_id string
function M.go_to(current, message_id)
  conversation.when_ready(current, function(problem)
    if problem then
      hub.say(problem.message, vim.log.levels.WARN)
      return
    end
    host.reach(current.session_id, message_id, function(err, found)
      if err or not found then
        hub.say(err and err.message or 'this message is not in the session any more', vim.log.levels.WARN)
      elseif api.nvim_buf_is_loaded(current.bufs.chat) then
        show_message(current, message_id)
      end
    end)
  end)
end

--- The buffer of a conversation's chat.
---@param current agentik.Conversation
---@return integer
function M.buffer(current)
  local buf = current.bufs.chat
  if not api.nvim_buf_is_valid(buf) or not api.nvim_buf_is_loaded(buf) then
    create(current)
    if current.session_id then
      host.redraw(current.session_id)
    end
  end
  return current.bufs.chat
end

--- Options of a window that shows a chat, and its folds.
---@param win integer
function M.dress(win)
  local buf = api.nvim_win_get_buf(win)
  local values = {
    wrap = true,
    linebreak = true,
    breakindent = true,
    number = false,
    relativenumber = false,
    signcolumn = 'yes:1',
    foldcolumn = '0',
    foldmethod = 'manual',
    foldenable = true,
    foldtext = '',
    fillchars = 'fold: ,eob: ',
    list = false,
    spell = false,
    cursorline = false,
    colorcolumn = '',
    conceallevel = 2, -- the signs of Markdown
    concealcursor = 'nvc',
    scrolloff = 0,
    winhighlight = 'Folded:AgentikFolded',
  }
  for name, value in pairs(values) do
    api.nvim_set_option_value(name, value, { scope = 'local', win = win })
  end
  folds.window(win, patches.folded(buf))
end

return M
