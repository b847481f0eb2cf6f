--- Keys of ours in a buffer that is the person's own, for a while: what they mapped there is given back unchanged.

local config = require('agentik.config')
local keys = require('agentik.view.keys')

local M = {}

--- Maps the keys of a view's actions.
---@param buf integer
---@param view agentik.View
---@param actions table<string, fun()>
---@return fun() give_back
function M.borrow(buf, view, actions)
  local kept = {}
  for _, mapping in ipairs(config.mappings(view)) do
    if actions[mapping.action] then
      for _, mode in ipairs(mapping.mode) do
        local own = vim.api.nvim_buf_call(buf, function()
          return vim.fn.maparg(mapping.lhs, mode, false, true)
        end)
        table.insert(kept, { mode = mode, lhs = mapping.lhs, own = own.buffer == 1 and own or nil })
      end
    end
  end
  keys.set(buf, view, actions)
  return function()
    if not vim.api.nvim_buf_is_valid(buf) then
      return
    end
    for _, key in ipairs(kept) do
      pcall(vim.keymap.del, key.mode, key.lhs, { buffer = buf })
      if key.own then
        vim.api.nvim_buf_call(buf, function()
          vim.fn.mapset(key.mode, false, key.own)
        end)
      end
    end
  end
end

return M
