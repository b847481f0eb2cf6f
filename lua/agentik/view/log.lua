--- :AgentikLog: what was logged in this Neovim, and where the server's log is.

local host = require('agentik.host')
local hub = require('agentik.hub')

local M = {}

--- Opens the log in a split.
function M.open()
  host.call('status', {}, function(err, status)
    local lines = vim.list_slice(hub.logged())
    local folders = not err and (status.folders or status) or {}
    table.insert(lines, 1, ('plugin host: %s%s'):format(host.state, host.problem and ' (' .. host.problem .. ')' or ''))
    if type(folders.log) == 'string' then
      table.insert(lines, 2, 'log of the server: ' .. folders.log)
    end
    local buf = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_buf_set_lines(buf, 0, -1, true, lines)
    vim.bo[buf].modifiable = false
    vim.bo[buf].bufhidden = 'wipe'
    vim.bo[buf].filetype = 'agentik-log'
    local win = vim.api.nvim_open_win(buf, true, { split = 'below', win = -1, height = 12 })
    vim.api.nvim_win_set_cursor(win, { #lines, 0 })
    vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = buf, nowait = true })
  end)
end

return M
