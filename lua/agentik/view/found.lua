--- What a search found: a list to choose from, or the quickfix list. Either way leads to the message in its chat.

local conversation = require('agentik.conversation')
local host = require('agentik.host')
local hub = require('agentik.hub')
local preview = require('agentik.view.preview')
local rows = require('agentik.view.rows')

local M = {}

local api = vim.api
local MOST = 200
local SCHEME = 'agentik-message://'

---@class (exact) agentik.Found
---@field sessionId string
---@field messageId string
---@field snippet string
---@field createdAt integer
---@field title string of the session

--- Shows the session at the message.
---@param session_id string
---@param message_id string
local function go(session_id, message_id)
  local current = conversation.open(session_id)
  local layout = require('agentik').show(current, false)
  api.nvim_set_current_win(layout.wins.chat)
  require('agentik.view.chat').go_to(current, message_id)
end

---@param matches table[] Match
---@param done fun(found: agentik.Found[])
local function with_titles(matches, done)
  host.call('listSessions', { limit = 1000 }, function(_, result)
    local titles = {}
    for _, session in ipairs(result and result.sessions or {}) do
      titles[session.sessionId] = session.title
    end
    done(vim.tbl_map(function(match)
      local title = titles[match.sessionId]
      return vim.tbl_extend('force', match, { title = title and title ~= '' and title or 'untitled' })
    end, matches))
  end)
end

---@param found agentik.Found[]
---@param query string
local function choose(found, query)
  local titles = vim.tbl_map(function(match)
    return match.title
  end, found)
  local width = rows.width(titles, math.max(14, math.floor(rows.room() / 4)))
  local days = vim.tbl_map(function(match)
    return rows.day(match.createdAt)
  end, found)
  local time = rows.width(days, 10)
  local options = {
    prompt = ('Found for "%s"'):format(query),
    kind = 'agentik.match',
    format_item = function(match)
      local start = rows.cell(rows.day(match.createdAt), time) .. '  ' .. rows.cell(match.title, width) .. '  '
      local room = math.max(20, rows.room() - vim.api.nvim_strwidth(start))
      return (start .. rows.cell(match.snippet, room)):gsub('%s+$', '')
    end,
  }
  preview.select(found, options, function(match, show)
    show({ '# ' .. match.title, '', tostring(os.date('%c', math.floor(match.createdAt / 1000))), '', match.snippet })
  end, function(match)
    if match then
      go(match.sessionId, match.messageId)
    end
  end)
end

---@param found agentik.Found[]
---@param query string
local function to_quickfix(found, query)
  local items = vim.tbl_map(function(match)
    return {
      filename = SCHEME .. match.sessionId .. '/' .. match.messageId,
      module = ('%s %s'):format(rows.day(match.createdAt), rows.cell(match.title, 24):gsub('%s+$', '')),
      text = match.snippet,
    }
  end, found)
  vim.fn.setqflist({}, ' ', { title = 'agentik: ' .. query, items = items })
  vim.cmd('botright copen')
end

--- Searches the messages of all sessions of all agents.
---@param query string words, "quoted phrases", the begin of a word with `*`
---@param quickfix? boolean into the quickfix list
function M.search(query, quickfix)
  host.call('searchMessages', { query = query, limit = MOST }, function(err, result)
    if err then
      hub.say(err.message, vim.log.levels.WARN)
    elseif #result.matches == 0 then
      hub.say(('nothing found for %s'):format(query))
    else
      with_titles(result.matches, function(found)
        if quickfix then
          to_quickfix(found, query)
        else
          choose(found, query)
        end
      end)
    end
  end)
end

--- The window that a quickfix command put the place into gets its buffer back, and the chat shows the message.
---@param buf integer
---@param session_id string
---@param message_id string
local function visit(buf, session_id, message_id)
  local win = api.nvim_get_current_win()
  if api.nvim_win_get_buf(win) ~= buf or api.nvim_win_get_config(win).relative ~= '' then
    return -- only a preview of a plugin
  end
  local before = vim.fn.bufnr('#')
  if before <= 0 or before == buf or not api.nvim_buf_is_valid(before) then
    before = api.nvim_create_buf(true, false)
  end
  vim.cmd(('keepalt buffer %d'):format(before))
  vim.cmd(('silent! bunload %d'):format(buf)) -- so that the place is read again the next time
  go(session_id, message_id)
end

api.nvim_create_autocmd('BufReadCmd', {
  group = api.nvim_create_augroup('agentik.found', {}),
  pattern = SCHEME .. '*',
  callback = function(event)
    local session_id, message_id = event.match:match('^agentik%-message://([^/]+)/(.+)$')
    vim.bo[event.buf].buftype = 'nofile'
    vim.bo[event.buf].buflisted = false
    if session_id then
      vim.schedule(hub.guard(function()
        visit(event.buf, session_id, message_id)
      end))
    end
  end,
})

return M
