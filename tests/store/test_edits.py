"""Edits of the waiting items: by whoever shares the database, never too late without saying so."""

from __future__ import annotations

import pytest

from agentik_server.domain import saves
from agentik_server.domain.message import Attachment
from agentik_server.domain.pending import Draft, Pause, QueueLimits
from agentik_server.domain.saves import PendingEdit
from tests.store.desk import LIMITS, Desk, denied


@pytest.fixture
def full(desk: Desk) -> Desk:
    """A to e wait."""
    for message_id in "abcde":
        desk.admitted(message_id)
    return desk


def _edit(desk: Desk, message_id: str, text: str, *, limits: QueueLimits = LIMITS) -> saves.Outcome:
    return desk.do(saves.EditPending("s", Draft(message_id, text), True, limits))


def test_an_edit_keeps_id_place_and_time(full: Desk) -> None:  # B13
    before = full.queue().items[2]
    done = full.done(saves.EditPending("s", Draft("c", "new"), True, LIMITS))
    assert done.queue == full.queue()
    after = full.queue().items[2]
    assert (after.message_id, after.position, after.created_at, after.text) == ("c", 2, before.created_at, "new")


@pytest.mark.parametrize(("text", "reason"), [(" ", "emptyText"), ("a\0", "invalidText"), ("x" * 9, "textTooLong")])
def test_an_edit_that_could_not_be_sent_is_refused_and_the_original_stays(  # B13
    full: Desk, text: str, reason: str
) -> None:
    before = full.dump()
    assert denied(_edit(full, "c", text, limits=QueueLimits(max_text_bytes=8))) == reason
    assert full.dump() == before


def test_an_edit_over_the_total_is_refused_but_counts_its_own_old_text_out(full: Desk) -> None:  # B11
    total = sum(len(item.text.encode()) for item in full.queue().items)
    limits = QueueLimits(max_total_bytes=total)
    assert denied(_edit(full, "c", "text of c!", limits=limits)) == "queueTooLarge"
    assert isinstance(_edit(full, "c", "TEXT OF C", limits=limits), saves.Done)


@pytest.mark.parametrize("how", ["edit", "move", "remove", "now"])
@pytest.mark.parametrize(
    ("message_id", "reason"),
    [
        ("claimed", "alreadyDelivered"),
        ("direct", "alreadyDelivered"),
        ("nothing", "unknownMessage"),
        ("gone", "unknownMessage"),
    ],
)
def test_too_late_is_already_delivered_and_never_seen_is_unknown(  # B14
    desk: Desk, how: str, message_id: str, reason: str
) -> None:
    desk.admitted("direct", free=True)
    desk.end("t-direct")
    for waiting in ("claimed", "gone", "rest"):
        desk.admitted(waiting)
    desk.done(saves.RemovePending("s", "gone"))
    desk.claim()
    before = desk.dump()
    write: saves.Write = {
        "edit": saves.EditPending("s", Draft(message_id, "new"), True, LIMITS),
        "move": saves.MovePending("s", message_id, 0),
        "remove": saves.RemovePending("s", message_id),
        "now": saves.SendPendingNow("s", message_id),
    }[how]
    assert denied(desk.do(write)) == reason
    assert desk.dump() == before


@pytest.mark.parametrize(
    ("position", "order"), [(0, "dabce"), (1, "adbce"), (3, "abcde"), (4, "abced"), (99, "abced"), (-5, "dabce")]
)
def test_a_move_is_clamped_and_stable(full: Desk, position: int, order: str) -> None:  # B15
    full.done(saves.MovePending("s", "d", position))
    assert "".join(full.waiting()) == order


def test_a_removed_item_is_not_sent_later(full: Desk) -> None:  # B18
    full.done(saves.RemovePending("s", "a"))
    assert [message.message_id for message in full.claim(take_all=True).messages] == ["b", "c", "d", "e"]


def test_clearing_takes_what_waits_and_leaves_what_runs(full: Desk) -> None:  # B18
    full.claim()
    cleared = full.done(saves.ClearPending("s"))
    assert cleared.queue is not None
    assert cleared.queue.items == ()
    assert full.transcript() == [("a", "complete")]
    assert full.admitted("b").disposition == "removed"
    assert full.admitted("a").disposition == "queued"
    assert full.db.execute("SELECT message_id FROM pending").fetchall() == [("a",)]


def test_removing_the_last_item_of_an_idle_session_ends_the_pause(desk: Desk) -> None:  # B28
    desk.admitted("a")
    desk.done(saves.PauseQueue("s", True))
    desk.done(saves.RemovePending("s", "a"))
    assert desk.queue().pause is None


def test_pausing_an_empty_idle_queue_does_nothing(desk: Desk) -> None:  # B28
    before = desk.dump()
    assert desk.done(saves.PauseQueue("s", True)).queue == desk.queue()
    assert desk.dump() == before


def test_edits_in_one_transaction_apply_but_for_those_that_come_too_late(full: Desk) -> None:  # B14
    full.claim()
    edits = (
        PendingEdit("edit", "a", text="too late"),
        PendingEdit("move", "e", position=0),
        PendingEdit("edit", "b", text="new b"),
        PendingEdit("edit", "c", text=" "),
        PendingEdit("remove", "d"),
        PendingEdit("edit", "d", text="after its end"),
        PendingEdit("move", "zzz", position=1),
    )
    done = full.done(saves.ApplyPendingEdits("s", edits, LIMITS))
    assert done.results == (
        ("a", "alreadyDelivered"),
        ("e", None),
        ("b", None),
        ("c", "emptyText"),
        ("d", None),
        ("d", "unknownMessage"),
        ("zzz", "unknownMessage"),
    )
    assert [(item.message_id, item.text) for item in full.queue().items] == [
        ("e", "text of e"),
        ("b", "new b"),
        ("c", "text of c"),
    ]


def test_edited_and_then_removed_in_one_transaction_is_removed(full: Desk) -> None:
    edits = (PendingEdit("edit", "a", text="new"), PendingEdit("remove", "a"))
    assert full.done(saves.ApplyPendingEdits("s", edits, LIMITS)).results == (("a", None), ("a", None))
    assert full.waiting() == ["b", "c", "d", "e"]


def test_edits_of_which_none_applies_are_no_write(full: Desk) -> None:
    before = full.dump()
    full.done(saves.ApplyPendingEdits("s", (PendingEdit("remove", "zzz"),), LIMITS))
    assert full.dump() == before


def test_a_hold_is_a_time_and_is_taken_back(desk: Desk) -> None:  # B16
    desk.admitted("a")
    held = desk.done(saves.HoldPending("s", 5000, desk.now)).queue
    assert held is not None
    assert held.held_until == 5000
    revision = desk.revision()
    desk.done(saves.HoldPending("s", 5000, desk.now))
    assert desk.revision() == revision
    desk.done(saves.HoldPending("s", 0, desk.now))
    assert desk.queue().held_until == 0


def test_an_edit_replaces_attachments_or_keeps_them(desk: Desk) -> None:  # B51
    one, two = (Attachment(f"/{name}", stored=f"/kept/{name}", size=1) for name in ("one", "two"))
    desk.admitted("a", attachments=(one,))
    desk.done(saves.EditPending("s", Draft("a", "kept"), True, LIMITS))
    assert desk.queue().items[0].attachments == (one,)
    desk.done(saves.EditPending("s", Draft("a", "", (two,)), False, LIMITS))
    assert desk.queue().items[0].attachments == (two,)
    assert desk.db.execute("SELECT stored FROM attachment_uses").fetchall() == [("/kept/two",)]
    assert desk.db.execute("SELECT stored FROM trash").fetchall() == [("/kept/one",)]
    assert denied(desk.do(saves.EditPending("s", Draft("a", " "), False, LIMITS))) == "emptyText"


def test_every_change_gives_the_queue_a_higher_revision(full: Desk) -> None:  # B25
    steps: list[saves.Write] = [
        saves.EditPending("s", Draft("a", "new"), True, LIMITS),
        saves.EditPending("s", Draft("a", "NEW"), True, LIMITS),  # as long as before
        saves.ApplyPendingEdits("s", (PendingEdit("edit", "a", text="wen"),), LIMITS),
        saves.MovePending("s", "a", 2),
        saves.RemovePending("s", "a"),
        saves.PauseQueue("s", True),
        saves.PauseQueue("s", False),
        saves.SendPendingNow("s", "e"),
        saves.HoldPending("s", 99, 1),
        saves.ClearPending("s"),
    ]
    for write in steps:
        before = full.queue().revision
        done = full.done(write)
        assert done.queue is not None
        assert before < done.queue.revision == full.queue().revision == full.page().facts.revision, write


def test_the_session_tells_how_many_wait_and_whether_it_is_paused(full: Desk) -> None:
    full.claim()
    full.done(saves.PauseQueue("s", True))
    facts = full.page().facts
    assert (facts.pending_count, facts.paused) == (4, True)
    assert facts == facts.with_queue(full.queue())
    assert full.queue().pause == Pause("user")
