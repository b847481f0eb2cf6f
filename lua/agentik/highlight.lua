--- Highlight groups of the plugin: links to groups that every colour scheme has, each to be overridden by the user.
--- Must not decide where a group is used.

local M = {}

--- Name without `Agentik`, group it links to, what it is for.
---@type [string, string, string][]
M.groups = {
  { 'User', 'Title', 'name over a message of yours' },
  { 'UserLine', 'CursorLine', 'line of that name' },
  { 'Agent', 'Identifier', "name over the agent's answer" },
  { 'Time', 'Comment', 'times, durations, counts' },
  { 'Attachment', 'Directory', 'attachment of a message' },
  { 'Thought', 'Comment', 'text of a thought' },
  { 'ThoughtTitle', 'Comment', 'title of a thought' },
  { 'ToolTitle', 'Function', 'title of a tool call' },
  { 'ToolKind', 'Comment', 'kind of a tool call, size of its change and output' },
  { 'Output', 'Comment', 'output of a tool call' },
  { 'Place', 'Directory', 'file that a tool call touches' },
  { 'DiffAdd', 'DiffAdd', 'line that a tool call adds' },
  { 'DiffDelete', 'DiffDelete', 'line that it removes' },
  { 'DiffAddSign', 'Added', 'sign of an added line' },
  { 'DiffDeleteSign', 'Removed', 'sign of a removed line' },
  { 'PlanTitle', 'Title', 'title of a plan' },
  { 'PlanDone', 'Comment', 'finished step of a plan' },
  { 'Pending', 'Comment', 'sign of what waits' },
  { 'Running', 'DiagnosticInfo', 'sign of what runs' },
  { 'Done', 'DiagnosticOk', 'sign of what is done' },
  { 'Warning', 'DiagnosticWarn', 'what was cancelled or interrupted' },
  { 'Error', 'DiagnosticError', 'what failed' },
  { 'Notice', 'DiagnosticInfo', 'notice of Agentik' },
  { 'More', 'Comment', 'what is not shown, and the key for it' },
  { 'Question', 'DiagnosticWarn', 'question or permission request' },
  { 'QuestionLine', 'CursorLine', 'its first line' },
  { 'Key', 'Special', 'key that answers' },
  { 'Heading', 'Title', 'Markdown: heading' },
  { 'Strong', '@markup.strong', 'Markdown: bold' },
  { 'Emphasis', '@markup.italic', 'Markdown: italic' },
  { 'Struck', '@markup.strikethrough', 'Markdown: struck out' },
  { 'Code', 'String', 'Markdown: code in a line' },
  { 'CodeBlock', 'ColorColumn', 'Markdown: line of a code block' },
  { 'Fence', 'Comment', 'Markdown: fences, rules, bars of a table' },
  { 'Markup', 'NonText', 'Markdown: the signs themselves' },
  { 'Quote', 'Comment', 'Markdown: quotation' },
  { 'ListMark', 'Special', 'Markdown: bullet or number' },
  { 'Link', 'Underlined', 'Markdown: link' },
  { 'Bar', 'WinBar', 'bar over our windows' },
  { 'BarTitle', 'Title', 'bar: agent, count of what waits' },
  { 'BarBusy', 'DiagnosticInfo', 'bar: the agent works' },
  { 'BarWarning', 'DiagnosticWarn', 'bar: something waits for you, or is paused' },
  { 'BarError', 'DiagnosticError', 'bar: something failed' },
  { 'BarHint', 'Comment', 'bar: keys and details' },
  { 'Hint', 'Comment', 'hint in an empty window' },
  { 'Sending', 'Comment', 'text on its way to the server' },
  { 'Follow', 'CursorLine', 'follow mode: line where the agent works' },
  { 'Dictation', 'Comment', 'dictation: what is being said, as far as it will hardly change' },
  { 'DictationTail', 'NonText', 'dictation: the rest of it' },
  { 'DictationBar', 'DiagnosticError', 'bar: the microphone is open' },
  { 'PendingNumber', 'Comment', 'number of a waiting message' },
  { 'PendingInfo', 'Comment', 'age and attachments of a waiting message' },
}

--- Defines the groups that the user or the colour scheme did not.
function M.define()
  for _, group in ipairs(M.groups) do
    vim.api.nvim_set_hl(0, 'Agentik' .. group[1], { link = group[2], default = true })
  end
end

vim.api.nvim_create_autocmd('ColorScheme', {
  group = vim.api.nvim_create_augroup('agentik.highlight', {}),
  callback = M.define,
})
M.define()

return M
