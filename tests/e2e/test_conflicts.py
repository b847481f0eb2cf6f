"""A file that the agent wrote while it had unsaved edits: the question can be put off, and asked again (B50)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentik_server.agents.demo.scenes import MARK, SCRATCH
from tests.e2e.choosing import Picker
from tests.e2e.driving import FAST
from tests.e2e.kit import Editor


@pytest.fixture
def editor(open_editor: Callable[..., Editor]) -> Editor:
    return open_editor(env=FAST)


def test_a_question_that_was_put_off_is_asked_again(editor: Editor) -> None:  # B50
    path = editor.home / "project" / SCRATCH
    path.write_text(MARK + "second line\n")
    editor.cmd(f"edit {SCRATCH}")
    editor.cmd("normal! Gonot saved yet")
    picker = Picker(editor)
    editor.lua("require('agentik').send('/edit')")
    editor.wait_event("PermissionRequested")
    editor.lua("require('agentik').answer(1)")
    assert "unsaved edits" in picker.wait()["prompt"]
    picker.answer(None)
    editor.wait_screen(":AgentikConflicts asks again")
    editor.cmd("AgentikConflicts")
    picker.choose("Take the agent's text")
    taken = (MARK + "Lines so far: 2").splitlines()
    editor.until("its text", lambda: editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)") == taken)
    assert path.read_text().splitlines() == taken
    editor.cmd("undo")
    assert editor.lua("return vim.api.nvim_buf_get_lines(0, -2, -1, true)") == ["not saved yet"]
    editor.cmd("AgentikConflicts")
    editor.wait_screen("no file waits for a decision")
