"""Claim, journal, put back, end: a row is finished only when the agent has answered."""

from __future__ import annotations

from agentik_server.domain import saves
from agentik_server.domain.message import ToolCall
from agentik_server.domain.pending import Pause
from agentik_server.domain.saves import Owner
from tests.store.desk import ME, Desk, denied


def _ids(claimed: saves.Claimed) -> list[str]:
    return [message.message_id for message in claimed.messages]


def test_the_head_is_claimed_and_only_the_head(desk: Desk) -> None:  # B17
    for message_id in "abc":
        desk.admitted(message_id)
    claimed = desk.claim()
    assert _ids(claimed) == ["a"]
    assert desk.waiting() == ["b", "c"]
    assert [item.position for item in claimed.queue.items] == [0, 1]


def test_all_are_claimed_in_order_with_consecutive_places(desk: Desk) -> None:  # B17
    for message_id in "abc":
        desk.admitted(message_id)
    claimed = desk.claim(take_all=True)
    assert [(message.message_id, message.seq) for message in claimed.messages] == [("a", 4), ("b", 5), ("c", 6)]
    assert desk.page().turn == saves.TurnFacts("t", "a", written=False)


def test_nothing_waiting_is_no_write(desk: Desk) -> None:  # B23
    before = desk.dump()
    assert desk.claim().messages == ()
    assert desk.dump() == before


def test_the_claim_sees_the_pause_and_the_hold_of_any_process(desk: Desk) -> None:  # B16 B28
    desk.admitted("a")
    desk.done(saves.PauseQueue("s", True))
    assert _ids(desk.claim()) == []
    desk.done(saves.PauseQueue("s", False))
    desk.done(saves.HoldPending("s", desk.now + 1000, desk.now))
    assert _ids(desk.claim()) == []
    desk.now += 1000
    assert _ids(desk.claim()) == ["a"]


def test_send_now_goes_next_whatever_holds_and_the_rest_follows_unpaused(desk: Desk) -> None:
    for message_id in "abc":
        desk.admitted(message_id)
    desk.done(saves.PauseQueue("s", True))
    desk.done(saves.HoldPending("s", desk.now + 1000, desk.now))
    view = desk.done(saves.SendPendingNow("s", "c")).queue
    assert view is not None
    assert ([item.message_id for item in view.items], view.urgent, view.pause) == (["c", "a", "b"], True, None)
    assert _ids(desk.claim(take_all=True)) == ["c"]
    desk.end("t")
    assert _ids(desk.claim("t2")) == []  # still held
    desk.now += 1000
    assert _ids(desk.claim("t2", take_all=True)) == ["a", "b"]


def test_a_claim_is_fenced(desk: Desk) -> None:  # B59
    desk.admitted("a")
    before = desk.dump()
    assert desk.do(saves.Claim("s", Owner("me", 0), "t", 2, False, desk.now)) == saves.Fenced()
    assert desk.dump() == before


def test_claimed_rows_are_kept_until_the_turn_has_ended(desk: Desk) -> None:  # B26
    desk.admitted("a")
    desk.claim()
    assert desk.db.execute("SELECT message_id, state, turn_id FROM pending").fetchall() == [("a", "claimed", "t")]
    desk.journal("t")
    desk.end("t")
    assert desk.db.execute("SELECT count(*) FROM pending").fetchone() == (0,)
    assert desk.transcript() == [("a", "complete")]


def test_the_journal_says_that_the_prompt_may_be_out(desk: Desk) -> None:  # B6
    desk.admitted("a", free=True)
    desk.journal("t-a")
    assert desk.page().turn == saves.TurnFacts("t-a", "a", written=True)


def test_a_turn_that_is_not_open_is_not_journaled(desk: Desk) -> None:  # B43
    assert denied(desk.do(saves.Journal("s", ME, "t"))) == "alreadyDelivered"
    desk.admitted("a", free=True)
    desk.end("t-a")
    assert denied(desk.do(saves.Journal("s", ME, "t-a"))) == "alreadyDelivered"


def test_put_back_waits_again_at_the_head_under_the_same_id_and_the_queue_pauses(desk: Desk) -> None:  # B26
    for message_id in "abc":
        desk.admitted(message_id)
    received = desk.claim(take_all=False).messages[0]
    gone = desk.put_back("t", Pause("start", "not found"))
    assert [(one.message_id, one.deleted, one.text) for one in gone.messages] == [("a", True, "")]
    assert gone.queue is not None
    assert [item.message_id for item in gone.queue.items] == ["a", "b", "c"]
    assert gone.queue.items[0].text == "text of a"
    assert gone.queue.pause == Pause("start", "not found")
    assert gone.queue.revision > gone.messages[0].revision > received.revision  # B25
    assert desk.transcript() == []
    assert desk.page().turn is None  # the turn never was


def test_a_direct_message_put_back_becomes_a_waiting_one_at_the_head(desk: Desk) -> None:  # B26
    desk.admitted("a", free=True)
    desk.admitted("b")
    desk.put_back("t-a", Pause("auth"))
    assert desk.waiting() == ["a", "b"]
    assert desk.queue().items[0].text == "text of a"


def test_several_put_back_keep_their_order(desk: Desk) -> None:  # B26
    for message_id in "abcd":
        desk.admitted(message_id)
    desk.done(saves.MovePending("s", "c", 0))
    desk.claim(take_all=True)
    desk.admitted("e")
    desk.put_back("t")
    assert desk.waiting() == ["c", "a", "b", "d", "e"]


def test_only_what_is_urgent_goes_before_what_is_put_back(desk: Desk) -> None:
    desk.admitted("a")
    desk.claim()
    desk.admitted("b")
    desk.admitted("now", urgent=True)
    desk.put_back("t")
    assert desk.waiting() == ["now", "a", "b"]


def test_what_is_put_back_waits_although_it_had_been_urgent(desk: Desk) -> None:  # B26
    desk.admitted("a", urgent=True)
    desk.claim()
    desk.put_back("t", Pause("start"))
    assert (desk.queue().urgent, desk.claim("t2").messages) == (False, ())


def test_a_message_that_is_received_again_gets_a_new_place_in_the_transcript(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.save(desk.message("remark", kind="notice"))
    desk.put_back("t-a")
    again = desk.claim("t2").messages[0]
    assert (again.message_id, again.seq, again.deleted, again.text) == ("a", 3, False, "text of a")
    assert desk.transcript() == [("remark", "complete"), ("a", "complete")]
    assert again.revision > desk.revision() - 2


def test_put_back_twice_or_after_the_end_changes_nothing(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.put_back("t-a", Pause("start"))
    before = desk.dump()
    assert desk.put_back("t-a", Pause("start")).messages == ()
    assert desk.dump() == before
    desk.claim("t2")
    desk.end("t2")
    before = desk.dump()
    assert desk.put_back("t2").messages == ()
    assert desk.dump() == before


def test_the_end_saves_the_answer_the_outcome_and_the_pause_at_once(desk: Desk) -> None:  # B29 B36
    desk.admitted("a", free=True)
    desk.admitted("b")
    partial = desk.message("answer", "half an ans", status="interrupted", turn_id="t-a")
    ended = desk.end("t-a", partial, status="interrupted", reason="cancelled", pause=Pause("cancel"))
    assert [(one.message_id, one.status) for one in ended.messages] == [("answer", "interrupted"), ("a", "interrupted")]
    assert ended.queue is not None
    assert ended.queue.pause == Pause("cancel")
    assert desk.transcript() == [("a", "interrupted"), ("answer", "interrupted")]
    assert desk.page().turn == saves.TurnFacts("t-a", "a", written=False, stop_reason="cancelled")


def test_the_error_of_a_turn_is_kept(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.done(saves.EndTurn("s", ME, "t-a", "error", "failed", (), None, desk.now, "model overloaded"))
    turn = desk.page().turn
    assert turn is not None
    assert (turn.stop_reason, turn.error) == ("error", "model overloaded")


def test_an_end_that_comes_twice_ends_once(desk: Desk) -> None:  # B35
    desk.admitted("a", free=True)
    desk.end("t-a", status="complete")
    before = desk.dump()
    assert desk.end("t-a", status="unknown", pause=Pause("crash")).messages == ()
    assert desk.dump() == before


def test_a_pause_ends_when_neither_a_turn_nor_an_item_is_left(desk: Desk) -> None:  # B28
    desk.admitted("a", free=True)
    assert desk.done(saves.PauseQueue("s", True)).queue == desk.queue()
    assert desk.queue().pause == Pause("user")
    desk.end("t-a")
    assert desk.queue().pause is None
    assert desk.page().facts.paused is False


def test_a_normal_end_does_not_pause_and_no_queue_no_pause(desk: Desk) -> None:  # B29
    desk.admitted("a", free=True)
    desk.admitted("b")
    desk.end("t-a")
    assert desk.queue().pause is None
    desk.claim()
    desk.end("t", pause=Pause("crash"))
    assert desk.queue().pause is None  # nothing waits


def test_end_of_a_turn_with_open_tool_calls_keeps_them_as_given(desk: Desk) -> None:
    desk.admitted("a", free=True)
    tool = desk.message("tool", "", kind="tool", tool=ToolCall("c1", "edit", status="cancelled"))
    desk.end("t-a", tool)
    assert desk.page().messages[1].tool == ToolCall("c1", "edit", status="cancelled")


def _steps(desk: Desk, message_id: str) -> int:
    """How many steps of SQLite's machine a send, its claim, journal and end take."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    desk.db.set_progress_handler(step, 10)
    desk.admitted(message_id)
    desk.claim(message_id)
    desk.journal(message_id)
    desk.end(message_id, desk.message(f"answer-{message_id}"))
    desk.page(after=desk.revision())
    desk.db.set_progress_handler(None, 10)
    return count


def test_a_long_history_does_not_slow_the_queue(desk: Desk) -> None:
    _steps(desk, "warm")
    short = _steps(desk, "short")
    desk.save(*(desk.message(f"m{number}") for number in range(5000)))
    assert _steps(desk, "long") <= 1.2 * short
