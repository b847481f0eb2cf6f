"""A send enters: straight into the run, into the queue, or refused; each id once."""

from __future__ import annotations

import pytest

from agentik_server.domain import saves
from agentik_server.domain.pending import Pause, QueueLimits
from agentik_server.domain.saves import Owner
from tests.store.desk import LIMITS, ME, Desk, denied

DISABLED = QueueLimits(enabled=False)


def test_free_and_nothing_waiting_goes_straight_into_the_run_never_into_pending(desk: Desk) -> None:  # B2
    admitted = desk.admitted("a", free=True)
    assert admitted.disposition == "started"
    assert [message.message_id for message in admitted.messages] == ["a"]
    assert desk.db.execute("SELECT count(*) FROM pending").fetchone() == (0,)
    assert desk.transcript() == [("a", "complete")]


def test_busy_goes_into_pending_never_straight_into_the_run(desk: Desk) -> None:  # B2
    admitted = desk.admitted("a")
    assert (admitted.disposition, admitted.messages) == ("queued", ())
    assert desk.waiting() == ["a"]
    assert desk.transcript() == []


def test_a_direct_message_is_in_flight_and_not_drained(desk: Desk) -> None:  # B6
    desk.admitted("a", free=True)
    assert desk.page().turn == saves.TurnFacts("t-a", "a", written=False)
    assert desk.queue().items == ()


def test_a_new_message_never_overtakes_older_ones(desk: Desk) -> None:  # B8
    desk.admitted("a")
    assert desk.admitted("b", free=True).disposition == "queued"
    assert desk.waiting() == ["a", "b"]


def test_with_the_queue_disabled_a_busy_session_refuses(desk: Desk) -> None:  # B8
    before = desk.dump()
    assert denied(desk.send("a", limits=DISABLED)) == "sessionBusy"
    assert desk.dump() == before


def test_with_the_queue_disabled_a_free_session_starts_even_with_older_ones_waiting(desk: Desk) -> None:  # B8
    desk.admitted("a")
    assert desk.admitted("b", free=True, limits=DISABLED).disposition == "started"


def test_who_does_not_own_always_queues_and_with_the_queue_disabled_is_refused(desk: Desk) -> None:  # B2
    assert desk.admitted("a", owner=None).disposition == "queued"
    assert denied(desk.send("b", owner=None, limits=DISABLED)) == "notOwner"


def test_the_same_id_and_text_again_starts_nothing_and_returns_the_first_outcome(desk: Desk) -> None:  # B4
    desk.admitted("a", free=True)
    desk.admitted("b")
    before = desk.dump()
    again = [desk.admitted("a"), desk.admitted("b", free=True)]
    assert [(one.disposition, one.repeated, one.messages) for one in again] == [
        ("started", True, ()),
        ("queued", True, ()),
    ]
    assert desk.dump() == before


def test_the_same_id_answers_removed_after_the_user_removed_it(desk: Desk) -> None:  # B4
    desk.admitted("a")
    desk.done(saves.RemovePending("s", "a"))
    again = desk.admitted("a")
    assert (again.disposition, again.repeated) == ("removed", True)
    assert desk.waiting() == []


def test_later_edits_do_not_count_for_the_same_id(desk: Desk) -> None:  # B4
    desk.admitted("a", "first")
    desk.done(saves.EditPending("s", saves.Draft("a", "second"), True, LIMITS))
    assert desk.admitted("a", "first").repeated
    assert denied(desk.send("a", "second")) == "duplicateId"


@pytest.mark.parametrize("session_id", ["s", "other"])
def test_an_id_is_one_message_over_the_whole_database(desk: Desk, session_id: str) -> None:  # B4
    desk.session("other")
    desk.admitted("a", "one")
    before = desk.dump()
    assert denied(desk.send("a", "two", session_id=session_id)) == "duplicateId"
    again = desk.send("a", "one", session_id=session_id)
    assert isinstance(again, saves.Admitted)
    assert (again.disposition, again.repeated) == ("queued", True)
    assert desk.dump() == before


def test_an_id_is_known_even_after_its_session_is_deleted(desk: Desk) -> None:  # B4
    desk.admitted("a", free=True)
    desk.admitted("b")
    desk.done(saves.DeleteSession("s", ME))
    assert desk.admitted("a", owner=None).disposition == "started"
    assert desk.admitted("b", owner=None).disposition == "removed"


def test_an_id_of_the_agents_own_message_is_refused(desk: Desk) -> None:  # B4
    desk.save(desk.message("a"))
    assert denied(desk.send("a")) == "duplicateId"


@pytest.mark.parametrize(
    ("text", "limits", "reason"),
    [
        ("nul\0", LIMITS, "invalidText"),
        ("half \ud800", LIMITS, "invalidText"),
        (" \n\t", LIMITS, "emptyText"),
        ("five!", QueueLimits(max_text_bytes=4), "textTooLong"),
        ("ok", QueueLimits(max_items=1), "queueFull"),
        ("ok", QueueLimits(max_total_bytes=10), "queueTooLarge"),
    ],
)
def test_over_a_limit_refused_with_the_reason_and_nothing_changed(  # B10 B11
    desk: Desk, text: str, limits: QueueLimits, reason: str
) -> None:
    desk.admitted("first", "0123456789")
    before = desk.dump()
    assert denied(desk.send("a", text, limits=limits)) == reason
    assert desk.dump() == before
    assert desk.admitted("a", "now it is fine").disposition == "queued"  # the id was not used up


def test_text_is_kept_byte_for_byte(desk: Desk) -> None:  # B10
    text = "  lead\r\n\ttab \u2028 e\u0301 👩\u200d👩\u200d👧 \x1b[0m\n" + "x" * 1_000_000
    desk.admitted("a", text)
    assert desk.queue().items[0].text == text
    assert desk.claim().messages[0].text == text


def test_order_is_a_position_not_a_clock(desk: Desk) -> None:  # B12
    for message_id, now in (("a", 500), ("b", 500), ("c", 1)):
        desk.now = now
        desk.admitted(message_id)
    assert desk.waiting() == ["a", "b", "c"]
    assert [item.position for item in desk.queue().items] == [0, 1, 2]


def test_a_new_send_lifts_a_pause_that_came_by_itself(desk: Desk) -> None:  # B30
    desk.admitted("a", free=True)
    desk.admitted("b")
    desk.end("t-a", pause=Pause("crash", "exit code 1"))
    assert desk.queue().pause == Pause("crash", "exit code 1")
    admitted = desk.admitted("c", free=True)
    assert (admitted.disposition, admitted.queue.pause) == ("queued", None)
    assert desk.waiting() == ["b", "c"]


def test_a_pause_by_the_user_stays_and_the_new_message_joins(desk: Desk) -> None:  # B30
    desk.admitted("a")
    desk.done(saves.PauseQueue("s", True))
    assert desk.admitted("b", free=True).queue.pause == Pause("user")
    assert desk.claim().messages == ()


def test_now_puts_the_message_first_and_it_goes_whatever_the_pause_says(desk: Desk) -> None:
    desk.admitted("a")
    desk.done(saves.PauseQueue("s", True))
    admitted = desk.admitted("b", urgent=True)
    assert [item.message_id for item in admitted.queue.items] == ["b", "a"]
    assert admitted.queue.urgent
    assert [message.message_id for message in desk.claim(take_all=True).messages] == ["b"]
    assert (desk.waiting(), desk.queue().urgent) == (["a"], False)


def test_unknown_session_and_foreign_owner_change_nothing(desk: Desk) -> None:  # B59
    before = desk.dump()
    assert denied(desk.send("a", session_id="nowhere")) == "unknownSession"
    assert desk.send("a", owner=Owner("me", 2)) == saves.Fenced()
    assert desk.send("a", owner=Owner("you", 1)) == saves.Fenced()
    assert desk.dump() == before


def test_a_turn_whose_end_was_lost_is_closed_before_the_next_begins(desk: Desk) -> None:  # B3
    desk.admitted("a", free=True)
    desk.journal("t-a")
    admitted = desk.admitted("b", free=True)
    assert admitted.disposition == "started"
    assert desk.transcript() == [("a", "unknown"), ("b", "complete")]


def _unknown(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.journal("t-a")
    desk.end("t-a", desk.message("answer"), status="unknown", reason="crashed")


def _resend(desk: Desk, *, free: bool, limits: QueueLimits = LIMITS, message_id: str = "a") -> saves.Outcome:
    desk.seq += 1
    return desk.do(saves.Resend("s", ME, message_id, free, "t-again", desk.seq, limits, desk.now))


def test_a_message_of_unknown_outcome_goes_again_under_its_own_id_at_a_new_place(desk: Desk) -> None:  # B43
    _unknown(desk)
    outcome = _resend(desk, free=True)
    assert isinstance(outcome, saves.Admitted)
    assert (outcome.disposition, outcome.repeated) == ("started", False)
    assert [(one.message_id, one.seq, one.status) for one in outcome.messages] == [("a", 3, "complete")]
    assert [(one.message_id, one.deleted) for one in outcome.gone] == [("a", True)]
    assert outcome.kept is not None
    assert (outcome.kept.seq, outcome.kept.status, outcome.kept.text) == (1, "unknown", "text of a")
    assert desk.transcript() == [("a@1", "unknown"), ("answer", "complete"), ("a", "complete")]
    assert outcome.gone[0].revision < outcome.kept.revision < outcome.messages[0].revision


def test_a_resent_message_waits_where_the_session_is_busy(desk: Desk) -> None:  # B43
    _unknown(desk)
    desk.admitted("b", free=True)
    outcome = _resend(desk, free=False)
    assert isinstance(outcome, saves.Admitted)
    assert (outcome.disposition, outcome.messages) == ("queued", ())
    assert desk.waiting() == ["a"]
    assert desk.transcript() == [("a@1", "unknown"), ("answer", "complete"), ("b", "complete")]
    again = _resend(desk, free=False)
    assert isinstance(again, saves.Admitted)
    assert (again.disposition, again.repeated) == ("queued", True)
    assert desk.waiting() == ["a"]


def test_a_resent_message_can_be_resent_again_with_both_old_places_kept(desk: Desk) -> None:  # B43
    _unknown(desk)
    _resend(desk, free=True)
    desk.journal("t-again")
    desk.end("t-again", status="interrupted")
    desk.seq += 1
    desk.do(saves.Resend("s", ME, "a", True, "t-third", desk.seq, LIMITS, desk.now))
    assert desk.transcript() == [
        ("a@1", "unknown"),
        ("answer", "complete"),
        ("a@3", "interrupted"),
        ("a", "complete"),
    ]


def test_what_was_answered_runs_or_never_was_is_not_resent(desk: Desk) -> None:  # B43
    desk.admitted("a", free=True)
    running = _resend(desk, free=False)
    assert isinstance(running, saves.Admitted)
    assert (running.disposition, running.repeated) == ("started", True)
    desk.end("t-a", desk.message("answer"))
    before = desk.dump()
    assert denied(_resend(desk, free=True)) == "alreadyDelivered"
    assert denied(_resend(desk, free=True, message_id="nothing")) == "unknownMessage"
    assert denied(_resend(desk, free=True, message_id="answer")) == "unknownMessage"
    assert desk.dump() == before


def test_a_refused_resend_leaves_the_message_in_its_place(desk: Desk) -> None:  # B11
    _unknown(desk)
    desk.admitted("b")
    before = desk.dump()
    assert denied(_resend(desk, free=False, limits=QueueLimits(max_items=1))) == "queueFull"
    assert denied(_resend(desk, free=False, limits=DISABLED)) == "sessionBusy"
    assert desk.dump() == before
