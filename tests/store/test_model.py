"""Random schedules of writes from two processes' connections equal a simple model; a mirror equals a fresh read."""

from __future__ import annotations

import sqlite3
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentik_server.domain import saves
from agentik_server.domain.message import Message
from agentik_server.domain.pending import Draft, Pause, QueueLimits
from agentik_server.domain.saves import Owner
from agentik_server.store import opening
from agentik_server.store.migrations import migrate
from agentik_server.store.reads import fetch
from agentik_server.store.transactions import perform

LIMITS = QueueLimits(max_items=6)
SIDES = ("one", "two")
side = st.sampled_from(SIDES)
which = st.integers(0, 8)


@dataclass
class Model:
    """What a person would say is there."""

    waiting: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    urgent: set[str] = field(default_factory=set)
    pause: str | None = None
    turn: list[str] | None = None
    journaled: bool = False
    transcript: list[tuple[str, str]] = field(default_factory=list)
    outcome: dict[str, str] = field(default_factory=dict)

    def settle(self) -> None:
        if self.turn is None and not self.waiting:
            self.pause = None

    def pause_by_itself(self, reason: str | None) -> None:
        if reason is not None and self.pause != "user":
            self.pause = reason
        self.settle()

    def enter(self, message_id: str, *, urgent: bool) -> None:
        self.waiting.insert(0 if urgent else len(self.waiting), message_id)
        if urgent:
            self.urgent.add(message_id)
        if self.pause != "user":
            self.pause = None

    def leave(self, message_id: str) -> None:
        self.waiting.remove(message_id)
        self.urgent.discard(message_id)
        self.outcome[message_id] = "removed"
        self.settle()

    def end(self, status: str) -> None:
        assert self.turn is not None
        taken = set(self.turn)
        self.transcript = [(name, status if name in taken else old) for name, old in self.transcript]
        self.turn = None

    def put_back(self) -> None:
        assert self.turn is not None
        self.transcript = [entry for entry in self.transcript if entry[0] not in self.turn]
        before = [name for name in self.waiting if name in self.urgent]
        after = [name for name in self.waiting if name not in self.urgent]
        self.waiting = before + self.turn + after
        self.turn = None


class TwoConnections(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name, "x.db")
        self.db: dict[str, sqlite3.Connection] = {name: opening.connect(path) for name in SIDES}
        migrate(self.db["one"])
        opening._use_wal(self.db["one"])
        for db in self.db.values():
            db.execute("PRAGMA synchronous = OFF")
        self.owner = Owner("one", 1)
        self.model = Model()
        self.count = 0
        self.seq = 0
        self.now = 100
        self.mirror: dict[str, Message] = {}
        self.known = 0
        facts = saves.SessionFacts("s", "demo", "/", "", 1, 1, owner=self.owner)
        assert isinstance(self.do("one", saves.CreateSession(facts)), saves.Done)

    def teardown(self) -> None:
        for db in self.db.values():
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            db.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
            db.close()
        self.folder.cleanup()

    # ------------------------------------------------------------------------------------------ means

    def do(self, name: str, write: saves.Write) -> saves.Outcome:
        self.now += 1
        db = self.db[name]
        db.execute("BEGIN IMMEDIATE")
        outcome = perform(db, write, is_alive=lambda server_id: server_id == self.owner.server_id)
        db.execute("COMMIT")
        return outcome

    def as_owner(self, write: saves.Write) -> saves.Outcome:
        return self.do(self.owner.server_id, write)

    def pick(self, index: int) -> str:
        """A waiting item, or what is no waiting item any more, or never was."""
        names = [*self.model.waiting, *(name for name, _ in self.model.transcript), "never"]
        return names[index % len(names)]

    def refused(self, outcome: saves.Outcome, message_id: str) -> bool:
        """Whether an edit of this item is too late; then the refusal tells the truth (B14)."""
        if message_id in self.model.waiting:
            assert isinstance(outcome, saves.Done), outcome
            return False
        assert isinstance(outcome, saves.Denied)
        users = {name for name, _ in self.model.transcript if not name.startswith("a")}
        in_transcript = message_id in users
        assert outcome.reason == ("alreadyDelivered" if in_transcript else "unknownMessage")
        return True

    # ------------------------------------------------------------------------------------------ sending

    @rule(by=side, urgent=st.booleans())
    def send(self, by: str, urgent: bool) -> None:
        model = self.model
        self.count += 1
        message_id = f"m{self.count}"
        mine = by == self.owner.server_id
        free = mine and model.turn is None
        self.seq += 1
        draft = Draft(message_id, f"text {message_id}")
        owner = self.owner if mine else None
        outcome = self.do(
            by, saves.Admit("s", owner, draft, LIMITS, free, urgent, f"t{self.count}", self.seq, self.now)
        )
        if free and not model.waiting:
            assert isinstance(outcome, saves.Admitted)
            assert outcome.disposition == "started"
            model.turn, model.journaled = [message_id], False
            model.transcript.append((message_id, "complete"))
        elif len(model.waiting) >= LIMITS.max_items:
            assert isinstance(outcome, saves.Denied)
            assert outcome.reason == "queueFull"
            return
        else:
            assert isinstance(outcome, saves.Admitted)
            assert outcome.disposition == "queued"
            model.enter(message_id, urgent=urgent)
        model.texts[message_id] = draft.text
        model.outcome[message_id] = outcome.disposition

    @precondition(lambda self: self.model.outcome)
    @rule(by=side, index=which)
    def send_again(self, by: str, index: int) -> None:  # B4
        names = list(self.model.outcome)
        message_id = names[index % len(names)]
        draft = Draft(message_id, f"text {message_id}")
        outcome = self.do(by, saves.Admit("s", None, draft, LIMITS, False, False, "t", 0, self.now))
        assert isinstance(outcome, saves.Admitted)
        assert (outcome.repeated, outcome.disposition) == (True, self.model.outcome[message_id])

    @precondition(lambda self: self.model.turn is None)
    @rule(index=which)
    def resend(self, index: int) -> None:  # B43
        model = self.model
        again = [name for name, status in model.transcript if status in {"unknown", "interrupted"} and "@" not in name]
        if not again:
            return
        message_id = again[index % len(again)]
        old_seq = self.mirror[message_id].seq
        self.count += 1
        self.seq += 1
        outcome = self.as_owner(
            saves.Resend("s", self.owner, message_id, True, f"t{self.count}", self.seq, LIMITS, self.now)
        )
        if model.waiting and len(model.waiting) >= LIMITS.max_items:
            assert isinstance(outcome, saves.Denied)
            return
        assert isinstance(outcome, saves.Admitted)
        place = next(index for index, entry in enumerate(model.transcript) if entry[0] == message_id)
        model.transcript[place] = (f"{message_id}@{old_seq}", model.transcript[place][1])
        if model.waiting:
            model.enter(message_id, urgent=False)
        else:
            model.transcript.append((message_id, "complete"))
            model.turn, model.journaled = [message_id], False

    # -------------------------------------------------------------------------------------------- turns

    @precondition(lambda self: self.model.turn is None)
    @rule(take_all=st.booleans())
    def claim(self, take_all: bool) -> None:  # B24
        model = self.model
        self.count += 1
        write = saves.Claim("s", self.owner, f"t{self.count}", self.seq + 1, take_all, self.now)
        outcome = self.as_owner(write)
        assert isinstance(outcome, saves.Claimed)
        expected = model.waiting if model.pause is None else []
        if model.pause is not None:
            for name in model.waiting:
                if name not in model.urgent:
                    break
                expected = [*expected, name]
        expected = list(expected if take_all else expected[:1])
        assert [message.message_id for message in outcome.messages] == expected
        assert [message.text for message in outcome.messages] == [model.texts[name] for name in expected]
        if expected:
            self.seq += len(expected)
            model.waiting = model.waiting[len(expected) :]
            model.transcript += [(name, "complete") for name in expected]
            model.turn, model.journaled = expected, False
            model.urgent.difference_update(expected)

    @precondition(lambda self: self.model.turn is not None and not self.model.journaled)
    @rule()
    def journal(self) -> None:
        assert isinstance(self.as_owner(saves.Journal("s", self.owner, self.turn_id())), saves.Done)
        self.model.journaled = True

    @precondition(lambda self: self.model.turn is not None and not self.model.journaled)
    @rule(reason=st.sampled_from([None, "start", "auth"]))
    def put_back(self, reason: str | None) -> None:  # B26
        pause = Pause(reason) if reason else None  # type: ignore[arg-type]
        assert isinstance(self.as_owner(saves.PutBack("s", self.owner, self.turn_id(), pause)), saves.Done)
        self.model.put_back()
        self.model.pause_by_itself(reason)

    @precondition(lambda self: self.model.turn is not None)
    @rule(status=st.sampled_from(["complete", "interrupted", "unknown"]), reason=st.sampled_from([None, "crash"]))
    def end(self, status: str, reason: str | None) -> None:
        self.seq += 1
        answer = Message(f"a{self.seq}", "s", self.seq, "agent", "an answer", "complete", self.now)
        pause = Pause(reason) if reason else None  # type: ignore[arg-type]
        write = saves.EndTurn("s", self.owner, self.turn_id(), "x", status, (answer,), pause, self.now)  # type: ignore[arg-type]
        assert isinstance(self.as_owner(write), saves.Done)
        self.model.end(status)
        self.model.transcript.append((answer.message_id, "complete"))
        self.model.pause_by_itself(reason)

    @rule(run=st.booleans())
    def owner_dies(self, run: bool) -> None:  # B59 B60
        model, dead = self.model, self.owner
        heir = next(name for name in SIDES if name != dead.server_id)
        self.owner = Owner(heir, dead.generation + 1)
        taken = self.do(heir, saves.TakeSession("s", heir, not run, self.now))
        assert isinstance(taken, saves.Taken)
        assert taken.owner == self.owner
        assert self.do(dead.server_id, saves.Claim("s", dead, "late", 999, False, self.now)) == saves.Fenced()
        if model.turn is not None and model.journaled:
            model.end("unknown")
        elif model.turn is not None:
            model.put_back()
        if model.waiting and not run:
            model.urgent.clear()
            model.pause_by_itself("restore")
        model.settle()
        self.seq = max(self.seq, taken.next_seq - 1)

    # -------------------------------------------------------------------------------------------- edits

    @rule(by=side, index=which)
    def edit(self, by: str, index: int) -> None:  # B13
        message_id = self.pick(index)
        self.count += 1
        text = f"edited {self.count}"
        if not self.refused(self.do(by, saves.EditPending("s", Draft(message_id, text), True, LIMITS)), message_id):
            self.model.texts[message_id] = text

    @rule(by=side, index=which, position=st.integers(-2, 9))
    def move(self, by: str, index: int, position: int) -> None:  # B15
        message_id = self.pick(index)
        if not self.refused(self.do(by, saves.MovePending("s", message_id, position)), message_id):
            self.model.waiting.remove(message_id)
            self.model.waiting.insert(max(0, position), message_id)

    @rule(by=side, index=which)
    def remove(self, by: str, index: int) -> None:
        message_id = self.pick(index)
        if not self.refused(self.do(by, saves.RemovePending("s", message_id)), message_id):
            self.model.leave(message_id)

    @rule(by=side, index=which)
    def send_now(self, by: str, index: int) -> None:
        message_id = self.pick(index)
        if not self.refused(self.do(by, saves.SendPendingNow("s", message_id)), message_id):
            self.model.waiting.remove(message_id)
            self.model.waiting.insert(0, message_id)
            self.model.urgent.add(message_id)
            self.model.pause = None

    @rule(by=side)
    def clear(self, by: str) -> None:  # B18
        assert isinstance(self.do(by, saves.ClearPending("s")), saves.Done)
        for message_id in list(self.model.waiting):
            self.model.leave(message_id)

    @rule(by=side, paused=st.booleans())
    def pause(self, by: str, paused: bool) -> None:  # B28
        assert isinstance(self.do(by, saves.PauseQueue("s", paused)), saves.Done)
        self.model.pause = "user" if paused else None
        self.model.settle()

    # --------------------------------------------------------------------------------------- what holds

    @invariant()
    def both_connections_show_the_model(self) -> None:
        for name in SIDES:
            page = fetch(self.db[name], saves.ReadSession("s"))
            assert isinstance(page, saves.SessionPage)
            assert [item.message_id for item in page.queue.items] == self.model.waiting
            assert [item.text for item in page.queue.items] == [self.model.texts[name] for name in self.model.waiting]
            assert (page.queue.pause.reason if page.queue.pause else None) == self.model.pause
            assert page.queue.urgent == bool(self.model.waiting and self.model.waiting[0] in self.model.urgent)
            assert [(message.message_id, message.status) for message in page.messages] == self.model.transcript
            assert page.facts.pending_count == len(self.model.waiting)

    @invariant()
    def a_mirror_that_takes_only_what_is_new_equals_a_fresh_read(self) -> None:  # B54 B55
        page = fetch(self.db["two"], saves.ReadSession("s", after=self.known))
        fresh = fetch(self.db["one"], saves.ReadSession("s", limit=10_000))
        assert isinstance(page, saves.SessionPage)
        assert isinstance(fresh, saves.SessionPage)
        for message in page.messages:
            assert message.revision > self.known
            self.mirror[message.message_id] = message
        self.known = page.revision
        alive = sorted((one for one in self.mirror.values() if not one.deleted), key=lambda one: one.seq)
        assert tuple(alive) == fresh.messages

    @invariant()
    def no_message_is_lost_or_doubled(self) -> None:
        places = [*self.model.waiting, *(name for name, _ in self.model.transcript if name in self.model.outcome)]
        assert len(places) == len(set(places))
        gone = {name for name, outcome in self.model.outcome.items() if outcome == "removed"}
        assert set(places) == set(self.model.outcome) - gone

    def turn_id(self) -> str:
        row = self.db["one"].execute("SELECT turn_id FROM turns WHERE ended_at IS NULL").fetchone()
        return str(row[0])


TestTwoConnections = TwoConnections.TestCase
TestTwoConnections.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
