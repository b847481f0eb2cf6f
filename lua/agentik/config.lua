--- The options of setup(): merged over the defaults, checked, read by everybody with `require('agentik.config').get()`.
--- Works without setup(). A wrong option never breaks the start: it is reported in one line and its default holds.
--- Must not load anything of the plugin but its own schema.

local check = require('agentik.config.check')
local schema = require('agentik.config.schema')

local M = {}

---@type agentik.Config?
local current = nil
---@type string[]
local problems = {}

---@param tbl table
---@param path string dotted
---@param value any
local function put(tbl, path, value)
  local parts = vim.split(path, '.', { plain = true })
  for i = 1, #parts - 1 do
    tbl[parts[i]] = tbl[parts[i]] or {}
    tbl = tbl[parts[i]]
  end
  tbl[parts[#parts]] = value
end

--- A fresh table with the default of every option.
---@return agentik.Config
function M.defaults()
  local result = { keys = {} }
  for _, option in ipairs(schema.options) do
    put(result, option.name, vim.deepcopy(option.default))
  end
  for _, key in ipairs(schema.keys) do
    put(result.keys, key.view .. '.' .. key.action, vim.deepcopy(key.default))
  end
  return result
end

--- Every name that setup() knows, by level: { [''] = { 'agent', 'layout', ... }, layout = { 'position', ... } }.
---@return table<string, string[]>
local function names_by_level()
  local levels, seen = {}, {}
  local function add(level, name)
    levels[level] = levels[level] or {}
    if not seen[level .. '/' .. name] then
      seen[level .. '/' .. name] = true
      table.insert(levels[level], name)
    end
  end
  local function add_path(path)
    local level = ''
    for part in path:gmatch('[^.]+') do
      add(level, part)
      level = level == '' and part or level .. '.' .. part
    end
  end
  for _, option in ipairs(schema.options) do
    add_path(option.name)
  end
  for _, key in ipairs(schema.keys) do
    add_path('keys.' .. key.view .. '.' .. key.action)
  end
  return levels
end

---@param spec any
---@return boolean
local function is_key_spec(spec)
  local function is_key(key)
    if type(key) == 'string' then
      return key ~= ''
    end
    local has_lhs = type(key) == 'table' and type(key[1]) == 'string' and key[1] ~= ''
    return has_lhs and check.fits(key.mode, 'string|string[]')
  end
  if spec == false or is_key(spec) then
    return true
  end
  return type(spec) == 'table' and vim.islist(spec) and vim.iter(spec):all(is_key)
end

---@class agentik.config.Merge
---@field result table
---@field problems string[]
---@field levels table<string, string[]>
---@field options table<string, agentik.config.Option>

--- Keys of any kind in an order that is the same each time (vim.spairs cannot compare numbers with strings).
---@param tbl table
---@return any[]
local function sorted_keys(tbl)
  local keys = vim.tbl_keys(tbl)
  table.sort(keys, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return keys
end

---@param merge agentik.config.Merge
local function complain(merge, message, ...)
  table.insert(merge.problems, message:format(...))
end

---@param merge agentik.config.Merge
---@param path string
---@param option agentik.config.Option
---@param value any
local function take_option(merge, path, option, value)
  if not check.fits(value, option.type) then
    complain(merge, '%s must be %s, got %s', path, check.describe(option.type), check.show(value))
  elseif option.min and type(value) == 'number' and (value < option.min or value > option.max) then
    complain(merge, '%s must be between %s and %s, got %s', path, option.min, option.max, value)
  else
    put(merge.result, path, vim.deepcopy(value))
  end
end

---@param merge agentik.config.Merge
---@param path string `keys.VIEW` or `keys.VIEW.ACTION`
---@param value any
---@return boolean handled
local function take_keys(merge, path, value)
  local view, action = path:match('^keys%.([^.]+)%.?(.*)$')
  if not view then
    return false
  end
  if action == '' then
    if value == false then
      merge.result.keys[view] = false
    end
    return value == false
  end
  if is_key_spec(value) then
    merge.result.keys[view][action] = vim.deepcopy(value)
  else
    local wanted = 'a key such as "gx" or { "<C-x>", mode = "i" }, a list of these, or false'
    complain(merge, '%s must be %s, got %s', path, wanted, check.show(value))
  end
  return true
end

---@param merge agentik.config.Merge
---@param level string '' or a dotted path
---@param given table
local function merge_level(merge, level, given)
  for _, name in ipairs(sorted_keys(given)) do
    local value = given[name]
    local path = level == '' and tostring(name) or level .. '.' .. tostring(name)
    local option = merge.options[path]
    if option then
      take_option(merge, path, option, value)
    elseif not vim.list_contains(merge.levels[level] or {}, name) then
      local near = check.nearest(tostring(name), merge.levels[level] or {})
      local hint = near and (' (did you mean %s?)'):format(level == '' and near or level .. '.' .. near) or ''
      complain(merge, 'unknown option %s%s', path, hint)
    elseif not take_keys(merge, path, value) then
      if type(value) == 'table' then
        merge_level(merge, path, value)
      else
        local either = level == 'keys' and 'a table or false' or 'a table'
        complain(merge, '%s must be %s, got %s', path, either, check.show(value))
      end
    end
  end
end

--- Names in a table of icons are checked like options, by the list in the schema.
---@param merge agentik.config.Merge
local function check_icons(merge)
  local icons = merge.result.icons
  if type(icons) ~= 'table' then
    return
  end
  for _, name in ipairs(sorted_keys(icons)) do
    local icon = icons[name]
    if not schema.icons[name] then
      local near = check.nearest(tostring(name), vim.tbl_keys(schema.icons))
      complain(merge, 'unknown icon icons.%s%s', name, near and (' (did you mean icons.%s?)'):format(near) or '')
    elseif type(icon) ~= 'string' or icon:find('%c') then
      complain(merge, 'icons.%s must be a string of one line, got %s', name, check.show(icon))
      icons[name] = nil
    end
  end
end

--- Merges `given` over the defaults without changing anything.
---@param given table
---@return agentik.Config config
---@return string[] problems one line each
function M.merge(given)
  local merge = { result = M.defaults(), problems = {}, levels = names_by_level(), options = {} }
  for _, option in ipairs(schema.options) do
    merge.options[option.name] = option
  end
  merge_level(merge, '', given)
  check_icons(merge)
  local layout = merge.result.layout
  if layout.compose_max_height < layout.compose_min_height then
    local least = layout.compose_min_height
    complain(merge, 'layout.compose_max_height must not be below layout.compose_min_height (%d)', least)
    layout.compose_max_height = layout.compose_min_height
  end
  return merge.result, merge.problems
end

--- Takes the options of the user. Wrong ones are reported in one line and keep their defaults.
---@param given? table
---@return string[] problems
function M.setup(given)
  if given ~= nil and type(given) ~= 'table' then
    current, problems = M.defaults(), { 'setup() takes a table, got ' .. check.show(given) }
  else
    current, problems = M.merge(given or {})
  end
  if #problems > 0 then
    local more = #problems > 1 and (' (and %d more: :checkhealth agentik)'):format(#problems - 1) or ''
    -- One line only: several would raise the hit-enter prompt while Neovim starts.
    vim.notify('agentik: ' .. problems[1] .. more, vim.log.levels.WARN)
  end
  return problems
end

--- The options in force. Do not change the table.
---@return agentik.Config
function M.get()
  current = current or M.defaults()
  return current
end

--- What was wrong with the options given to setup(), one line each (for :checkhealth).
---@return string[]
function M.problems()
  return problems
end

---@class (exact) agentik.config.Mapping
---@field action string
---@field lhs string
---@field mode string[]
---@field desc string

---@param spec agentik.KeySpec
---@return agentik.Key[]
local function as_list(spec)
  if spec == false or spec == nil then
    return {}
  end
  if type(spec) == 'string' or spec.mode then
    return { spec }
  end
  return spec
end

--- The key maps of a view, in the order of the help; actions that are switched off are left out.
---@param view 'chat'|'compose'|'pending'|'permission'|'diff'
---@return agentik.config.Mapping[]
function M.mappings(view)
  local chosen = M.get().keys[view]
  local result = {}
  for _, key in ipairs(chosen and schema.keys or {}) do
    if key.view == view then
      for _, entry in ipairs(as_list(chosen[key.action])) do
        local lhs = type(entry) == 'string' and entry or entry[1]
        local mode = type(entry) == 'table' and entry.mode or 'n'
        mode = type(mode) == 'table' and mode or { mode }
        table.insert(result, { action = key.action, lhs = lhs, mode = mode, desc = key.doc })
      end
    end
  end
  return result
end

--- The icons in force: every name of the schema, by the chosen set with the user's own on top.
---@return table<string, string>
function M.icons()
  local chosen = M.get().icons
  local result = {}
  for name, icon in pairs(schema.icons) do
    result[name] = type(chosen) == 'table' and chosen[name] or icon[chosen == 'ascii' and 2 or 1]
  end
  return result
end

return M
