"""What a person sees, in each state and at each width: the screen as text, kept in tests/e2e/snapshots.

Write them anew with AGENTIK_SNAPSHOTS=write and look at each one before it is committed.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.driving import FAST, SLOW, busy, in_pending
from tests.e2e.kit import Editor

pytestmark = pytest.mark.xdist_group("e2e-screens")

WIDTHS = (60, 80, 120, 200)
CODE = """local function greet(name)
  return 'Hello, ' .. name
end
"""


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def opened(share_editor: Callable[..., Editor], width: int, env: dict[str, str], **arguments: object) -> Editor:
    """A Lua file at the left, the chat at the right."""
    editor = share_editor(width=width, height=32, env=env, **arguments)
    (editor.home / "project" / "greet.lua").write_text(CODE)
    editor.cmd("set laststatus=3 noruler noshowcmd statusline=%{%v:lua.require'agentik'.statusline()%}")
    editor.cmd("edit greet.lua")
    return editor


def test_an_empty_chat(share_editor: Callable[..., Editor], width: int) -> None:
    editor = opened(share_editor, width, FAST)
    editor.cmd("AgentikToggle")
    editor.until("the agent", lambda: (editor.state("session") or {}).get("modeId"))
    editor.wait_screen("Demo agent (no model) ready")
    editor.snapshot(f"empty-{width}")


def test_an_answer(share_editor: Callable[..., Editor], width: int) -> None:
    editor = opened(share_editor, width, FAST)
    editor.cmd("AgentikSend what does this do?")
    editor.wait_event("TurnEnded")
    editor.wait_screen("ready")
    editor.wait_chat("Thought  ")
    editor.snapshot(f"answer-{width}")


def test_a_permission_request(share_editor: Callable[..., Editor], width: int) -> None:
    editor = opened(share_editor, width, FAST)
    editor.type("/tour")
    editor.wait_event("PermissionRequested")
    editor.wait_screen("waits for you")
    editor.wait_chat("Write agentik-demo.txt  edit")
    editor.wait_chat("Plan  1/3")
    editor.wait_chat("Look at project")
    editor.wait_chat("Thought  ")
    editor.snapshot(f"permission-{width}")


def test_waiting_messages(share_editor: Callable[..., Editor], width: int) -> None:
    editor = opened(share_editor, width, SLOW)
    busy(editor, "Then write the tests", "And say what you did, in one paragraph that is long enough to be wrapped")
    editor.cmd("AgentikStop")
    editor.wait_event("TurnEnded")
    editor.wait_screen("paused: stopped")
    # How much was said before the stop is chance: the chat is not part of this picture.
    editor.keys("<Esc>")
    editor.snapshot(f"waiting-{width}", below="waiting")


def test_the_pending_list_in_each_state(share_editor: Callable[..., Editor]) -> None:
    """Waiting, held, edited, paused by the person (issue 3)."""
    editor = opened(share_editor, 100, SLOW)
    busy(editor, "one", "two")
    editor.wait_screen("2 waiting for the turn to end")
    in_pending(editor)
    editor.wait_screen("2 waiting held while you are here")
    editor.keys("dd")
    editor.wait_screen("2 waiting edited")
    editor.keys("u")
    editor.wait_screen("2 waiting held")
    editor.keys("gp")
    editor.wait_screen("paused: by you")


@pytest.mark.parametrize("background", ["dark", "light"])
def test_our_groups_have_colours_on_any_background(share_editor: Callable[..., Editor], background: str) -> None:
    """Every group of ours leads to a group that is defined, with the colours that Neovim brings."""
    editor = share_editor(env=FAST, background=background)
    editor.cmd("AgentikToggle")
    missing = editor.lua("""
      local missing = {}
      for _, group in ipairs(require('agentik.highlight').groups) do
        local found = vim.api.nvim_get_hl(0, { name = 'Agentik' .. group[1], link = false })
        if vim.tbl_isempty(found) then
          table.insert(missing, group[1])
        end
      end
      return missing
    """)
    assert missing == []


def test_ascii_icons(share_editor: Callable[..., Editor]) -> None:
    """A terminal without Unicode shows nothing else of ours."""
    editor = opened(share_editor, 80, FAST, options="{ icons = 'ascii' }")
    editor.type("/plan")
    editor.wait_event("TurnEnded")
    editor.wait_screen("ready")
    editor.snapshot("ascii-80")
    ours = {text for text in editor.screen.text if ord(text) > 0x7F}
    assert ours <= set("│─├")  # Neovim's own lines between windows
