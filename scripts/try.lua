-- The configuration of `make try`: this plugin and nothing else of the person's.

local root = vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)))
vim.opt.runtimepath:prepend(root)
vim.cmd.helptags(vim.fn.fnameescape(root .. '/doc'))
vim.opt.termguicolors = true
vim.opt.swapfile = false
vim.opt.laststatus = 3
vim.opt.statusline = " %t %= %{v:lua.require'agentik'.statusline()} "
require('agentik').setup({ agent = 'demo' })

if #vim.api.nvim_list_uis() > 0 or not vim.tbl_contains(vim.v.argv, '--headless') then
  vim.api.nvim_create_autocmd('VimEnter', {
    callback = function()
      require('agentik').open()
    end,
  })
end
