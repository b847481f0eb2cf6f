"""What goes with a message: chosen from what is there, mentioned in the text, completed while typing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.choosing import Picker
from tests.e2e.driving import FAST
from tests.e2e.kit import Editor

DIAGNOSE = """
vim.diagnostic.set(vim.api.nvim_create_namespace('test'), 0, {
  { lnum = 0, col = 0, message = 'first', severity = 1 }, { lnum = 2, col = 0, message = 'third', severity = 2 },
})
"""


pytestmark = pytest.mark.xdist_group("e2e-attach")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    editor = share_editor(env=FAST)
    editor.lua("vim.fn.setqflist({})")
    return editor


@pytest.fixture
def source(editor: Editor) -> Path:
    """A file of five lines that is open, unsaved, with diagnostics, a quickfix list and a selection."""
    return opened(editor)


def opened(editor: Editor) -> Path:
    path = editor.home / "project" / "parse.py"
    path.write_text("one\ntwo\nthree\nfour\nfive\n")
    (path.parent / "other.py").write_text("x = 1\n")
    editor.cmd("edit other.py | edit parse.py")
    editor.lua(DIAGNOSE)
    editor.cmd("normal! 2GVj\x1b1G")
    editor.cmd("caddexpr 'parse.py:4: a problem'")
    editor.lua("vim.api.nvim_buf_set_lines(0, 4, 5, true, { 'changed' })")
    return path


def attachments(editor: Editor) -> list[dict[str, Any]]:
    found: str = editor.lua(
        "return vim.json.encode(require('agentik.view.compose').draft(require('agentik').current()).attachments)"
    )
    return list(json.loads(found))


def attach(editor: Editor, picker: Picker, text: str) -> dict[str, Any]:
    """Chooses in the list that `ga` opens; the attachment that comes of it."""
    editor.lua("require('agentik').open()")
    before = len(attachments(editor))
    editor.keys("<Esc>ga")
    picker.choose(text)
    editor.until("a chip", lambda: len(attachments(editor)) > before)
    return attachments(editor)[-1]


def test_only_what_is_there_is_offered(editor: Editor, source: Path) -> None:
    picker = Picker(editor)
    editor.lua("require('agentik').open()")
    editor.keys("ga")
    assert picker.lines() == [
        "parse.py, with its unsaved edits",
        "what was selected last: lines 2 to 3 of parse.py",
        "1 diagnostic of line 1",
        "2 diagnostics of parse.py",
        "the quickfix list of 1",
        "another open buffer …",
        "a file …",
        "the changes since the last commit (git diff)",
        "the image in the clipboard",
    ]


def test_nothing_but_files_is_offered_in_an_empty_editor(editor: Editor) -> None:
    picker = Picker(editor)
    editor.lua("require('agentik').open()")
    editor.keys("ga")
    assert picker.lines()[0] == "a file …"


def test_each_choice_becomes_a_chip_and_arrives(editor: Editor, source: Path) -> None:
    picker = Picker(editor)
    assert attach(editor, picker, "unsaved edits")["text"] == "one\ntwo\nthree\nfour\nchanged\n"
    assert attach(editor, picker, "selected last")["text"] == "two\nthree\n"
    assert "first" in attach(editor, picker, "diagnostic of line")["text"]
    assert "a problem" in attach(editor, picker, "quickfix")["text"]
    editor.wait_screen("@parse.py @parse.py:2-3 @1 diagnostic")
    editor.keys("ilook<C-s><Esc>")
    editor.wait_event("TurnEnded")
    assert editor.chat.count("attached: ") == 4
    assert attachments(editor) == []


def test_another_buffer_and_a_file_by_name(editor: Editor, source: Path) -> None:
    picker = Picker(editor)
    editor.lua("require('agentik').open()")
    editor.keys("ga")
    picker.choose("another open buffer")
    picker.choose("other.py")
    editor.wait_screen("@other.py")
    odd = source.parent / "odd $HOME #1.txt"
    odd.write_text("odd\n")
    editor.keys("ga")
    picker.choose("a file")
    picker.answer("odd $HOME #1.txt")
    editor.until("two chips", lambda: len(attachments(editor)) == 2)
    assert attachments(editor)[1]["path"] == str(odd)
    editor.keys("ga")
    picker.choose("a file")
    picker.answer("missing.txt")
    editor.wait_screen("there is no file")


def test_the_changes_in_git_are_attached(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor(env=FAST)
    source = opened(editor)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=source.parent, check=True)
    source.write_text("one\n")
    picker = Picker(editor)
    assert "-two" in attach(editor, picker, "git diff")["text"]


def test_a_chip_is_dropped(editor: Editor, source: Path) -> None:
    picker = Picker(editor)
    attach(editor, picker, "unsaved edits")
    attach(editor, picker, "selected last")
    editor.keys("gA")
    picker.choose("parse.py:2-3")
    editor.until("one chip", lambda: len(attachments(editor)) == 1)
    editor.keys("gA")
    editor.until("no chip", lambda: attachments(editor) == [])
    editor.wait_gone("@parse.py")


def test_the_same_is_attached_only_once(editor: Editor, source: Path) -> None:
    for _ in range(2):
        editor.lua("require('agentik').attach(require('agentik.context').file('other.py'))")
    assert len(attachments(editor)) == 1


def test_a_mentioned_file_goes_along_as_it_stands_when_sent(editor: Editor, source: Path) -> None:
    """B51: the unsaved text of an open file; a name that is no file is only a name."""
    editor.lua("require('agentik').send('look at @parse.py, @other.py and @nothing.py')")
    editor.wait_event("TurnEnded")
    assert editor.chat.count("attached: ") == 2
    assert "5 lines of text" in editor.chat
    editor.wait_chat("look at @parse.py, @other.py and @nothing.py\nparse.py")


def test_files_and_commands_are_completed_while_typing(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor(env=FAST)
    opened(editor)
    editor.type("hello")
    editor.wait_event("TurnEnded")
    editor.lua("require('agentik').compose()")
    editor.keys("@oth")
    editor.wait_screen("other.py")
    editor.keys("<C-n><C-y>")
    editor.until("the file", lambda: editor.compose == "@other.py")
    editor.keys("<C-u>/to")
    editor.wait_screen("A tour")
    editor.keys("<C-n><C-y><Esc>")
    editor.until("the command", lambda: editor.compose == "/tour")
