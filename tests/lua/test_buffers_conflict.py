"""Unsaved edits of the user are never overwritten silently (B50)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Editor


@pytest.fixture
def path(editor: Editor, tmp_path: Path) -> Path:
    """A file of three lines, open, with an unsaved edit in the second."""
    path = tmp_path / "file.txt"
    path.write_text("one\ntwo\nthree\n")
    editor.edit(path)
    editor.keys("2GA unsaved<Esc>")
    return path


def write(editor: Editor, path: Path, text: str) -> dict[str, Any]:
    return dict(editor.lua("return require('agentik.buffers').write(...)", str(path), text))


def state(editor: Editor, path: Path) -> tuple[list[str], str]:
    return editor.lines(), path.read_text()


UNTOUCHED = (["one", "two unsaved", "three"], "one\ntwo\nthree\n")


def attach_ui(editor: Editor, choice: str | None) -> None:
    """A person is there who answers every question with `choice`; the questions are kept in Asked."""
    editor.call("nvim_ui_attach", 80, 24, {"rgb": True})
    editor.lua(
        """
        local choice = ...
        Asked = {}
        vim.ui.select = function(items, options, done)
          table.insert(Asked, { prompt = options.prompt, items = vim.tbl_map(options.format_item, items) })
          done(choice ~= vim.NIL and choice or nil)
        end
        """,
        choice,
    )


@pytest.fixture
def person(editor: Editor) -> Any:
    yield lambda choice: attach_ui(editor, choice)
    editor.call("nvim_ui_detach")


def test_unsaved_edits_that_the_agent_does_not_know_are_kept(editor: Editor, path: Path) -> None:  # B50
    answer = write(editor, path, "one\ntwo changed\nthree\n")
    assert not answer["applied"]
    assert answer["reason"] == "the file has unsaved edits in the editor that this text does not hold"
    assert state(editor, path) == UNTOUCHED
    assert editor.options["modified"]


def test_agent_that_read_the_unsaved_text_writes_it_with_its_own_change(editor: Editor, path: Path) -> None:  # B50
    text = editor.lua("return require('agentik.buffers').read(...).text", str(path))
    assert text == "one\ntwo unsaved\nthree\n"
    assert write(editor, path, text + "four\n")["applied"]
    assert state(editor, path) == (["one", "two unsaved", "three", "four"], "one\ntwo unsaved\nthree\nfour\n")
    editor.keys("u")
    assert editor.lines() == ["one", "two unsaved", "three"]


@pytest.mark.parametrize(
    ("keys", "text", "applied"),
    [
        ("2Gdd", "one\nthree\nfour\n", True),  # removed by the user, the text does without it
        ("2Gdd", "one\ntwo\nthree\n", False),  # would bring it back
        ("1GOzero<Esc>", "zero\none\ntwo\nTHREE\n", True),
        ("1GOzero<Esc>", "one\ntwo\nthree\n", False),
        ("Gofour<Esc>", "one\ntwo\nthree\nfour\nfive\n", True),
        ("Gofour<Esc>", "one\ntwo\nthree\n", False),
        ("1Gx3Gx", "ne\nTWO\nhree\n", True),
        ("1Gx3Gx", "ne\nTWO\nthree\n", False),
        ("ggdG", "", True),
        ("ggdG", "one\n", False),
    ],
)
def test_what_counts_as_overwriting(editor: Editor, tmp_path: Path, keys: str, text: str, applied: bool) -> None:  # B50
    path = tmp_path / "file.txt"
    path.write_text("one\ntwo\nthree\n")
    editor.edit(path)
    editor.keys(keys)
    before = state(editor, path)
    assert write(editor, path, text)["applied"] is applied
    if applied:
        assert path.read_text() == text
    else:
        assert state(editor, path) == before


def test_buffer_of_a_file_that_does_not_exist_yet(editor: Editor, tmp_path: Path) -> None:  # B50
    path = tmp_path / "new.txt"
    editor.edit(path)
    editor.keys("imine<Esc>")
    assert not write(editor, path, "agent\n")["applied"]
    assert not path.exists()
    assert editor.lines() == ["mine"]


def test_same_text_as_the_unsaved_one_is_simply_saved(editor: Editor, path: Path) -> None:
    assert write(editor, path, "one\ntwo unsaved\nthree\n")["applied"]
    assert path.read_text() == "one\ntwo unsaved\nthree\n"


def test_take_puts_the_agents_text_and_undo_brings_mine_back(editor: Editor, path: Path, person: Any) -> None:  # B50
    person("take")
    answer = write(editor, path, "agent\n")
    assert (answer["applied"], answer["reason"].endswith("; the user is being asked")) == (False, True)
    editor.wait_until("not vim.bo.modified")
    assert state(editor, path) == (["agent"], "agent\n")
    editor.keys("u")
    assert editor.lines() == UNTOUCHED[0]
    [question] = editor.lua("return Asked")
    assert question["items"] == [
        "Keep mine (the agent is told)",
        "Take the agent's text (mine stays in the undo history)",
        "Compare both",
    ]
    assert "file.txt has unsaved edits" in question["prompt"]


def test_agent_that_tries_again_after_take_is_told_that_it_is_done(editor: Editor, path: Path, person: Any) -> None:
    person("take")
    write(editor, path, "agent\n")
    editor.wait_until("not vim.bo.modified")
    assert write(editor, path, "agent\n")["applied"]


def test_keep_is_remembered_for_the_same_text(editor: Editor, path: Path, person: Any) -> None:  # B50
    person("keep")
    write(editor, path, "agent\n")
    editor.wait_until("#Asked == 1")
    answer = write(editor, path, "agent\n")
    assert answer["reason"].endswith("; the user keeps them")
    assert state(editor, path) == UNTOUCHED
    assert editor.lua("return #Asked") == 1
    assert editor.lua("return require('agentik.buffers.conflict').list()") == []


def test_diff_shows_both_and_the_user_saves_what_is_right(editor: Editor, path: Path, person: Any) -> None:  # B50
    person("diff")
    write(editor, path, "one\ntwo agent\nthree\n")
    editor.wait_until("#vim.api.nvim_list_tabpages() == 2")
    assert editor.lines() == UNTOUCHED[0]
    windows = editor.lua("return vim.api.nvim_tabpage_list_wins(0)")
    assert [editor.lua("return vim.wo[...].diff", window) for window in windows] == [True, True]
    assert editor.lua("return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(...), 0, -1, true)", windows[1]) == [
        "one",
        "two agent",
        "three",
    ]
    editor.keys("2Gdo:w<CR>:tabclose<CR>")
    assert path.read_text() == "one\ntwo agent\nthree\n"
    assert editor.lua("return vim.wo.diff") is False


def test_question_waits_until_the_user_stops_typing(editor: Editor, path: Path, person: Any) -> None:
    person("take")
    editor.call("nvim_input", "A more")
    editor.wait_until("vim.api.nvim_get_mode().mode == 'i'")
    write(editor, path, "agent\n")
    assert editor.lua("return #Asked") == 0
    editor.call("nvim_input", "<Esc>")
    editor.wait_until("#Asked == 1")


def test_open_question_can_be_answered_later(editor: Editor, path: Path, person: Any) -> None:
    person(None)
    write(editor, path, "agent\n")
    editor.wait_until("#Asked == 1")
    assert len(editor.lua("return require('agentik.buffers.conflict').list()")) == 1
    assert editor.lua("return require('agentik.buffers.conflict').resolve(..., 'take')", str(path)) is None
    assert path.read_text() == "agent\n"
    problem = editor.lua("return require('agentik.buffers.conflict').resolve()")
    assert problem == "no file waits for a decision"


@pytest.mark.parametrize("policy", ["keep", "take"])
def test_policy_of_the_user_asks_nothing(editor: Editor, path: Path, person: Any, policy: str) -> None:
    person("diff")
    editor.lua("require('agentik.config').setup({ buffers = { conflict = ... } })", policy)
    assert write(editor, path, "agent\n")["applied"] is (policy == "take")
    assert path.read_text() == ("agent\n" if policy == "take" else UNTOUCHED[1])
    assert editor.lua("return #Asked") == 0


# --- what the agent wrote on disk by itself


def refresh(editor: Editor, *paths: Path) -> list[str]:
    arguments = [[str(path) for path in paths]] if paths else []
    return list(editor.lua("return require('agentik.buffers').refresh(...)", *arguments))


def test_buffer_shows_what_the_agent_wrote_on_disk(editor: Editor, tmp_path: Path) -> None:  # B50
    path = tmp_path / "file.txt"
    lines = [f"line {number}" for number in range(1, 51)]
    path.write_text("\n".join(lines) + "\n")
    editor.edit(path)
    editor.cmd("setlocal foldmethod=manual | 20,25fold")
    editor.keys("30Gma")
    path.write_text("\n".join(["new", *lines]) + "\n")
    assert refresh(editor, path) == [str(path)]
    assert editor.lines() == ["new", *lines]
    assert not editor.options["modified"]
    assert editor.line == "line 30"
    assert editor.lua('return vim.fn.getline("\'a")') == "line 30"
    assert editor.lua("return vim.fn.getline(vim.fn.foldclosed(22))") == "line 20"
    assert refresh(editor) == []
    editor.cmd("write")


def test_refresh_of_other_files_leaves_this_one(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    editor.edit(path)
    path.write_text("two two\n")
    assert refresh(editor, tmp_path / "other.txt") == []
    assert editor.lines() == ["one"]
    assert refresh(editor) == [str(path)]
    assert editor.lines() == ["two two"]


def test_refresh_undo_goes_back_to_the_old_text(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    editor.edit(path)
    path.write_text("two two\n")
    refresh(editor)
    editor.keys("uu")
    assert editor.lines() == ["one"]


def test_new_line_ends_and_encoding_are_detected(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    editor.edit(path)
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    refresh(editor)
    assert editor.lines() == ["one", "two"]
    options = editor.options
    assert (options["fileformat"], options["bomb"], options["modified"]) == ("dos", True, False)


def test_unsaved_edits_survive_a_write_on_disk_and_the_user_is_asked(editor: Editor, path: Path, person: Any) -> None:
    person("take")
    path.write_text("agent was here\n")
    assert refresh(editor) == []
    editor.wait_until("#Asked == 1")
    assert state(editor, path) == (["agent was here"], "agent was here\n")


def test_unsaved_edits_survive_without_a_person(editor: Editor, path: Path) -> None:  # B50
    path.write_text("agent was here\n")
    assert refresh(editor) == []
    assert state(editor, path) == (UNTOUCHED[0], "agent was here\n")


def test_removed_file_keeps_its_buffer(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    editor.edit(path)
    path.unlink()
    assert refresh(editor) == []
    assert editor.lines() == ["one"]


def test_users_autoread_is_untouched(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    editor.edit(path)
    editor.cmd("set noautoread")
    path.write_text("two two\n")
    refresh(editor)
    assert editor.lines() == ["two two"]
    assert editor.lua("return vim.o.autoread") is False
    editor.cmd("set autoread")
    assert editor.lua("return vim.o.autoread") is True


@pytest.mark.parametrize(
    ("event", "looks"),
    [
        ("'turnEnded', { stopReason = 'end_turn' }", True),
        ("'messageUpdated', { kind = 'tool', status = 'complete' }", True),
        ("'messageUpdated', { kind = 'tool', status = 'streaming' }", False),
        ("'messageUpdated', { kind = 'agent', status = 'complete' }", False),
    ],
)
def test_open_files_are_looked_at_when_the_agent_may_have_written(
    editor: Editor, tmp_path: Path, event: str, looks: bool
) -> None:
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    editor.edit(path)
    path.write_text("two two\n")
    editor.lua("require('agentik.buffers.watch')")
    editor.lua(f"require('agentik.hub').emit('event', {event})")
    if not looks:  # the next event that does is the only one
        editor.lua("Looks = 0; require('agentik.buffers').refresh = function() Looks = Looks + 1 end")
        editor.lua("require('agentik.hub').emit('event', 'turnEnded', {})")
        editor.wait_until("Looks > 0")
        assert editor.lua("return Looks") == 1
        return
    editor.wait_until("vim.fn.getline(1) == 'two two'")
