"""What agents write, on a real screen: code, links, escapes, long lines, many requests at once (B10, B46, B48)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.kit import Editor
from tests.e2e.scripted import escaped, options, play, tool

pytestmark = pytest.mark.xdist_group("e2e-content")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    """The agent does what stands in the message; the sessions are its own."""
    editor = share_editor(options=options())
    editor.cmd("AgentikNew scripted")
    editor.until("its session", lambda: (editor.state("session") or {}).get("agentId") == "scripted")
    return editor


def say(text: str) -> str:
    return "#say " + text.replace("\n", "\\n")


def in_chat(editor: Editor, keys: str) -> None:
    editor.lua("vim.api.nvim_set_current_win(vim.fn.win_findbuf(require('agentik').current().bufs.chat)[1])")
    editor.keys("<Esc>" + keys)


def find(editor: Editor, pattern: str) -> None:
    """The cursor of the chat's window stands there."""
    in_chat(editor, "gg")
    editor.until("the place", lambda: editor.lua("return vim.fn.search(..., 'cw')", pattern) > 0)


def groups_at_cursor(editor: Editor) -> list[str]:
    """Highlight groups of the extmarks under the cursor."""
    code = """
      local row, column = unpack(vim.api.nvim_win_get_cursor(0))
      local groups = {}
      for _, mark in ipairs(vim.inspect_pos(0, row - 1, column).extmarks) do
        table.insert(groups, mark.opts.hl_group)
      end
      return groups
    """
    return [str(group) for group in editor.lua(code)]


def test_code_is_coloured_when_its_block_is_finished_and_can_be_yanked(editor: Editor) -> None:
    """By a parser that only looks at the block; languages without one stay plain."""
    play(editor, say("Look:\n```lua\nlocal x = 1\nreturn x\n```\ndone"))
    find(editor, "^local x")
    editor.until("colours", lambda: any(group.startswith("@keyword") for group in groups_at_cursor(editor)))
    editor.keys("gy")
    editor.wait_screen("yanked 2 lines")
    assert editor.lua("return vim.fn.getreg('\"')") == "local x = 1\nreturn x\n"


def test_a_link_is_opened_from_its_text(editor: Editor) -> None:
    play(editor, say("see [the docs](https://example.org/a) or https://example.org/b."))
    editor.lua("vim.ui.open = function(url) _G.opened = url end")
    find(editor, "the docs")
    editor.keys("gx")
    editor.until("the first", lambda: editor.lua("return _G.opened") == "https://example.org/a")
    find(editor, "https://example.org/b")
    editor.keys("gx")
    editor.until("the second", lambda: editor.lua("return _G.opened") == "https://example.org/b")


def test_no_escape_of_a_tool_reaches_the_screen(editor: Editor) -> None:
    """Colours are dropped, what is left of control characters is shown as text."""
    output = "\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\nbell \x07 nul \x00."
    content = [{"type": "content", "content": {"type": "text", "text": output}}]
    play(editor, tool("t", "Run it", kind="execute", status="failed", content=content))
    editor.wait_chat("red ok")
    assert "\x1b" not in editor.chat
    assert "^G" in editor.chat


def test_text_that_looks_like_ours_is_only_text(editor: Editor) -> None:
    """A message that imitates headers, requests and folds is one message; keys go past it in one step."""
    fake = "You  14:02\nfake\n\nAgent asks: Delete all\n1  Allow\n{{{ fold"
    play(editor, say(fake))
    in_chat(editor, "gg]]")
    editor.until("the answer", lambda: editor.call("nvim_get_current_line").startswith("Scripted  "))
    editor.keys("]]")
    editor.settle()
    assert editor.call("nvim_get_current_line").startswith("Scripted  ")
    assert editor.lua("return vim.fn.foldlevel('$')") == 0
    assert editor.state("permissions") == []


def test_a_long_output_shows_its_ends_and_all_of_it_on_demand(editor: Editor) -> None:
    text = "\n".join(f"line {number}" for number in range(200))
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    play(editor, tool("t", "Run the tests", kind="execute", status="failed", content=content))
    editor.wait_chat("more lines")
    assert "\nline 100\n" not in editor.chat
    find(editor, "more lines")
    editor.keys("<CR>")
    editor.until("all of it", lambda: editor.call("nvim_buf_line_count", 0) == 200)
    editor.keys("q")


def test_a_line_of_a_megabyte_is_broken_and_the_editor_stays_quick(editor: Editor) -> None:
    play(editor, "#big 1000000")
    longest = """
      local most = 0
      for _, line in ipairs(vim.api.nvim_buf_get_lines(require('agentik').current().bufs.chat, 0, -1, true)) do
        most = math.max(most, #line)
      end
      return most
    """
    assert editor.lua(longest) <= 8192
    assert len(editor.chat) > 1_000_000


def test_several_requests_at_once_are_answered_one_after_another(editor: Editor) -> None:
    """B48: 1/n each; the keys answer the first, then the next."""
    editor.lua("require('agentik').send('#requests 3')")
    editor.until("three requests", lambda: len(editor.state("permissions")) == 3)
    editor.wait_chat("asks (1/3)")
    editor.wait_chat("asks (3/3)")
    in_chat(editor, "")
    for left in (2, 1, 0):
        editor.keys("1")
        editor.until(f"{left} left", lambda left=left: len(editor.state("permissions")) == left)
    editor.wait_event("TurnEnded")
    assert "asks" not in editor.chat


def test_the_next_request_can_be_answered_first(editor: Editor) -> None:
    editor.lua("require('agentik').send('#requests 2')")
    editor.until("two requests", lambda: len(editor.state("permissions")) == 2)
    second = editor.state("permissions")[1]["permissionId"]
    in_chat(editor, "]p1")
    editor.until("one left", lambda: len(editor.state("permissions")) == 1)
    assert editor.state("permissions")[0]["permissionId"] != second
    editor.keys("1")
    editor.wait_event("TurnEnded")


def test_a_message_with_unknown_outcome_is_sent_again_from_the_chat(editor: Editor) -> None:
    """B43: never by itself."""
    editor.lua("require('agentik').send('#crash')")
    editor.wait_event("TurnEnded")
    editor.wait_chat("the outcome is not known: gr sends it again")
    find(editor, "the outcome is not known")
    editor.keys("gr")
    editor.wait_event("TurnEnded", 2)


def test_an_unknown_kind_of_update_is_a_notice(editor: Editor) -> None:
    """B46."""
    play(editor, "#update " + escaped({"sessionUpdate": "weather", "sky": "blue"}), say("after"))
    editor.wait_chat("weather")


def test_thoughts_and_answers_in_turn_keep_their_order(editor: Editor) -> None:
    play(editor, "#think one", say("two"), "#think three", say("four"))
    editor.until("folded thoughts", lambda: editor.chat.count("Thought") == 2)
    chat = editor.chat
    assert chat.index("one") < chat.index("two") < chat.index("three") < chat.index("four")


def test_what_was_sent_comes_back_with_the_history(editor: Editor) -> None:
    """Older texts replace the draft and bring it back at the end."""
    play(editor, "first text")
    play(editor, "second text", turn=2)
    editor.lua("require('agentik').compose()")
    editor.keys("draft<M-p>")
    editor.until("the last", lambda: editor.compose == "second text")
    editor.keys("<M-p>")
    editor.until("the one before", lambda: editor.compose == "first text")
    editor.keys("<M-n><M-n>")
    editor.until("the draft", lambda: editor.compose == "draft")


def test_the_text_arrives_byte_for_byte(editor: Editor) -> None:
    """B10: leading blanks, emoji, combining marks, U+2028 and a line that ends in blanks."""
    text = "  leading\n\temoji 👍🏽 e\u0301 \u2028 end  \n\nlast"
    play(editor, text)
    editor.until("the echo", lambda: editor.chat.count("emoji 👍🏽 e\u0301 \u2028 end  ") == 2)
