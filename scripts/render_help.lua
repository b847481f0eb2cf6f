-- Run by scripts/generate.py inside Neovim: nvim --clean -l scripts/render_help.lua
-- Prints a JSON object: sections of the help about what the plugin defines: commands, <Plug> maps, highlight groups.

vim.opt.runtimepath:prepend(vim.fn.getcwd())
vim.cmd('source plugin/agentik.lua')

local WIDTH = 78

local function tagged(left, tag)
  local gap = WIDTH - vim.fn.strdisplaywidth(left) - #tag - 2
  if gap < 2 then
    return (' '):rep(WIDTH - #tag - 2) .. '*' .. tag .. '*\n' .. left
  end
  return left .. (' '):rep(gap) .. '*' .. tag .. '*'
end

local NARGS = { ['0'] = '', ['1'] = ' {arg}', ['?'] = ' [arg]', ['*'] = ' [args]', ['+'] = ' {args}' }

local function commands()
  local lines = {}
  for name, command in vim.spairs(vim.api.nvim_get_commands({})) do
    if vim.startswith(name, 'Agentik') then
      local range = (command.range or command.count) and '[range]' or ''
      local left = (':%s%s%s%s'):format(range, name, command.bang and '[!]' or '', NARGS[command.nargs])
      table.insert(lines, tagged('`' .. left .. '`', ':' .. name))
      assert(command.definition ~= '', name .. ' has no desc')
      table.insert(lines, '    ' .. command.definition)
      table.insert(lines, '')
    end
  end
  return lines
end

local function plugs()
  local found = {}
  for _, mode in ipairs({ 'n', 'x', 'i' }) do
    for _, map in ipairs(vim.api.nvim_get_keymap(mode)) do
      local name = map.lhs:match('^<Plug>%(.*[Aa]gentik.*%)$')
      if name then
        assert(map.desc, name .. ' has no desc')
        found[name] = found[name] or { desc = map.desc, modes = {} }
        table.insert(found[name].modes, ({ n = 'normal', x = 'visual', i = 'insert' })[mode])
      end
    end
  end
  local lines = {}
  for name, map in vim.spairs(found) do
    local what = map.desc:gsub('^agentik: ', '')
    -- Those that only call a function are described there.
    if name == ('<Plug>(agentik-%s)'):format(what) then
      what = ('|agentik.%s()|'):format(what)
    end
    table.insert(lines, tagged(('`%s`'):format(name), name))
    table.insert(lines, ('    %s: %s'):format(table.concat(map.modes, ', '), what))
  end
  return lines
end

local function highlights()
  local lines = { '    group                    linked to              for' }
  for _, group in ipairs(require('agentik.highlight').groups) do
    table.insert(lines, ('    %-24s %-22s %s'):format('Agentik' .. group[1], group[2], group[3]))
  end
  return lines
end

io.stdout:write(vim.json.encode({
  commands = table.concat(commands(), '\n'),
  plugs = table.concat(plugs(), '\n'),
  highlights = table.concat(highlights(), '\n'),
}))
