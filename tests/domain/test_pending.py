"""The rules of the pending queue as a value: a refusal changes nothing, nothing is lost, nothing is doubled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.domain.message import Attachment
from agentik_server.domain.pending import (
    Draft,
    Pause,
    PauseReason,
    PendingItem,
    Queue,
    QueueLimits,
    QueueView,
    Waiting,
    check_draft,
    check_text,
)
from agentik_server.domain.refusal import Refused

LIMITS = QueueLimits()
FILE = Attachment("/x")
BY_ITSELF: tuple[PauseReason, ...] = ("cancel", "start", "auth", "crash", "error", "timeout", "refusal", "restore")


def _queue(names: str = "", **how: object) -> Queue:
    return Queue(tuple(Waiting(name, 10) for name in names), **how)  # type: ignore[arg-type]


def _names(queue: Queue) -> str:
    return "".join(item.message_id for item in queue.waiting)


def _reason(call: object, *arguments: object, **named: object) -> str:
    with pytest.raises(Refused) as caught:
        call(*arguments, **named)  # type: ignore[operator]
    return caught.value.reason


# ------------------------------------------------------------------------------------------- text and limits


@pytest.mark.parametrize(
    "text", ["a", " lead", "CRLF\r\n", "a\u2028b", "e\u0301", "👩\u200d👩\u200d👧", "\x1b[0m", "x" * (1 << 20)]
)
def test_any_text_is_taken_byte_for_byte(text: str) -> None:  # B10
    check_draft(Draft("m", text), LIMITS)


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\u2003"])
def test_blank_is_refused_unless_something_is_attached(text: str) -> None:  # B10
    assert _reason(check_draft, Draft("m", text), LIMITS) == "emptyText"
    check_draft(Draft("m", text, (FILE,)), LIMITS)


def test_the_checks_come_in_order_valid_blank_size_files() -> None:  # B10
    tight = QueueLimits(max_text_bytes=1, max_files=1)
    many = (FILE, FILE)
    assert _reason(check_draft, Draft("m", "\0" * 9, many), tight) == "invalidText"
    assert _reason(check_draft, Draft("m", "\ud800" * 9, many), tight) == "invalidText"
    assert _reason(check_draft, Draft("m", " " * 9), tight) == "emptyText"
    assert _reason(check_draft, Draft("m", " " * 9, many), tight) == "textTooLong"
    assert _reason(check_draft, Draft("m", "x", many), tight) == "tooManyFiles"


def test_sizes_are_bytes_of_utf8() -> None:  # B11
    check_text("é", has_attachment=False, limits=QueueLimits(max_text_bytes=2))
    assert _reason(check_text, "é", has_attachment=False, limits=QueueLimits(max_text_bytes=1)) == "textTooLong"
    queue = _queue().admit(Draft("m", "éé"), QueueLimits(max_total_bytes=4), urgent=False)
    assert queue.waiting[0].text_bytes == 4


def test_a_full_queue_refuses_with_the_reason() -> None:  # B11
    draft = Draft("new", "text")
    assert _reason(_queue("abc").admit, draft, QueueLimits(max_items=3), urgent=False) == "queueFull"
    assert _reason(_queue("abc").admit, draft, QueueLimits(max_total_bytes=33), urgent=False) == "queueTooLarge"
    assert _names(_queue("abc").admit(Draft("d", "text"), QueueLimits(max_total_bytes=34), urgent=False)) == "abcd"


# -------------------------------------------------------------------------------------------- in and around


def test_a_new_message_goes_to_the_tail_and_an_urgent_one_first() -> None:  # B8
    queue = _queue("ab").admit(Draft("c", "x"), LIMITS, urgent=False).admit(Draft("d", "x"), LIMITS, urgent=True)
    assert _names(queue) == "dabc"
    assert [item.urgent for item in queue.waiting] == [True, False, False, False]


@pytest.mark.parametrize("reason", BY_ITSELF)
@pytest.mark.parametrize("urgent", [True, False])
def test_a_send_lifts_a_pause_that_came_by_itself(reason: PauseReason, urgent: bool) -> None:  # B30
    queue = _queue("a", pause=Pause(reason, "why"))
    assert queue.admit(Draft("b", "x"), LIMITS, urgent=urgent).pause is None


def test_a_pause_by_the_user_is_lifted_by_the_user_only() -> None:  # B29 B30
    queue = _queue("a", running=True).paused()
    assert queue.admit(Draft("b", "x"), LIMITS, urgent=True).pause == Pause("user")
    assert queue.paused_by_itself(Pause("crash")).pause == Pause("user")
    assert queue.resumed().pause is None


def test_an_edit_keeps_its_place_and_is_checked_like_a_send() -> None:  # B13
    queue = _queue("abc")
    edited = queue.edited("b", "éé", 0, LIMITS)
    assert (_names(edited), edited.waiting[1].text_bytes) == ("abc", 4)
    assert _reason(queue.edited, "b", " ", 0, LIMITS) == "emptyText"
    assert _names(queue.edited("b", " ", 1, LIMITS)) == "abc"
    assert _reason(queue.edited, "b", "x", 51, LIMITS) == "tooManyFiles"
    assert _reason(queue.edited, "b", "x" * 11, 0, QueueLimits(max_total_bytes=30)) == "queueTooLarge"
    queue.edited("b", "x" * 10, 0, QueueLimits(max_total_bytes=30))


@pytest.mark.parametrize(("position", "order"), [(-9, "bacd"), (0, "bacd"), (1, "abcd"), (2, "acbd"), (9, "acdb")])
def test_a_move_is_clamped_and_stable(position: int, order: str) -> None:  # B15
    assert _names(_queue("abcd").moved("b", position)) == order


@pytest.mark.parametrize("call", ["edited", "moved", "removed", "sent_now"])
def test_an_unknown_item_is_refused(call: str) -> None:  # B15
    arguments = {"edited": ("x", "text", 0, LIMITS), "moved": ("x", 0)}.get(call, ("x",))
    assert _reason(getattr(_queue("abc"), call), *arguments) == "unknownMessage"


def test_sent_now_goes_first_and_the_rest_follows_unpaused() -> None:
    queue = _queue("abc", pause=Pause("user")).sent_now("c")
    assert (_names(queue), queue.pause) == ("cab", None)
    assert [item.urgent for item in queue.waiting] == [True, False, False]


def test_put_back_is_at_the_head_in_order_after_what_is_urgent() -> None:  # B26
    queue = _queue("cd", running=True).admit(Draft("u", "x"), LIMITS, urgent=True)
    back = queue.put_back((Waiting("a", 1), Waiting("b", 1)), Pause("start", "no such command"))
    assert (_names(back), back.pause) == ("uabcd", Pause("start", "no such command"))


# ------------------------------------------------------------------------------------------------- pauses


def test_an_empty_idle_queue_is_never_paused() -> None:  # B28
    assert _queue().paused().pause is None
    assert _queue().paused_by_itself(Pause("crash")).pause is None
    assert _queue(running=True).paused().pause == Pause("user")
    assert _queue("a").paused().pause == Pause("user")


def test_a_pause_ends_when_turn_and_items_are_gone() -> None:  # B28
    assert _queue("a", pause=Pause("user")).removed("a").pause is None
    assert _queue("ab", pause=Pause("user")).cleared().pause is None
    assert _queue("a", pause=Pause("user"), running=True).removed("a").pause == Pause("user")
    assert replace(_queue(pause=Pause("user"), running=True), running=False).settled().pause is None


def test_the_newest_reason_that_came_by_itself_is_shown() -> None:  # B29
    queue = _queue("a").paused_by_itself(Pause("cancel")).paused_by_itself(Pause("crash", "exit 1"))
    assert queue.pause == Pause("crash", "exit 1")
    assert queue.paused_by_itself(None).pause == Pause("crash", "exit 1")


@pytest.mark.parametrize(
    ("view", "drains"),
    [
        (QueueView(), False),
        (QueueView(urgent=True), False),
        (QueueView(items=(PendingItem("a", "s", "x", (), 1, 0),)), True),
        (QueueView(items=(PendingItem("a", "s", "x", (), 1, 0),), pause=Pause("user")), False),
        (QueueView(items=(PendingItem("a", "s", "x", (), 1, 0),), pause=Pause("user"), urgent=True), True),
        (QueueView(items=(PendingItem("a", "s", "x", (), 1, 0),), held_until=101), False),
        (QueueView(items=(PendingItem("a", "s", "x", (), 1, 0),), held_until=100), True),
        (QueueView(items=(PendingItem("a", "s", "x", (), 1, 0),), held_until=101, urgent=True), True),
    ],
)
def test_what_may_drain_at_the_time_100(view: QueueView, drains: bool) -> None:  # B16 B23 B28
    assert view.may_drain(100) is drains


# ---------------------------------------------------------------------------------------- whatever happens

steps = st.lists(
    st.one_of(
        st.tuples(st.just("admit"), st.booleans()),
        st.tuples(st.just("removed"), st.integers(0, 9)),
        st.tuples(st.just("moved"), st.integers(0, 9)),
        st.tuples(st.just("sent_now"), st.integers(0, 9)),
        st.tuples(st.just("claim"), st.integers(1, 3)),
        st.tuples(st.just("put_back"), st.sampled_from(BY_ITSELF)),
        st.tuples(st.just("end"), st.none()),
        st.tuples(st.just("paused"), st.none()),
        st.tuples(st.just("resumed"), st.none()),
    ),
    max_size=60,
)


@given(steps)
def test_no_schedule_loses_or_doubles_a_message_nor_pauses_an_empty_idle_queue(
    schedule: list[tuple[str, object]],
) -> None:
    queue, taken, gone, limits = Queue(), tuple[Waiting, ...](), set[str](), QueueLimits(max_items=5)
    made: set[str] = set()
    for number, (step, argument) in enumerate(schedule):
        name = (
            queue.waiting[int(argument) % len(queue.waiting)].message_id
            if queue.waiting and type(argument) is int
            else ""
        )
        before = queue
        try:
            match step:
                case "admit":
                    queue = queue.admit(Draft(str(number), "text"), limits, urgent=bool(argument))
                    made.add(str(number))
                case "removed":
                    queue = queue.removed(name)
                    gone.add(name)
                case "moved":
                    queue = queue.moved(name, number % 7)
                case "sent_now":
                    queue = queue.sent_now(name)
                case "claim" if not queue.running and queue.waiting:
                    count = int(str(argument))
                    taken, queue = queue.waiting[:count], replace(queue, waiting=queue.waiting[count:], running=True)
                case "put_back" if queue.running:
                    queue = replace(queue, running=False).put_back(taken, Pause(argument))  # type: ignore[arg-type]
                    taken = ()
                case "end" if queue.running:
                    gone.update(item.message_id for item in taken)
                    queue, taken = replace(queue, running=False).settled(), ()
                case "paused":
                    queue = queue.paused()
                case "resumed":
                    queue = queue.resumed()
        except Refused:
            assert queue is before  # a refusal changes nothing
        names = [item.message_id for item in (*taken, *queue.waiting)]
        assert len(names) == len(set(names))
        assert set(names) | gone == made
        assert not set(names) & gone
        if not queue.waiting and not queue.running:
            assert queue.pause is None
