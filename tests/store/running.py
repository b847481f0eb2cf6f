"""A store that runs on a real folder, asked with `await`. Must not know a rule of the product."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import TypeVar

from agentik_server.domain import saves
from agentik_server.domain.message import Attachment
from agentik_server.domain.pending import Draft, QueueLimits
from agentik_server.domain.saves import Owner, SessionFacts
from agentik_server.store.database import Opened, SqliteStore

LIMITS = QueueLimits()
Value = TypeVar("Value")


class Running:
    """`me`: the owner of the sessions made here."""

    def __init__(self, opened: Opened, home: Path) -> None:
        self.opened = opened
        self.store = opened.store
        self.home = home
        self.me = Owner(opened.server_id, 1)
        self.seq = 0

    @classmethod
    async def open(cls, home: Path, factory: type[sqlite3.Connection] = sqlite3.Connection) -> Running:
        return cls(await SqliteStore.open(home, factory=factory), home)

    async def reopen(self) -> None:
        """Another server on the same folder, after `close`."""
        self.opened = await SqliteStore.open(self.home)
        self.store = self.opened.store

    async def close(self) -> None:
        await self.store.close()

    async def do(self, write: saves.Write) -> saves.Outcome:
        future: asyncio.Future[saves.Outcome] = asyncio.get_running_loop().create_future()
        self.store.write(write, future.set_result)
        return await future

    async def done(self, write: saves.Write) -> saves.Done:
        outcome = await self.do(write)
        assert isinstance(outcome, saves.Done), outcome
        return outcome

    async def read(self, read: saves.Read) -> saves.Page:
        future: asyncio.Future[saves.Page] = asyncio.get_running_loop().create_future()
        self.store.read(read, future.set_result)
        return await future

    async def page(self, session_id: str = "s") -> saves.SessionPage:
        page = await self.read(saves.ReadSession(session_id))
        assert isinstance(page, saves.SessionPage), page
        return page

    async def session(self, session_id: str = "s", cwd: str = "/") -> None:
        await self.done(saves.CreateSession(SessionFacts(session_id, "demo", cwd, "", 1, 1, owner=self.me)))

    def admit(
        self, message_id: str, text: str = "words", *attachments: Attachment, session_id: str = "s", free: bool = False
    ) -> saves.Admit:
        self.seq += 1
        draft = Draft(message_id, text, attachments)
        return saves.Admit(session_id, self.me, draft, LIMITS, free, False, f"t-{message_id}", self.seq, 2)

    async def send(
        self, message_id: str, text: str = "words", *attachments: Attachment, session_id: str = "s", free: bool = False
    ) -> saves.Admitted:
        outcome = await self.do(self.admit(message_id, text, *attachments, session_id=session_id, free=free))
        assert isinstance(outcome, saves.Admitted), outcome
        return outcome

    def on_disk(self, words: bytes) -> list[str]:
        """The files under the home folder that hold these bytes."""
        files = [path for path in self.home.rglob("*") if path.is_file()]
        return sorted(str(path.relative_to(self.home)) for path in files if words in path.read_bytes())
