-- Run by lazy.nvim after it installed or updated the plugin, as a coroutine; other managers may run it as a file.
-- Makes the Python environment and waits for it.

local root = vim.fn.fnamemodify(debug.getinfo(1, 'S').source:sub(2), ':p:h')
local install = dofile(root .. '/lua/agentik/install.lua')

local ended, problem, progress = false, nil, 'agentik: starting'
install.start('base', function(line)
  progress = line
end, function(reason)
  ended, problem = true, reason
end)

while not ended do
  vim.wait(50, function()
    return ended
  end, 10)
  if coroutine.running() then
    coroutine.yield(progress)
  end
end

if problem then
  error(problem .. '; :AgentikInstall tries again and shows more', 0)
end
