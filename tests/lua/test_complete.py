"""Completion in the compose buffer: files after `@`, commands of the agent after `/`, by Neovim's own means."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import Editor

COMMANDS = [
    {"name": "review", "description": "Review the changes\nin two lines", "hint": "what to look at"},
    {"name": "explain", "description": "Explain the code"},
    {"name": "compact"},
]


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git repository with ignored, untracked, deleted and oddly named files."""
    root = tmp_path / "project"
    for name in (
        "src/parser.lua",
        "src/parse_config.lua",
        "README.md",
        "docs/with space.md",
        "docs/ünï.md",
        "gone.txt",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    git(root, "init")
    git(root, "add", ".")
    (root / "gone.txt").unlink()
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    (root / "build" / "ignored.lua").write_text("x")
    (root / "untracked.lua").write_text("x")
    return root


@pytest.fixture
def compose(editor: Editor, project: Path) -> Editor:
    """An empty buffer that completes for the project, whose files are listed."""
    attach(editor, project)
    return editor


def attach(editor: Editor, root: Path) -> None:
    editor.cmd("enew | setlocal buftype=nofile")
    editor.lua(
        """
        local root, commands = ...
        require('agentik.complete').attach(vim.api.nvim_get_current_buf(), {
          root = function() return root end,
          commands = function() return commands end,
        })
        """,
        str(root),
        COMMANDS,
    )
    wait_for_files(editor, root)


def wait_for_files(editor: Editor, root: Path) -> None:
    editor.wait_until(f"not require('agentik.complete.files').is_listing('{root}')")


def complete(editor: Editor, text: str) -> tuple[int, list[dict[str, Any]]]:
    """(start, items) of the omnifunc with the cursor behind `text`."""
    return editor.lua(
        """
        vim.api.nvim_buf_set_lines(0, 0, -1, true, vim.split(..., '\\n'))
        vim.cmd('normal! G$')
        vim.cmd('startinsert!')
        vim.o.virtualedit = 'onemore'
        local last = vim.api.nvim_buf_line_count(0)
        vim.api.nvim_win_set_cursor(0, { last, #vim.fn.getline(last) })
        local omnifunc = require('agentik.complete').omnifunc
        local start = omnifunc(1, '')
        local items = start >= 0 and omnifunc(0, vim.fn.getline(last):sub(start + 1)).words or {}
        vim.cmd('stopinsert')
        vim.o.virtualedit = ''
        return { start, items }
        """,
        text,
    )


def words(editor: Editor, text: str) -> list[str]:
    return [item["word"] for item in complete(editor, text)[1]]


def test_files_are_those_that_git_does_not_ignore_and_that_exist(compose: Editor) -> None:
    assert set(words(compose, "see @")) == {
        "@src/parser.lua",
        "@src/parse_config.lua",
        "@README.md",
        "@docs/with\\ space.md",
        "@docs/ünï.md",
        "@.gitignore",
        "@untracked.lua",
    }


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("@pars", "@src/parser.lua"),
        ("@PARSER", "@src/parser.lua"),
        ("@pcfg", "@src/parse_config.lua"),
        ("@srcconf", "@src/parse_config.lua"),
        ("@read", "@README.md"),
        ("@docs/ü", "@docs/ünï.md"),
        ("@with\\ sp", "@docs/with\\ space.md"),
    ],
)
def test_fuzzy_and_best_first(compose: Editor, typed: str, best: str) -> None:
    assert words(compose, f"look at {typed}")[0] == best


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("@", 0),
        ("see @src/p", 4),
        ("(@a", 1),
        ("first line\n  @x", 2),
        ("@a and @b", 7),
        ("@with\\ space", 0),
        ("/rev", 0),
        ("me@example.org", -3),
        ("@done and more", -3),
        ("no sign", -3),
        ("/review now", -3),
        ("second\n/rev", -3),
        (" /rev", -3),
        ("", -3),
    ],
)
def test_where_completion_begins(compose: Editor, text: str, start: int) -> None:
    assert complete(compose, text)[0] == start


def test_open_files_come_first_when_nothing_is_typed(compose: Editor, project: Path) -> None:
    compose.cmd(f"badd {project}/src/parser.lua")
    compose.cmd("badd /elsewhere/file.txt")
    assert words(compose, "@")[0] == "@src/parser.lua"


def test_item_carries_the_path_for_an_attachment(compose: Editor, project: Path) -> None:
    [item] = complete(compose, "@with")[1]
    assert item["user_data"] == {"agentik": "file", "path": f"{project}/docs/with space.md"}


def test_commands_of_the_agent(compose: Editor) -> None:
    assert words(compose, "/") == ["/review", "/explain", "/compact"]
    [item] = complete(compose, "/rvw")[1]
    assert item["word"] == "/review"
    assert item["abbr"] == "/review what to look at"
    assert item["menu"] == "Review the changes"
    assert item["info"] == "Review the changes\nin two lines"


def test_keys_of_neovim_complete_and_typing_narrows(compose: Editor) -> None:
    """<C-x><C-o>, then more characters, then <C-n><C-y>: as any omnifunc, which completion plugins build on."""
    compose.keys("ilook @<C-x><C-o>pcfg<C-n><C-y> now<Esc>")
    assert compose.lines() == ["look @src/parse_config.lua now"]
    assert compose.lua("return vim.bo.omnifunc") == "v:lua.require'agentik.complete'.omnifunc"


def test_menu_opens_by_itself_behind_the_sign(compose: Editor) -> None:
    compose.call("nvim_input", "isee @par")
    compose.wait_until("vim.fn.pumvisible() == 1")
    compose.call("nvim_input", "<C-n><C-y><Esc>")
    compose.wait_until("vim.fn.mode() == 'n'")
    assert compose.lines() == ["see @src/parser.lua"]


def test_menu_stays_closed_where_a_plugin_opens_it(compose: Editor) -> None:
    compose.lua("package.loaded['cmp'] = {}")
    compose.call("nvim_input", "i@<Esc>")
    compose.wait_until("vim.fn.mode() == 'n'")
    compose.lua("package.loaded['cmp'] = nil")
    assert compose.lines() == ["@"]


def test_text_without_a_choice_is_left_alone(compose: Editor) -> None:
    compose.keys("imail @nothing_like_this<C-x><C-o><Esc>")
    assert compose.lines() == ["mail @nothing_like_this"]


def test_other_buffers_complete_nothing(compose: Editor) -> None:
    compose.cmd("enew")
    assert complete(compose, "@") == [-3, []]


def test_wiped_buffer_is_forgotten(compose: Editor) -> None:
    compose.cmd("bwipeout!")
    assert complete(compose, "@") == [-3, []]


# --- listing


def files(editor: Editor, root: Path) -> dict[str, Any]:
    return editor.lua("local list = require('agentik.complete.files').get(...) return list or {}", str(root))


def test_folder_without_git_is_listed_too(editor: Editor, tmp_path: Path) -> None:
    for name in ("a.txt", "deep/er/b c.txt", "node_modules/x.js"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    attach(editor, tmp_path)
    assert {"a.txt", "deep/er/b c.txt"} <= set(files(editor, tmp_path)["paths"])


def test_nothing_there_to_list_with_gives_no_files_and_no_error(editor: Editor, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    editor.lua("Path = vim.env.PATH; vim.env.PATH = '/nowhere'")
    attach(editor, tmp_path)
    assert words(editor, "@") == []
    editor.lua("vim.env.PATH = Path")


def test_listing_never_waits(editor: Editor, tmp_path: Path) -> None:
    """A git that does not answer: completion gives what is known (nothing) at once, and the rest when it comes."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.txt").write_text("x")
    gate = tmp_path / "gate"
    subprocess.run(["mkfifo", gate], check=True)
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat {gate} >/dev/null\nprintf 'a.txt\\0'\n")
    program.chmod(0o755)
    editor.lua("Path = vim.env.PATH; vim.env.PATH = ... .. ':' .. Path", str(program.parent))
    editor.cmd("enew | setlocal buftype=nofile")
    editor.lua(
        """
        local root = ...
        require('agentik.complete').attach(vim.api.nvim_get_current_buf(), {
          root = function() return root end, commands = function() return {} end,
        })
        """,
        str(tmp_path),
    )
    assert words(editor, "@") == []
    assert editor.lua("return require('agentik.complete.files').is_listing(...)", str(tmp_path))
    gate.write_text("go")
    wait_for_files(editor, tmp_path)
    editor.lua("vim.env.PATH = Path")
    assert words(editor, "@") == ["@a.txt"]


def test_old_list_is_used_while_a_new_one_is_made(editor: Editor, project: Path) -> None:
    attach(editor, project)
    (project / "later.lua").write_text("x")
    editor.lua("Real = vim.uv.hrtime; vim.uv.hrtime = function() return Real() + 60e9 end")
    assert "later.lua" not in files(editor, project)["paths"]
    editor.wait_until(
        f"vim.list_contains(require('agentik.complete.files').get('{project}').paths, 'later.lua')",
    )
    editor.lua("vim.uv.hrtime = Real")


def test_menu_that_was_closed_stays_closed_while_typing_on(compose: Editor) -> None:
    compose.call("nvim_input", "i@p")
    compose.wait_until("vim.fn.pumvisible() == 1")
    compose.call("nvim_input", "<C-e>")
    compose.wait_until("vim.fn.pumvisible() == 0")
    compose.call("nvim_input", "ars")
    compose.wait_until("vim.fn.getline(1) == '@pars'")
    assert compose.lua("return vim.fn.pumvisible()") == 0
    compose.call("nvim_input", " @")
    compose.wait_until("vim.fn.pumvisible() == 1")
    compose.call("nvim_input", "<Esc>")


def test_what_is_typed_further_looks_only_through_the_last_result(editor: Editor) -> None:
    """100,000 paths: each further character costs as much as there are matches left."""
    reads = editor.lua("""
      local paths, lower, names = {}, {}, {}
      for i = 1, 100000 do
        paths[i] = ('src/module_%d/Part_%d.lua'):format(i % 97, i)
        lower[i] = paths[i]:lower()
        names[i] = paths[i]:match('.*/()')
      end
      local reads = 0
      local counted = setmetatable({}, { __index = function(_, i) reads = reads + 1 return lower[i] end })
      local list = { root = '/', paths = paths, lower = lower, names = names, complete = true, cut = false, made = 0 }
      local match = require('agentik.complete.match')
      local first = match.files(list, 'part_9999', 50)
      list.lower = counted
      local second = match.files(list, 'part_99999', 50)
      return { reads, first[1], second[1] }
    """)
    assert reads[0] < 100
    assert reads[1:] == ["src/module_8/Part_9999.lua", "src/module_89/Part_99999.lua"]


# --- mentions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see @src/parser.lua and @README.md", ["src/parser.lua", "README.md"]),
        ("twice @README.md @README.md", ["README.md"]),
        ("(@README.md), or @README.md.", ["README.md"]),
        ("@docs/with\\ space.md!", ["docs/with space.md"]),
        ("@docs/ünï.md", ["docs/ünï.md"]),
        ("mail me@README.md", []),
        ("@src is a folder, @none.txt not there", []),
        ("line\n@README.md\n", ["README.md"]),
        ("@", []),
    ],
)
def test_mentions_of_existing_files(editor: Editor, project: Path, text: str, found: list[str]) -> None:
    paths = editor.lua("return require('agentik.complete').mentions(...)", text, str(project))
    assert paths == [f"{project}/{name}" for name in found]
