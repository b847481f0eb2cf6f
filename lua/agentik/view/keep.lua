--- Text that came too late for the pending list goes to the compose window of its conversation, with its attachments.

local compose = require('agentik.view.compose')
local hub = require('agentik.hub')

hub.on('keep_text', function(current, text, attachments)
  compose.add_text(current, text)
  for _, attachment in ipairs(attachments or {}) do
    compose.attach(current, attachment)
  end
end)
