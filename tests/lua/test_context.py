"""What is in the editor becomes attachments: text and range of a selection, files, diagnostics, lists, git, images."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Editor

LINES = ["abc def", "aé😀b cde\u0301f x", "", "\ttab here", "日本語テキスト"]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def path(editor: Editor, tmp_path: Path) -> Path:
    """A file of LINES in the current window; `:Attach` and the key Q keep their selection in Attached."""
    path = tmp_path / "file.py"
    path.write_text("\n".join(LINES) + "\n")
    editor.edit(path)
    editor.lua("""
      Attached = nil
      local function attach(command)
        local attachment, problem = require('agentik.context').selection(command)
        Attached = attachment or problem
      end
      vim.api.nvim_create_user_command('Attach', attach, { range = true, force = true })
      vim.keymap.set('x', 'Q', attach)
      vim.keymap.set('n', 'Q', attach)
    """)
    return path


def attached(editor: Editor) -> Any:
    return editor.lua("return Attached")


def places(attachment: dict[str, Any]) -> tuple[int, int, int, int]:
    start, end = attachment["range"]["start"], attachment["range"]["end"]
    return start["line"], start["character"], end["line"], end["character"]


SELECTIONS = [
    ("charwise", "ggv2l", "abc", (0, 0, 0, 3)),
    ("one character", "ggv", "a", (0, 0, 0, 1)),
    ("over two lines", "gg0wvj", "def\naé😀b", (0, 4, 1, 5)),
    ("a wide character counts two", "2G0llvl", "😀b", (1, 2, 1, 5)),
    ("combining characters stay together", "2G0fdlvl", "e\u0301f", (1, 8, 1, 11)),
    ("upwards", "2G$v0", LINES[1], (1, 0, 1, 13)),
    ("to the end of the line", "ggv$", "abc def", (0, 0, 0, 7)),
    ("empty line", "3Gv", "", (2, 0, 2, 0)),
    ("linewise", "3GVj", "\n\ttab here\n", (2, 0, 4, 0)),
    ("linewise, last line", "GV", "日本語テキスト\n", (4, 0, 5, 0)),
    ("linewise, empty line", "3GV", "\n", (2, 0, 3, 0)),
    ("blockwise", "gg0l<C-v>jl", "bc \né😀\n", (0, 1, 1, 4)),
    ("blockwise to the line ends", "gg0l<C-v>j$", f"bc def\n{LINES[1][1:]}\n", (0, 1, 1, 13)),
    ("Japanese", "G0lvl", "本語", (4, 1, 4, 3)),
]


@pytest.mark.parametrize(
    ("keys", "text", "place"), [case[1:] for case in SELECTIONS], ids=[case[0] for case in SELECTIONS]
)
@pytest.mark.parametrize("how", ["Q", ":Attach<CR>"])
def test_visual_selection(
    editor: Editor, path: Path, keys: str, text: str, place: tuple[int, int, int, int], how: str
) -> None:
    """By a map in visual mode and by a command with the range of the selection alike."""
    editor.keys(keys + how + "<Esc>")
    attachment = attached(editor)
    assert attachment["text"] == text
    assert places(attachment) == place
    assert (attachment["path"], attachment["languageId"]) == (str(path), "python")


def test_selection_of_a_command_leaves_cursor_and_mode_alone(editor: Editor, path: Path) -> None:
    editor.keys("2G0v2l<Esc>4G$")
    before = editor.lua("return vim.fn.winsaveview()")
    editor.cmd("'<,'>Attach")
    after = editor.lua("return vim.fn.winsaveview()")
    assert (after["lnum"], after["topline"]) == (before["lnum"], before["topline"])
    assert editor.lua("return vim.fn.mode()") == "n"
    assert attached(editor)["text"] == "aé😀"


def test_exclusive_selection(editor: Editor, path: Path) -> None:
    editor.cmd("set selection=exclusive")
    editor.keys("ggv2lQ<Esc>")
    editor.cmd("set selection&")
    assert attached(editor)["text"] == "ab"
    assert places(attached(editor)) == (0, 0, 0, 2)


@pytest.mark.parametrize(
    ("command", "lines", "name"),
    [
        ("2,3Attach", LINES[1:3], "file.py:2-3"),
        ("2Attach", LINES[1:2], "file.py:2"),
        ("%Attach", LINES, "file.py:1-5"),
        ("/def/Attach", LINES[0:1], "file.py:1"),
    ],
)
def test_range_of_a_command_is_whole_lines(
    editor: Editor, path: Path, command: str, lines: list[str], name: str
) -> None:
    editor.keys("G")
    editor.cmd(command)
    assert attached(editor)["text"] == "\n".join(lines) + "\n"
    assert attached(editor)["name"] == name


def test_count_before_the_command_is_that_many_lines(editor: Editor, path: Path) -> None:
    editor.keys("2G3:Attach<CR>")
    assert places(attached(editor)) == (1, 0, 4, 0)


def test_nothing_selected_says_so(editor: Editor, path: Path) -> None:
    editor.keys("Q")
    assert attached(editor) == "nothing is selected"


def test_selection_in_an_unnamed_buffer(editor: Editor, path: Path) -> None:
    editor.cmd("enew")
    editor.keys("ihello<Esc>VQ<Esc>")
    buffer = editor.lua("return vim.api.nvim_get_current_buf()")
    assert attached(editor)["path"] == f"unnamed {buffer}"
    assert attached(editor)["name"] == f"unnamed {buffer}:1"
    assert "languageId" not in attached(editor)


def test_selection_that_is_no_utf8_says_so(editor: Editor, path: Path) -> None:
    path.write_bytes(b"a\xffb\n")
    editor.cmd("edit! ++bin")
    editor.keys("VQ<Esc>")
    assert attached(editor) == "file.py:1 is not text in UTF-8"


# --- files and buffers


def context(editor: Editor, call: str, *arguments: Any) -> Any:
    """[attachment, problem]"""
    return editor.lua(
        f"local a, b = require('agentik.context').{call} return {{ a or vim.NIL, b or vim.NIL }}", *arguments
    )


@pytest.mark.parametrize(
    "name", ["with space.txt", "$HOME.txt", "a#b%c.txt", "ünïcode 日本.txt", "[a]*{b}.txt", "~x.txt"]
)
def test_file_with_an_odd_name(editor: Editor, tmp_path: Path, name: str) -> None:  # B51
    (tmp_path / name).write_text("x")
    attachment, problem = context(editor, "file(...)", str(tmp_path / name))
    assert problem is None
    assert attachment == {"path": str(tmp_path / name), "name": name}
    editor.lua("vim.fn.chdir(...)", str(tmp_path))
    assert context(editor, "file(...)", name)[0]["path"] == str(tmp_path / name)


def test_home_folder_in_a_path(editor: Editor) -> None:
    home = Path(editor.lua("return vim.uv.os_homedir()"))
    (home / "mine.txt").write_text("x")
    assert context(editor, "file('~/mine.txt')")[0]["path"] == str(home / "mine.txt")


def test_what_is_no_file_says_so(editor: Editor, tmp_path: Path) -> None:
    assert context(editor, "file(...)", str(tmp_path / "none"))[1] == f"there is no file {tmp_path}/none"
    assert context(editor, "file(...)", str(tmp_path))[1] == f"{tmp_path} is not a file"


def test_saved_buffer_is_its_file_and_unsaved_a_snapshot(editor: Editor, path: Path) -> None:  # B51
    assert context(editor, "buffer()")[0] == {"path": str(path), "name": "file.py", "languageId": "python"}
    editor.keys("ggdG")
    editor.keys("inew<Esc>")
    assert context(editor, "buffer()")[0]["text"] == "new\n"
    editor.cmd("enew!")
    assert context(editor, "buffer()")[1].startswith("unnamed")
    editor.keys("itext<Esc>")
    assert context(editor, "buffer()")[0]["text"] == "text\n"


def test_image(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "a picture.PNG").write_bytes(PNG)
    attachment, _ = context(editor, "image(...)", str(tmp_path / "a picture.PNG"))
    assert attachment["mimeType"] == "image/png"
    (tmp_path / "text.txt").write_text("x")
    assert "is not an image" in context(editor, "image(...)", str(tmp_path / "text.txt"))[1]


def test_image_of_the_clipboard(editor: Editor, tmp_path: Path) -> None:
    """By the program that is there; an own xclip stands for a real clipboard."""
    program = tmp_path / "xclip"
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\ncat {tmp_path}/clip\n')
    program.chmod(0o755)
    (tmp_path / "clip").write_bytes(PNG)
    paste = """
      local path = vim.env.PATH
      vim.env.PATH, vim.env.WAYLAND_DISPLAY = ..., nil
      local result
      require('agentik.context.clipboard').image(function(...) result = { ... } end)
      vim.wait(5000, function() return result ~= nil end, 1)
      vim.env.PATH = path
      return { result[1] or vim.NIL, result[2] or vim.NIL }
    """
    attachment, _ = editor.lua(paste, f"{tmp_path}:/usr/bin:/bin")
    assert Path(attachment["path"]).read_bytes() == PNG
    assert attachment["mimeType"] == "image/png"
    assert "image/png" in (tmp_path / "arguments").read_text()
    (tmp_path / "clip").write_bytes(b"only text")
    assert editor.lua(paste, f"{tmp_path}:/usr/bin:/bin")[1] == "there is no image in the clipboard"
    assert "install" in editor.lua(paste, "/nowhere")[1]


# --- diagnostics, quickfix, git


@pytest.fixture
def diagnosed(editor: Editor, path: Path) -> Path:
    editor.lua("""
      local namespace = vim.api.nvim_create_namespace('test')
      vim.diagnostic.set(namespace, 0, {
        { lnum = 3, col = 1, message = 'no tabs', severity = vim.diagnostic.severity.WARN },
        { lnum = 0, col = 4, message = 'unknown name', severity = 1, source = 'lint', code = 'E7' },
      })
    """)
    editor.lua("vim.fn.chdir(...)", str(path.parent))
    return path


def test_diagnostics_of_the_buffer_come_with_their_lines_in_order(editor: Editor, diagnosed: Path) -> None:
    attachment, _ = context(editor, "diagnostics('buffer')")
    assert attachment["text"] == (
        "file.py:1:5: error: unknown name [lint E7]\n    abc def\nfile.py:4:2: warning: no tabs\n    \ttab here\n"
    )
    assert attachment["name"] == "2 diagnostics of file.py"


def test_diagnostics_of_the_line(editor: Editor, diagnosed: Path) -> None:
    editor.keys("4G")
    attachment, _ = context(editor, "diagnostics('line')")
    assert attachment["text"] == "file.py:4:2: warning: no tabs\n    \ttab here\n"
    assert attachment["name"] == "1 diagnostic of file.py:4"
    editor.keys("2G")
    assert context(editor, "diagnostics('line')")[1] == "no diagnostics in this line"


def test_quickfix_list(editor: Editor, path: Path) -> None:
    assert context(editor, "quickfix()")[1] == "the quickfix list is empty"
    editor.lua("vim.fn.chdir(...)", str(path.parent))
    editor.lua("""
      vim.fn.setqflist({}, ' ', { title = ':grep abc', items = {
        { filename = 'file.py', lnum = 1, col = 5, text = 'abc def' },
        { text = 'a line without a place' },
      } })
    """)
    attachment, _ = context(editor, "quickfix()")
    assert attachment["text"] == "file.py:1:5: abc def\na line without a place\n"
    assert attachment["name"] == "quickfix list of 2 (:grep abc)"
    editor.lua("vim.fn.setqflist({}, 'f')")


GIT_DIFF = """
  local result
  require('agentik.context').git_diff(function(...) result = { ... } end, ...)
  vim.wait(5000, function() return result ~= nil end, 1)
  return { result[1] or vim.NIL, result[2] or vim.NIL }
"""


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_git_diff(editor: Editor, tmp_path: Path) -> None:
    assert editor.lua(GIT_DIFF, str(tmp_path))[1].startswith("git: ")
    git(tmp_path, "init")
    (tmp_path / "ü.txt").write_text("one\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    assert editor.lua(GIT_DIFF, str(tmp_path))[1] == "nothing is changed since the last commit"
    (tmp_path / "ü.txt").write_text("two\n")
    attachment, _ = editor.lua(GIT_DIFF, str(tmp_path))
    assert "+++ b/ü.txt" in attachment["text"]
    assert "-one\n+two\n" in attachment["text"]
    assert attachment["languageId"] == "diff"
