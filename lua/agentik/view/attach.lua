--- What can be attached to a message, to choose from: only what is there. The attachments themselves are made by
--- agentik.context, at the moment of the choice.

local context = require('agentik.context')
local hub = require('agentik.hub')
local reveal = require('agentik.view.reveal')
local rows = require('agentik.view.rows')

local M = {}

local api = vim.api

---@alias agentik.Attach fun(attachment?: agentik.Attachment, problem?: string)

---@class (exact) agentik.AttachChoice
---@field name string
---@field make fun(add: agentik.Attach)

--- Makes an attachment in a window, at once.
---@param win integer
---@param make fun(): agentik.Attachment?, string?
---@return fun(add: agentik.Attach)
local function inside(win, make)
  return function(add)
    add(api.nvim_win_call(win, make))
  end
end

---@param buf integer
---@return string
local function name_of(buf)
  local name = api.nvim_buf_get_name(buf)
  return name ~= '' and vim.fn.fnamemodify(name, ':~:.') or 'the buffer without a name'
end

---@param choices agentik.AttachChoice[]
---@param win integer
---@param buf integer
local function add_selection(choices, win, buf)
  local first, last = api.nvim_buf_get_mark(buf, '<')[1], api.nvim_buf_get_mark(buf, '>')[1]
  if first < 1 or last < first or last > api.nvim_buf_line_count(buf) then
    return
  end
  local lines = first == last and ('line %d'):format(first) or ('lines %d to %d'):format(first, last)
  table.insert(choices, {
    name = ('what was selected last: %s of %s'):format(lines, name_of(buf)),
    make = inside(win, function()
      return context.selection({ range = 2, line1 = first, line2 = last })
    end),
  })
end

---@param count integer
---@return string
local function diagnostics(count)
  return count == 1 and '1 diagnostic' or ('%d diagnostics'):format(count)
end

---@param choices agentik.AttachChoice[]
---@param win integer
---@param buf integer
local function add_diagnostics(choices, win, buf)
  local row = api.nvim_win_get_cursor(win)[1]
  for _, scope in ipairs({ 'line', 'buffer' }) do
    local found = #vim.diagnostic.get(buf, { lnum = scope == 'line' and row - 1 or nil })
    if found > 0 then
      local where = scope == 'line' and ('line %d'):format(row) or name_of(buf)
      table.insert(choices, {
        name = ('%s of %s'):format(diagnostics(found), where),
        make = inside(win, function()
          return context.diagnostics(scope, 0)
        end),
      })
    end
  end
end

---@param choices agentik.AttachChoice[]
---@param win integer window of the person's file
local function add_file(choices, win)
  local buf = api.nvim_win_get_buf(win)
  local empty = api.nvim_buf_line_count(buf) == 1 and api.nvim_buf_get_lines(buf, 0, 1, true)[1] == ''
  if not empty then
    table.insert(choices, {
      name = name_of(buf) .. (vim.bo[buf].modified and ', with its unsaved edits' or ''),
      make = inside(win, function()
        return context.buffer(0)
      end),
    })
    add_selection(choices, win, buf)
  end
  add_diagnostics(choices, win, buf)
end

--- Other buffers of files, last used first.
---@param except? integer
---@return integer[]
local function other_buffers(except)
  local infos = vim.tbl_filter(function(info)
    return info.bufnr ~= except and info.name ~= '' and vim.bo[info.bufnr].buftype == ''
  end, vim.fn.getbufinfo({ buflisted = 1 }))
  table.sort(infos, function(a, b)
    return a.lastused > b.lastused or (a.lastused == b.lastused and a.bufnr < b.bufnr)
  end)
  return vim.tbl_map(function(info)
    return info.bufnr
  end, infos)
end

---@param bufs integer[]
---@return fun(add: agentik.Attach)
local function choose_buffer(bufs)
  return function(add)
    local options = {
      prompt = 'Attach which buffer',
      kind = 'agentik.buffer',
      format_item = function(buf)
        return name_of(buf) .. (vim.bo[buf].modified and ', unsaved' or '')
      end,
    }
    vim.ui.select(bufs, options, function(buf)
      if buf then
        add(context.buffer(buf))
      end
    end)
  end
end

---@param add agentik.Attach
local function ask_file(add)
  vim.ui.input({ prompt = 'Attach file: ', completion = 'file' }, function(path)
    if path and path ~= '' then
      add(context.file(path))
    end
  end)
end

--- Everything that can be attached now.
---@return agentik.AttachChoice[]
function M.choices()
  local choices = {}
  local win = reveal.find()
  if win then
    add_file(choices, win)
  end
  local quickfix = vim.fn.getqflist({ size = 0 }).size
  if quickfix > 0 then
    table.insert(choices, {
      name = ('the quickfix list of %d'):format(quickfix),
      make = function(add)
        add(context.quickfix())
      end,
    })
  end
  local bufs = other_buffers(win and api.nvim_win_get_buf(win))
  if #bufs > 0 then
    table.insert(choices, { name = 'another open buffer …', make = choose_buffer(bufs) })
  end
  table.insert(choices, { name = 'a file …', make = ask_file })
  table.insert(choices, {
    name = 'the changes since the last commit (git diff)',
    make = function(add)
      context.git_diff(add, vim.fn.getcwd())
    end,
  })
  table.insert(choices, {
    name = 'the image in the clipboard',
    make = function(add)
      require('agentik.context.clipboard').image(add)
    end,
  })
  return choices
end

--- Asks what to attach.
---@param current agentik.Conversation
function M.choose(current)
  local options = {
    prompt = 'Attach',
    kind = 'agentik.attach',
    format_item = function(choice)
      return rows.cell(choice.name, math.min(rows.room(), vim.api.nvim_strwidth(choice.name)))
    end,
  }
  vim.ui.select(M.choices(), options, function(choice)
    if choice then
      choice.make(function(attachment, problem)
        if attachment then
          require('agentik').attach(attachment, current)
        else
          hub.say(problem or 'nothing to attach', vim.log.levels.WARN)
        end
      end)
    end
  end)
end

return M
