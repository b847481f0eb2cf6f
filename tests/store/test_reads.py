"""Pages of sessions and messages, cut by keys and not by counting."""

from __future__ import annotations

from agentik_server.domain import saves
from agentik_server.domain.message import Permission, PermissionOption, Question, ToolCall
from agentik_server.store.migrations import SCHEMA_VERSION
from agentik_server.store.reads import fetch
from tests.store.desk import ME, Desk


def _messages(desk: Desk, **how: int) -> tuple[list[int], bool]:
    page = fetch(desk.db, saves.ReadMessages("s", **how))
    assert isinstance(page, saves.MessagePage)
    assert page.revision == desk.revision()
    return [message.seq for message in page.messages], page.more


def _list(desk: Desk, **how: object) -> saves.SessionList:
    page = fetch(desk.db, saves.ReadSessions(**how))  # type: ignore[arg-type]
    assert isinstance(page, saves.SessionList), page
    return page


def _ids(page: saves.SessionList) -> list[str]:
    return [facts.session_id for facts in page.sessions]


def test_without_after_the_newest_messages_and_whether_older_exist(desk: Desk) -> None:  # B52
    desk.save(*(desk.message(f"m{number}") for number in range(10)))
    page = desk.page(limit=3)
    assert ([message.seq for message in page.messages], page.more) == ([8, 9, 10], True)
    page = desk.page(limit=10)
    assert (len(page.messages), page.more) == (10, False)


def test_pages_are_cut_by_seq_in_both_directions(desk: Desk) -> None:  # B53
    for number in range(1, 8):
        desk.save(desk.message(f"m{number}", seq=number * 10))
    assert _messages(desk, limit=3) == ([10, 20, 30], True)
    assert _messages(desk, after=30, limit=3) == ([40, 50, 60], True)
    assert _messages(desk, after=60, limit=3) == ([70], False)
    assert _messages(desk, before=40, limit=2) == ([20, 30], True)
    assert _messages(desk, before=40, limit=3) == ([10, 20, 30], False)
    assert _messages(desk, before=10) == ([], False)


def test_tombstones_are_not_in_pages_but_in_what_changed(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.save(desk.message("b"))
    desk.put_back("t-a")
    assert _messages(desk) == ([2], False)
    assert [message.message_id for message in desk.page().messages] == ["b"]
    assert [message.message_id for message in desk.page(after=0).messages] == ["a", "b"]


def test_everything_changed_is_given_whatever_its_age_and_number(desk: Desk) -> None:  # B54
    desk.save(*(desk.message(f"m{number}") for number in range(500)))
    known = desk.revision()
    desk.save(*(desk.message(f"m{number}", "new") for number in range(450)))
    assert len(desk.page(after=known, limit=10).messages) == 450
    assert desk.page(after=known).more is False


def test_a_page_holds_queue_asks_and_turn_of_one_moment(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.admitted("b")
    permission = Permission(
        "p", "s", ToolCall("c", "edit", input={"x": 1}), (PermissionOption("yes", "Yes", "allow_once"),), 5
    )
    question = Question("q", "s", "Which?", 6, {"type": "object"}, "http://localhost/x")
    desk.done(saves.SaveAsk("s", ME, permission))
    desk.done(saves.SaveAsk("s", ME, question))
    page = desk.page()
    assert page.asks == (permission, question)
    assert [item.message_id for item in page.queue.items] == ["b"]
    assert page.turn == saves.TurnFacts("t-a", "a", written=False)
    desk.done(saves.CloseAsk("s", ME, "p", "yes"))
    page = desk.page()
    assert (page.asks, page.closed_asks) == ((question,), (("p", "yes"),))


def test_unknown_sessions_are_denied(desk: Desk) -> None:
    for read in (saves.ReadSession("nowhere"), saves.ReadMessages("nowhere")):
        page = fetch(desk.db, read)
        assert isinstance(page, saves.Denied)
        assert page.reason == "unknownSession"


def test_sessions_are_listed_newest_first_page_by_page_without_gap_or_double(desk: Desk) -> None:
    desk.done(saves.DeleteSession("s", ME))
    for number in range(10):
        desk.session(f"s{number}", updated_at=100 + number // 3)  # equal times among them
    everything = _ids(_list(desk))
    assert everything == sorted(everything, key=lambda name: (int(name[1:]) // 3, name), reverse=True)
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = _list(desk, limit=4, cursor=cursor)
        seen += _ids(page)
        cursor = page.next_cursor
        if cursor is None:
            break
        desk.session(f"new{len(seen)}", updated_at=9999)  # what comes meanwhile disturbs nothing
    assert seen == everything


def test_sessions_are_found_by_folder_agent_and_title(desk: Desk) -> None:
    desk.session("a", cwd="/one", agent_id="claude", title="Über die Straße")
    desk.session("b", cwd="/one", agent_id="codex", title="100% _done_")
    desk.session("c", cwd="/two", agent_id="claude", title="Привет")
    assert _ids(_list(desk, cwd="/one")) == ["b", "a"]
    assert _ids(_list(desk, cwd="/one", agent_id="claude")) == ["a"]
    assert _ids(_list(desk, query="über DIE strasse")) == ["a"]
    assert _ids(_list(desk, query="% _")) == ["b"]
    assert _ids(_list(desk, query="ПРИВЕТ")) == ["c"]
    assert _ids(_list(desk, query="nothing")) == []


def test_a_cursor_of_somebody_else_is_refused(desk: Desk) -> None:
    assert isinstance(fetch(desk.db, saves.ReadSessions(cursor="rubbish")), saves.Denied)


def test_counts_for_the_status(desk: Desk) -> None:
    desk.admitted("a", free=True)
    desk.admitted("b")
    status = fetch(desk.db, saves.ReadStatus())
    assert isinstance(status, saves.StoreStatus)
    assert (status.schema_version, status.sessions, status.messages, status.pending) == (SCHEMA_VERSION, 1, 1, 1)
    assert status.bytes_on_disk > 0
