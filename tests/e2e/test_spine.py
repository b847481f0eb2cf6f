"""The main job in a real Neovim: a message, an answer, a second message that waits for its turn (seed 000)."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

import pytest

from tests.e2e.driving import FAST, SLOW, busy
from tests.e2e.kit import Editor, descendants, is_alive

pytestmark = pytest.mark.xdist_group("e2e-spine")


@pytest.fixture
def fast(share_editor: Callable[..., Editor]) -> Editor:
    """The demo agent talks at once."""
    return share_editor(env=FAST)


@pytest.fixture
def slow(share_editor: Callable[..., Editor]) -> Editor:
    """The demo agent talks for as long as a test needs."""
    return share_editor(env=SLOW)


def names(editor: Editor) -> list[str]:
    return [name for name, _ in editor.events]


def test_a_free_session_answers_at_once(fast: Editor) -> None:
    """Scenario 1 of seed 000 (B1, B2): the message is drawn when it is received, then the answer streams."""
    fast.cmd("AgentikToggle")
    fast.type("hello")
    fast.wait_event("TurnEnded")
    assert "MessageQueued" not in names(fast)
    order = [names(fast).index(name) for name in ("MessageReceived", "TurnStarted", "TurnEnded")]
    assert order == sorted(order)
    assert "hello" in fast.chat
    assert fast.compose == ""


def test_a_busy_session_queues_and_drains_in_order(open_editor: Callable[..., Editor]) -> None:
    """Scenario 2 of seed 000 (B2, B8, B17, B21, B25): what waits is in the pending list, then in the chat."""
    editor = open_editor(env={"AGENTIK_DEMO_RATE": "400"})
    busy(editor, "second", "third")
    assert editor.pending == "second\nthird"
    editor.wait_screen("2 waiting")
    editor.wait_event("TurnEnded", 3)
    editor.until("an empty list", lambda: editor.waiting == [])
    chat = editor.chat
    assert chat.index("/long") < chat.index("That was all") < chat.index("\nsecond\n") < chat.index("\nthird\n")
    assert chat.count("\nsecond\n") == chat.count("\nthird\n") == 1
    editor.wait_gone("waiting")
    received = [params["messageId"] for params in editor.all_events("MessageReceived")]
    assert len(received) == len(set(received)) == 3


def test_a_selection_travels_with_path_and_lines(fast: Editor) -> None:
    """`:'<,'>AgentikSend text`: the selected lines are an attachment of the message."""
    path = fast.home / "project" / "a b.py"
    path.write_text("one\ntwo\nthree\nfour\n")
    fast.cmd(f"edit {path.as_posix().replace(' ', chr(92) + ' ')}")
    fast.cmd("2,3AgentikSend what is this")
    fast.wait_event("TurnEnded")
    assert "what is this\na b.py:2-3" in fast.chat
    assert "attached: " in fast.chat
    assert "2 lines of text" in fast.chat


def test_stopping_keeps_the_answer_and_pauses_the_queue(slow: Editor) -> None:
    """B32, B33, B36, B29: the partial answer is marked, what waits is kept and the list says why it waits."""
    busy(slow, "later")
    slow.wait_chat("I will talk")
    slow.cmd("AgentikStop")
    assert slow.wait_event("TurnEnded")["stopReason"] == "cancelled"
    slow.wait_chat("interrupted")
    slow.wait_screen("paused: stopped")
    assert slow.waiting == ["later"]
    slow.cmd("AgentikResume")
    slow.wait_chat("\nlater\n")


def test_a_steered_message_goes_first_and_the_rest_follows(slow: Editor) -> None:
    """`:AgentikSend!`: the turn is stopped, this message is next, the queue is kept and not paused."""
    busy(slow, "queued before")
    slow.type("steer", send="<M-CR>")
    slow.wait_event("TurnEnded", 3)
    chat = slow.chat
    assert chat.index("\nsteer\n") < chat.index("\nqueued before\n")


def test_text_that_is_refused_stays(open_editor: Callable[..., Editor]) -> None:
    """B1, B11: the queue is full; the reason is shown, and the text is still in the compose window."""
    editor = open_editor(env=SLOW, options="{ settings = { queue = { maxItems = 1 } } }")
    busy(editor, "fits")
    editor.type("one too many")
    editor.wait_screen("not sent")
    editor.until("the text", lambda: editor.compose == "one too many")
    assert editor.waiting == ["fits"]


def test_text_typed_before_the_server_is_there_is_sent_once(fast: Editor) -> None:
    """B60: the first keys of a person are not lost while host and server start."""
    fast.lua("require('agentik').compose()")
    fast.keys("first<C-s>second<C-s><Esc>")
    fast.wait_event("TurnEnded", 2)
    assert fast.chat.count("\nfirst\n") == 1
    assert fast.chat.count("\nsecond\n") == 1
    assert fast.compose == ""


def test_the_session_of_the_folder_is_there_again(open_editor: Callable[..., Editor]) -> None:
    """B52, B20: chat, waiting messages and draft of the last session are drawn from the store."""
    editor = open_editor(env=SLOW)
    busy(editor, "waits over the restart")
    editor.lua("require('agentik').compose()")
    editor.keys("a draft<Esc>")
    editor.until("the draft", lambda: editor.compose == "a draft")
    editor.close()
    again = open_editor(env=SLOW)
    again.cmd("AgentikToggle")
    again.wait_chat("/long")
    again.until("the queue", lambda: again.waiting == ["waits over the restart"])
    again.wait_screen("paused: restarted")
    assert again.compose == "a draft"


def test_a_killed_server_is_replaced_and_nothing_is_lost(open_editor: Callable[..., Editor]) -> None:
    """B60, B5: the open turn is interrupted, what waited waits, and the next message is answered."""
    slow = open_editor(env={"AGENTIK_DEMO_RATE": "100"})
    busy(slow, "waits")
    slow.wait_chat("6. This is sentence")  # text is saved four times a second
    first = slow.server_pid()
    os.kill(first, signal.SIGKILL)
    slow.wait_event("Ready", 2)
    slow.wait_chat("interrupted")
    slow.wait_chat("sent, but the outcome is not known")
    assert "I will talk for about a minute." in slow.chat
    slow.until("the queue", lambda: slow.waiting == ["waits"])
    assert slow.server_pid() != first
    slow.type("/help", send="<C-s>")
    slow.wait_chat("These are my commands")
    assert slow.chat.count("\n/long\n") == 1


def test_a_killed_host_is_replaced_and_the_chat_is_as_it_was(fast: Editor) -> None:
    """B60: the host is started again by itself, takes the session up again, and what is sent then arrives once."""
    fast.type("hello")
    fast.wait_event("TurnEnded")
    before = fast.chat
    os.kill(fast.host_pid(), signal.SIGKILL)
    fast.type("after")
    fast.wait_event("TurnEnded", 2)
    assert fast.chat.startswith(before)
    assert fast.chat.count("\nafter\n") == 1


@pytest.mark.parametrize("end", ["qa!", "kill"])
def test_nothing_is_left_when_neovim_is_gone(open_editor: Callable[..., Editor], end: str) -> None:
    """B47, B60, B61: host, server and agent end with Neovim, in the middle of a turn, also after kill -9."""
    editor = open_editor(env=SLOW)
    busy(editor)
    pids = [editor.host_pid(), editor.server_pid(), *descendants(editor.server_pid())]
    assert len(pids) >= 3
    assert all(is_alive(pid) for pid in pids)
    if end == "kill":
        os.kill(editor.pid, signal.SIGKILL)
    editor.close()
    for pid in pids:
        _wait_dead(pid)


def _wait_dead(pid: int) -> None:
    """Ends when the process is gone; by its handle, not by looking again and again."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 10)[0] or not is_alive(pid), f"process {pid} is still there"
    finally:
        os.close(handle)


def test_the_next_text_never_mixes_with_the_one_on_its_way(fast: Editor) -> None:
    """B1: sent in normal mode and written on at once, long before the server has answered: two messages, as written."""
    fast.lua("require('agentik').compose()")
    fast.keys("first<Esc><CR>isecond<Esc><CR>ithird")
    fast.wait_event("TurnEnded", 2)
    assert fast.chat.count("\nfirst\n") == 1
    assert fast.chat.count("\nsecond\n") == 1
    assert fast.compose == "third"


def outcome(editor: Editor, name: str) -> bool:
    """Both messages are answered, or the second says that the person may send it again."""
    return editor.chat.count("It begins with:") == 2 if name == "answered" else name in editor.screen.text


@pytest.mark.parametrize("server", [signal.SIGKILL, signal.SIGCONT])
def test_a_message_on_its_way_when_neovim_is_killed_arrives_once(
    open_editor: Callable[..., Editor], server: signal.Signals
) -> None:
    """B4, B60: whether the server had it or not; what was written after it is still the draft."""
    editor = open_editor(env=FAST)
    editor.type("before")
    editor.wait_event("TurnEnded")
    pid = editor.server_pid()
    os.kill(pid, signal.SIGSTOP)
    editor.type("precious")
    editor.keys("idraft<Esc>")
    drafts = editor.home / "state" / "nvim" / "agentik" / "drafts"
    editor.until("a draft on disk", lambda: '"draft"' in "".join(path.read_text() for path in drafts.glob("*.json")))
    os.kill(editor.pid, signal.SIGKILL)
    editor.close()
    os.kill(pid, server)
    again = open_editor(env=FAST)
    again.cmd("AgentikToggle")
    again.wait_chat("\nprecious\n")
    # A server that goes on may take the message and then end with its editor: the outcome is unknown (B43).
    outcomes = ("answered", "sends it again") if server is signal.SIGCONT else ("answered",)
    again.until("an outcome", lambda: any(outcome(again, each) for each in outcomes))
    assert again.chat.count("\nprecious\n") == 1
    assert again.compose == "draft"
    assert again.waiting == []
