"""Choosing sessions, agents, modes and options; searching; jumping to what was found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e import scripted
from tests.e2e.choosing import Picker
from tests.e2e.driving import FAST
from tests.e2e.kit import ROOT, Editor

FORKING = ROOT / "tests/e2e/forking_agent.py"


@pytest.fixture
def editor(open_editor: Callable[..., Editor]) -> Editor:
    return open_editor(env=FAST)


def two_sessions(editor: Editor) -> None:
    """One about apples, then one about plums, which is shown."""
    editor.type("apples are red")
    editor.wait_event("TurnEnded")
    editor.cmd("AgentikNew")
    editor.type("plums are blue")
    editor.wait_event("TurnEnded", 2)


def session_id(editor: Editor) -> str:
    return str(editor.state("session_id"))


def test_neovims_own_list_opens_another_session(editor: Editor) -> None:
    """Typed as a person does who has no picker plugin."""
    two_sessions(editor)
    editor.keys(":AgentikSessions<CR>")
    editor.wait_screen("Sessions")
    editor.wait_screen("apples are red")
    editor.keys("2<CR>")
    editor.wait_chat("\napples are red\n")
    assert "plums" not in editor.chat


def test_sessions_of_this_folder_come_first_and_the_others_are_one_step_away(editor: Editor) -> None:
    editor.type("in the project")
    editor.wait_event("TurnEnded")
    other = editor.home / "other"
    other.mkdir()
    editor.cmd(f"cd {other}")
    editor.cmd("AgentikNew")
    editor.type("in the other folder")
    editor.wait_event("TurnEnded", 2)
    picker = Picker(editor)
    editor.cmd("AgentikSessions")
    lines = picker.lines()
    assert len(lines) == 2
    assert lines[0].startswith("* ")
    assert "in the other folder" in lines[0]
    picker.choose("sessions of other folders (1)")
    lines = picker.lines()
    assert len(lines) == 2
    assert "~/project" in lines[1]
    picker.choose("in the project")
    editor.wait_chat("\nin the project\n")


def test_words_agents_and_folders_narrow_the_list(editor: Editor) -> None:
    two_sessions(editor)
    picker = Picker(editor)
    editor.cmd("AgentikSessions apples")
    assert [line for line in picker.lines() if "plums" in line] == []
    picker.choose("apples")
    editor.wait_chat("\napples are red\n")
    editor.cmd("AgentikSessions agent=demo folder=.")
    assert len(picker.lines()) == 2
    picker.choose("plums")
    editor.cmd("AgentikSessions agent=claude")
    editor.wait_screen("no session is like that")
    assert editor.lua("return vim.fn.getcompletion('AgentikSessions agent=dem', 'cmdline')") == ["agent=demo"]


def test_the_preview_of_a_session_is_its_transcript(editor: Editor) -> None:
    """For pickers that call `preview_item`, as Neovim's manual describes it."""
    two_sessions(editor)
    picker = Picker(editor)
    editor.cmd("AgentikSessions")
    shown = picker.preview(2)
    assert shown.startswith("# You\n\napples are red\n\n# Agent\n")
    picker.choose("plums")
    editor.until("no buffer left", lambda: not editor.lua("return vim.api.nvim_buf_is_valid(Shown)"))


def test_a_session_is_renamed_and_deleted(editor: Editor) -> None:
    two_sessions(editor)
    picker = Picker(editor)
    editor.cmd("AgentikRename About fruit")
    editor.until("the title", lambda: editor.state("session")["title"] == "About fruit")
    editor.cmd("AgentikSessions!")
    picker.choose("apples")
    assert picker.lines() == ["Open", "Rename", "Fork", "Export as Markdown", "Delete"]
    picker.choose("Rename")
    picker.answer("About apples")
    editor.wait_screen('called "About apples"')
    editor.cmd("AgentikDelete")
    assert picker.wait()["prompt"] == 'Delete "About fruit"?'
    picker.choose("Delete it")
    editor.wait_event("SessionGone")
    editor.until("one session", lambda: "agentik" not in " ".join(editor.windows()))
    editor.cmd("AgentikSessions")
    assert len(picker.lines()) == 1
    picker.choose("About apples")


def test_keeping_it_deletes_nothing(editor: Editor) -> None:
    editor.type("precious")
    editor.wait_event("TurnEnded")
    picker = Picker(editor)
    editor.cmd("AgentikDelete")
    picker.choose("Keep it")
    editor.cmd("AgentikSessions")
    assert len(picker.lines()) == 1
    assert editor.all_events("SessionGone") == []


def test_an_agent_that_cannot_fork_says_so_in_one_line(editor: Editor) -> None:
    editor.type("hello")
    editor.wait_event("TurnEnded")
    editor.cmd("AgentikFork")
    editor.until("the refusal", lambda: "fork" in editor.screen.lines[-1])


def test_a_fork_goes_on_and_the_first_session_stays(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor(options=scripted.options(program=FORKING))
    scripted.play(editor, "hello")
    first = session_id(editor)
    editor.cmd("AgentikFork")
    editor.until("another session", lambda: session_id(editor) != first)
    editor.wait_chat("hello")
    scripted.play(editor, "only in the fork", turn=2)
    assert "only in the fork" in editor.chat
    picker = Picker(editor)
    editor.cmd("AgentikSessions")
    assert len(picker.lines()) == 2


def test_sessions_that_only_the_agent_knows_are_taken_over(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor(options=scripted.options(program=FORKING))
    scripted.play(editor, "hello")
    picker = Picker(editor)
    editor.cmd("AgentikImport")
    (line,) = picker.lines()
    assert "Begun in a terminal" in line
    picker.choose("Begun in a terminal")
    editor.wait_chat("replayed 1")
    editor.cmd("AgentikImport scripted")
    editor.wait_screen("no further sessions of this folder")


def test_agents_are_listed_with_how_to_get_them(editor: Editor) -> None:
    picker = Picker(editor)
    editor.cmd("AgentikAgents")
    lines = picker.lines()
    assert any("Demo agent" in line for line in lines)
    assert not any("not installed" in line for line in lines)
    picker.choose("how to get others")
    missing = next(line for line in picker.lines() if "not installed" in line)
    picker.choose(missing)
    editor.until("a hint", lambda: editor.screen.lines[-1].startswith("agentik: "))
    editor.cmd("AgentikAgents")
    picker.choose("Demo agent")
    editor.until("a session", lambda: editor.state("session_id") is not None)


def test_modes_and_options_are_switched(editor: Editor) -> None:
    editor.type("hello")
    editor.wait_event("TurnEnded")
    picker = Picker(editor)
    editor.cmd("AgentikMode")
    assert [line[:12].rstrip() for line in picker.lines()] == ["* Ask first", "  Look only"]
    picker.choose("Look only")
    editor.wait_screen("Look only")
    editor.cmd("AgentikMode Ask first")
    editor.until("the mode", lambda: editor.state("session")["modeId"] == "ask")
    editor.cmd("AgentikOption")
    assert [line.split() for line in picker.lines()][1] == ["Speed", "Normal"]
    picker.choose("Show thoughts")
    picker.choose("off")
    editor.until("the option", lambda: editor.state("session")["configOptions"][1]["currentValue"] is False)
    editor.cmd("AgentikModel")
    editor.wait_screen("this agent has no model to choose")


def test_what_is_found_opens_its_session_at_the_message(open_editor: Callable[..., Editor]) -> None:
    """A message that is older than the pages that are loaded at first: they are fetched until it is there."""
    editor = open_editor(options=scripted.options())
    many = [line for number in range(240) for line in (f"#id m{number}", f"#say number {number} of many")]
    scripted.play(editor, "#say nothing", "#id first", "#say the needle is here", *many)
    editor.cmd("AgentikNew")
    editor.type("another session")
    editor.wait_event("TurnEnded", 2)
    picker = Picker(editor)
    editor.cmd("AgentikSearch needle")
    (line,) = [line for line in picker.lines() if line.endswith("  the needle is here")]
    picker.choose(line)
    editor.until("the message", lambda: editor.lua("return vim.api.nvim_get_current_line()") == "the needle is here")
    assert editor.lua("return vim.bo.filetype") == "agentik-chat"


def test_the_quickfix_list_leads_to_messages_and_leaves_the_windows_alone(editor: Editor) -> None:
    two_sessions(editor)
    editor.cmd("AgentikToggle")
    editor.cmd("edit notes.txt")
    editor.cmd("AgentikSearch! apples")
    editor.wait_screen("apples are red")
    assert editor.lua("return vim.bo.buftype") == "quickfix"
    rows = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)")
    assert any("apples are red|| apples are red" in row for row in rows)
    row = next(number for number, row in enumerate(rows, 1) if row.endswith("|| apples are red"))
    for _ in range(2):  # also the second time
        editor.cmd("wincmd b | copen")
        editor.keys(f"{row}G<CR>")
        editor.until("the chat", lambda: editor.lua("return vim.bo.filetype") == "agentik-chat")
        editor.until("the message", lambda: editor.lua("return vim.api.nvim_get_current_line()").startswith("You "))
        assert "notes.txt" in editor.windows()
        assert "message" not in " ".join(editor.windows())
    listed = "return vim.tbl_map(function(b) return vim.fs.basename(b.name) end, vim.fn.getbufinfo({ buflisted = 1 }))"
    assert [name for name in editor.lua(listed) if name] == ["notes.txt"]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_every_line_of_a_list_fits_the_screen(open_editor: Callable[..., Editor], width: int) -> None:
    """With the number that Neovim's own list puts before it; also where letters are two cells wide."""
    editor = open_editor(env=FAST, width=width)
    titles = "Übersicht über die 数据库 und alle ihre Sitzungen", "why does the parser fail on a file that is empty?"
    for number, title in enumerate(titles, 1):
        editor.cmd("AgentikNew")
        editor.type(title)
        editor.wait_event("TurnEnded", number)
    (editor.home / "a folder with a long name").mkdir()
    editor.cmd("cd ../a\\ folder\\ with\\ a\\ long\\ name | AgentikNew")
    editor.until(
        "the options", lambda: editor.lua("return #(require('agentik').current().session.configOptions or {})")
    )
    picker = Picker(editor)
    for command in ("AgentikSessions agent=demo", "AgentikSearch file", "AgentikAgents", "AgentikOption"):
        editor.cmd(command)
        lines = picker.lines()
        widths = [editor.call("nvim_strwidth", f"{number}: {line}") for number, line in enumerate(lines, 1)]
        assert max(widths) < width, lines
        editor.lua("table.remove(Picker.asked, 1).done()")
