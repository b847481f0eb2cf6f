"""Two server processes on one database: no lock error, each message once, a dead owner replaced."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentik_server.domain import saves
from agentik_server.domain.pending import Draft, QueueLimits
from agentik_server.domain.saves import Owner, SessionFacts
from agentik_server.store import opening
from agentik_server.store.migrations import migrate
from agentik_server.store.transactions import perform
from tests.store.running import Running

ME = Owner("me", 1)


async def _spawn(home: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.store.worker", str(home), *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=1 << 24,
    )  # fmt: skip


async def _said(process: asyncio.subprocess.Process) -> dict[str, object]:
    """The next line of a worker; a worker that failed fails the test with its traceback."""
    assert process.stdout is not None
    assert process.stderr is not None
    line = await process.stdout.readline()
    assert line, (await process.stderr.read()).decode()
    said: dict[str, object] = json.loads(line)
    return said


async def _unowned(home: Path) -> None:
    running = await Running.open(home)
    await running.done(saves.CreateSession(SessionFacts("s", "demo", "/", "", 1, 1)))
    await running.close()


async def test_two_processes_write_a_thousand_times_each_with_readers(tmp_path: Path) -> None:  # B62
    workers = [await _spawn(tmp_path, "write", name, "1000") for name in ("one", "two")]
    said = await asyncio.gather(*(_said(worker) for worker in workers))
    assert [one["wrote"] for one in said] == [1000, 1000]
    for worker in workers:
        _, errors = await worker.communicate()
        assert (worker.returncode, errors.decode()) == (0, "")
    db = sqlite3.connect(tmp_path / "agentik.db")
    assert db.execute("SELECT count(*) FROM mail GROUP BY session").fetchall() == [(1000,), (1000,)]
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


async def test_five_hundred_messages_of_two_processes_are_each_delivered_once_in_order(tmp_path: Path) -> None:  # B24
    await _unowned(tmp_path)
    owner = await _spawn(tmp_path, "drain", "500")
    assert await _said(owner) == {"owns": True}
    senders = [await _spawn(tmp_path, "send", name, "250") for name in ("one", "two")]
    for sender in senders:
        assert await _said(sender) == {"sent": 250}
    delivered = (await _said(owner))["delivered"]
    assert isinstance(delivered, list)
    for name in ("one", "two"):
        assert [one for one in delivered if one.startswith(name)] == [f"{name}-{number}" for number in range(250)]
    for process in (owner, *senders):
        _, errors = await process.communicate()
        assert (process.returncode, errors.decode()) == (0, "")


@pytest.mark.parametrize("how", ["kill -9", "closes"])
async def test_a_session_is_taken_over_when_its_owner_is_gone_and_not_before(tmp_path: Path, how: str) -> None:  # B59
    await _unowned(tmp_path)
    owner = await _spawn(tmp_path, "own")
    first = await _said(owner)
    running = await Running.open(tmp_path)

    async def take() -> saves.Taken:
        taken = await running.do(saves.TakeSession("s", running.opened.server_id, True, 1))
        assert isinstance(taken, saves.Taken)
        return taken

    assert (await take()).owner is None
    if how == "kill -9":
        os.kill(owner.pid, signal.SIGKILL)
    await owner.communicate(b"")
    assert (await take()).owner == Owner(running.opened.server_id, int(str(first["generation"])) + 1)
    await running.close()


@dataclass
class _Race:
    """One thread removes, the other claims, both from the head on, over and over."""

    path: Path
    rounds: int = 50
    items: int = 20
    start: threading.Barrier = field(default_factory=lambda: threading.Barrier(3))
    removed: list[str] = field(default_factory=list)
    too_late: list[str] = field(default_factory=list)
    delivered: list[str] = field(default_factory=list)

    def alone(self, db: sqlite3.Connection, write: saves.Write) -> saves.Outcome:
        db.execute("BEGIN IMMEDIATE")
        outcome = perform(db, write)
        db.execute("COMMIT")
        return outcome

    def fill(self, db: sqlite3.Connection, number: int) -> None:
        for item in range(self.items):
            draft = Draft(f"m{number}-{item}", "text")
            self.alone(db, saves.Admit("s", ME, draft, QueueLimits(), False, False, "", 0, 1))

    def remove(self, db: sqlite3.Connection, number: int) -> None:
        for item in range(self.items):
            message_id = f"m{number}-{item}"
            outcome = self.alone(db, saves.RemovePending("s", message_id))
            if isinstance(outcome, saves.Done):
                self.removed.append(message_id)
            else:
                assert isinstance(outcome, saves.Denied)
                assert outcome.reason == "alreadyDelivered"
                self.too_late.append(message_id)

    def claim(self, db: sqlite3.Connection, number: int) -> None:
        for turn in range(self.items + 1):
            turn_id = f"t{number}-{turn}"
            outcome = self.alone(db, saves.Claim("s", ME, turn_id, 1, False, 1))
            assert isinstance(outcome, saves.Claimed)
            if not outcome.messages:
                return
            self.delivered.append(outcome.messages[0].message_id)
            self.alone(db, saves.EndTurn("s", ME, turn_id, "end_turn", "complete", (), None, 1))

    def run(self, work: Callable[[sqlite3.Connection, int], None]) -> None:
        with contextlib.closing(self.connect()) as db:
            try:
                for number in range(self.rounds):
                    self.start.wait(30)
                    work(db, number)
                    self.start.wait(30)
            except BaseException:
                self.start.abort()
                raise

    def connect(self) -> sqlite3.Connection:
        db = opening.connect(self.path)
        db.execute("PRAGMA synchronous = OFF")  # the race is about locks, not about the disk
        return db


def test_a_thousand_removes_race_with_a_thousand_claims_and_every_reply_is_true(tmp_path: Path) -> None:  # B14
    race = _Race(tmp_path / "x.db")
    with contextlib.closing(race.connect()) as db, ThreadPoolExecutor(2) as pool:
        migrate(db)
        opening._use_wal(db)
        perform(db, saves.CreateSession(SessionFacts("s", "demo", "/", "", 1, 1, owner=ME)))
        working = [pool.submit(race.run, work) for work in (race.remove, race.claim)]
        with contextlib.suppress(threading.BrokenBarrierError):  # then the threads say why
            for number in range(race.rounds):
                race.fill(db, number)
                race.start.wait(30)
                race.start.wait(30)
        for thread in working:
            thread.result()
    assert len(race.removed) + len(race.delivered) == race.rounds * race.items == 1000
    assert sorted(race.too_late) == sorted(race.delivered)
    assert not set(race.removed) & set(race.delivered)
    assert race.removed
    assert race.delivered
