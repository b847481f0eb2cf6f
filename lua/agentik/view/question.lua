--- Questions of the agent (elicitation): a form asked field by field with vim.ui, from the chat's <CR>.
--- Must not ask by itself: it would take the keyboard from the person.

local conversation = require('agentik.conversation')
local hub = require('agentik.hub')

local M = {}

---@param current agentik.Conversation
---@param question table
---@param action 'accept'|'decline'|'cancel'
---@param content? table
local function answer(current, question, action, content)
  local params = { questionId = question.questionId, action = action, content = content }
  conversation.call(current, 'answerQuestion', params)
end

--- The choices of a field: { value, label } each.
---@param field table JSON schema of one property
---@return [any, string][]?
local function choices(field)
  if field.type == 'boolean' then
    return { { true, 'yes' }, { false, 'no' } }
  end
  local found = {}
  for _, each in ipairs(field.oneOf or field.anyOf or {}) do
    if each.const ~= nil then
      table.insert(found, { each.const, each.title or tostring(each.const) })
    end
  end
  for index, value in ipairs(field.enum or {}) do
    table.insert(found, { value, (field.enumNames or {})[index] or tostring(value) })
  end
  return #found > 0 and found or nil
end

--- What was typed, as the field's type; nil and the reason when it is none.
---@param field table
---@param text string
---@return any value
---@return string? problem
local function parsed(field, text)
  if field.type == 'number' or field.type == 'integer' then
    local number = tonumber(text)
    if not number or (field.type == 'integer' and number % 1 ~= 0) then
      return nil, ('%s is not a%s'):format(text, field.type == 'integer' and ' whole number' or ' number')
    end
    return number
  end
  return text
end

---@param name string
---@param field table
---@param next fun(value: any, cancelled: boolean)
local function ask_field(name, field, next)
  local prompt = field.title or name
  if field.description then
    prompt = ('%s (%s)'):format(prompt, field.description)
  end
  local options = choices(field)
  if options then
    local format = function(option)
      return option[2]
    end
    vim.ui.select(options, { prompt = prompt, format_item = format }, function(option)
      next(option and option[1], option == nil)
    end)
    return
  end
  local default = field.default ~= nil and tostring(field.default) or nil
  vim.ui.input({ prompt = prompt .. ': ', default = default }, function(text)
    if text == nil then
      next(nil, true)
      return
    end
    local value, problem = parsed(field, text)
    if problem then
      hub.say(problem, vim.log.levels.WARN)
      ask_field(name, field, next)
    else
      next(value, false)
    end
  end)
end

---@param current agentik.Conversation
---@param question table
local function ask_form(current, question)
  local fields = (question.schema or {}).properties or {}
  local names = vim.tbl_keys(fields)
  local required = (question.schema or {}).required or {}
  table.sort(names, function(a, b)
    local first, second = vim.list_contains(required, a), vim.list_contains(required, b)
    if first ~= second then
      return first
    end
    return a < b
  end)
  local content = {}
  local function step(index)
    if index > #names then
      answer(current, question, 'accept', next(content) and content or vim.empty_dict())
      return
    end
    ask_field(names[index], fields[names[index]], function(value, cancelled)
      if cancelled then
        return -- nothing is answered: the question stays open
      end
      if value ~= '' or vim.list_contains(required, names[index]) then
        content[names[index]] = value
      end
      step(index + 1)
    end)
  end
  step(1)
end

--- Asks the person.
---@param current agentik.Conversation
---@param question table
function M.ask(current, question)
  local options = { 'Answer', 'Decline', 'Cancel' }
  vim.ui.select(options, { prompt = question.message }, function(_, index)
    if index == 1 and question.url then
      vim.ui.open(question.url)
      answer(current, question, 'accept', vim.empty_dict())
    elseif index == 1 then
      ask_form(current, question)
    elseif index then
      answer(current, question, index == 2 and 'decline' or 'cancel')
    end
  end)
end

hub.on('ask', function(current, id)
  for _, question in ipairs(current.questions) do
    if question.questionId == id then
      M.ask(current, question)
    end
  end
end)

return M
