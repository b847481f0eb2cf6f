"""Long transcripts: how much is drawn, written and asked. Counts, no times: those are in tests/bench/nvim.py."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench import histories
from tests.bench.editing import AGENT
from tests.e2e.kit import Editor

COUNT = """
local chat = require('agentik').current().bufs.chat
local host = require('agentik.host')
_G.count = { frames = 0, drawn = 0, calls = 0, changes = 0, removed = 0, added = 0, patches = 0, largest = 0 }
local frame = host.frame
host.frame = function(given)
  count.frames = count.frames + 1
  for _, part in pairs(given.chats or {}) do
    local texts, size = 0, 0
    for _, patch in ipairs(part.patches) do
      texts = texts + (patch.lines and 1 or 0)
      size = size + #table.concat(patch.lines or {}, ' ')
    end
    count.drawn = count.drawn + 1
    count.patches, count.largest = math.max(count.patches, texts), math.max(count.largest, size)
  end
  return frame(given)
end
for _, name in ipairs({ 'rpcnotify', 'rpcrequest' }) do
  local call = vim[name]
  vim[name] = function(channel, ...)
    count.calls = count.calls + (channel == 1 and 0 or 1) -- 1: the test itself
    return call(channel, ...)
  end
end
vim.api.nvim_buf_attach(chat, false, {
  on_bytes = function(_, _, _, _, _, _, _, _, removed, _, _, added)
    count.changes = count.changes + 1
    count.removed, count.added = count.removed + removed, count.added + added
  end,
})
"""
OPEN = "require('agentik').show(require('agentik.conversation').open(...), false)"
FRAME = 40_000  # bytes: what there is room for, headers, and one message more


@pytest.fixture
def opened(open_editor: Callable[..., Editor], tmp_path: Path) -> Callable[[int], Editor]:
    """Opens a session of so many messages; from then on all is counted."""

    def make(count: int) -> Editor:
        histories.write(tmp_path / "agentik", tmp_path / "project", {"long": histories.talk("long", count)})
        command = ", ".join(f"'{part}'" for part in (sys.executable, AGENT, "--state", tmp_path / "agent.state"))
        editor = open_editor(
            options=f"{{ settings = {{ agents = {{ scripted = {{ command = {{ {command} }} }} }} }} }}"
        )
        editor.lua("require('agentik').new('demo')")
        editor.wait_event("Ready")
        editor.lua(OPEN, "long")
        editor.lua(COUNT)
        return editor

    return make


def counted(editor: Editor, *, again: bool = False) -> dict[str, int]:
    """What was counted so far; `again`: from here on."""
    counts: dict[str, int] = editor.lua("return count")
    if again:
        editor.lua("for name in pairs(count) do count[name] = 0 end")
    return counts


def numbers(editor: Editor) -> list[int]:
    return [int(found) for found in re.findall(r"^number (\d+):", editor.chat, re.MULTILINE)]


def whole(editor: Editor, count: int) -> None:
    editor.until("the whole session", lambda: editor.lua(LINES, 30) and numbers(editor)[:1] == [0])
    assert numbers(editor) == list(range(count))


LINES = "return vim.api.nvim_buf_line_count(require('agentik').current().bufs.chat) > ..."


def test_a_long_session_comes_in_bounded_frames_the_newest_first(opened: Callable[[int], Editor]) -> None:
    """B52: the end is on the screen first; no frame holds the editor for long, whatever the length of the session."""
    editor = opened(1200)
    editor.wait_screen("number 1199:")
    whole(editor, 1200)
    counts = counted(editor)
    assert counts["largest"] <= FRAME
    assert counts["patches"] <= 5
    assert counts["drawn"] <= 12 * 3
    assert counts["calls"] <= 3
    assert "number 1199:" in editor.screen.text


def test_showing_the_chat_again_draws_and_asks_nothing(opened: Callable[[int], Editor]) -> None:
    """Reopening with nothing new: no drawing, no change of the buffer, and no request, so no write of the server."""
    editor = opened(300)
    whole(editor, 300)
    counted(editor, again=True)
    for _ in range(3):
        editor.cmd("AgentikToggle")
        editor.wait_gone("number 299:")
        editor.cmd("AgentikToggle")
        editor.wait_screen("number 299:")
    counts = counted(editor)
    assert (counts["drawn"], counts["changes"], counts["calls"]) == (0, 0, 0)


def test_a_server_that_comes_back_with_nothing_new_changes_no_line(opened: Callable[[int], Editor]) -> None:
    """B53, B55: only what is newer is asked for, and nothing is drawn."""
    editor = opened(300)
    whole(editor, 300)
    counted(editor, again=True)
    os.kill(editor.server_pid(), signal.SIGKILL)
    editor.wait_event("Ready", 2)
    editor.until("the session", lambda: editor.lua("return require('agentik.host').state") == "ready")
    counts = counted(editor)
    assert (counts["drawn"], counts["changes"]) == (0, 0)


def test_a_flood_into_a_long_session_replaces_nothing_and_asks_nothing(opened: Callable[[int], Editor]) -> None:
    """Tokens are merged into frames and added at the end; the host asks nothing of Neovim for each of them."""
    editor = opened(300)
    whole(editor, 300)
    counted(editor, again=True)
    editor.lua("require('agentik').send('#burst 20000')")
    editor.wait_event("TurnEnded")
    editor.until("the last token", lambda: editor.chat.count("@") == 2)
    counts = counted(editor)
    assert counts["added"] > 100_000
    assert counts["removed"] < 500
    assert counts["frames"] < 2000
    assert counts["calls"] <= 2
    assert len(re.findall(r"\bword\b", editor.chat)) == 20_000


def test_older_messages_come_when_the_person_scrolls_up(opened: Callable[[int], Editor]) -> None:
    """B52: what is not loaded by itself is loaded before the window comes to it, a page at a time."""
    editor = opened(5150)
    editor.until("what is loaded by itself", lambda: editor.lua(MORE) and len(numbers(editor)) == 5000)
    assert editor.chat.startswith("older messages")
    editor.lua("vim.api.nvim_set_current_win(require('agentik.view.layout').of_tab().wins.chat)")
    editor.keys("gg")
    editor.until("a page more", lambda: numbers(editor)[0] == 50)
    editor.keys("Ggg")
    whole(editor, 5150)
    editor.until("no more", lambda: not editor.chat.startswith("older messages"))


MORE = "return require('agentik').current().more == true"


def test_a_message_that_is_not_loaded_is_reached(opened: Callable[[int], Editor]) -> None:
    """A found message: all pages down to it are loaded and drawn, then the cursor is there."""
    editor = opened(700)
    editor.lua("require('agentik.view.chat').go_to(require('agentik').current(), 'long-3')")
    editor.until("the cursor", lambda: "number 3:" in cursor_line(editor))
    assert "number 3:" in editor.screen.text


def cursor_line(editor: Editor) -> Any:
    return editor.lua("""
      local win = require('agentik.view.layout').of_tab().wins.chat
      local buf, line = vim.api.nvim_win_get_buf(win), vim.api.nvim_win_get_cursor(win)[1]
      return table.concat(vim.api.nvim_buf_get_lines(buf, line - 1, line + 1, false), '\\n')
    """)
