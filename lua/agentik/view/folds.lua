--- Folds of a chat: manual ones, made per window (Neovim keeps them there). What the person opened or closed stays so.
--- Must not know what is folded.

local M = {}

local api = vim.api

--- Last line of the closed fold at a line, or the line itself.
---@param win integer
---@param line integer 1-based
---@return integer
function M.last_line(win, line)
  local last = api.nvim_win_call(win, function()
    return vim.fn.foldclosedend(line)
  end)
  return last == -1 and line or last
end

--- Makes the fold of one block in the current window.
---@param block agentik.Block
local function make(block)
  local fold = block.meta.fold
  local first, last = block.row + fold[1] + 1, block.row + fold[2] + 1
  local closed = fold[3]
  if vim.fn.foldlevel(first) > 0 then
    closed = vim.fn.foldclosed(first) ~= -1
    vim.cmd(('keepjumps normal! %dGzd'):format(first))
  end
  vim.cmd(('%d,%dfold'):format(first, last))
  if not closed then
    vim.cmd(('%dfoldopen'):format(first))
  end
end

---@param win integer
---@param blocks agentik.Block[]
local function in_window(win, blocks)
  if vim.wo[win].foldmethod ~= 'manual' then
    return
  end
  api.nvim_win_call(win, function()
    local view = vim.fn.winsaveview()
    local lazy = vim.o.lazyredraw
    vim.o.lazyredraw = true
    for _, block in ipairs(blocks) do
      make(block)
    end
    vim.o.lazyredraw = lazy
    vim.fn.winrestview(view)
  end)
end

--- Makes the folds of some blocks anew, in every window of the buffer.
---@param buf integer
---@param blocks agentik.Block[] each with a fold
function M.update(buf, blocks)
  for _, win in ipairs(vim.fn.win_findbuf(buf)) do
    in_window(win, blocks)
  end
end

--- Makes all folds of one window that has just begun to show the buffer.
---@param win integer
---@param blocks agentik.Block[] all that have a fold
function M.window(win, blocks)
  api.nvim_win_call(win, function()
    vim.cmd('normal! zE')
  end)
  in_window(win, blocks)
end

return M
