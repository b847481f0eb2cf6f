--- What was being written and what was sent, over restarts of Neovim: small files under stdpath('state').
--- Must not know buffers or sessions beyond their ids.

local M = {}

local HISTORY = 200

---@class (exact) agentik.StoredDraft
---@field text string
---@field attachments? agentik.Attachment[]
---@field sending? agentik.Sending[] not acknowledged

local folder = vim.fn.stdpath('state') .. '/agentik'
---@type string[]?
local history = nil

---@param session_id string
---@return string
local function path_of(session_id)
  return ('%s/drafts/%s.json'):format(folder, (session_id:gsub('[^%w%-]', '_')))
end

---@param path string
---@return any?
local function read(path)
  local file = io.open(path, 'rb')
  if not file then
    return nil
  end
  local text = file:read('*a')
  file:close()
  local ok, value = pcall(vim.json.decode, text, { luanil = { object = true, array = true } })
  return ok and value or nil
end

--- Written beside and renamed: a crash leaves the old or the new file, never half of one.
---@param path string
---@param text string
local function write(path, text)
  vim.fn.mkdir(vim.fs.dirname(path), 'p', tonumber('700', 8))
  local beside = ('%s.%d'):format(path, vim.uv.os_getpid())
  local fd = vim.uv.fs_open(beside, 'w', tonumber('600', 8))
  if fd then
    vim.uv.fs_write(fd, text)
    vim.uv.fs_close(fd)
    vim.uv.fs_rename(beside, path)
  end
end

--- Keeps a draft; an empty one is forgotten. `known` is what an earlier call returned: the same is not written again.
---@param session_id string
---@param draft agentik.StoredDraft
---@param known? string
---@return string
function M.save(session_id, draft, known)
  local empty = draft.text == '' and #(draft.attachments or {}) == 0 and #(draft.sending or {}) == 0
  local text = empty and '' or vim.json.encode(draft)
  if text == (known or '') then
    return text
  end
  if empty then
    vim.uv.fs_unlink(path_of(session_id))
  else
    write(path_of(session_id), text)
  end
  return text
end

---@param session_id string
---@return agentik.StoredDraft?
function M.load(session_id)
  local draft = read(path_of(session_id))
  return type(draft) == 'table' and type(draft.text) == 'string' and draft or nil
end

--- Texts that were sent, oldest first.
---@return string[]
function M.history()
  if not history then
    local stored = read(folder .. '/history.json')
    history = type(stored) == 'table' and stored or {}
  end
  return history
end

--- Adds a text to the history.
---@param text string
function M.remember(text)
  local texts = M.history()
  if not text:find('%S') or texts[#texts] == text then
    return
  end
  table.insert(texts, text)
  while #texts > HISTORY do
    table.remove(texts, 1)
  end
  write(folder .. '/history.json', vim.json.encode(texts))
end

return M
