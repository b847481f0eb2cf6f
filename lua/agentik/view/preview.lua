--- vim.ui.select with a preview, where the person's picker shows one (`preview_item`, see |vim.ui.select()|); and what
--- is shown of a session. A preview is filled when the server answers: choosing never waits for it.

local host = require('agentik.host')

local M = {}

local api = vim.api
local MESSAGES = 30

---@param buf integer
---@param lines string[]
local function fill(buf, lines)
  if api.nvim_buf_is_valid(buf) then
    vim.bo[buf].modifiable = true
    api.nvim_buf_set_lines(buf, 0, -1, true, lines)
    vim.bo[buf].modifiable = false
  end
end

---@return integer
local function create()
  local buf = api.nvim_create_buf(false, true)
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].syntax = 'markdown'
  vim.bo[buf].modifiable = false
  return buf
end

--- Like vim.ui.select; `show` is called for an item that is looked at, and hands lines to its second argument.
---@param items any[]
---@param options table
---@param show fun(item: any, done: fun(lines: string[]))
---@param choose fun(item: any?, index: integer?)
function M.select(items, options, show, choose)
  local bufs = {}
  options.preview_item = function(item)
    local buf = bufs[item]
    if not buf or not api.nvim_buf_is_valid(buf) then
      buf = create()
      bufs[item] = buf
      show(item, function(lines)
        fill(buf, lines)
      end)
    end
    return { buf = buf }
  end
  vim.ui.select(items, options, function(item, index)
    for _, buf in pairs(bufs) do
      if api.nvim_buf_is_valid(buf) then
        api.nvim_buf_delete(buf, { force = true })
      end
    end
    choose(item, index)
  end)
end

local NAMES = { user = '# You', agent = '# Agent' }

--- Messages as lines of Markdown.
---@param messages table[] Message
---@return string[]
function M.lines(messages)
  local lines = {}
  for _, message in ipairs(messages) do
    if NAMES[message.kind] then
      vim.list_extend(lines, { NAMES[message.kind], '' })
      vim.list_extend(lines, vim.split(message.text, '\n', { plain = true, trimempty = true }))
      table.insert(lines, '')
    elseif message.tool then
      vim.list_extend(lines, { ('- %s'):format((message.tool.title or ''):gsub('%s+', ' ')), '' })
    end
  end
  return lines
end

--- The last messages of a session.
---@param session table Session
---@param done fun(lines: string[])
function M.session(session, done)
  -- Newest page: what stands before the largest `seq` there can be.
  local params = { sessionId = session.sessionId, before = 2 ^ 52, limit = MESSAGES }
  host.call('listMessages', params, function(err, page)
    done(err and { err.message } or M.lines(page.messages))
  end)
end

return M
