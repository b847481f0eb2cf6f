--- Buffers of our own: made, named, and told from what a session file of the person left of them. Must not know what is
--- in them.

local M = {}

local api = vim.api

--- Makes a buffer `agentik://NAME`. Another one of that name is gone afterwards.
---@param name string
---@param filetype string
---@return integer
function M.create(name, filetype)
  name = 'agentik://' .. name
  local other = vim.fn.bufnr('^' .. vim.fn.escape(name, '[]*?{}') .. '$')
  if other ~= -1 then
    api.nvim_buf_delete(other, { force = true })
  end
  local buf = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(buf, name)
  vim.bo[buf].bufhidden = 'hide'
  vim.bo[buf].swapfile = false
  M.set_filetype(buf, filetype)
  return buf
end

--- Sets the file type at once, and lets the person's plugins hear of it as soon as the current command is over: their
--- search for files of that type takes a millisecond a buffer and more.
---@param buf integer
---@param filetype string
function M.set_filetype(buf, filetype)
  local ignored = vim.o.eventignore
  vim.o.eventignore = 'FileType'
  vim.bo[buf].filetype = filetype
  vim.o.eventignore = ignored
  vim.schedule(function()
    if api.nvim_buf_is_valid(buf) and vim.bo[buf].filetype == filetype then
      api.nvim_buf_call(buf, function()
        api.nvim_exec_autocmds('FileType', { pattern = filetype, modeline = false })
      end)
    end
  end)
end

--- A session file (`:mksession`) names a buffer of ours that is no more: its windows are closed.
---@param buf integer
function M.forget(buf)
  vim.bo[buf].buftype = 'nofile'
  vim.bo[buf].bufhidden = 'wipe'
  vim.bo[buf].buflisted = false
  vim.schedule(function()
    if api.nvim_buf_is_valid(buf) then
      for _, win in ipairs(vim.fn.win_findbuf(buf)) do
        if #api.nvim_tabpage_list_wins(api.nvim_win_get_tabpage(win)) > 1 then
          api.nvim_win_close(win, true)
        end
      end
      if #vim.fn.win_findbuf(buf) == 0 and api.nvim_buf_is_valid(buf) then
        api.nvim_buf_delete(buf, { force = true })
      end
    end
  end)
end

return M
