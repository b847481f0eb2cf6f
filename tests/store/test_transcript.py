"""Messages as they are saved: updated by id, never written when nothing changed, tombstones, the index."""

from __future__ import annotations

from dataclasses import replace

from agentik_server.domain import saves
from agentik_server.domain.message import (
    Attachment,
    Diff,
    Location,
    Message,
    PlanEntry,
    Position,
    Range,
    ToolCall,
)
from agentik_server.store.reads import fetch
from tests.store.desk import LIMITS, Desk


def _found(desk: Desk, query: str) -> list[str]:
    matches = fetch(desk.db, saves.SearchMessages(query))
    assert isinstance(matches, saves.Matches)
    return [match.message_id for match in matches.matches]


def test_every_field_comes_back_as_it_was_saved(desk: Desk) -> None:
    tool = ToolCall(
        "c1", "Edit é", "edit", "completed", (Location("/a", 3), Location("/b")), (Diff("/a", "new\r\n", "old"),),
        "out\x1b[0m", {"nested": {"jsonrpc": "2.0"}, "half": "\ud800", "list": [1, None, 2.5]},
    )  # fmt: skip
    attachment = Attachment(
        "/x", "x", Range(Position(1, 2), Position(3, 4)), None, "python", "text/x-python", "/kept/x", 12
    )
    messages = (
        Message("user", "s", 1, "user", "text", "complete", 7, attachments=(attachment,), send_kind="command"),
        Message("tool", "s", 2, "tool", "", "complete", 8, "turn", tool=tool),
        Message("plan", "s", 3, "plan", "", "complete", 9, plan=(PlanEntry("one", "completed", "high"),)),
        Message("empty", "s", 4, "plan", "", "complete", 9, plan=()),
    )
    saved = desk.save(*messages).messages
    assert tuple(replace(message, revision=0) for message in saved) == messages
    assert desk.page().messages == saved


def test_saving_what_stands_there_is_no_write(desk: Desk) -> None:  # B54
    message = desk.message("a", "words", turn_id="t", tool=ToolCall("c", status="completed"))
    desk.save(message)
    before = desk.dump()
    assert desk.save(replace(message, revision=77, seq=99, created_at=5)).messages == ()
    assert desk.dump() == before


def test_an_update_keeps_place_and_time_and_gets_a_higher_revision(desk: Desk) -> None:
    first = desk.save(desk.message("a", "half", status="streaming")).messages[0]
    second = desk.save(replace(first, text="half and whole", seq=99, created_at=1)).messages[0]
    assert (second.seq, second.created_at, second.text) == (first.seq, first.created_at, "half and whole")
    assert second.revision > first.revision


def test_each_changed_row_has_its_own_revision(desk: Desk) -> None:
    saved = desk.save(*(desk.message(message_id) for message_id in "abc")).messages
    assert len({message.revision for message in saved}) == 3
    assert desk.revision() == saved[-1].revision


def test_everything_changed_since_a_revision_is_found_tombstones_included(desk: Desk) -> None:  # B54
    desk.admitted("a", free=True)
    desk.save(desk.message("x"), desk.message("y"))
    known = desk.revision()
    desk.save(desk.message("y", "edited"), desk.message("z"))
    desk.put_back("t-a")
    missed = desk.page(after=known).messages
    assert [(one.message_id, one.deleted) for one in missed] == [("a", True), ("y", False), ("z", False)]
    assert desk.page(after=desk.revision()).messages == ()


def test_streaming_makes_its_session_the_newest_but_not_with_every_save(desk: Desk) -> None:
    start = desk.page().facts.updated_at
    desk.now = start + 1000
    desk.save(desk.message("a"))
    assert desk.page().facts.updated_at == start
    desk.now = start + 60_000
    desk.save(desk.message("b"))
    assert desk.page().facts.updated_at == start + 60_000


def test_finished_texts_of_all_kinds_but_notices_are_searchable(desk: Desk) -> None:
    desk.save(
        desk.message("agent", "alpha needle"),
        desk.message("thought", "beta needle", kind="thought"),
        desk.message("tool", "", kind="tool", tool=ToolCall("c", "needle title", status="completed", output="gamma")),
        desk.message("plan", "", kind="plan", plan=(PlanEntry("delta needle"),)),
        desk.message("notice", "needle", kind="notice"),
        desk.message("streaming", "needle", status="streaming"),
        desk.message("open", "", kind="tool", tool=ToolCall("c2", "needle")),
        desk.message("interrupted", "needle", status="interrupted"),
    )
    assert set(_found(desk, "needle")) == {"agent", "thought", "tool", "plan", "interrupted"}
    assert _found(desk, "gamma") == ["tool"]
    assert _found(desk, "delta") == ["plan"]


def test_the_index_follows_every_change(desk: Desk) -> None:
    streaming = desk.message("a", "first draft", status="streaming")
    desk.save(streaming)
    assert _found(desk, "first") == []
    desk.save(replace(streaming, status="complete"))
    assert _found(desk, "first") == ["a"]
    desk.save(replace(streaming, status="complete", text="second version"))
    assert (_found(desk, "first"), _found(desk, "second")) == ([], ["a"])
    desk.save(replace(streaming, status="streaming", text="third"))
    assert (_found(desk, "second"), _found(desk, "third")) == ([], [])


def test_a_users_message_is_searchable_when_its_turn_has_ended(desk: Desk) -> None:
    desk.admitted("a", "haystack", free=True)
    assert _found(desk, "haystack") == []
    before = desk.page().messages[0].revision
    desk.end("t-a", status="complete")
    assert _found(desk, "haystack") == ["a"]
    assert desk.page().messages[0].revision == before  # to be found is no change of the message


def test_only_the_copy_of_a_resent_message_is_found_until_it_ends_again(desk: Desk) -> None:
    desk.admitted("a", "haystack", free=True)
    desk.end("t-a", status="interrupted")
    desk.do(saves.Resend("s", None, "a", False, "", 0, LIMITS, desk.now))
    assert _found(desk, "haystack") == ["a@1"]
