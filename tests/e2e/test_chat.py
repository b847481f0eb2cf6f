"""The chat: it follows the end only where the person is at the end, and nothing of theirs is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.driving import FAST, busy
from tests.e2e.kit import Editor

pytestmark = pytest.mark.xdist_group("e2e-chat")

TALK = {"AGENTIK_DEMO_RATE": "150"}


@pytest.fixture
def talking(share_editor: Callable[..., Editor]) -> Editor:
    """The agent has filled the chat's window and goes on."""
    editor = share_editor(env=TALK)
    busy(editor)
    editor.wait_chat("6. This is sentence")
    return editor


@pytest.fixture
def toured(share_editor: Callable[..., Editor]) -> Editor:
    """Thoughts, plan, tools and answers stand in the chat; the cursor is in it."""
    editor = share_editor(env=FAST)
    editor.type("/tour")
    editor.wait_event("PermissionRequested")
    editor.keys("1")
    editor.wait_event("TurnEnded")
    in_chat(editor, "gg")
    return editor


def in_chat(editor: Editor, keys: str = "") -> None:
    editor.lua("vim.api.nvim_set_current_win(vim.fn.win_findbuf(require('agentik').current().bufs.chat)[1])")
    editor.keys("<Esc>" + keys)


def chat_window(editor: Editor, expression: str) -> Any:
    """The value of a Vim expression in the chat's window."""
    code = """
      local expression = ...
      local win = vim.fn.win_findbuf(require('agentik').current().bufs.chat)[1]
      return vim.api.nvim_win_call(win, function() return vim.fn.eval(expression) end)
    """
    return editor.lua(code, expression)


def line(editor: Editor) -> str:
    return str(editor.call("nvim_get_current_line"))


# Following


def test_the_end_is_followed_while_the_person_types(talking: Editor) -> None:
    """The cursor stays in the compose window, the chat scrolls, what is typed arrives."""
    talking.lua("require('agentik').compose()")
    talking.keys("typed meanwhile")
    talking.wait_chat("14. This is sentence")
    talking.until("the end in sight", lambda: chat_window(talking, "line('w$')") == chat_window(talking, "line('$')"))
    assert talking.compose == "typed meanwhile"
    assert talking.mode() == "i"


def test_who_reads_further_up_is_left_alone(talking: Editor) -> None:
    """Cursor and view stay where they are while text arrives below; `G` follows again."""
    in_chat(talking, "gg")
    talking.until("the top", lambda: chat_window(talking, "line('w0')") == 1)
    before = chat_window(talking, "winsaveview()")
    talking.wait_chat("16. This is sentence")
    assert chat_window(talking, "winsaveview()") == before
    talking.keys("G")
    seen = chat_window(talking, "line('$')")
    talking.until("more at the end", lambda: chat_window(talking, "line('w$')") > seen)


def test_a_selection_is_left_alone(talking: Editor) -> None:
    in_chat(talking, "GV")
    talking.until("visual mode", lambda: talking.mode() == "V")
    at = talking.lua("return { vim.fn.line('v'), vim.fn.line('.') }")
    count = chat_window(talking, "line('$')")
    talking.until("more text", lambda: chat_window(talking, "line('$')") > count + 1)
    assert talking.lua("return { vim.fn.line('v'), vim.fn.line('.') }") == at


def test_undo_registers_and_other_windows_are_untouched(talking: Editor) -> None:
    """Text of an agent is no edit of the person's: there is nothing to undo, and nothing was yanked or deleted."""
    talking.cmd("wincmd t")
    talking.lua("vim.fn.setreg('\"', 'kept') vim.api.nvim_buf_set_lines(0, 0, -1, true, { 'mine', 'two' })")
    talking.lua("vim.api.nvim_win_set_cursor(0, { 2, 1 })")
    talking.wait_chat("18. This is sentence")
    assert talking.call("nvim_get_current_line") == "two"
    assert talking.lua("return vim.api.nvim_win_get_cursor(0)") == [2, 1]
    assert talking.lua("return vim.fn.getreg('\"')") == "kept"
    in_chat(talking, "u")
    assert "18. This is sentence" in talking.chat


def test_a_chat_that_was_changed_by_somebody_else_is_drawn_again(talking: Editor) -> None:
    """A plugin that writes into every buffer must not make a mess of the transcript."""
    talking.lua("""
      local buf = require('agentik').current().bufs.chat
      vim.bo[buf].modifiable = true
      vim.api.nvim_buf_set_lines(buf, 0, 3, true, { 'intruder' })
    """)
    talking.until("the intruder gone", lambda: "intruder" not in talking.chat)
    assert talking.chat.startswith("You")


def test_a_hidden_chat_goes_on(talking: Editor) -> None:
    """B19: hiding is no stopping; what came meanwhile is there."""
    talking.type("afterwards")
    talking.cmd("AgentikToggle")
    assert talking.windows() == [""]
    talking.wait_event("TurnEnded", 2)
    talking.cmd("AgentikToggle")
    talking.wait_screen("Did you know?")
    assert "\nafterwards\n" in talking.chat


# Moving and using what stands there


def test_keys_go_from_message_to_message_and_from_tool_to_tool(toured: Editor) -> None:
    toured.keys("]]")
    toured.until("the first message", lambda: line(toured).startswith(("You", "Demo agent", "This is a tour")))
    toured.keys("gg]t")
    toured.until("the first tool", lambda: line(toured).startswith("Look at project"))
    toured.keys("]t")
    toured.until("the second tool", lambda: line(toured).startswith("Write agentik-demo.txt"))
    toured.keys("[t")
    toured.until("the first tool", lambda: line(toured).startswith("Look at project"))


def test_thoughts_and_finished_tools_are_folded_and_open_with_cr(toured: Editor) -> None:
    toured.lua("vim.fn.search('^Thought')")
    assert toured.lua("return vim.fn.foldclosed('.')") > 0
    toured.keys("<CR>")
    toured.until("an open fold", lambda: toured.lua("return vim.fn.foldclosed('.')") == -1)
    toured.keys("<CR>")
    toured.until("a closed fold", lambda: toured.lua("return vim.fn.foldclosed('.')") > 0)
    toured.keys("zR")
    toured.until("all folds open", lambda: toured.lua("return vim.fn.foldclosed('.')") == -1)


def test_folds_are_there_in_a_window_that_opens_later(toured: Editor) -> None:
    """Neovim keeps manual folds in windows; ours are made again in each."""
    toured.cmd("AgentikToggle")
    toured.cmd("AgentikToggle")
    in_chat(toured, "gg")
    toured.lua("vim.fn.search('^Thought')")
    assert toured.lua("return vim.fn.foldclosed('.')") > 0


def test_gd_goes_to_the_file_in_a_window_of_the_person(toured: Editor) -> None:
    """Never in one of ours."""
    windows = toured.windows()
    toured.lua("vim.fn.search('^Write agentik-demo.txt')")
    toured.keys("jgd")
    toured.until("the file", lambda: toured.lua("return vim.fn.expand('%:t')") == "agentik-demo.txt")
    assert [window for window in toured.windows() if window in {"chat", "compose"}] == ["chat", "compose"]
    assert len(toured.windows()) == len(windows)


def test_files_cannot_be_opened_in_our_windows(toured: Editor) -> None:
    """`winfixbuf`: pickers and `:edit` never put a file where the chat is."""
    toured.lua("pcall(vim.cmd.edit, 'other.txt')")
    assert "chat" in toured.windows()
    assert "other.txt" not in toured.windows()
