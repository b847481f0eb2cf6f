"""Follow mode: the place where the agent works is on the screen, and the person is not disturbed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import scripted
from tests.e2e.kit import Editor

pytestmark = pytest.mark.xdist_group("e2e-follow")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    return scripted.fresh(share_editor, "follow = true")


@pytest.fixture
def source(editor: Editor) -> Path:
    """A file of 100 lines; another one is open."""
    path = editor.home / "project" / "long.py"
    path.write_text("".join(f"line {number}\n" for number in range(1, 101)))
    editor.cmd("edit notes.txt")
    return path


def work_at(editor: Editor, path: Path, line: int, turn: int = 1) -> None:
    places = [{"path": str(path), "line": line}]
    scripted.play(editor, scripted.tool(f"t{turn}", "Read", kind="read", locations=places), "#say done", turn=turn)


def test_the_file_is_shown_beside_and_the_cursor_stays(editor: Editor, source: Path) -> None:
    editor.lua("require('agentik').open()")
    editor.keys("imy text")
    work_at(editor, source, 60)
    editor.wait_screen("line 60")
    assert editor.compose == "my text"
    assert editor.lua("return vim.bo.filetype") == "agentik-compose"
    assert editor.call("nvim_get_mode")["mode"] == "i"
    assert sorted(editor.windows()) == ["chat", "compose", "long.py"]


def test_the_window_of_the_person_is_left_alone(editor: Editor, source: Path) -> None:
    editor.lua("require('agentik').open({ focus = false })")
    work_at(editor, source, 60)
    assert sorted(editor.windows()) == ["chat", "compose", "notes.txt"]
    editor.cmd("split")
    work_at(editor, source, 70, turn=2)
    editor.wait_screen("line 70")
    assert editor.lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))") == "notes.txt"


def test_it_is_switched_while_it_runs(editor: Editor, source: Path) -> None:
    editor.lua("require('agentik').open()")
    editor.cmd("AgentikFollow")
    editor.wait_screen("follow mode is off")
    work_at(editor, source, 60)
    assert "long.py" not in editor.windows()
    editor.cmd("AgentikFollow")
    work_at(editor, source, 80, turn=2)
    editor.wait_screen("line 80")


def test_what_is_no_file_is_not_shown(editor: Editor, source: Path) -> None:
    editor.lua("require('agentik').open()")
    work_at(editor, source.parent, 1)
    work_at(editor, source.parent / "missing.py", 1, turn=2)
    assert sorted(editor.windows()) == ["chat", "compose", "notes.txt"]
