"""Two Neovims on one conversation: both see it, both may write, edit, stop and answer (B59)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.driving import SLOW, busy, in_pending
from tests.e2e.kit import Editor

Pair = tuple[Editor, Editor]


@pytest.fixture
def pair(open_editor: Callable[..., Editor], tmp_path: Path) -> Pair:
    """The first editor runs the session, the second follows it."""
    first = open_editor(tmp_path, env=SLOW)
    busy(first)
    second = open_editor(tmp_path, env=SLOW)
    second.cmd("AgentikToggle")
    second.wait_chat("/long")
    assert second.state("session_id") == first.state("session_id")
    return first, second


def test_both_see_the_answer_while_it_is_written(pair: Pair) -> None:
    first, second = pair
    first.wait_chat("2. This is sentence")
    second.wait_chat("2. This is sentence")
    second.wait_screen("working")


def test_both_see_and_change_the_queue(pair: Pair) -> None:
    """Sent by one, edited by the other; delivered once, in both chats."""
    first, second = pair
    second.type("from the second")
    first.until("the message", lambda: first.waiting == ["from the second"])
    in_pending(first)
    first.keys("A, edited<Esc>")
    second.until("the edit", lambda: second.waiting == ["from the second, edited"])
    first.lua("require('agentik').compose()")
    second.cmd("AgentikStop")
    first.wait_event("TurnEnded")
    second.until("the pause", lambda: second.state("pending")["paused"])
    second.cmd("AgentikResume")
    for editor in pair:
        editor.wait_chat("\nfrom the second, edited\n")
        assert editor.chat.count("from the second, edited\n") == 1


def test_the_other_takes_over_when_the_owner_is_gone(pair: Pair) -> None:
    """The owner's Neovim is closed: what was being answered is interrupted, and the second editor goes on."""
    first, second = pair
    first.wait_chat("2. This is sentence")
    first.close()
    second.wait_chat("interrupted")
    second.type("still there?")
    second.wait_chat("\nstill there?\n")
    second.wait_chat("Your message arrived in full")
