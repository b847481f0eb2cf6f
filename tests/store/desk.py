"""One database and the writes of one owner with short names. Must not know a rule of the product."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from agentik_server.domain import saves
from agentik_server.domain.message import Attachment, Message, MessageKind, MessageStatus
from agentik_server.domain.pending import Draft, Pause, QueueLimits, QueueView
from agentik_server.domain.saves import Owner, SessionFacts
from agentik_server.store import purging
from agentik_server.store.migrations import migrate
from agentik_server.store.reads import fetch
from agentik_server.store.transactions import nobody_else, perform

ME = Owner("me", 1)
LIMITS = QueueLimits()


def memory() -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db)
    return db


class Desk:
    """`db`: migrated. Times count up by one with each write; `seq` counts up as an owner's does."""

    def __init__(self, db: sqlite3.Connection | None = None, is_alive: Callable[[str], bool] = nobody_else) -> None:
        self.db = memory() if db is None else db
        self.is_alive = is_alive
        self.now = 1000
        self.seq = 0

    def do(self, write: saves.Write) -> saves.Outcome:
        self.now += 1
        return perform(self.db, write, is_alive=self.is_alive)

    def done(self, write: saves.Write) -> saves.Done:
        outcome = self.do(write)
        assert isinstance(outcome, saves.Done), outcome
        return outcome

    def session(self, session_id: str = "s", owner: Owner | None = ME, **facts: object) -> saves.SessionFacts:
        values: dict[str, object] = {"agent_id": "demo", "cwd": "/home/me", "title": "", "created_at": self.now}
        values |= {"updated_at": self.now, **facts}
        row = SessionFacts(session_id=session_id, owner=owner, **values)  # type: ignore[arg-type]
        made = self.done(saves.CreateSession(row)).facts
        assert made is not None
        return made

    def send(
        self,
        message_id: str,
        text: str | None = None,
        *,
        session_id: str = "s",
        owner: Owner | None = ME,
        free: bool = False,
        urgent: bool = False,
        attachments: tuple[Attachment, ...] = (),
        limits: QueueLimits = LIMITS,
    ) -> saves.Outcome:
        """Queued, unless `free`: then straight into the turn `t-ID`."""
        draft = Draft(message_id, f"text of {message_id}" if text is None else text, attachments)
        self.seq += 1
        write = saves.Admit(session_id, owner, draft, limits, free, urgent, f"t-{message_id}", self.seq, self.now)
        return self.do(write)

    def admitted(self, message_id: str, text: str | None = None, **how: object) -> saves.Admitted:
        outcome = self.send(message_id, text, **how)  # type: ignore[arg-type]
        assert isinstance(outcome, saves.Admitted), outcome
        return outcome

    def claim(self, turn_id: str = "t", *, take_all: bool = False, owner: Owner = ME) -> saves.Claimed:
        outcome = self.do(saves.Claim("s", owner, turn_id, self.seq + 1, take_all, self.now))
        assert isinstance(outcome, saves.Claimed), outcome
        self.seq += len(outcome.messages)
        return outcome

    def journal(self, turn_id: str, owner: Owner = ME) -> saves.Done:
        return self.done(saves.Journal("s", owner, turn_id))

    def put_back(self, turn_id: str, pause: Pause | None = None) -> saves.Done:
        return self.done(saves.PutBack("s", ME, turn_id, pause))

    def end(
        self,
        turn_id: str,
        *messages: Message,
        status: MessageStatus = "complete",
        reason: str = "end_turn",
        pause: Pause | None = None,
    ) -> saves.Done:
        return self.done(saves.EndTurn("s", ME, turn_id, reason, status, messages, pause, self.now))

    def save(self, *messages: Message, session_id: str = "s", owner: Owner = ME) -> saves.Done:
        return self.done(saves.SaveMessages(session_id, owner, messages, self.now))

    def message(
        self,
        message_id: str,
        text: str = "some words",
        *,
        kind: MessageKind = "agent",
        status: MessageStatus = "complete",
        session_id: str = "s",
        seq: int | None = None,
        **more: object,
    ) -> Message:
        if seq is None:
            self.seq += 1
            seq = self.seq
        return Message(message_id, session_id, seq, kind, text, status, self.now, **more)  # type: ignore[arg-type]

    def page(self, session_id: str = "s", after: int | None = None, limit: int = 200) -> saves.SessionPage:
        page = fetch(self.db, saves.ReadSession(session_id, after, limit))
        assert isinstance(page, saves.SessionPage), page
        return page

    def queue(self, session_id: str = "s") -> QueueView:
        return self.page(session_id).queue

    def waiting(self, session_id: str = "s") -> list[str]:
        return [item.message_id for item in self.queue(session_id).items]

    def transcript(self, session_id: str = "s") -> list[tuple[str, str]]:
        return [(message.message_id, message.status) for message in self.page(session_id).messages]

    def revision(self) -> int:
        return int(self.db.execute("SELECT revision FROM meta").fetchone()[0])

    def purge(self) -> int:
        """What was deleted leaves the disk; returns the number of steps."""
        steps = 0
        while purging.step(self.db):
            steps += 1
        return steps

    def dump(self) -> list[tuple[object, ...]]:
        """Everything in the database, to show that something changed nothing."""
        tables = ("meta", "sessions", "messages", "pending", "turns", "submissions", "asks", "mail", "attachment_uses")
        return [(table, *row) for table in tables for row in self.db.execute(f"SELECT * FROM {table}")]


def denied(outcome: saves.Outcome) -> str:
    """The reason of a refusal."""
    assert isinstance(outcome, saves.Denied), outcome
    return outcome.reason
