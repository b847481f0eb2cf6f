-- Run by scripts/generate.py inside Neovim: nvim --clean -l scripts/render_config.lua
-- Prints a JSON object: what the schema of options gives: Lua types, and sections of the help, as text.

vim.opt.runtimepath:prepend(vim.fn.getcwd())
local schema = require('agentik.config.schema')
local config = require('agentik.config')

local WIDTH = 78

---@param text string
---@param indent string
---@return string[]
local function wrap(text, indent)
  local lines, line = {}, indent
  for word in text:gmatch('%S+') do
    if #line > #indent and vim.fn.strdisplaywidth(line .. ' ' .. word) > WIDTH then
      table.insert(lines, line)
      line = indent
    end
    line = line .. (#line > #indent and ' ' or '') .. word
  end
  table.insert(lines, line)
  return lines
end

--- `left` and a help tag at the right margin.
local function tagged(left, tag)
  local gap = WIDTH - vim.fn.strdisplaywidth(left) - #tag - 2
  return left .. (' '):rep(math.max(2, gap)) .. '*' .. tag .. '*'
end

local function lua_value(value)
  return vim.inspect(value, { newline = ' ', indent = '' })
end

-- Tree of options: { names in order, children by name }
local function tree()
  local root = { order = {}, children = {} }
  for _, option in ipairs(schema.options) do
    local node = root
    for part in option.name:gmatch('[^.]+') do
      if not node.children[part] then
        node.children[part] = { order = {}, children = {} }
        table.insert(node.order, part)
      end
      node = node.children[part]
    end
    node.option = option
  end
  return root
end

local function pascal(name)
  return (name:gsub('^%l', string.upper):gsub('_(%l)', string.upper))
end

-- The class of a table of options, its own tables first. Inside (`given`), everything may be left out.
local function add_class(lines, node, name, given)
  local fields = {}
  for _, part in ipairs(node.order) do
    local child = node.children[part]
    if child.option then
      local optional = given or child.option.type:match('%?$')
      local bare = child.option.type:gsub('%?$', '')
      table.insert(fields, ('---@field %s%s %s'):format(part, optional and '?' or '', bare))
    else
      local class = name .. '.' .. pascal(part)
      add_class(lines, child, class, given)
      table.insert(fields, ('---@field %s%s %s'):format(part, given and '?' or '', class))
    end
  end
  if name:match('^agentik%.%a+$') then
    table.insert(fields, ('---@field keys%s %s.Keys'):format(given and '?' or '', name))
  end
  vim.list_extend(lines, { '---@class (exact) ' .. name })
  vim.list_extend(lines, fields)
  table.insert(lines, '')
end

local function views()
  local order, actions = {}, {}
  for _, key in ipairs(schema.keys) do
    if not actions[key.view] then
      actions[key.view] = {}
      table.insert(order, key.view)
    end
    table.insert(actions[key.view], key)
  end
  return order, actions
end

local function add_key_classes(lines, name, given)
  local order, actions = views()
  local mark = given and '?' or ''
  for _, view in ipairs(order) do
    table.insert(lines, ('---@class (exact) %s.Keys.%s'):format(name, pascal(view)))
    for _, key in ipairs(actions[view]) do
      table.insert(lines, ('---@field %s%s agentik.KeySpec'):format(key.action, mark))
    end
    table.insert(lines, '')
  end
  table.insert(lines, ('---@class (exact) %s.Keys'):format(name))
  for _, view in ipairs(order) do
    table.insert(lines, ('---@field %s%s false|%s.Keys.%s'):format(view, mark, name, pascal(view)))
  end
  table.insert(lines, '')
end

local function types()
  local lines = {
    '---@meta',
    '--- Types of the options. Written by scripts/generate.py from agentik.config.schema: do not edit.',
    '',
    '---@alias agentik.Key string|{ [1]: string, mode: string|string[] }',
    '---@alias agentik.KeySpec false|agentik.Key|agentik.Key[]',
    '',
  }
  table.insert(lines, '-- The options in force: agentik.config.get().')
  add_key_classes(lines, 'agentik.Config', false)
  add_class(lines, tree(), 'agentik.Config', false)
  table.insert(lines, '-- The options as given to setup(): everything may be left out.')
  add_key_classes(lines, 'agentik.Options', true)
  add_class(lines, tree(), 'agentik.Options', true)
  lines[#lines] = nil
  return lines
end

local function options_section()
  local lines = {}
  for _, option in ipairs(schema.options) do
    table.insert(lines, tagged('`' .. option.name .. '`', 'agentik-option-' .. option.name))
    local default = option.default == nil and 'not set' or '`' .. lua_value(option.default) .. '`'
    vim.list_extend(lines, wrap(('Type: `%s`, default: %s'):format(option.type:gsub('%?$', ''), default), '    '))
    vim.list_extend(lines, wrap(option.doc, '    '))
    table.insert(lines, '')
  end
  return lines
end

local MODES = { n = 'normal', i = 'insert', v = 'visual', x = 'visual' }

local function keys_section()
  local lines = {}
  local titles = {
    chat = 'Chat',
    compose = 'Compose',
    pending = 'Pending list',
    diff = 'Diff',
    permission = 'While a permission is open, in chat and compose',
  }
  for _, view in ipairs((views())) do
    table.insert(lines, tagged(titles[view] .. ' (`keys.' .. view .. '`)', 'agentik-keys-' .. view))
    for _, mapping in ipairs(config.mappings(view)) do
      local modes = vim.tbl_map(function(mode)
        return MODES[mode]
      end, mapping.mode)
      local where = table.concat(modes, ', ')
      local left = ('    %-10s %-15s'):format(mapping.lhs, where == 'normal' and '' or where)
      table.insert(lines, ('%s %-13s %s'):format(left, mapping.action, mapping.desc))
    end
    table.insert(lines, '')
  end
  return lines
end

local function icons_section()
  local lines = {}
  local names = vim.tbl_keys(schema.icons)
  table.sort(names)
  table.insert(lines, '    name           unicode  ascii  for')
  for _, name in ipairs(names) do
    local icon = schema.icons[name]
    table.insert(lines, ('    %-14s %s        %-6s %s'):format(name, icon[1], icon[2], icon[3]))
  end
  table.insert(lines, '')
  return lines
end

io.stdout:write(vim.json.encode({
  types = table.concat(types(), '\n') .. '\n',
  options = table.concat(options_section(), '\n'),
  keys = table.concat(keys_section(), '\n'),
  icons = table.concat(icons_section(), '\n'),
}))
