"""The port `Store` over aiosqlite: one connection that writes, one that reads, each with its own thread.

Nothing waits for a lock or a disk on the event loop. Writes of one loop turn share a commit (B5, law 7); what is told
to the application is told after the commit, in order.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import aiosqlite

from agentik_server.domain import saves
from agentik_server.domain.saves import Failed, Outcome, Page, Read, Write
from agentik_server.store import opening
from agentik_server.store.attachments import AttachmentFiles
from agentik_server.store.groups import GroupWriter
from agentik_server.store.locks import ServerLock
from agentik_server.store.reads import fetch

log = logging.getLogger(__name__)

GROUP_AT_MOST = 256  # writes of one commit
POLL_S = 0.1  # for commits of other processes

Result = TypeVar("Result")


class ThreadedConnection(aiosqlite.Connection):
    """A connection with its thread; whole functions run there, not single statements."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        self._thread.daemon = True  # an end in disorder must not wait for it: what was not told is not promised

    async def run(self, function: Callable[[sqlite3.Connection], Result]) -> Result:
        """`function(db)` in the connection's thread; raises what it raises."""
        result: Result = await self._execute(lambda: function(self._conn))  # type: ignore[no-untyped-call]
        return result


@dataclass(frozen=True, slots=True)
class Opened:
    """`notices`: for the person (a database was set aside, B58)."""

    store: SqliteStore
    server_id: str
    database_id: str
    notices: tuple[str, ...]


class SqliteStore:
    """See the module. Made by `open`; calls come from one event loop."""

    def __init__(
        self, writer: ThreadedConnection, reader: ThreadedConnection, work: GroupWriter, lock: ServerLock
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._work = work
        self._lock = lock
        self._writes: deque[tuple[Write, Callable[[Outcome], None]]] = deque()
        self._reads: deque[tuple[Read, Callable[[Page], None]]] = deque()
        self._write_wake = asyncio.Event()
        self._write_wake.set()  # something that was deleted may have to be finished
        self._read_wake = asyncio.Event()
        self._closing = False
        self._on_foreign_change: Callable[[], None] | None = None
        self._tasks = [asyncio.create_task(self._write_loop()), asyncio.create_task(self._read_loop())]
        self._poll: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, home: Path, *, factory: type[sqlite3.Connection] = sqlite3.Connection) -> Opened:
        """Open `home/agentik.db`. `factory`: the class of the writing connection. Raises StoreUnavailable."""
        lock = ServerLock(home)
        prepared = await asyncio.to_thread(opening.prepare, home, lock)
        try:
            writer = ThreadedConnection(partial(opening.connect, prepared.path, factory))
            await writer
            reader = ThreadedConnection(partial(opening.connect, prepared.path, read_only=True))
            await reader
        except sqlite3.Error as error:
            lock.release(clean=False)
            raise opening.StoreUnavailable(f"cannot open the database {prepared.path}: {error}") from error
        work = GroupWriter(AttachmentFiles(home / "attachments"), lock.is_alive)
        await writer.run(work.begin)
        store = cls(writer, reader, work, lock)
        return Opened(store, prepared.server_id, prepared.database_id, prepared.notices)

    # ------------------------------------------------------------------------------------ the port

    def write(self, write: Write, done: Callable[[Outcome], None]) -> None:
        """See ports.Store. After `close` nothing is carried out any more."""
        if self._closing:
            asyncio.get_running_loop().call_soon(done, Failed("the store is closed"))
            return
        self._writes.append((write, done))
        self._write_wake.set()

    def read(self, read: Read, done: Callable[[Page], None]) -> None:
        """See ports.Store."""
        if self._closing:
            asyncio.get_running_loop().call_soon(done, Failed("the store is closed"))
            return
        self._reads.append((read, done))
        self._read_wake.set()

    def watch(self, on_foreign_change: Callable[[], None]) -> None:
        """From now on `on_foreign_change` is called, on the event loop, when another process committed (B59)."""
        self._on_foreign_change = on_foreign_change
        if self._poll is None:
            self._poll = asyncio.create_task(self._poll_loop())

    async def close(self) -> None:
        """Carry out what was asked before, then close in order; the last call."""
        self._closing = True
        self._write_wake.set()
        self._read_wake.set()
        if self._poll is not None:
            self._poll.cancel()
            await asyncio.wait([self._poll])
        await asyncio.gather(*self._tasks)
        clean = await self._writer.run(self._work.finish)
        await self._reader.close()
        await self._writer.close()
        self._lock.release(clean=clean)

    # --------------------------------------------------------------------------------------- loops

    async def _write_loop(self) -> None:
        while True:
            await self._write_wake.wait()
            self._write_wake.clear()
            while self._writes:
                group = [self._writes.popleft() for _ in range(min(len(self._writes), GROUP_AT_MOST))]
                outcomes = await self._carry_out([write for write, _ in group])
                for (_, done), outcome in zip(group, outcomes, strict=True):
                    _call(partial(done, outcome))
            while self._work.is_purging and not self._writes and not self._closing:
                await self._writer.run(self._work.purge)
            if self._closing and not self._writes:
                return

    async def _carry_out(self, writes: list[Write]) -> list[Outcome]:
        try:
            return await self._writer.run(partial(self._work.carry_out, writes=writes))
        except Exception:
            log.exception("a group of writes failed")
            return [Failed("internal error, see the log") for _ in writes]

    async def _read_loop(self) -> None:
        while True:
            await self._read_wake.wait()
            self._read_wake.clear()
            while self._reads:
                read, done = self._reads.popleft()
                _call(partial(done, await self._reader.run(partial(_fetch, read=read))))
            if self._closing:
                return

    async def _poll_loop(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            if await self._writer.run(self._work.look) and self._on_foreign_change is not None:
                _call(self._on_foreign_change)


def _call(callback: Callable[[], None]) -> None:
    """A bug of a listener must not end the store: it is logged, the others are told."""
    try:
        callback()
    except Exception:
        log.exception("a callback of the store failed")


def _fetch(db: sqlite3.Connection, read: Read) -> Page:
    try:
        db.execute("BEGIN")
        try:
            return fetch(db, read)
        finally:
            if db.in_transaction:
                db.execute("COMMIT")
    except (sqlite3.Error, UnicodeError, OverflowError) as error:
        log.warning("a read failed: %s", error)
        return saves.Failed(f"the database could not be read: {error}")
