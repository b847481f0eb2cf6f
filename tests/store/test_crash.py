"""Killed between any two statements: nothing acknowledged is lost, nothing is doubled, the file is whole.

A forked process carries the writes out as the server would and dies (`os._exit`, as by kill -9) before its n-th
statement, for every n. What it acknowledged it says through a pipe. Then another process takes over.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentik_server.domain import saves
from agentik_server.domain.message import Attachment, Message
from agentik_server.domain.pending import Draft, Pause, QueueLimits
from agentik_server.domain.saves import Owner, SessionFacts
from agentik_server.store import opening
from agentik_server.store.attachments import AttachmentFiles
from agentik_server.store.groups import GroupWriter
from agentik_server.store.migrations import migrate
from agentik_server.store.reads import fetch
from tests.store.faulty import FaultyConnection

LIMITS = QueueLimits()
DEAD, HEIR = Owner("dead", 1), Owner("heir", 2)


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dying process has written stays in the system's cache; only a power cut needs the fsync."""
    monkeypatch.setattr(GroupWriter, "_set_durable", lambda self, db, durable: db.execute("PRAGMA synchronous = OFF"))


class Mortal(FaultyConnection):
    """The connection of the process that dies."""


@dataclass
class Server:
    """One process on the database; `say` tells what it acknowledged or gave to the agent."""

    db: sqlite3.Connection
    folder: Path
    owner: Owner
    say: Callable[[str], None]
    work: GroupWriter = field(init=False)
    seq: int = 0

    def __post_init__(self) -> None:
        self.work = GroupWriter(AttachmentFiles(self.folder / "attachments"), lambda server_id: False)

    def do(self, *writes: saves.Write) -> list[saves.Outcome]:
        outcomes = self.work.carry_out(self.db, writes)
        for write, outcome in zip(writes, outcomes, strict=True):
            if isinstance(write, saves.Admit) and isinstance(outcome, saves.Admitted):
                self.say(f"acknowledged {write.draft.message_id}")
        return outcomes

    def send(self, message_id: str, *, free: bool = False, urgent: bool = False, file: str = "") -> saves.Admit:
        self.seq += 1
        attachments = (Attachment(f"/x/{file}", text=f"content {file}"),) if file else ()
        draft = Draft(message_id, f"text {message_id}", attachments)
        return saves.Admit("s", self.owner, draft, LIMITS, free, urgent, f"t-{message_id}", self.seq, 5)

    def prompt(self, turn_id: str, *message_ids: str) -> None:
        """Journal; after its commit the prompt goes to the agent."""
        (outcome,) = self.do(saves.Journal("s", self.owner, turn_id))
        if isinstance(outcome, saves.Done):
            for message_id in message_ids:
                self.say(f"delivered {message_id}")

    def claim(self, turn_id: str, *, take_all: bool = False) -> list[str]:
        (outcome,) = self.do(saves.Claim("s", self.owner, turn_id, self.seq + 1, take_all, 6))
        assert isinstance(outcome, saves.Claimed), outcome
        self.seq += len(outcome.messages)
        return [message.message_id for message in outcome.messages]

    def end(self, turn_id: str) -> None:
        self.seq += 1
        answer = Message(f"answer-{turn_id}", "s", self.seq, "agent", "an answer", "complete", 7, turn_id)
        self.do(saves.EndTurn("s", self.owner, turn_id, "end_turn", "complete", (answer,), None, 8))


def _life(server: Server) -> None:
    """A direct message, queued ones, a group, edits, a claim, a put-back, a removal: every kind of step of a send."""
    server.do(saves.CreateSession(SessionFacts("s", "demo", "/", "", 1, 1, owner=server.owner)))
    server.do(server.send("direct", free=True, file="one"))
    server.prompt("t-direct", "direct")
    server.do(saves.SaveMessages("s", server.owner, (Message("half", "s", 50, "agent", "half", "streaming", 5),), 5))
    server.do(server.send("a"), server.send("b", file="two"), server.send("c"))
    server.do(saves.EditPending("s", Draft("c", "text c"), True, LIMITS), saves.MovePending("s", "c", 0))
    server.end("t-direct")
    server.claim("t1")
    server.do(saves.PutBack("s", server.owner, "t1", Pause("start")))
    server.do(server.send("now", urgent=True))
    server.prompt("t2", *server.claim("t2"))
    server.end("t2")
    server.do(server.send("gone", file="three"))
    if isinstance(server.do(saves.RemovePending("s", "gone"))[0], saves.Done):
        server.say("removed gone")
    server.prompt("t3", *server.claim("t3", take_all=True))


def _die_before(statement: int, home: Path) -> list[str] | None:
    """What the forked process said until it died; None when it lived through all of its life."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        left = statement

        def before(sql: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os._exit(9)

        try:
            db = opening.connect(home / "agentik.db", Mortal)
            Mortal.before = staticmethod(before)
            _life(Server(db, home, DEAD, lambda line: os.write(writing, f"{line}\n".encode()) and None))
            os._exit(0)
        finally:
            os._exit(70)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in {0, 9}, f"the life failed before statement {statement}: {said}"
    return said if code == 9 else None


def _check_heir(home: Path, said: list[str]) -> None:
    """Another process takes over: all that was acknowledged is there once; what was delivered is not sent again."""
    db = opening.connect(home / "agentik.db")
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
    delivered = [line.split()[1] for line in said if line.startswith("delivered")]
    acknowledged = [line.split()[1] for line in said if line.startswith("acknowledged")]
    server = Server(db, home, HEIR, said.append)
    taken = server.do(saves.TakeSession("s", "heir", True, 9))[0]
    if isinstance(taken, saves.Denied):
        assert acknowledged == []
        db.close()
        return
    assert isinstance(taken, saves.Taken)
    server.seq = taken.next_seq - 1
    if "removed gone" in said:
        delivered.append("gone")
    page = fetch(db, saves.ReadSession("s", limit=1000))
    assert isinstance(page, saves.SessionPage)
    waiting = [item.message_id for item in page.queue.items]
    in_transcript = {message.message_id: message for message in page.messages if message.kind == "user"}
    for message_id in acknowledged:
        places = waiting.count(message_id) + (message_id in in_transcript)
        assert places == (0 if message_id == "gone" and "removed gone" in said else 1) or message_id == "gone", (
            message_id
        )
    for item in page.queue.items:
        for attachment in item.attachments:
            assert attachment.stored is not None
            assert Path(attachment.stored).read_text() == attachment_content(attachment)
    # The editor sends again what was not acknowledged to it (B4), and the person resumes.
    everything = ["direct", "a", "b", "c", "now", "gone"]
    for message_id in everything:
        server.do(server.send(message_id))
    server.do(saves.PauseQueue("s", False))
    again: list[str] = []
    while taken_now := server.claim(f"u{len(again)}"):
        again += taken_now
        server.prompt(f"u{len(again) - 1}", *taken_now)
        server.end(f"u{len(again) - 1}")
    assert len(again) == len(set(again))
    assert not set(again) & set(delivered), "sent twice"
    unknown = [name for name, message in in_transcript.items() if message.status == "unknown"]
    assert set(delivered) | set(again) | set(unknown) >= set(everything) - {"gone"}, "lost"
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


def attachment_content(attachment: Attachment) -> str:
    return f"content {Path(attachment.path).name}"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_killed_before_any_statement_nothing_is_lost_or_doubled(tmp_path: Path) -> None:  # B5 B24 B26 B43 B60
    fresh = tmp_path / "fresh.db"
    db = opening.connect(fresh)
    migrate(db)
    opening._use_wal(db)
    db.close()
    statement = 0
    while True:
        home = tmp_path / str(statement)
        home.mkdir()
        shutil.copy(fresh, home / "agentik.db")
        said = _die_before(statement, home)
        if said is None:
            break
        _check_heir(home, said)
        statement += 1
    assert statement > 250  # it was not a short life


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_whole_life_delivers_each_message_once(tmp_path: Path) -> None:
    """The life that the crashes cut short is a good one."""
    db = opening.connect(tmp_path / "agentik.db")
    migrate(db)
    said: list[str] = []
    _life(Server(db, tmp_path, DEAD, said.append))
    delivered = [line.split()[1] for line in said if line.startswith("delivered")]
    assert delivered == ["direct", "now", "c", "a", "b"]
    db.close()
