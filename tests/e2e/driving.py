"""What several end-to-end tests begin with."""

from __future__ import annotations

from tests.e2e.kit import Editor

SLOW = {"AGENTIK_DEMO_RATE": "30"}
"""The demo agent talks for as long as a test needs (words a second)."""
FAST = {"AGENTIK_DEMO_RATE": "5000"}
"""It talks at once."""


def busy(editor: Editor, *waiting: str) -> None:
    """A turn runs and these messages wait."""
    editor.type("/long")
    editor.wait_event("TurnStarted")
    for text in waiting:
        editor.type(text)
        editor.until(f"{text!r} in the queue", lambda text=text: text in editor.waiting)


def in_pending(editor: Editor) -> None:
    """The cursor is in the pending list, on its first line."""
    editor.lua("require('agentik').pending()")
    editor.keys("gg")
    editor.until("the pending window", lambda: editor.lua("return vim.bo.filetype") == "agentik-pending")
