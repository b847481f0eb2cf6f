--- Keys of our own buffers: buffer-local, from the options, each with a description. No global map is ever made.

local config = require('agentik.config')
local hub = require('agentik.hub')

local M = {}

--- The float with the keys is on the screen, or about to be.
M.showing = false

---@alias agentik.View 'chat'|'compose'|'pending'|'permission'|'diff'

--- Maps the keys of a view's actions. An action without a function is left out.
---@param buf integer
---@param view agentik.View
---@param actions table<string, fun()>
function M.set(buf, view, actions)
  for _, mapping in ipairs(config.mappings(view)) do
    local action = actions[mapping.action]
    for _, mode in ipairs(action and mapping.mode or {}) do
      -- Not vim.keymap.set(): there are fifty of them in the command that opens the chat.
      vim.api.nvim_buf_set_keymap(buf, mode, mapping.lhs, '', {
        callback = hub.guard(action),
        noremap = true,
        nowait = true,
        silent = true,
        desc = 'agentik: ' .. mapping.desc,
      })
    end
  end
end

--- The first key of an action, for hints; nil when it has none.
---@param view agentik.View
---@param action string
---@return string?
function M.of(view, action)
  for _, mapping in ipairs(config.mappings(view)) do
    if mapping.action == action then
      return mapping.lhs
    end
  end
end

--- A key or text that holds for several numbers, as a person reads it.
---@param text string
---@return string
local function shown(text)
  return (text:gsub('%%d', 'N'))
end

---@param views agentik.View[]
---@return string[]
local function help_lines(views)
  local lines, width = {}, 0
  for _, view in ipairs(views) do
    for _, mapping in ipairs(config.mappings(view)) do
      width = math.max(width, vim.api.nvim_strwidth(shown(mapping.lhs)))
    end
  end
  for _, view in ipairs(views) do
    for _, mapping in ipairs(config.mappings(view)) do
      local lhs = shown(mapping.lhs)
      local pad = (' '):rep(width - vim.api.nvim_strwidth(lhs))
      local modes = table.concat(mapping.mode, ' ')
      table.insert(lines, (' %s%s  %-3s  %s '):format(lhs, pad, modes, shown(mapping.desc)))
    end
  end
  return lines
end

--- Shows the keys of some views in a float that any of `q`, `<Esc>` and leaving it closes.
---@param views agentik.View[]
function M.help(views)
  local lines = help_lines(views)
  local buf = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buf, 0, -1, true, lines)
  vim.bo[buf].modifiable = false
  vim.bo[buf].bufhidden = 'wipe'
  local width = 20
  for _, line in ipairs(lines) do
    width = math.max(width, vim.api.nvim_strwidth(line))
  end
  width = math.min(width, vim.o.columns - 4)
  local height = math.min(#lines, vim.o.lines - 6)
  M.showing = true -- before the window is entered: whoever is left must know that it is only for a look
  local win = vim.api.nvim_open_win(buf, true, {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 2),
    col = math.floor((vim.o.columns - width) / 2),
    style = 'minimal',
    border = 'rounded',
    title = ' keys ',
  })
  local function close()
    M.showing = false
    if vim.api.nvim_win_is_valid(win) then
      vim.api.nvim_win_close(win, true)
    end
  end
  for _, lhs in ipairs({ 'q', '<Esc>', 'g?' }) do
    vim.keymap.set('n', lhs, close, { buffer = buf, nowait = true })
  end
  vim.api.nvim_create_autocmd('WinLeave', { buffer = buf, once = true, callback = vim.schedule_wrap(close) })
end

return M
