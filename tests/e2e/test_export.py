"""A session as Markdown: to a file, into a folder, into a buffer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e import scripted
from tests.e2e.kit import Editor

pytestmark = pytest.mark.xdist_group("e2e-export")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    """A session with a question, a tool call that changed a file, and an answer."""
    editor = scripted.fresh(share_editor)
    path = editor.home / "project" / "a.py"
    tool = scripted.tool("t1", "Edit a.py", content=[scripted.diff(path, "new\n", "old\n")])
    scripted.play(editor, "#title Fruit: apples / pears", tool, "#say the answer")
    editor.until("the title", lambda: editor.state("session")["title"] == "Fruit: apples / pears")
    return editor


def test_a_file_is_written_and_not_over_another_without_the_bang(editor: Editor) -> None:
    path = editor.home / "project" / "out file.md"
    editor.cmd("AgentikExport out file.md")
    editor.wait_screen("written to out file.md")
    text = path.read_text()
    for part in ("the answer", "Edit a.py", "-old", "+new"):
        assert part in text
    path.write_text("precious")
    editor.cmd("AgentikExport out file.md")
    editor.wait_screen("add ! to write over it")
    assert path.read_text() == "precious"
    editor.cmd("AgentikExport! out file.md")
    editor.until("the file", lambda: path.read_text() == text)


def test_into_a_folder_under_the_title_of_the_session(editor: Editor) -> None:
    (editor.home / "notes").mkdir()
    editor.cmd("AgentikExport ~/notes/")
    path = editor.home / "notes" / "Fruit-apples-pears.md"
    editor.until("the file", lambda: path.exists() and "the answer" in path.read_text())


def test_without_a_path_it_is_a_buffer_that_can_be_written(editor: Editor) -> None:
    editor.cmd("AgentikExport")
    editor.until("the buffer", lambda: editor.lua("return vim.bo.filetype") == "markdown")
    assert not editor.lua("return vim.bo.modified")
    editor.cmd("write")
    assert "the answer" in (editor.home / "project" / "Fruit-apples-pears.md").read_text()
    assert sorted(editor.windows()) == ["Fruit-apples-pears.md", "chat", "compose"]


def test_a_path_that_cannot_be_written_is_one_line(editor: Editor) -> None:
    editor.cmd("AgentikExport nowhere/out.md")
    editor.wait_screen("agentik: cannot write")
