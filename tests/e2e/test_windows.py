"""The windows: wherever they stand and whatever closes one of them, the screen stays sane (issue 6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.driving import FAST, SLOW, busy
from tests.e2e.kit import Editor
from tests.e2e.rpc import NvimGone

pytestmark = pytest.mark.xdist_group("e2e-windows")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    """A file at the left, the chat at the right."""
    editor = share_editor(env=FAST)
    editor.cmd("edit file.txt")
    editor.cmd("AgentikToggle")
    return editor


def enter(editor: Editor, part: str) -> None:
    editor.lua("vim.api.nvim_set_current_win(vim.fn.win_findbuf(require('agentik').current().bufs[...])[1])", part)


def heights(editor: Editor) -> dict[str, int]:
    code = """
      local sizes = {}
      for _, win in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
        local part = vim.bo[vim.api.nvim_win_get_buf(win)].filetype:match('^agentik%-(.*)')
        sizes[part or 'file'] = vim.api.nvim_win_get_height(win)
      end
      return sizes
    """
    return dict(editor.lua(code))


@pytest.mark.parametrize("position", ["right", "left", "bottom", "top", "float", "tab"])
def test_the_chat_opens_where_the_person_wants_it(open_editor: Callable[..., Editor], position: str) -> None:
    """Chat above, compose below it, the pending list between them while something waits; hidden, all is as before."""
    editor = open_editor(env=SLOW, options=f"{{ layout = {{ position = '{position}' }} }}")
    editor.cmd("edit file.txt")
    busy(editor, "waits")
    editor.wait_screen("1 waiting")
    editor.wait_screen("Message")
    editor.settle()
    rows = {
        text: row
        for row, line in enumerate(editor.screen.lines)
        for text in ("/long", "1 waiting", "Message")
        if text in line
    }
    assert rows["/long"] < rows["1 waiting"] < rows["Message"]
    editor.cmd("AgentikToggle")
    assert editor.windows() == ["file.txt"]
    assert editor.lua("return #vim.api.nvim_list_tabpages()") == 1


@pytest.mark.parametrize("part", ["chat", "compose"])
def test_q_closes_all_of_ours_and_nothing_else(editor: Editor, part: str) -> None:
    enter(editor, part)
    editor.cmd("quit")
    editor.until("only the file", lambda: editor.windows() == ["file.txt"])


def test_a_file_that_is_forced_into_one_of_our_windows_gets_it(editor: Editor) -> None:
    """`:edit!` overrides `winfixbuf`: the window is the person's then, without our bar, and ours are closed."""
    enter(editor, "compose")
    editor.cmd("edit! forced.txt")
    editor.until("files only", lambda: sorted(editor.windows()) == ["file.txt", "forced.txt"])
    assert editor.lua("return vim.wo.winbar") == ""
    assert editor.lua("return vim.wo.winfixbuf") is False


def test_q_in_our_last_windows_ends_neovim(open_editor: Callable[..., Editor]) -> None:
    """With nothing but the chat on the screen `:q` means what it always means."""
    editor = open_editor(env=FAST)
    editor.cmd("AgentikToggle")
    editor.cmd("wincmd t | quit")
    assert editor.windows() == ["chat", "compose"]
    enter(editor, "compose")
    editor.send("nvim_command", "quit")
    with pytest.raises(NvimGone):
        editor.until("the end", lambda: editor.call("nvim_get_mode") is None)


@pytest.mark.parametrize("part", ["chat", "compose"])
def test_only_in_one_of_our_windows_keeps_both(editor: Editor, part: str) -> None:
    """A chat without a place to write would be of no use."""
    enter(editor, part)
    editor.cmd("only")
    editor.until("chat and compose", lambda: editor.windows() == ["chat", "compose"])


def test_only_in_the_file_closes_ours(editor: Editor) -> None:
    editor.cmd("wincmd t | only")
    editor.until("only the file", lambda: editor.windows() == ["file.txt"])
    editor.cmd("AgentikToggle")
    assert editor.windows() == ["file.txt", "chat", "compose"]


def test_equal_sizes_do_not_flatten_ours(editor: Editor) -> None:
    """`<C-w>=` is for the person's windows."""
    before = heights(editor)
    editor.cmd("wincmd =")
    assert heights(editor)["compose"] == before["compose"]


def test_the_compose_window_grows_with_its_text_and_shrinks_again(editor: Editor) -> None:
    before = heights(editor)
    editor.lua("require('agentik').compose()")
    editor.keys("1<CR>2<CR>3<CR>4<CR>5<CR>6")
    editor.until("growth", lambda: heights(editor)["compose"] == before["compose"] + 3)
    editor.keys("<Esc>ggdG")
    editor.until("the old height", lambda: heights(editor) == before)


def test_a_long_text_leaves_room_for_the_chat(editor: Editor) -> None:
    editor.lua("require('agentik').compose()")
    editor.keys("line<CR>" * 60)
    editor.until("the largest height", lambda: heights(editor)["compose"] >= 12)
    assert heights(editor)["compose"] == 13
    assert heights(editor)["chat"] >= 3


def test_a_deleted_chat_buffer_is_made_again(editor: Editor) -> None:
    """`:bwipeout` of the chat hides it; opened again it is complete."""
    editor.type("hello")
    editor.wait_event("TurnEnded")
    before = editor.chat
    enter(editor, "chat")
    editor.cmd("bwipeout!")
    editor.until("only the file", lambda: editor.windows() == ["file.txt"])
    editor.cmd("AgentikToggle")
    editor.until("the chat", lambda: editor.chat == before)


def test_a_quickfix_entry_opens_beside_our_windows(editor: Editor) -> None:
    (editor.home / "project" / "found.txt").write_text("here\n")
    enter(editor, "compose")
    editor.lua("vim.fn.setqflist({ { filename = 'found.txt', lnum = 1, text = 'x' } })")
    editor.cmd("cfirst")
    assert {"chat", "compose", "found.txt"} <= set(editor.windows())


def test_each_tab_page_may_show_the_chat(editor: Editor) -> None:
    """Sessions are not tied to tab pages: both show the same conversation, closing one leaves the other."""
    editor.cmd("tabnew")
    editor.cmd("AgentikToggle")
    editor.type("hello")
    editor.wait_event("TurnEnded")
    assert editor.windows() == ["", "chat", "compose"]
    editor.cmd("tabclose")
    editor.wait_screen("hello")
    assert editor.windows() == ["file.txt", "chat", "compose"]


def test_another_session_takes_the_windows_and_the_first_goes_on(open_editor: Callable[..., Editor]) -> None:
    """`:AgentikNew`: several at once; each has its own chat, queue and draft."""
    editor = open_editor(env=SLOW)
    busy(editor, "waits in the first")
    editor.lua("require('agentik').compose()")
    editor.keys("draft of the first<Esc>")
    editor.until("the draft", lambda: editor.compose == "draft of the first")
    first = editor.state("session_id")
    editor.cmd("AgentikNew demo")
    editor.until("another session", lambda: editor.state("session_id") not in {None, first})
    assert editor.windows() == ["", "chat", "compose"]
    assert editor.compose == ""
    editor.lua("local c = require('agentik.conversation') require('agentik').show(c.of_session(...))", first)
    assert editor.compose == "draft of the first"
    assert editor.pending == "waits in the first"
    assert "/long" in editor.chat


@pytest.mark.parametrize(("width", "height"), [(60, 20), (40, 12), (200, 50)])
def test_any_size_of_the_screen_will_do(open_editor: Callable[..., Editor], width: int, height: int) -> None:
    """Nothing fails for want of room."""
    editor = open_editor(env=SLOW, width=width, height=height)
    busy(editor, "one", "two")
    editor.call("nvim_ui_try_resize", width - 10, height - 2)
    editor.call("nvim_ui_try_resize", width, height)
    editor.settle()
    assert "Error" not in "\n".join(editor.lua("return require('agentik.hub').logged()"))
    assert {"chat", "compose"} <= set(editor.windows())


def test_a_saved_session_brings_no_dead_windows(editor: Editor) -> None:
    """`:mksession` and back: no window is left that shows a chat without being one."""
    editor.cmd("mksession! Session.vim")
    editor.cmd("silent! %bwipeout!")
    editor.cmd("silent! source Session.vim")
    editor.cmd("AgentikToggle")
    assert editor.windows().count("chat") == 1
