"""Sessions: made, owned by one process, recovered after its death, renamed, deleted, forgotten."""

from __future__ import annotations

import pytest

from agentik_server.domain import saves
from agentik_server.domain.message import Attachment, Permission, Question, ToolCall
from agentik_server.domain.pending import Pause
from agentik_server.domain.saves import Owner
from agentik_server.store import purging
from agentik_server.store.reads import fetch
from tests.store.desk import LIMITS, ME, Desk, denied


def denied_read(desk: Desk, session_id: str) -> str:
    page = fetch(desk.db, saves.ReadSession(session_id))
    assert isinstance(page, saves.Denied)
    return page.reason


def _take(desk: Desk, server_id: str = "you", *, pause: bool = True) -> saves.Taken:
    outcome = desk.do(saves.TakeSession("s", server_id, pause, desk.now))
    assert isinstance(outcome, saves.Taken), outcome
    return outcome


# ---------------------------------------------------------------------------------------- made and changed


def test_a_session_is_read_as_it_was_made(desk: Desk) -> None:
    facts = desk.session(
        "t", agent_id="claude", cwd="/x y/é", title="Ein Titel", agent_session_id="remote", controls={"modeId": "plan"}
    )
    assert desk.page("t").facts == facts
    assert (facts.owner, facts.agent_session_id, facts.controls) == (ME, "remote", {"modeId": "plan"})


def test_a_session_id_is_used_once(desk: Desk) -> None:
    before = desk.dump()
    facts = saves.SessionFacts("s", "demo", "/", "", 1, 1)
    assert denied(desk.do(saves.CreateSession(facts))) == "duplicateId"
    assert desk.dump() == before


def test_changed_columns_are_saved_and_a_change_of_nothing_is_no_write(desk: Desk) -> None:
    changes = {"state": "busy", "connection": "streaming", "agent_session_id": "r", "controls": {"commands": [1]}}
    done = desk.done(saves.SaveSession("s", ME, changes, 9999))
    assert done.facts is not None
    assert (done.facts.state, done.facts.connection, done.facts.controls) == ("busy", "streaming", {"commands": [1]})
    assert done.facts.updated_at < 9999  # connecting does not make it the newest session
    before = desk.dump()
    desk.done(saves.SaveSession("s", ME, changes, 9999))
    assert desk.dump() == before


def test_a_new_title_makes_it_the_newest_session_and_needs_no_owner(desk: Desk) -> None:
    done = desk.done(saves.SaveSession("s", None, {"title": "New", "title_by_user": True}, 9999))
    assert done.facts is not None
    assert (done.facts.title, done.facts.title_by_user, done.facts.updated_at) == ("New", True, 9999)


def test_what_is_no_column_is_a_bug(desk: Desk) -> None:
    with pytest.raises((KeyError, AttributeError)):
        desk.do(saves.SaveSession("s", ME, {"no_such": 1}, 1))
    with pytest.raises(KeyError):
        desk.do(saves.SaveSession("s", ME, {"pending_count": 7}, 1))


# ----------------------------------------------------------------------------------------------- ownership


def test_who_owns_it_already_stays_the_owner_without_a_write(desk: Desk) -> None:  # B59
    before = desk.dump()
    assert _take(desk, "me").owner == ME
    assert desk.dump() == before


def test_a_living_owner_keeps_the_session(desk: Desk) -> None:  # B59
    desk.is_alive = {"me"}.__contains__
    before = desk.dump()
    taken = _take(desk)
    assert (taken.owner, taken.facts.owner) == (None, ME)
    assert desk.dump() == before


def test_a_dead_owner_is_replaced_and_fenced_out_of_every_write(desk: Desk) -> None:  # B59
    desk.admitted("a", free=True)
    desk.admitted("b")
    assert _take(desk).owner == Owner("you", 2)
    before = desk.dump()
    ask = Permission("p", "s", ToolCall("c"), (), 1)
    fenced: list[saves.Write] = [
        saves.Claim("s", ME, "t", 5, False, 1),
        saves.Journal("s", ME, "t-a"),
        saves.PutBack("s", ME, "t-a", None),
        saves.EndTurn("s", ME, "t-a", "end_turn", "complete", (), None, 1),
        saves.SaveMessages("s", ME, (desk.message("x"),), 1),
        saves.SaveSession("s", ME, {"title": "mine"}, 1),
        saves.SaveAsk("s", ME, ask),
        saves.CloseAsk("s", ME, "p", "yes"),
        saves.TakeMail("s", ME),
        saves.DeleteSession("s", ME),
        saves.ReleaseSession("s", ME),
        saves.Resend("s", ME, "a", True, "t", 9, LIMITS, 1),
    ]
    for write in fenced:
        assert desk.do(write) == saves.Fenced(), write
    assert desk.send("c") == saves.Fenced()
    assert desk.dump() == before


def test_a_released_session_is_taken_with_a_higher_generation(desk: Desk) -> None:  # B59
    desk.done(saves.ReleaseSession("s", ME))
    assert desk.page().facts.owner is None
    assert _take(desk, "me").owner == Owner("me", 2)


def test_the_next_place_counts_tombstones_too(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.put_back("t-a")
    taken = _take(desk)
    assert taken.next_seq == 2
    desk.session("empty", owner=None)
    outcome = desk.do(saves.TakeSession("empty", "you", True, 1))
    assert isinstance(outcome, saves.Taken)
    assert outcome.next_seq == 1


# ------------------------------------------------------------------------------------------------ recovery


def test_a_turn_whose_prompt_may_be_out_ends_as_unknown_and_is_never_sent_again(desk: Desk) -> None:  # B43 B60
    desk.admitted("a", free=True)
    desk.journal("t-a")
    desk.save(desk.message("answer", "half", status="streaming", turn_id="t-a"))
    desk.save(desk.message("tool", "", kind="tool", status="streaming", tool=ToolCall("c", status="in_progress")))
    taken = _take(desk)
    assert taken.interrupted
    assert desk.transcript() == [("a", "unknown"), ("answer", "interrupted"), ("tool", "interrupted")]
    assert desk.page().messages[2].tool == ToolCall("c", status="failed")
    assert {message.message_id for message in taken.messages} == {"a", "answer", "tool"}
    assert desk.page().turn == saves.TurnFacts("t-a", "a", written=True, stop_reason="crashed")
    assert (taken.facts.state, taken.facts.connection) == ("idle", "disconnected")
    assert desk.queue().items == ()


def test_a_turn_whose_prompt_was_certainly_not_written_waits_again(desk: Desk) -> None:  # B26 B60
    desk.admitted("a")
    desk.admitted("b")
    desk.claim()
    taken = _take(desk)
    assert (taken.interrupted, taken.restored) == (False, True)
    assert [item.message_id for item in taken.queue.items] == ["a", "b"]
    assert taken.queue.pause == Pause("restore")
    assert [(message.message_id, message.deleted) for message in taken.messages] == [("a", True)]
    assert desk.transcript() == []
    assert desk.page().turn is None


def test_a_direct_message_that_was_not_written_waits_again(desk: Desk) -> None:  # B5 B6
    desk.admitted("a", free=True)
    taken = _take(desk)
    assert [item.text for item in taken.queue.items] == ["text of a"]
    assert taken.queue.pause == Pause("restore")


def test_claimed_items_of_a_written_turn_are_not_restored(desk: Desk) -> None:  # B43
    desk.admitted("a")
    desk.admitted("b")
    desk.claim()
    desk.journal("t")
    taken = _take(desk)
    assert (taken.interrupted, taken.restored) == (True, True)
    assert [item.message_id for item in taken.queue.items] == ["b"]
    assert desk.transcript() == [("a", "unknown")]


@pytest.mark.parametrize("before", [None, Pause("crash", "exit code 1")])
def test_a_restored_queue_is_paused_and_nothing_of_it_is_urgent(desk: Desk, before: Pause | None) -> None:  # B31
    desk.admitted("a", free=True)
    desk.admitted("b")
    desk.journal("t-a")
    desk.end("t-a", pause=before)
    desk.done(saves.SendPendingNow("s", "b"))
    taken = _take(desk)
    assert (taken.restored, taken.queue.pause, taken.queue.urgent) == (True, Pause("restore"), False)
    assert desk.claim(owner=Owner("you", 2)).messages == ()


def test_a_pause_by_the_user_survives_as_such(desk: Desk) -> None:  # B28 B31
    desk.admitted("a")
    desk.done(saves.PauseQueue("s", True))
    taken = _take(desk)
    assert (taken.restored, taken.queue.pause) == (False, Pause("user"))


def test_with_the_setting_run_a_restored_queue_goes_on(desk: Desk) -> None:  # B31
    desk.admitted("a")
    taken = _take(desk, pause=False)
    assert (taken.restored, taken.queue.pause) == (False, None)
    assert [message.message_id for message in desk.claim(owner=Owner("you", 2)).messages] == ["a"]


def test_an_empty_queue_is_not_paused_by_a_restart(desk: Desk) -> None:  # B28
    desk.admitted("a", free=True)
    desk.done(saves.PauseQueue("s", True))
    desk.journal("t-a")
    assert _take(desk).queue.pause is None


def test_open_asks_are_void_and_unread_mail_is_handed_over(desk: Desk) -> None:  # B60
    desk.done(saves.SaveAsk("s", ME, Permission("p", "s", ToolCall("c"), (), 1)))
    desk.done(saves.PostMail("s", {"kind": "cancel"}, 1))
    taken = _take(desk)
    assert taken.mail == ({"kind": "cancel"},)
    page = desk.page()
    assert (page.asks, page.mail_waiting) == ((), False)


def test_streaming_left_without_a_turn_is_closed_too(desk: Desk) -> None:  # B60
    desk.admitted("a", free=True)
    desk.end("t-a")
    desk.save(desk.message("late", "late words", status="streaming"))
    assert _take(desk).interrupted
    assert desk.transcript() == [("a", "complete"), ("late", "interrupted")]


# ------------------------------------------------------------------------------------- deleted and forgotten


def _fill(desk: Desk, session_id: str, words: str) -> None:
    desk.session(session_id, owner=None)
    for number in range(3):
        desk.db.execute("UPDATE sessions SET owner_server = 'me', generation = 1 WHERE session_id = ?", (session_id,))
        desk.save(desk.message(f"{session_id}{number}", words, session_id=session_id), session_id=session_id)


def test_a_deleted_session_leaves_nothing_but_the_ledger(desk: Desk) -> None:  # B18
    _fill(desk, "other", "untouched")
    desk.admitted("a", "secretword", free=True)
    desk.journal("t-a")
    desk.end("t-a", desk.message("answer", "secretword too"))
    desk.admitted("b", "secretword again")
    desk.done(saves.PostMail("s", {"kind": "secretword"}, 1))
    desk.done(saves.SaveAsk("s", ME, Question("q", "s", "secretword?", 1)))
    desk.done(saves.DeleteSession("s", ME))
    assert fetch(desk.db, saves.SearchMessages("secretword")) == saves.Matches(())
    desk.purge()
    for table in ("messages", "pending", "turns", "asks", "mail", "sessions"):
        key = "number" if table == "sessions" else "session"
        assert desk.db.execute(f"SELECT count(*) FROM {table} WHERE {key} = 1").fetchone() == (0,), table
    assert fetch(desk.db, saves.SearchMessages("secretword")) == saves.Matches(())
    assert desk.db.execute("SELECT message_id, outcome FROM submissions ORDER BY 1").fetchall() == [
        ("a", "started"),
        ("b", "removed"),
    ]
    assert len(desk.page("other").messages) == 3
    assert b"secretword" not in desk.db.serialize()


def test_without_its_owner_only_a_session_that_nobody_runs_is_deleted(desk: Desk) -> None:  # B59
    desk.is_alive = {"me"}.__contains__
    assert denied(desk.do(saves.DeleteSession("s", None))) == "notOwner"
    desk.is_alive = {"you"}.__contains__
    desk.done(saves.DeleteSession("s", None))
    assert denied(desk.do(saves.DeleteSession("s", None))) == "unknownSession"


def test_the_number_of_a_deleted_session_is_not_used_again(desk: Desk) -> None:
    desk.done(saves.DeleteSession("s", ME))
    desk.session("new")
    assert desk.db.execute("SELECT number FROM sessions").fetchall() == [(2,)]


def test_sessions_untouched_for_long_are_forgotten_but_not_with_something_pending_or_alive(desk: Desk) -> None:  # B57
    for session_id, updated_at in (("old", 10), ("pending", 10), ("alive", 10), ("new", 100)):
        owner = Owner("you", 1) if session_id == "alive" else None
        desk.session(session_id, owner=owner, created_at=1, updated_at=updated_at)
    desk.admitted("a", session_id="pending", owner=None)
    desk.db.execute("UPDATE sessions SET updated_at = 10 WHERE session_id = 'pending'")
    desk.is_alive = {"you"}.__contains__
    assert desk.done(saves.ForgetOld(100)).session_ids == ("old",)
    before = desk.dump()
    assert desk.done(saves.ForgetOld(100)).session_ids == ()
    assert desk.dump() == before


def test_a_big_session_is_deleted_in_short_steps_that_survive_a_crash(desk: Desk) -> None:  # B18
    for number in range(10):
        desk.save(*(desk.message(f"m{number}-{item}", f"uniqueword{item} common") for item in range(100)))
    desk.done(saves.DeleteSession("s", ME))
    assert denied_read(desk, "s") == "unknownSession"
    assert fetch(desk.db, saves.SearchMessages("common")) == saves.Matches(())
    for _ in range(3):
        assert purging.step(desk.db)
    assert purging.is_due(desk.db)  # as the next process finds it
    assert desk.purge() > 7
    assert not purging.is_due(desk.db)
    assert desk.db.execute("SELECT count(*) FROM messages").fetchone() == (0,)
    assert b"uniqueword" not in desk.db.serialize()


def test_forgotten_words_are_off_the_disk(desk: Desk) -> None:  # B18 B57
    _fill(desk, "old", "forgettable")
    desk.db.execute("UPDATE sessions SET updated_at = 1, owner_server = NULL WHERE session_id = 'old'")
    assert desk.done(saves.ForgetOld(2)).session_ids == ("old",)
    desk.purge()
    assert b"forgettable" not in desk.db.serialize()


def test_a_fork_is_a_copy_that_goes_its_own_way(desk: Desk) -> None:
    kept = Attachment("/x/a.txt", stored="/kept/a.txt", size=3)
    desk.admitted("a", "the needle", free=True, attachments=(kept,))
    desk.end("t-a", desk.message("answer", "a needle too"))
    desk.admitted("b")
    facts = saves.SessionFacts("copy", "demo", "/home/me", "Copy", 5, 5, agent_session_id="fork")
    done = desk.done(saves.ForkSession("s", facts))
    assert done.facts is not None
    assert (done.facts.owner, done.facts.pending_count, done.facts.agent_session_id) == (None, 0, "fork")
    original, copy = desk.page("s").messages, desk.page("copy").messages
    assert [(one.seq, one.text, one.attachments) for one in copy] == [
        (one.seq, one.text, one.attachments) for one in original
    ]
    assert not {one.message_id for one in copy} & {one.message_id for one in original}
    desk.done(saves.DeleteSession("s", ME))
    desk.purge()
    assert desk.page("copy").messages == copy
    assert desk.db.execute("SELECT count(*) FROM trash").fetchone() == (0,)
    matches = fetch(desk.db, saves.SearchMessages("needle"))
    assert isinstance(matches, saves.Matches)
    assert {match.session_id for match in matches.matches} == {"copy"}
