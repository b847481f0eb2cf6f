--- What can be attached to a message, to choose from. The attachments themselves are made by agentik.context.

local compose = require('agentik.view.compose')
local context = require('agentik.context')
local hub = require('agentik.hub')
local reveal = require('agentik.view.reveal')

local M = {}

---@class (exact) agentik.AttachChoice
---@field name string
---@field make fun(add: fun(attachment?: agentik.Attachment, problem?: string))

--- Runs `make` in the window of the person's file, and hands on what it gives.
---@param make fun(): agentik.Attachment?, string?
---@return fun(add: fun(attachment?: agentik.Attachment, problem?: string))
local function in_file(make)
  return function(add)
    add(vim.api.nvim_win_call(reveal.window(), make))
  end
end

---@return agentik.AttachChoice[]
local function choices()
  return {
    { name = 'the file in the other window', make = in_file(function()
      return context.buffer(0)
    end) },
    { name = 'its diagnostics', make = in_file(function()
      return context.diagnostics('buffer', 0)
    end) },
    { name = 'the diagnostics of its line', make = in_file(function()
      return context.diagnostics('line', 0)
    end) },
    { name = 'the quickfix list', make = function(add)
      add(context.quickfix())
    end },
    { name = 'the changes in git', make = function(add)
      context.git_diff(add, vim.fn.getcwd())
    end },
    { name = 'the image in the clipboard', make = function(add)
      require('agentik.context.clipboard').image(add)
    end },
    { name = 'a file ...', make = function(add)
      vim.ui.input({ prompt = 'File: ', completion = 'file' }, function(path)
        if path and path ~= '' then
          add(context.file(vim.fn.fnamemodify(vim.fn.expand(path), ':p')))
        end
      end)
    end },
  }
end

--- Asks what to attach.
---@param current agentik.Conversation
function M.choose(current)
  local options = {
    prompt = 'Attach',
    kind = 'agentik.attach',
    format_item = function(choice)
      return choice.name
    end,
  }
  vim.ui.select(choices(), options, function(choice)
    if choice then
      choice.make(function(attachment, problem)
        if attachment then
          compose.attach(current, attachment)
        else
          hub.say(problem or 'nothing to attach', vim.log.levels.WARN)
        end
      end)
    end
  end)
end

return M
