"""The pending list is a buffer that is edited like text (issue 3): each edit reaches the server once, or is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.driving import SLOW, busy, in_pending
from tests.e2e.kit import Editor

pytestmark = pytest.mark.xdist_group("e2e-pending")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    """Three messages wait, the cursor is in the list."""
    editor = share_editor(env=SLOW)
    busy(editor, "one", "two", "three")
    in_pending(editor)
    return editor


def becomes(editor: Editor, *texts: str) -> None:
    """The server has this list, and so has the buffer."""
    editor.until(f"the queue {texts}", lambda: editor.waiting == list(texts))
    editor.until("the list", lambda: editor.pending == "\n".join(texts))


def test_dd_drops_a_message(editor: Editor) -> None:
    editor.keys("jdd")
    becomes(editor, "one", "three")


def test_dd_and_p_move_a_message(editor: Editor) -> None:
    """A move is a move: the same message, with its id, in another place."""
    ids = [item["messageId"] for item in editor.state("pending")["items"]]
    editor.keys("ddp")
    becomes(editor, "two", "one", "three")
    moved = [item["messageId"] for item in editor.state("pending")["items"]]
    assert moved == [ids[1], ids[0], ids[2]]


def test_a_changed_text_edits_the_message_in_its_place(editor: Editor) -> None:
    """B13: id and place stay; the text goes to the server when insert mode is left."""
    ids = [item["messageId"] for item in editor.state("pending")["items"]]
    editor.keys("jA and a half<Esc>")
    becomes(editor, "one", "two and a half", "three")
    assert [item["messageId"] for item in editor.state("pending")["items"]] == ids


def test_a_message_of_several_lines_is_one_message(editor: Editor) -> None:
    """Lines that look like separators or numbers are text."""
    editor.keys("o---<CR>2 not an item<Esc>")
    becomes(editor, "one\n---\n2 not an item", "two", "three")
    editor.keys("gg3ddGp")
    becomes(editor, "two", "three", "one\n---\n2 not an item")


def test_w_applies_everything_at_once(editor: Editor) -> None:
    editor.lua("vim.api.nvim_buf_set_lines(0, 1, 2, true, { 'TWO' })")
    editor.cmd("write")
    becomes(editor, "one", "TWO", "three")
    assert editor.lua("return vim.bo.modified") is False


def test_undo_takes_an_edit_back(editor: Editor) -> None:
    editor.keys("ccchanged<Esc>")
    becomes(editor, "changed", "two", "three")
    editor.keys("u")
    becomes(editor, "one", "two", "three")


def test_a_removal_that_is_undone_in_time_never_happened(editor: Editor) -> None:
    editor.keys("ddu")
    editor.cmd("write")
    becomes(editor, "one", "two", "three")


def test_what_is_removed_cannot_come_back_as_part_of_another(editor: Editor) -> None:
    """`u` after the removal was carried out must not glue the text to the message above."""
    editor.keys("jdd")
    editor.cmd("write")
    becomes(editor, "one", "three")
    editor.keys("u")
    editor.settle()
    becomes(editor, "one", "three")


def test_a_blank_edit_is_refused_and_the_text_stays(editor: Editor) -> None:
    """B13."""
    editor.keys("cc<Esc>")
    editor.wait_screen("not changed")
    becomes(editor, "one", "two", "three")


def test_the_head_is_held_while_the_person_is_in_the_list(editor: Editor) -> None:
    """B16: the turn ends and nothing is drained under the cursor; leaving the list lets it go on."""
    editor.wait_screen("held while you are here")
    editor.cmd("AgentikStop")
    editor.wait_event("TurnEnded")
    editor.cmd("AgentikResume")
    editor.until("no pause", lambda: not editor.state("pending")["paused"])
    assert editor.waiting == ["one", "two", "three"]
    editor.lua("require('agentik').compose()")
    editor.keys("<Esc>")
    editor.wait_chat("\none\n")


def test_an_edit_that_comes_too_late_keeps_the_text(editor: Editor) -> None:
    """B14: the message went out meanwhile (the other editor may do that); the text is in the compose window."""
    editor.keys("A late words")
    editor.until("the edit", lambda: "late" in editor.pending)
    message_id = editor.state("pending")["items"][0]["messageId"]
    send_now = (
        "require('agentik.conversation').call(require('agentik').current(), 'sendPendingNow', { messageId = ... })"
    )
    editor.lua(send_now, message_id)
    editor.wait_chat("\none\n")
    editor.keys("<Esc>")
    editor.wait_screen("too late")
    assert editor.compose == "one late words"
    assert editor.waiting == ["two", "three"]


def test_cr_sends_the_message_under_the_cursor_now(editor: Editor) -> None:
    """`sendPendingNow`: the running turn is stopped, this one goes next, the rest keeps waiting and is not paused."""
    editor.keys("j<CR>")
    editor.wait_chat("\ntwo\n")
    assert "\none\n" not in editor.chat
    assert editor.state("pending")["paused"] is False


def test_a_message_is_taken_back_into_the_compose_window(editor: Editor) -> None:
    editor.keys("jge")
    editor.until("the text", lambda: editor.compose == "two")
    assert editor.waiting == ["one", "three"]


def test_one_key_pauses_and_resumes_and_the_bar_says_why(editor: Editor) -> None:
    """B28."""
    editor.keys("gp")
    editor.wait_screen("paused: by you")
    editor.keys("gp")
    editor.wait_gone("paused")


def test_the_list_can_be_emptied(editor: Editor) -> None:
    """The window goes when the last message is gone, also with the person in it."""
    editor.lua("vim.ui.select = function(items, _, chosen) chosen(items[1], 1) end")
    editor.keys("gX")
    editor.until("an empty queue", lambda: editor.waiting == [])
    editor.keys("q<Esc>")
    editor.until("no pending window", lambda: "pending" not in editor.windows())


def test_another_message_that_arrives_does_not_disturb_the_typing(editor: Editor) -> None:
    """What the person is writing in the list is not replaced; afterwards both are there."""
    editor.keys("A typing")
    editor.until("the edit", lambda: "typing" in editor.pending)
    editor.lua("require('agentik').send('four')")
    editor.until("four in the queue", lambda: "four" in editor.waiting)
    assert editor.pending == "one typing\ntwo\nthree"
    editor.keys(" on<Esc>")
    becomes(editor, "one typing on", "two", "three", "four")


def test_a_plain_wipeout_of_the_buffer_breaks_nothing(editor: Editor) -> None:
    editor.cmd("bwipeout!")
    editor.lua("require('agentik').send('four')")
    editor.until("four in the queue", lambda: "four" in editor.waiting)
    becomes(editor, "one", "two", "three", "four")
