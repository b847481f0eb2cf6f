--- Permission requests: answered by number from chat and compose, several at once one after another. The chat draws
--- them; here are the keys and the answers. Must not decide what an answer means: the agent's own options are sent.

local config = require('agentik.config')
local conversation = require('agentik.conversation')
local hub = require('agentik.hub')

local M = {}

local api = vim.api

---@type table<integer, integer> key of the conversation -> which of the open requests the keys answer
local chosen = {}

--- The request that the keys answer.
---@param current agentik.Conversation
---@return table? Permission
---@return integer index
function M.open(current)
  local count = #current.permissions
  local index = math.min(chosen[current.key] or 1, math.max(count, 1))
  return current.permissions[index], index
end

--- Sends the answer to a request.
---@param current agentik.Conversation
---@param permission table
---@param option_id? string nil: cancelled
function M.send(current, permission, option_id)
  local params = { permissionId = permission.permissionId, optionId = option_id or vim.NIL }
  conversation.call(current, 'answerPermission', params)
end

--- Answers the open request with one of its options.
---@param current agentik.Conversation
---@param number integer
function M.answer(current, number)
  local permission = M.open(current)
  local option = permission and permission.options[number]
  if permission and option then
    M.send(current, permission, option.optionId)
  elseif permission then
    hub.say(('there are only %d options'):format(#permission.options), vim.log.levels.WARN)
  end
end

--- The agent's first option of a kind; nil when it offers none.
---@param permission table
---@param kinds string[] in order of preference
---@return table?
function M.option_of(permission, kinds)
  for _, kind in ipairs(kinds) do
    for _, option in ipairs(permission.options) do
      if option.kind == kind then
        return option
      end
    end
  end
end

--- Chooses the answer from a list.
---@param current agentik.Conversation
local function choose(current)
  local permission = M.open(current)
  if not permission then
    return
  end
  local options = {
    prompt = (permission.toolCall or {}).title or 'The agent asks',
    format_item = function(option)
      return option.name
    end,
  }
  vim.ui.select(permission.options, options, function(option)
    if option then
      M.send(current, permission, option.optionId)
    end
  end)
end

---@param current agentik.Conversation
---@param step 1|-1
local function turn(current, step)
  local _, index = M.open(current)
  chosen[current.key] = (index - 1 + step) % math.max(#current.permissions, 1) + 1
  hub.emit('chosen', current)
end

---@param current agentik.Conversation
---@return table<string, fun()>
local function actions(current)
  return {
    choose = function()
      choose(current)
    end,
    diff = function()
      local permission = M.open(current)
      if permission then
        require('agentik.view.diff').permission(current, permission)
      end
    end,
    next = function()
      turn(current, 1)
    end,
    prev = function()
      turn(current, -1)
    end,
  }
end

---@param current agentik.Conversation
---@param use fun(mode: string[], lhs: string, run: fun(), description: string)
local function each_key(current, use)
  local run = actions(current)
  for _, mapping in ipairs(config.mappings('permission')) do
    if mapping.action ~= 'option' then
      use(mapping.mode, mapping.lhs, run[mapping.action], mapping.desc)
    else
      for number = 1, 9 do
        local lhs = mapping.lhs:gsub('%%d', tostring(number))
        use(mapping.mode, lhs, function()
          M.answer(current, number)
        end, mapping.desc:gsub('%%d', tostring(number)))
      end
    end
  end
end

---@type table<integer, boolean> key of the conversation -> the keys are mapped
local mapped = {}

--- The keys exist only while a request is open: at other times they are the person's own.
---@param current agentik.Conversation
local function map(current)
  local wanted = #current.permissions > 0
  if wanted == (mapped[current.key] or false) then
    return
  end
  mapped[current.key] = wanted
  for _, part in ipairs({ 'chat', 'compose' }) do
    local buf = current.bufs[part]
    if buf and api.nvim_buf_is_loaded(buf) then
      each_key(current, function(mode, lhs, run, description)
        if wanted then
          vim.keymap.set(mode, lhs, run, { buffer = buf, nowait = true, desc = 'agentik: ' .. description })
        else
          pcall(vim.keymap.del, mode, lhs, { buffer = buf })
        end
      end)
    end
  end
end

hub.on('changed', function(current, part)
  if part == 'permissions' then
    map(current)
  end
end)

-- <CR> on a line of a request in the chat: the title chooses it, an option answers with it.
hub.on('ask', function(current, id, line)
  for index, permission in ipairs(current.permissions) do
    if permission.permissionId == id then
      chosen[current.key] = index
      if line > 0 and permission.options[line] then
        M.send(current, permission, permission.options[line].optionId)
      end
    end
  end
end)

hub.on('gone', function(current)
  chosen[current.key], mapped[current.key] = nil, nil
end)

return M
