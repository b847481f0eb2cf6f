--- Follow mode: shows where the agent works, never takes the focus. Off by default.

local M = {}

return M
