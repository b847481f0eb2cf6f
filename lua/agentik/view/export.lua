--- The session as Markdown, in a file or a new buffer.

local conversation = require('agentik.conversation')
local hub = require('agentik.hub')
local reveal = require('agentik.view.reveal')

local M = {}

--- Writes the session to a file; without a path, into a new buffer.
---@param current agentik.Conversation
---@param path? string
function M.write(current, path)
  conversation.call(current, 'exportSession', { format = 'markdown' }, function(err, result)
    if err then
      hub.say(err.message, vim.log.levels.WARN)
      return
    end
    if path and path ~= '' then
      local target = vim.fn.fnamemodify(vim.fn.expand(path), ':p')
      local file, problem = io.open(target, 'wb')
      if not file then
        hub.say(('cannot write %s'):format(problem), vim.log.levels.ERROR)
        return
      end
      file:write(result.text)
      file:close()
      hub.say('written to ' .. target)
      return
    end
    local buf = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_lines(buf, 0, -1, true, vim.split(result.text, '\n', { plain = true }))
    vim.bo[buf].filetype = 'markdown'
    local win = reveal.window()
    vim.api.nvim_win_set_buf(win, buf)
    vim.api.nvim_set_current_win(win)
  end)
end

return M
