--- What the commands of plugin/agentik.lua do, by their names without `Agentik`. Each hands its arguments to the public
--- function that does it.

local agentik = require('agentik')

local M = {}

---@class (exact) agentik.Command what nvim_create_user_command() gives
---@field args string
---@field bang boolean
---@field range integer
---@field line1 integer
---@field line2 integer

--- The lines of a command's range as an attachment; false when the reason why not was said.
---@param given agentik.Command
---@return agentik.Attachment|false|nil attachment nil: no range was given
local function selection(given)
  if given.range == 0 then
    return nil
  end
  local attachment, problem = require('agentik.context').selection(given)
  if not attachment then
    require('agentik.hub').say(problem, vim.log.levels.WARN)
    return false
  end
  return attachment
end

---@param given agentik.Command
function M.Send(given)
  local attachment = selection(given)
  if attachment and given.args == '' then
    agentik.attach(attachment)
    agentik.compose()
  elseif attachment ~= false then
    agentik.send(given.args, { now = given.bang, attachments = attachment and { attachment } or nil })
  end
end

---@param given agentik.Command
function M.Attach(given)
  local attachment = selection(given)
  if attachment ~= false then
    agentik.attach(attachment)
  end
end

---@param given agentik.Command
function M.New(given)
  agentik.new(given.args)
end

---@param given agentik.Command
function M.Sessions(given)
  agentik.sessions(given.args, given.bang)
end

---@param given agentik.Command
function M.Rename(given)
  agentik.rename(given.args)
end

---@param given agentik.Command
function M.Import(given)
  agentik.import(given.args)
end

---@param given agentik.Command
function M.Search(given)
  agentik.search(given.args, given.bang)
end

---@param given agentik.Command
function M.Export(given)
  agentik.export(given.args, given.bang)
end

---@param given agentik.Command
function M.Mode(given)
  agentik.mode(given.args)
end

function M.Model()
  agentik.options('model')
end

function M.Option()
  agentik.options()
end

---@param given agentik.Command
function M.Dictate(given)
  agentik.dictate(given.bang)
end

function M.Diff()
  agentik.changes()
end

---@param given agentik.Command
function M.Install(given)
  require('agentik.install').command(given.args)
end

function M.Report()
  require('agentik.report').open()
end

---@param list string
---@param lead string
---@return string[]
function M.complete(list, lead)
  return list == 'extras' and { 'voice' } or require('agentik.view.picker').complete(list, lead)
end

for name, run in pairs({
  Toggle = 'toggle',
  Stop = 'stop',
  Pause = 'pause',
  Resume = 'resume',
  Fork = 'fork',
  Delete = 'delete',
  Agents = 'agents',
  Follow = 'follow',
  Conflicts = 'conflicts',
  Restart = 'restart',
  Log = 'log',
}) do
  M[name] = function()
    agentik[run]()
  end
end

return M
