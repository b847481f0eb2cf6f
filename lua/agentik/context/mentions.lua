--- The files that a text names as `@path`, as attachments: made when the message is sent, so that they are what the
--- person sees then, unsaved text included. Must not keep anything.

local buffers = require('agentik.buffers')
local complete = require('agentik.complete')
local context = require('agentik.context')

local M = {}

--- What a text mentions, without what is attached whole already. A file that cannot be read is left out: its name
--- still stands in the text.
---@param text string
---@param root string folder that relative paths begin at
---@param known agentik.Attachment[]
---@return agentik.Attachment[]
function M.attachments(text, root, known)
  local attached = {}
  for _, attachment in ipairs(known) do
    if not attachment.range then
      attached[attachment.path] = true
    end
  end
  local found = {}
  for _, path in ipairs(complete.mentions(text, root)) do
    local buf = buffers.find(path)
    local attachment = buf and context.buffer(buf) or context.file(path)
    if attachment and not attached[attachment.path] then
      attached[attachment.path] = true
      table.insert(found, attachment)
    end
  end
  return found
end

return M
