--- Dictation as the person sees it: starts, stops, draws what was heard. Sound and words are the server's.

local M = {}

return M
