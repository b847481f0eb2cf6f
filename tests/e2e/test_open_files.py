"""The agent writes a file that is open in Neovim, through server and host (B50)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentik_server.agents.demo.scenes import MARK, SCRATCH
from tests.e2e.kit import Editor


@pytest.fixture
def editor(open_editor: Callable[..., Editor]) -> Editor:
    """The demo agent talks at once."""
    return open_editor(env={"AGENTIK_DEMO_RATE": "5000"})


@pytest.fixture
def scratch(editor: Editor, tmp_path: Path) -> Path:
    """The file that the demo's /edit writes, there already and open, with the cursor in it."""
    path = tmp_path / "project" / SCRATCH
    path.write_text(MARK + "second line\n")
    editor.cmd(f"edit {path}")
    return path


def let_it_edit(editor: Editor) -> None:
    """The demo asks, the person allows, the turn ends; the cursor is in the file again."""
    window = editor.lua("return vim.api.nvim_get_current_win()")
    editor.lua("require('agentik').send('/edit')")
    editor.wait_event("PermissionRequested")
    editor.lua("require('agentik').answer(1)")
    editor.wait_event("TurnEnded")
    editor.lua("vim.api.nvim_set_current_win(...)", window)


def lines(editor: Editor, path: Path) -> list[str]:
    return list(editor.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, true)", str(path)))


def test_open_file_is_written_through_its_buffer_as_one_undo_step(editor: Editor, scratch: Path) -> None:  # B50
    let_it_edit(editor)
    assert scratch.read_text() == MARK + "Lines so far: 2\n"
    assert lines(editor, scratch) == (MARK + "Lines so far: 2").splitlines()
    assert not editor.lua("return vim.bo[vim.fn.bufnr(...)].modified", str(scratch))
    editor.cmd("undo")
    assert lines(editor, scratch) == (MARK + "second line").splitlines()


def test_unsaved_edits_are_kept_and_the_agent_is_told(editor: Editor, scratch: Path) -> None:  # B50
    editor.lua("Asked = 0; vim.ui.select = function(_, _, done) Asked = Asked + 1; done('keep') end")
    editor.cmd("normal! Gonot saved yet")
    mine = lines(editor, scratch)
    let_it_edit(editor)
    editor.until("the question", lambda: editor.lua("return Asked") == 1)
    assert lines(editor, scratch) == mine
    assert scratch.read_text() == MARK + "second line\n"
    editor.wait_chat("could not be written")


def test_file_on_disk_is_shown_in_its_buffer_after_the_turn(editor: Editor, scratch: Path) -> None:  # B50
    """By an agent's own tools: nothing goes through us, and the buffer follows all the same."""
    editor.lua("require('agentik.buffers.watch')")
    scratch.write_text("by a tool\n")
    editor.lua("require('agentik').send('hello')")
    editor.wait_event("TurnEnded")
    editor.until("the text of the disk", lambda: lines(editor, scratch) == ["by a tool"])
