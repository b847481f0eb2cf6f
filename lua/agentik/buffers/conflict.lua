--- A file that the agent wants to write has unsaved edits of the user: keep them, take the agent's text, or compare.
--- Asks only in normal mode, one question at a time, never in the middle of typing. Decides nothing by itself.

local config = require('agentik.config')

local M = {}

---@class (exact) agentik.buffers.Conflict
---@field path string
---@field buf integer
---@field text string what the agent wrote
---@field kept boolean the user decided to keep the own text

---@type agentik.buffers.Conflict[]
local conflicts = {}
local asking = false

local CHOICES = {
  keep = 'Keep mine (the agent is told)',
  take = "Take the agent's text (mine stays in the undo history)",
  diff = 'Compare both',
}

---@param conflict agentik.buffers.Conflict
---@return boolean
local function is_open(conflict)
  return vim.api.nvim_buf_is_loaded(conflict.buf) and vim.bo[conflict.buf].modified
end

local function forget_settled()
  conflicts = vim.tbl_filter(is_open, conflicts)
end

--- Conflicts that wait for the user.
---@return agentik.buffers.Conflict[]
function M.list()
  forget_settled()
  return vim.tbl_filter(function(conflict)
    return not conflict.kept
  end, conflicts)
end

---@param conflict agentik.buffers.Conflict
local function show_diff(conflict)
  vim.cmd('tab split')
  vim.api.nvim_win_set_buf(0, conflict.buf)
  local scratch = vim.api.nvim_create_buf(false, true)
  local content = require('agentik.buffers.text').from_text(conflict.text, conflict.buf)
  vim.api.nvim_buf_set_lines(scratch, 0, -1, true, content.lines)
  vim.bo[scratch].modifiable = false
  vim.bo[scratch].bufhidden = 'wipe'
  -- Only the looks of the file type: no language server, no user autocommand.
  vim.bo[scratch].syntax = vim.bo[conflict.buf].filetype
  vim.cmd('diffthis')
  local own = vim.api.nvim_get_current_win()
  vim.api.nvim_open_win(scratch, false, { split = 'right', win = own })
  vim.api.nvim_win_call(vim.fn.win_findbuf(scratch)[1], function()
    vim.cmd('diffthis')
  end)
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = scratch,
    callback = function()
      if vim.api.nvim_win_is_valid(own) then
        vim.api.nvim_win_call(own, function()
          vim.cmd('diffoff')
        end)
      end
    end,
  })
end

---@param conflict agentik.buffers.Conflict
---@param choice 'keep'|'take'|'diff'
---@return string? problem
local function settle(conflict, choice)
  if choice == 'keep' then
    conflict.kept = true
    return
  end
  conflicts = vim.tbl_filter(function(other)
    return other ~= conflict
  end, conflicts)
  if choice == 'diff' then
    show_diff(conflict)
    return
  end
  return require('agentik.buffers').take(conflict.path, conflict.buf, conflict.text).reason
end

local ask_next

---@param conflict agentik.buffers.Conflict
local function ask(conflict)
  asking = true
  vim.ui.select({ 'keep', 'take', 'diff' }, {
    prompt = ('agentik: %s has unsaved edits and the agent wrote it'):format(vim.fn.fnamemodify(conflict.path, ':~:.')),
    kind = 'agentik.conflict',
    format_item = function(choice)
      return CHOICES[choice]
    end,
  }, function(choice)
    asking = false
    local problem = choice and is_open(conflict) and settle(conflict, choice)
    if problem then
      vim.notify('agentik: ' .. problem, vim.log.levels.ERROR)
    end
    if choice then
      vim.schedule(ask_next)
    elseif is_open(conflict) then
      vim.notify('agentik: nothing is decided; :AgentikConflicts asks again', vim.log.levels.INFO)
    end
  end)
end

--- Asks about the first open conflict, now or when the user is back in normal mode.
function ask_next()
  local conflict = M.list()[1]
  if asking or not conflict then
    return
  end
  local mode = vim.api.nvim_get_mode()
  if mode.mode == 'n' and not mode.blocking then
    return ask(conflict)
  end
  vim.api.nvim_create_autocmd('ModeChanged', {
    group = vim.api.nvim_create_augroup('agentik.conflict', { clear = true }),
    pattern = '*:n',
    once = true,
    callback = vim.schedule_wrap(ask_next),
  })
end

--- Notes a conflict and asks the user where there is one.
---@param path string
---@param buf integer with unsaved edits
---@param text string the agent's
---@return string reason for the agent, one line
function M.open(path, buf, text)
  forget_settled()
  local reason = 'the file has unsaved edits in the editor that this text does not hold'
  if config.get().buffers.conflict == 'keep' then
    return reason
  end
  for i, conflict in ipairs(conflicts) do
    if conflict.buf == buf then
      if conflict.text == text then
        return reason .. (conflict.kept and '; the user keeps them' or '; the user is being asked')
      end
      table.remove(conflicts, i)
      break
    end
  end
  table.insert(conflicts, { path = path, buf = buf, text = text, kept = false })
  if #vim.api.nvim_list_uis() == 0 then
    return reason
  end
  vim.schedule(ask_next)
  return reason .. '; the user is being asked'
end

--- Asks again about open conflicts, or settles the one of `path` by `choice`.
---@param path? string
---@param choice? 'keep'|'take'|'diff'
---@return string? problem one line
function M.resolve(path, choice)
  for _, conflict in ipairs(M.list()) do
    if choice and (not path or conflict.path == path) then
      return settle(conflict, choice)
    end
  end
  if choice or #M.list() == 0 then
    return 'no file waits for a decision'
  end
  asking = false
  ask_next()
end

return M
