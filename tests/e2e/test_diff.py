"""Edits as Neovim's diff mode: what a request wants, what a session did, the answer, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import scripted
from tests.e2e.kit import Editor

OPTIONS = [
    {"optionId": "yes", "name": "Yes, this once", "kind": "allow_once"},
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


pytestmark = pytest.mark.xdist_group("e2e-diff")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    return scripted.fresh(share_editor, width=120, height=24)


@pytest.fixture
def project(editor: Editor) -> Path:
    return editor.home / "project"


def ask(*diffs: dict[str, Any], options: list[dict[str, str]] = OPTIONS) -> str:
    """A line of the script: the agent asks whether it may make these changes."""
    call = {"toolCallId": "t1", "title": "Edit files", "kind": "edit", "status": "pending", "content": list(diffs)}
    return "#request session/request_permission " + scripted.escaped({"toolCall": call, "options": options})


def request(editor: Editor, *diffs: dict[str, Any], options: list[dict[str, str]] = OPTIONS) -> None:
    """The request is open, and the cursor is in the compose window."""
    editor.lua("require('agentik').open()")
    editor.lua("require('agentik').send(...)", ask(*diffs, options=options))
    editor.wait_event("PermissionRequested")


def open_diff(editor: Editor) -> None:
    editor.keys("g=")
    editor.until("the tab page", lambda: editor.lua("return #vim.api.nvim_list_tabpages()") == 2)


def back(editor: Editor) -> None:
    editor.until("one tab page", lambda: editor.lua("return #vim.api.nvim_list_tabpages()") == 1)


def sides(editor: Editor) -> list[list[str]]:
    """The lines of the windows in diff mode, in order."""
    return list(
        editor.lua("""
          return vim.iter(vim.api.nvim_tabpage_list_wins(0))
            :filter(function(win) return vim.wo[win].diff end)
            :map(function(win)
              return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(win), 0, -1, true)
            end)
            :totable()
        """)
    )


def made(editor: Editor, *diffs: dict[str, Any]) -> list[dict[str, Any]]:
    code = "return vim.json.encode(require('agentik.changes').made(...))"
    return list(json.loads(editor.lua(code, [_as_told(diff) for diff in diffs])))


def proposed(editor: Editor, *diffs: dict[str, Any]) -> list[dict[str, Any]]:
    code = "return vim.json.encode(require('agentik.changes').proposed(...))"
    return list(json.loads(editor.lua(code, [_as_told(diff) for diff in diffs])))


def _as_told(diff: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in diff.items() if key != "type"}


# What a diff means for the whole file


def test_a_piece_is_placed_into_the_file_as_it_is_unsaved(editor: Editor, project: Path) -> None:
    path = project / "a.py"
    path.write_text("one\r\ntwo\r\nthree\r\n")
    editor.cmd("edit a.py")
    editor.cmd("normal! ggIunsaved ")
    (change,) = proposed(editor, scripted.diff(path, "2\n3\n", "two\nthree\n"))
    assert change["before"] == "unsaved one\ntwo\nthree\n"
    assert change["after"] == "unsaved one\n2\n3\n"


def test_pieces_of_one_file_are_one_change(editor: Editor, project: Path) -> None:
    path = project / "a.py"
    path.write_text("one\ntwo\nthree\n")
    diffs = (
        scripted.diff(path, "1", "one"),
        scripted.diff(project / "new.py", "new\n"),
        scripted.diff(path, "3", "three"),
    )
    first, second = proposed(editor, *diffs)
    assert first["after"] == "1\ntwo\n3\n"
    assert (second["before"], second["after"], second["is_new"]) == ("", "new\n", True)


def test_a_piece_that_the_file_does_not_hold_is_shown_alone_and_says_so(editor: Editor, project: Path) -> None:
    path = project / "a.py"
    path.write_text("one\n")
    (change,) = proposed(editor, scripted.diff(path, "2\n", "two\n"))
    assert (change["before"], change["after"]) == ("two\n", "2\n")
    assert "only the piece" in change["note"]


def test_what_was_made_is_taken_back_from_what_the_file_holds_now(editor: Editor, project: Path) -> None:
    """Edits of the person stay out of it: they are on both sides."""
    path = project / "a.py"
    path.write_text("mine\n1\ntwo\n3\n")
    (change,) = made(editor, scripted.diff(path, "1", "one"), scripted.diff(path, "two\n3", "two\nthree"))
    assert (change["before"], change["after"]) == ("mine\none\ntwo\nthree\n", "mine\n1\ntwo\n3\n")
    assert change["is_file"]


def test_a_file_that_was_changed_since_is_shown_as_the_agent_left_it(editor: Editor, project: Path) -> None:
    path = project / "a.py"
    path.write_text("something else\n")
    diffs = scripted.diff(path, "1\n2\n", "one\ntwo\n"), scripted.diff(path, "1\n2\n3\n", "1\n2\n")
    (change,) = made(editor, *diffs)
    assert (change["before"], change["after"], change["is_file"]) == ("one\ntwo\n", "1\n2\n3\n", False)
    assert "changed since" in change["note"]


def test_new_gone_and_unchanged_files(editor: Editor, project: Path) -> None:
    (project / "new.py").write_text("new\n")
    (project / "same.py").write_text("one\n")
    new, gone = made(
        editor,
        scripted.diff(project / "new.py", "new\n"),
        scripted.diff(project / "same.py", "1\n", "one\n"),
        scripted.diff(project / "same.py", "one\n", "1\n"),
        scripted.diff(project / "gone.py", "was here\n"),
    )
    assert (new["before"], new["is_new"], new["is_file"]) == ("", True, True)
    assert (gone["after"], gone["note"]) == ("was here\n", "the file is gone since")


# A request


def test_each_file_is_shown_and_accepting_gives_the_agents_own_answer(editor: Editor, project: Path) -> None:
    (project / "a.py").write_text("one\ntwo\n")
    request(editor, scripted.diff(project / "a.py", "1\n", "one\n"), scripted.diff(project / "b.py", "new\n"))
    open_diff(editor)
    assert sides(editor) == [["one", "two"], ["1", "two"]]
    editor.wait_screen("as the agent wants it")
    editor.wait_screen("Edit files (1/2)")
    editor.wait_screen("ga Yes, this once  gr No")
    editor.keys("]f")
    editor.wait_screen("(2/2)")
    assert sides(editor) == [[""], ["new"]]
    editor.wait_screen("b.py a new file")
    editor.keys("[f")
    editor.wait_screen("(1/2)")
    editor.keys("ga")
    editor.wait_event("TurnEnded")
    back(editor)
    assert '"optionId": "yes"' in editor.chat
    assert editor.lua("return vim.bo.filetype") == "agentik-compose"
    assert not (project / "b.py").exists()


def test_rejecting_and_leaving_without_an_answer(editor: Editor, project: Path) -> None:
    request(editor, scripted.diff(project / "b.py", "new\n"))
    open_diff(editor)
    editor.keys("q")
    back(editor)
    assert len(editor.state("permissions")) == 1
    open_diff(editor)
    editor.keys("gr")
    editor.wait_event("TurnEnded")
    assert '"optionId": "no"' in editor.chat


def test_typing_goes_on_where_it_was(editor: Editor, project: Path) -> None:
    """Back in insert mode, behind the letter that was typed last."""
    request(editor, scripted.diff(project / "b.py", "new\n"))
    editor.keys("iab<Left>")
    editor.lua("""
      vim.keymap.set('i', '<F5>', function()
        local current = require('agentik').current()
        require('agentik.view.diff').permission(current, current.permissions[1])
      end)
    """)
    editor.keys("<F5>")
    editor.until("the tab page", lambda: editor.lua("return #vim.api.nvim_list_tabpages()") == 2)
    editor.keys("q")
    back(editor)
    editor.keys("x<Esc>")
    editor.until("the text", lambda: editor.compose == "axb")


def test_closing_a_side_closes_the_view(editor: Editor, project: Path) -> None:
    request(editor, scripted.diff(project / "a.py", "1\n"), scripted.diff(project / "b.py", "new\n"))
    open_diff(editor)
    editor.keys(":q<CR>")
    back(editor)
    assert len(editor.state("permissions")) == 1
    assert sorted(editor.windows()) == ["", "chat", "compose"]


def test_a_request_that_was_answered_elsewhere_closes_its_view(editor: Editor, project: Path) -> None:  # B48
    request(editor, scripted.diff(project / "b.py", "new\n"))
    open_diff(editor)
    editor.lua("require('agentik').answer(1)")
    back(editor)
    editor.wait_screen("not open any more")


def test_without_an_option_of_that_kind_there_is_no_such_key(editor: Editor, project: Path) -> None:
    own = [{"optionId": "odd", "name": "Perhaps", "kind": "perhaps"}]
    request(editor, scripted.diff(project / "b.py", "new\n"), options=own)
    open_diff(editor)
    editor.keys("ga")
    editor.settle()
    assert len(editor.state("permissions")) == 1
    assert editor.lua("return #vim.api.nvim_list_tabpages()") == 2


# A session


def change_two_files(editor: Editor, project: Path) -> None:
    """a.py and b.py are what the agent made of them, a.py with an edit of the person on top."""
    (project / "a.py").write_text("mine\n1\ntwo\n")
    (project / "b.py").write_text("new\n")
    scripted.play(
        editor,
        scripted.tool("t1", "Edit a.py", content=[scripted.diff(project / "a.py", "1\n", "one\n")]),
        scripted.tool("t2", "Write b.py", content=[scripted.diff(project / "b.py", "new\n")]),
        scripted.tool("t3", "Edit c.py", status="failed", content=[scripted.diff(project / "c.py", "x\n")]),
    )


def test_all_that_the_session_changed_file_by_file(editor: Editor, project: Path) -> None:
    change_two_files(editor, project)
    editor.cmd("edit a.py")
    editor.cmd("nnoremap <buffer> q <Cmd>let g:mine = 1<CR>")
    editor.cmd("AgentikDiff")
    editor.wait_screen("before the session")
    assert sides(editor) == [["mine", "one", "two"], ["mine", "1", "two"]]
    editor.wait_screen("+1 -1")
    editor.wait_screen("+1 -0  new")
    assert editor.windows()[0] == "changes"
    assert editor.lua("return vim.api.nvim_buf_get_name(0)") == str(project / "a.py")
    editor.keys("do")  # the file itself: a hunk is taken back with Neovim's own key
    editor.until("the hunk", lambda: sides(editor) == [["mine", "one", "two"], ["mine", "one", "two"]])
    editor.keys("]f")
    editor.wait_screen("(2/2)")
    editor.cmd("wincmd k | wincmd k")
    editor.keys("gg<CR>")
    editor.wait_screen("(1/2)")
    editor.keys("q")
    back(editor)
    assert not editor.lua("return vim.wo.diff")
    editor.keys("q")
    editor.until("the person's own key", lambda: editor.lua("return vim.g.mine") == 1)


def test_a_session_that_changed_nothing_says_so(editor: Editor) -> None:
    scripted.play(editor, "#say hello")
    editor.cmd("AgentikDiff")
    editor.wait_screen("this session has changed no file")


def test_a_request_that_only_names_its_tool_call_shows_what_that_changes(editor: Editor, project: Path) -> None:
    """Many agents tell the change with the tool call, and ask with nothing but its id."""
    call = scripted.tool("t1", "Edit b.py", status="pending", content=[scripted.diff(project / "b.py", "new\n")])
    ask_only = {"toolCall": {"toolCallId": "t1"}, "options": OPTIONS}
    editor.lua("require('agentik').open()")
    lines = call, "#request session/request_permission " + scripted.escaped(ask_only)
    editor.lua("require('agentik').send(...)", "\n".join(lines))
    editor.wait_event("PermissionRequested")
    open_diff(editor)
    assert sides(editor) == [[""], ["new"]]


PARSE = "import os\n\n\ndef parse(text):\n    return text.split()\n\n\ndef main():\n    print(parse('a b'))\n"
TYPED = 'def parse(text: str) -> list[str]:\n    """The words."""\n'


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_how_a_request_for_two_files_looks(share_editor: Callable[..., Editor], width: int) -> None:
    editor = scripted.fresh(share_editor, width=width, height=24)
    editor.cmd("set showtabline=0 laststatus=3 noruler")
    project = editor.home / "project"
    (project / "a.py").write_text(PARSE)
    test = "from a import parse\n\n\ndef test_parse():\n    assert parse('a b') == ['a', 'b']\n"
    change = scripted.diff(project / "a.py", TYPED, "def parse(text):\n")
    request(editor, change, scripted.diff(project / "tests/test_a.py", test))
    open_diff(editor)
    editor.wait_screen("Edit files (1/2)")
    editor.snapshot(f"diff-{width}")
