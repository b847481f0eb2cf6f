--- The one list of options. Defaults, checks, Lua types and the option section of the help come from it.
--- Data only: requires nothing, so that it can be read by scripts/generate.py and by setup() alike.
---
--- `type` is LuaCATS notation, checked by agentik.config.check: base names, "literals", T[], unions with |, and a
--- trailing ? for "may be left out".

---@class (exact) agentik.config.Option
---@field name string dotted path in the table given to setup()
---@field type string LuaCATS type
---@field default any nil only where the type ends in ?
---@field doc string one sentence for the help
---@field min? number smallest number allowed
---@field max? number largest number allowed

---@class (exact) agentik.config.KeyAction
---@field view 'chat'|'compose'|'pending'|'permission'|'diff'
---@field action string
---@field default agentik.KeySpec
---@field doc string

local M = {}

---@type agentik.config.Option[]
M.options = {
  {
    name = 'agent',
    type = 'string?',
    doc = 'Id of the agent of a new session. Left out: the first that can start, else the demo agent.',
  },
  {
    name = 'home',
    type = 'string?',
    doc = 'Folder for database, attachments, log and settings. Left out: the folders of the platform.',
  },
  {
    name = 'python',
    type = 'string?',
    doc = "Python of the plugin's environment. Left out: `g:agentik_python`, `$AGENTIK_PYTHON`, then the one "
      .. 'made by |:AgentikInstall|.',
  },
  {
    name = 'settings',
    type = 'table',
    default = {},
    doc = 'Settings of the server (|agentik-settings|), put over its settings file key by key.',
  },
  {
    name = 'restore',
    type = 'boolean',
    default = true,
    doc = 'Open the last session of this folder again instead of a new one.',
  },
  {
    name = 'notify',
    type = 'boolean',
    default = true,
    doc = 'Notify when a turn ends or a question waits and the chat is out of sight.',
  },
  {
    name = 'follow',
    type = 'boolean',
    default = false,
    doc = 'Follow mode: show the file and line where the agent works.',
  },
  {
    name = 'icons',
    type = '"unicode"|"ascii"|table',
    default = 'unicode',
    doc = 'Set of icons, or a table that replaces single ones by name (|agentik-icons|).',
  },
  {
    name = 'layout.position',
    type = '"right"|"left"|"bottom"|"top"|"tab"|"float"',
    default = 'right',
    doc = 'Where the chat opens.',
  },
  {
    name = 'layout.width',
    type = 'number',
    default = 0.4,
    min = 0.1,
    max = 500,
    doc = 'Width at the left or right, or of the float: columns, or a part of the screen below 1.',
  },
  {
    name = 'layout.height',
    type = 'number',
    default = 0.4,
    min = 0.1,
    max = 500,
    doc = 'Height at the bottom or top, or of the float: lines, or a part of the screen below 1.',
  },
  {
    name = 'layout.pending_height',
    type = 'integer',
    default = 6,
    min = 1,
    max = 50,
    doc = 'The pending window grows with its list up to this many lines.',
  },
  {
    name = 'layout.compose_min_height',
    type = 'integer',
    default = 3,
    min = 1,
    max = 50,
    doc = 'Lines of an empty compose window.',
  },
  {
    name = 'layout.compose_max_height',
    type = 'integer',
    default = 12,
    min = 1,
    max = 100,
    doc = 'The compose window grows with its text up to this many lines.',
  },
  { name = 'fold.thoughts', type = 'boolean', default = true, doc = 'Show thoughts of the agent folded.' },
  { name = 'fold.tools', type = 'boolean', default = true, doc = 'Show the output of finished tool calls folded.' },
  {
    name = 'buffers.conflict',
    type = '"ask"|"keep"|"take"',
    default = 'ask',
    doc = 'The agent writes a file that is open with unsaved changes: ask, keep yours (the agent is told), or '
      .. "take the agent's (yours stays in the undo history).",
  },
  {
    name = 'buffers.autocmds',
    type = 'boolean',
    default = false,
    doc = 'Run BufWritePre and BufWritePost (formatters) when the agent writes an open file. Off: the file '
      .. 'holds byte for byte what the agent wrote.',
  },
  {
    name = 'dictation.language',
    type = 'string?',
    doc = 'Language that is spoken ("en", "de" ...). Left out: the setting `dictation.language`.',
  },
  {
    name = 'dictation.device',
    type = 'string?',
    doc = 'Microphone. Left out: the setting `dictation.device`, then that of the system.',
  },
  {
    name = 'dictation.identifiers',
    type = 'boolean',
    default = true,
    doc = 'Write spoken names as they are spelt in the visible buffers.',
  },
  { name = 'dictation.hotwords', type = 'string[]', default = {}, doc = 'Words that the recogniser should know.' },
}

--- Keys of our own buffers. The permission keys work in chat and compose while a request is open.
--- In `permission.option`, %d stands for the number of the option (1 to 9).
---@type agentik.config.KeyAction[]
M.keys = {
  { view = 'chat', action = 'next_message', default = ']]', doc = 'next message' },
  { view = 'chat', action = 'prev_message', default = '[[', doc = 'previous message' },
  { view = 'chat', action = 'next_tool', default = ']t', doc = 'next tool call' },
  { view = 'chat', action = 'prev_tool', default = '[t', doc = 'previous tool call' },
  { view = 'chat', action = 'open', default = '<CR>', doc = 'open or close the fold, or show the full output' },
  { view = 'chat', action = 'goto_place', default = 'gd', doc = 'go to the file and line under the cursor' },
  { view = 'chat', action = 'open_link', default = 'gx', doc = 'open the link under the cursor' },
  { view = 'chat', action = 'yank_code', default = 'gy', doc = 'yank the code block under the cursor' },
  { view = 'chat', action = 'resend', default = 'gr', doc = 'send an interrupted message again' },
  { view = 'chat', action = 'compose', default = { 'i', 'a', 'o' }, doc = 'go to the compose window and type' },
  { view = 'chat', action = 'stop', default = '<C-c>', doc = 'stop the turn' },
  { view = 'chat', action = 'sessions', default = 'gs', doc = 'choose another session' },
  { view = 'chat', action = 'modes', default = 'gm', doc = 'choose mode, model or option of the agent' },
  { view = 'chat', action = 'changes', default = 'gD', doc = 'show all that the session changed' },
  { view = 'chat', action = 'pending', default = 'gp', doc = 'go to the pending list' },
  { view = 'chat', action = 'close', default = 'q', doc = 'hide the chat (work goes on)' },
  { view = 'chat', action = 'help', default = 'g?', doc = 'show the keys' },
  { view = 'compose', action = 'send', default = { '<CR>', { '<C-s>', mode = { 'n', 'i' } } }, doc = 'send the text' },
  {
    view = 'compose',
    action = 'send_now',
    default = { 'g<CR>', { '<M-CR>', mode = { 'n', 'i' } } },
    doc = 'send now: stop the running turn first',
  },
  {
    view = 'compose',
    action = 'history_prev',
    default = { { '<M-p>', mode = { 'n', 'i' } } },
    doc = 'previous text of the history',
  },
  {
    view = 'compose',
    action = 'history_next',
    default = { { '<M-n>', mode = { 'n', 'i' } } },
    doc = 'next text of the history',
  },
  { view = 'compose', action = 'attach', default = 'ga', doc = 'attach something' },
  { view = 'compose', action = 'detach', default = 'gA', doc = 'drop an attachment' },
  {
    view = 'compose',
    action = 'dictate',
    default = { { '<M-d>', mode = { 'n', 'i' } } },
    doc = 'start or stop dictation',
  },
  { view = 'compose', action = 'stop', default = '<C-c>', doc = 'stop the turn' },
  { view = 'compose', action = 'sessions', default = 'gs', doc = 'choose another session' },
  { view = 'compose', action = 'modes', default = 'gm', doc = 'choose mode, model or option of the agent' },
  { view = 'compose', action = 'pending', default = 'gp', doc = 'go to the pending list' },
  { view = 'compose', action = 'close', default = 'q', doc = 'hide the chat (work goes on)' },
  { view = 'compose', action = 'help', default = 'g?', doc = 'show the keys' },
  {
    view = 'pending',
    action = 'apply',
    default = { { '<C-s>', mode = { 'n', 'i' } } },
    doc = 'apply the edits of the list (also `:w`, and leaving the window)',
  },
  {
    view = 'pending',
    action = 'send_now',
    default = '<CR>',
    doc = 'send this message now: stop the running turn first',
  },
  { view = 'pending', action = 'edit', default = 'ge', doc = 'take this message back into the compose window' },
  { view = 'pending', action = 'remove', default = 'gx', doc = 'remove this message at once' },
  { view = 'pending', action = 'clear', default = 'gX', doc = 'remove all waiting messages (asks)' },
  { view = 'pending', action = 'pause', default = 'gp', doc = 'pause or resume the queue' },
  { view = 'pending', action = 'discard', default = 'gu', doc = 'forget the edits of the list' },
  { view = 'pending', action = 'close', default = 'q', doc = 'back to the compose window' },
  { view = 'pending', action = 'help', default = 'g?', doc = 'show the keys' },
  {
    view = 'permission',
    action = 'option',
    default = { '%d', { '<M-%d>', mode = { 'n', 'i' } } },
    doc = 'answer with option %d',
  },
  { view = 'permission', action = 'choose', default = 'g<Space>', doc = 'choose the answer from a list' },
  { view = 'permission', action = 'diff', default = 'g=', doc = 'show the edits that the agent asks for as a diff' },
  { view = 'permission', action = 'next', default = ']p', doc = 'next open request' },
  { view = 'permission', action = 'prev', default = '[p', doc = 'previous open request' },
  {
    view = 'diff',
    action = 'accept',
    default = 'ga',
    doc = "accept: answer with the agent's option that allows once",
  },
  {
    view = 'diff',
    action = 'reject',
    default = 'gr',
    doc = "reject: answer with the agent's option that refuses once",
  },
  { view = 'diff', action = 'open', default = '<CR>', doc = 'in the list of the files: show this one' },
  { view = 'diff', action = 'next_file', default = ']f', doc = 'next file' },
  { view = 'diff', action = 'prev_file', default = '[f', doc = 'previous file' },
  { view = 'diff', action = 'close', default = 'q', doc = 'back to where you were, without an answer' },
  { view = 'diff', action = 'help', default = 'g?', doc = 'show the keys' },
}

--- Names of icons: unicode, ASCII, meaning.
---@type table<string, [string, string, string]>
M.icons = {
  user = { '●', '*', 'message of yours' },
  agent = { '◆', '#', 'message of the agent' },
  thought = { '∴', '~', 'thought' },
  tool = { '⚙', '>', 'tool call' },
  plan = { '≡', '=', 'plan' },
  notice = { '▪', '!', 'notice' },
  pending = { '◌', '.', 'waits: message, tool call or step of a plan' },
  running = { '◐', 'o', 'runs' },
  done = { '✓', '+', 'done' },
  failed = { '✗', 'x', 'failed' },
  cancelled = { '⊘', '-', 'cancelled or interrupted' },
  unknown = { '?', '?', 'outcome not known' },
  question = { '?', '?', 'a permission or question waits' },
  paused = { '‖', '|', 'queue paused' },
  attachment = { '@', '@', 'attachment' },
  microphone = { '◉', 'O', 'dictation' },
  meter_on = { '▮', '#', 'dictation: level of the microphone' },
  meter_off = { '▯', '-', 'dictation: rest of the meter' },
  fold_open = { '▾', 'v', 'open fold' },
  fold_closed = { '▸', '>', 'closed fold' },
  separator = { '─', '-', 'line between messages' },
  ellipsis = { '…', '...', 'text cut off' },
}

return M
