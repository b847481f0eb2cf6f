--- Looks at open files when the agent may have written the disk: after each finished tool call and at the end of a
--- turn. Loaded with the views; many events at one time are one look. Decides nothing about what it finds.

local hub = require('agentik.hub')

local LOOK_AFTER_MS = 50
local is_due = false

local function look()
  is_due = false
  require('agentik.buffers').refresh()
end

hub.on('event', function(name, params)
  local tool_ended = name == 'messageUpdated' and params.kind == 'tool' and params.status ~= 'streaming'
  if (tool_ended or name == 'turnEnded') and not is_due then
    is_due = true
    vim.defer_fn(look, LOOK_AFTER_MS)
  end
end)
