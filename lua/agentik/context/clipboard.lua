--- The image in the clipboard of the system as a file that can be attached. Asks whichever program is there for it.

local M = {}

--- Each prints the image as PNG.
local PROGRAMS = {
  { 'wl-paste', '--no-newline', '--type', 'image/png' },
  { 'xclip', '-selection', 'clipboard', '-target', 'image/png', '-out' },
  { 'pngpaste', '-' },
}

local PNG_SIGNATURE = '\137PNG\r\n\26\n'

---@return string[]?
local function program()
  for _, command in ipairs(PROGRAMS) do
    -- wl-paste is of no use without a Wayland session.
    if vim.fn.executable(command[1]) == 1 and (command[1] ~= 'wl-paste' or vim.env.WAYLAND_DISPLAY) then
      return command
    end
  end
end

---@param bytes string
---@return string path
local function keep(bytes)
  local folder = vim.fn.stdpath('cache') .. '/agentik'
  vim.fn.mkdir(folder, 'p', tonumber('700', 8))
  local path = ('%s/pasted-%s-%03d.png'):format(folder, os.date('%Y%m%d-%H%M%S'), vim.uv.hrtime() % 1000)
  local handle = assert(io.open(path, 'wb'))
  handle:write(bytes)
  handle:close()
  return path
end

--- Writes the image of the clipboard into the cache folder and gives it as an attachment.
---@param done fun(attachment?: agentik.Attachment, problem?: string)
function M.image(done)
  local command = program()
  if not command then
    return done(nil, 'to paste an image install wl-clipboard (Wayland), xclip (X11) or pngpaste (macOS)')
  end
  vim.system(
    command,
    { text = false },
    vim.schedule_wrap(function(result)
      if result.code ~= 0 or not vim.startswith(result.stdout or '', PNG_SIGNATURE) then
        return done(nil, 'there is no image in the clipboard')
      end
      done(require('agentik.context').image(keep(result.stdout)))
    end)
  )
end

return M
