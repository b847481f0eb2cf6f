"""The running store: grouped commits, order, failures that harm nothing, an end that loses nothing."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from agentik_server.domain import saves
from agentik_server.domain.message import Message, ToolCall
from agentik_server.domain.message import Permission as Ask
from agentik_server.store import groups
from agentik_server.store.attachments import AttachmentFiles
from agentik_server.store.groups import GroupWriter, is_acknowledged
from agentik_server.store.transactions import perform
from tests.store.faulty import FaultyConnection, fail_on
from tests.store.running import Running


class Traced(FaultyConnection):
    """Its statements, in order."""


@pytest.fixture
def statements() -> Iterator[list[str]]:
    log: list[str] = []
    Traced.before = staticmethod(log.append)
    yield log
    Traced.before = staticmethod(lambda sql: None)


@pytest.fixture
async def traced(tmp_path: Path, statements: list[str]) -> AsyncIterator[Running]:
    running = await Running.open(tmp_path / "home", Traced)
    await running.session()
    statements.clear()
    yield running
    Traced.before = staticmethod(lambda sql: None)
    await running.close()


def _answer(number: int, text: str = "some words") -> Message:
    return Message(f"m{number}", "s", number, "agent", text, "complete", 5)


async def test_the_writes_of_one_loop_turn_share_a_commit(traced: Running, statements: list[str]) -> None:  # B5
    outcomes = await asyncio.gather(*(traced.do(traced.admit(f"m{number}")) for number in range(50)))
    assert all(isinstance(outcome, saves.Admitted) for outcome in outcomes)
    assert [statements.count(word) for word in ("BEGIN IMMEDIATE", "COMMIT")] == [1, 1]


async def test_the_writes_of_one_loop_turn_show_one_queue(traced: Running, statements: list[str]) -> None:
    """A hundred sends cost a hundred rows, not a hundred lists of up to a hundred rows."""
    outcomes = await asyncio.gather(*(traced.do(traced.admit(f"m{number}")) for number in range(100)))
    queues = [outcome.queue for outcome in outcomes if isinstance(outcome, saves.Admitted)]
    assert [item.message_id for item in queues[0].items] == [f"m{number}" for number in range(100)]
    assert all(queue is queues[0] for queue in queues)
    assert sum(statement.startswith("SELECT message_id, text, attachments") for statement in statements) == 1


async def test_outcomes_are_told_in_order_after_the_commit(traced: Running, statements: list[str]) -> None:  # B5
    told: list[tuple[int, bool]] = []
    done = asyncio.Event()

    def tell(number: int) -> None:
        told.append((number, statements[-1] == "COMMIT"))
        if number == 9:
            done.set()

    for number in range(10):
        traced.store.write(traced.admit(f"m{number}"), lambda _, number=number: tell(number))
    await done.wait()
    assert told == [(number, True) for number in range(10)]


async def test_acknowledged_is_durable_and_streaming_is_not_waited_for(traced: Running, statements: list[str]) -> None:
    def synchronous() -> str:
        return [sql for sql in statements if "synchronous" in sql][-1]

    await traced.done(saves.SaveMessages("s", traced.me, (_answer(9),), 5))
    assert synchronous().endswith("NORMAL")
    await traced.send("a")
    assert synchronous().endswith("FULL")
    await traced.done(saves.SaveMessages("s", traced.me, (_answer(9, "more"),), 5))
    assert synchronous().endswith("NORMAL")
    both = (traced.do(saves.SaveMessages("s", traced.me, (_answer(10),), 5)), traced.do(traced.admit("b")))
    await asyncio.gather(*both)
    assert synchronous().endswith("FULL")


def test_only_what_a_running_turn_repeats_may_be_lost_in_a_power_cut() -> None:  # B5 B6
    owner = saves.Owner("me", 1)
    assert not is_acknowledged(saves.SaveMessages("s", owner, (), 1))
    assert not is_acknowledged(saves.SaveAsk("s", owner, Ask("p", "s", ToolCall("c"), (), 1)))
    assert not is_acknowledged(saves.SaveSession("s", owner, {}, 1))
    assert is_acknowledged(saves.SaveSession("s", owner, {}, 1, request=7))
    assert is_acknowledged(saves.Journal("s", owner, "t"))
    assert is_acknowledged(saves.Claim("s", owner, "t", 1, False, 1))


async def test_a_refused_write_leaves_the_others_of_its_group_alone(running: Running) -> None:
    good, bad, repeated, other = await asyncio.gather(
        running.do(running.admit("a")),
        running.do(running.admit("b", " ")),
        running.do(running.admit("a")),
        running.do(running.admit("c")),
    )
    assert isinstance(good, saves.Admitted)
    assert isinstance(bad, saves.Denied)
    assert isinstance(repeated, saves.Admitted)
    assert repeated.repeated
    assert isinstance(other, saves.Admitted)
    assert [item.message_id for item in (await running.page()).queue.items] == ["a", "c"]


async def test_a_failed_commit_fails_all_of_its_group_and_nothing_is_there(traced: Running) -> None:  # B58
    await traced.send("before")
    Traced.before = staticmethod(fail_on("COMMIT", sqlite3.OperationalError("disk I/O error")))
    outcomes = await asyncio.gather(traced.do(traced.admit("a")), traced.do(traced.admit("b")))
    assert outcomes == [saves.Failed("disk I/O error")] * 2
    assert [item.message_id for item in (await traced.page()).queue.items] == ["before"]
    assert (await traced.send("a")).repeated is False  # the id is still free


async def test_a_full_disk_harms_nothing_that_is_there(running: Running) -> None:  # B58
    await running.send("before", "x" * 1000)

    def limit(db: sqlite3.Connection, pages: int) -> None:
        db.execute(f"PRAGMA max_page_count = {pages}")

    await running.store._writer.run(lambda db: limit(db, db.execute("PRAGMA page_count").fetchone()[0]))
    outcomes = await asyncio.gather(running.do(running.admit("a", "x" * 500_000)), running.do(running.admit("b")))
    assert outcomes == [saves.Failed("database or disk is full")] * 2
    await running.store._writer.run(lambda db: limit(db, 1_000_000))
    assert (await running.send("a", "x" * 500_000)).disposition == "queued"
    assert [item.message_id for item in (await running.page()).queue.items] == ["before", "a"]


async def test_a_failing_statement_fails_its_write_only(traced: Running) -> None:  # B58
    Traced.before = staticmethod(fail_on("INTO pending", sqlite3.OperationalError("something")))
    outcomes = await asyncio.gather(traced.do(traced.admit("a")), traced.do(traced.admit("b")))
    assert outcomes[0] == saves.Failed("something")
    assert isinstance(outcomes[1], saves.Admitted)
    assert [item.message_id for item in (await traced.page()).queue.items] == ["b"]


async def test_a_bug_in_a_write_is_logged_and_fails_it_alone(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    bug = saves.SaveSession("s", running.me, {"no_such_column": 1}, 1)
    outcomes = await asyncio.gather(running.do(bug), running.do(running.admit("a")))
    assert outcomes[0] == saves.Failed("internal error, see the log")
    assert isinstance(outcomes[1], saves.Admitted)
    assert "a write failed: SaveSession" in caplog.text


async def test_half_a_surrogate_pair_anywhere_is_refused(running: Running) -> None:  # B10
    outcome = await running.do(running.admit("id \ud800"))
    assert isinstance(outcome, saves.Denied)
    assert outcome.reason == "invalidText"
    assert isinstance(await running.read(saves.ReadSession("\ud800")), saves.Failed)
    assert (await running.send("b")).disposition == "queued"


async def test_a_cleaning_that_fails_takes_nothing_back(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:  # B58
    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(AttachmentFiles, "older_than", fail)
    assert isinstance(await running.do(saves.ForgetOld(0)), saves.Done)
    assert "cleaning up failed" in caplog.text
    assert (await running.send("b")).disposition == "queued"


async def test_the_store_outlives_a_bug_of_its_own(
    running: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def bug(*_: object, **__: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(GroupWriter, "carry_out", bug)
        assert await running.do(running.admit("a")) == saves.Failed("internal error, see the log")
    assert (await running.send("b")).disposition == "queued"


async def test_a_big_deletion_lets_other_writes_go_first(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:  # B18
    monkeypatch.setattr(groups, "_AT_ONCE_S", 0.0)
    words = tuple(_answer(number, f"secretword{number}") for number in range(1500))
    await running.session("t")
    await running.done(saves.SaveMessages("s", running.me, words, 5))
    await running.done(saves.DeleteSession("s", running.me))
    assert isinstance(await running.read(saves.ReadSession("s")), saves.Denied)
    assert (await running.send("a", session_id="t")).disposition == "queued"
    assert running.on_disk(b"secretword") != []  # it was not waited for
    await running.close()
    assert running.on_disk(b"secretword") == []
    await running.reopen()


async def test_a_deletion_that_a_dead_process_began_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # B18
    monkeypatch.setattr(groups, "_AT_ONCE_S", 0.0)
    running = await Running.open(tmp_path)
    await running.session()
    words = tuple(_answer(number, f"secretword{number}") for number in range(1500))
    await running.done(saves.SaveMessages("s", running.me, words, 5))
    with monkeypatch.context() as patched:
        patched.setattr(GroupWriter, "purge", lambda *_: None)
        patched.setattr(GroupWriter, "is_purging", False)
        await running.done(saves.DeleteSession("s", running.me))
        await running.close()
    assert running.on_disk(b"secretword") != []
    await running.reopen()
    await running.close()
    assert running.on_disk(b"secretword") == []


async def test_a_deletion_that_cannot_go_on_is_left_to_the_next(traced: Running, statements: list[str]) -> None:  # B18
    await traced.done(saves.SaveMessages("s", traced.me, (_answer(1, "secretword"),), 5))
    await traced.session("t")
    Traced.before = staticmethod(fail_on("FROM doomed", sqlite3.OperationalError("database or disk is full")))
    await traced.done(saves.DeleteSession("s", traced.me))
    assert not traced.store._work.is_purging  # it does not try over and over
    assert traced.on_disk(b"secretword") != []
    await traced.done(saves.DeleteSession("t", traced.me))
    assert traced.on_disk(b"secretword") == []


async def test_a_bug_in_a_listener_does_not_stop_the_store(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    def bug(outcome: saves.Outcome) -> None:
        raise RuntimeError("in the listener")

    running.store.write(running.admit("a"), bug)
    assert (await running.send("b")).disposition == "queued"
    assert "in the listener" in caplog.text


async def test_a_read_holds_every_write_that_was_told_before(running: Running) -> None:
    seen: list[int] = []
    done = asyncio.Event()

    def told(number: int) -> None:
        def read(page: saves.Page) -> None:
            assert isinstance(page, saves.SessionPage)
            seen.append(len(page.queue.items) - number)
            if number == 20:
                done.set()

        running.store.read(saves.ReadSession("s"), read)

    for number in range(1, 21):
        running.store.write(running.admit(f"m{number}"), lambda _, number=number: told(number))
    await done.wait()
    assert min(seen) >= 0


async def test_closing_carries_out_what_was_asked_before(tmp_path: Path) -> None:  # B61
    running = await Running.open(tmp_path)
    await running.session()
    outcomes: list[saves.Outcome] = []
    for number in range(1000):
        running.store.write(saves.PostMail("s", {"number": number}, 1), outcomes.append)
    await running.close()
    assert len(outcomes) == 1000
    again = await Running.open(tmp_path)
    assert isinstance(await again.do(saves.TakeSession("s", again.opened.server_id, True, 1)), saves.Taken)
    assert (await again.page()).mail_waiting is False  # handed over whole
    await again.close()


async def test_after_the_end_nothing_is_carried_out_but_all_is_answered(tmp_path: Path) -> None:
    running = await Running.open(tmp_path)
    await running.close()
    assert await running.do(running.admit("a")) == saves.Failed("the store is closed")
    assert await running.read(saves.ReadStatus()) == saves.Failed("the store is closed")


async def test_commits_of_another_process_are_noticed_and_our_own_are_not(tmp_path: Path) -> None:  # B59
    one, two = await Running.open(tmp_path), await Running.open(tmp_path)
    noticed = asyncio.Event()
    own: list[str] = []
    one.store.watch(noticed.set)
    two.store.watch(lambda: own.append("noticed"))
    await asyncio.sleep(0)
    for number in range(5):
        noticed.clear()
        await two.session(f"s{number}")
        await asyncio.wait_for(noticed.wait(), 5)
    assert own == []
    await one.close()
    await two.close()


async def test_another_process_that_writes_for_long_does_not_block_the_loop(running: Running) -> None:  # B62
    other = sqlite3.connect(running.home / "agentik.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.create_task(running.do(running.admit("a")))
    page = await running.page()  # reads go on
    assert page.queue.items == ()
    assert not write.done()
    other.execute("COMMIT")
    other.close()
    assert isinstance(await write, saves.Admitted)


async def test_deleted_text_is_off_the_disk_write_ahead_log_included(running: Running) -> None:  # B18
    await running.send("a", "secretword waits")
    await running.send("b", "harmless")
    assert running.on_disk(b"secretword") != []
    await running.done(saves.RemovePending("s", "a"))
    assert running.on_disk(b"secretword") == []
    await running.send("c", "secretword again")
    await running.done(saves.ClearPending("s"))
    assert running.on_disk(b"secretword") == []
    await running.send("d", "secretword direct", free=True)
    await running.done(
        saves.EndTurn("s", running.me, "t-d", "end_turn", "complete", (_answer(9, "secretword"),), None, 9)
    )
    await running.done(saves.DeleteSession("s", running.me))
    assert running.on_disk(b"secretword") == []


async def test_a_reader_in_the_way_only_delays_the_cleaning(running: Running) -> None:  # B18
    await running.send("a", "secretword waits")
    other = sqlite3.connect(running.home / "agentik.db", isolation_level=None)
    other.execute("BEGIN")
    other.execute("SELECT count(*) FROM pending").fetchone()
    await running.done(saves.ClearPending("s"))
    assert running.on_disk(b"secretword") != []
    other.execute("COMMIT")
    other.close()
    await running.store._writer.run(running.store._work.look)  # as every 100 ms
    assert running.on_disk(b"secretword") == []


async def test_a_damaged_page_found_while_running_is_told_and_checked_at_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:  # B58
    caplog.set_level(logging.CRITICAL)
    running = await Running.open(tmp_path, Traced)
    await running.session()
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    Traced.before = staticmethod(fail_on("INTO pending", error))
    assert await running.do(running.admit("a")) == saves.Failed("database disk image is malformed")
    await running.close()
    Traced.before = staticmethod(lambda sql: None)
    assert len(list((tmp_path / "locks").glob("*.lock"))) == 2  # ours is left behind: this end was not clean


def test_every_write_of_the_contract_is_carried_out() -> None:
    from agentik_server.store.transactions import _PERFORMERS

    special = {saves.TakeSession, saves.DeleteSession, saves.ForgetOld}
    assert set(_PERFORMERS) | special == set(saves.Write.__args__)  # type: ignore[attr-defined]


def test_a_write_outside_of_a_transaction_is_one_of_its_own(tmp_path: Path) -> None:
    from tests.store.desk import Desk

    desk = Desk()
    desk.session()
    desk.admitted("a")
    assert not desk.db.in_transaction
    desk.db.execute("BEGIN IMMEDIATE")
    perform(desk.db, saves.ClearPending("s"))
    desk.db.execute("ROLLBACK")
    assert desk.waiting() == ["a"]
