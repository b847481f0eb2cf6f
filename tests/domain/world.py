"""A whole server without processes: the real application, domain and SQL; agents, time, crashes are the test's.

Nothing happens by itself: each step (a write reaches the disk, the agent answers, a timer fires, the server dies) is
chosen by the caller, so that every schedule can be played and replayed. Must not contain rules of the product.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentik_server.app import App, AppSettings, Ports
from agentik_server.domain import happenings as told
from agentik_server.domain import saves
from agentik_server.domain.happenings import Controls, Happening
from agentik_server.domain.policy import SessionPolicy
from agentik_server.ports import AgentListing, AgentSpec, Launch, PromptBlock
from agentik_server.requests import Requests
from agentik_server.store.migrations import migrate
from agentik_server.store.reads import fetch
from agentik_server.store.transactions import perform_in_group, with_queues


class QueuedStore:
    """The real transactions on a real connection; each is carried out when the test says so."""

    def __init__(self, db: sqlite3.Connection, is_alive: Callable[[str], bool]) -> None:
        self.db = db
        self.is_alive = is_alive
        self.queue: deque[tuple[saves.Write, Callable[[saves.Outcome], None]]] = deque()
        self.reads: deque[tuple[saves.Read, Callable[[saves.Page], None]]] = deque()

    def write(self, write: saves.Write, done: Callable[[saves.Outcome], None]) -> None:
        self.queue.append((write, done))

    def read(self, read: saves.Read, done: Callable[[saves.Page], None]) -> None:
        self.reads.append((read, done))

    def commit(self, count: int = 1, *, tell: bool = True) -> None:
        """The oldest writes are carried out as one group; without `tell` the server dies before it hears of it."""
        group = [self.queue.popleft() for _ in range(min(count, len(self.queue)))]
        writes = [write for write, _ in group]
        self.db.execute("BEGIN IMMEDIATE")
        outcomes = [perform_in_group(self.db, write, is_alive=self.is_alive) for write in writes]
        outcomes = with_queues(self.db, writes, outcomes)
        self.db.execute("COMMIT")
        if tell:
            for (_, done), outcome in zip(group, outcomes, strict=True):
                done(outcome)

    def answer_read(self) -> None:
        read, done = self.reads.popleft()
        done(fetch(self.db, read))


class ScriptedLink:
    """An agent whose every move is made by the test."""

    def __init__(self, world: World, session_id: str, tell: Callable[[Happening], None]) -> None:
        self.world, self.session_id, self._tell = world, session_id, tell
        self.state = "down"  # down | starting | up
        self.turn_id: str | None = None
        self.cancelled = False
        self.permissions: list[str] = []
        self.lingers = False
        self.start_waits = False

    def tell(self, happening: Happening) -> None:
        self._tell(happening)

    def start(self, launch: Launch, attempt: int) -> None:
        if self.state == "down":
            self.state = "starting"
            self.launch = launch
        elif self.state == "ending":
            self.start_waits = True

    def prompt(self, turn_id: str, blocks: Sequence[PromptBlock], *, quiet: bool) -> None:
        assert self.turn_id is None, "B3: two prompts open at one time"
        assert self.state == "up", "a prompt to an agent that is not there"
        self.turn_id = turn_id
        self.cancelled = False
        self.world.delivered.update(block.text for block in blocks)
        self.world.order.extend(block.text for block in blocks)
        self.tell(told.PromptWritten(turn_id))

    def cancel(self, turn_id: str) -> None:
        assert not self.cancelled, "B32: one session/cancel"
        self.cancelled = True

    def answer_permission(self, permission_id: str, option_id: str | None) -> None:
        if permission_id in self.permissions:
            self.permissions.remove(permission_id)

    def answer_question(self, question_id: str, action: str, content: object) -> None: ...

    def call(self, token: str, method: str, params: Mapping[str, object]) -> None:
        self.tell(told.CallAnswered(token, {"sessionId": "forked"} if method == "fork" else {}))

    def stop(self) -> None:
        self.end()

    def kill(self) -> None:
        self.end()

    def end(self) -> None:
        """At once, or (`lingers`) when the test says so; a start meanwhile waits for the end."""
        if self.lingers and self.state == "up":
            self.state = "ending"
        elif self.state != "ending":
            self.exit(wanted=True)

    # moves of the test

    def exit(self, *, wanted: bool = False) -> None:
        if self.state == "down":
            return
        starting, self.state, self.turn_id = self.state == "starting", "down", None
        self.permissions.clear()
        if self.start_waits:
            self.state, self.start_waits = "starting", False
        if starting and not wanted:
            self.tell(told.StartFailed("failed", "the agent died at start"))
        else:
            self.tell(told.AgentExited("exit code 1", wanted))

    def become_ready(self) -> None:
        if self.state == "starting":
            self.state = "up"
            self.tell(told.AgentReady("agent-session", "new", context_reset=False, controls=Controls()))

    def answer(self, stop_reason: str | None = "end_turn", error: str | None = None) -> None:
        if self.turn_id is not None:
            turn_id, self.turn_id = self.turn_id, None
            self.permissions.clear()
            self.tell(told.PromptAnswered(turn_id, stop_reason, error))

    def ask(self) -> None:
        if self.turn_id is not None:
            permission_id = f"p{self.world.next_number()}"
            self.permissions.append(permission_id)
            tool = told.ToolChange(permission_id, title="edit", tool_kind="edit", status="pending")
            options = (told.PermissionOption("yes", "Yes", "allow_once"),)
            self.tell(told.PermissionAsked(permission_id, tool, options))


class ScriptedAgents:
    def __init__(self, world: World) -> None:
        self.world = world

    def link(self, session_id: str, tell: Callable[[Happening], None]) -> ScriptedLink:
        link = ScriptedLink(self.world, session_id, tell)
        self.world.links[session_id] = link
        return link

    def spec(self, agent_id: str | None) -> AgentSpec:
        return AgentSpec("scripted", "Scripted", ("scripted",))

    def listed(self) -> Sequence[AgentListing]:
        return ()

    def check(self, agent_id: str, done: Callable[[bool, str, Mapping[str, object] | None], None]) -> None:
        done(True, "", None)

    def list_sessions(
        self, agent_id: str, cwd: str, done: Callable[[Sequence[Mapping[str, object]] | None, str], None]
    ) -> None:
        done(self.world.at_agent, "")

    def processes(self) -> Sequence[Mapping[str, object]]:
        return ()


class SetTimers:
    def __init__(self) -> None:
        self.armed: dict[tuple[str, ...], float] = {}

    def set(self, name: tuple[str, ...], seconds: float) -> None:
        self.armed[name] = seconds

    def cancel(self, name: tuple[str, ...]) -> None:
        self.armed.pop(name, None)


@dataclass
class Answered:
    """The reply to one request."""

    value: Mapping[str, object] | None = None
    reason: str | None = None
    message: str = ""

    def result(self, value: object) -> None:
        assert self.value is None
        assert self.reason is None, "answered twice"
        assert isinstance(value, dict)
        self.value = value

    def refuse(self, reason: str, message: str, data: Mapping[str, object] | None = None) -> None:
        assert self.value is None
        assert self.reason is None, "answered twice"
        self.reason, self.message = reason, message


@dataclass
class Told:
    """What one editor was told, in order."""

    news: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        self.news.append((method.removeprefix("agentik/"), params))

    def of(self, method: str) -> list[Mapping[str, object]]:
        return [params for name, params in self.news if name == method]


class World:
    """One database and, one after another, servers on it. `beside`: a world whose database this one shares."""

    def __init__(self, policy: SessionPolicy | None = None, beside: World | None = None) -> None:
        self.db = beside.db if beside else sqlite3.connect(":memory:", isolation_level=None)
        migrate(self.db)
        self.policy = policy or SessionPolicy()
        self.delivered: Counter[str] = Counter()
        self.order: list[str] = []
        self.links: dict[str, ScriptedLink] = {}
        self.at_agent: list[Mapping[str, object]] = []
        self.time = 1_000_000
        self._number = 0
        self._name = "beside" if beside else "server"
        self._alive: set[str] = beside._alive if beside else set()
        self.boot()

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def boot(self) -> None:
        """A new server process."""
        server_id = f"{self._name}{self.next_number()}"
        self._alive.add(server_id)
        self._server_id = server_id
        self.store = QueuedStore(self.db, lambda name: name in self._alive)
        self.timers = SetTimers()
        self.editor = Told()
        self.links = {}
        ports = Ports(
            store=self.store,
            editor=self.editor,
            agents=ScriptedAgents(self),
            timers=self.timers,
            clock=lambda: self.time,
            new_id=lambda: f"session{self.next_number()}",
            server_id=server_id,
        )
        self.app = App(ports, AppSettings(policy=self.policy))
        self.requests = Requests(self.app)

    def die(self, *, commit_first: bool = False) -> None:
        """kill -9: what was not committed is gone, and nobody hears of what was. A new server boots."""
        if commit_first and self.store.queue:
            self.store.commit(tell=False)
        self._alive.discard(self._server_id)
        self.boot()

    def ask(self, method: str, **params: object) -> Answered:
        answered = Answered()
        self.requests.request(method, params, answered)
        return answered

    def finish(self, answered: Answered) -> Answered:
        """Let the disk work until the request is answered."""
        while answered.value is None and answered.reason is None:
            self.work()
        return answered

    def work(self) -> None:
        if self.store.queue:
            self.store.commit()
        elif self.store.reads:
            self.store.answer_read()
        else:
            raise AssertionError("nothing to do and no answer")

    def disk(self) -> None:
        """Everything that is asked of the disk is done."""
        while self.store.queue or self.store.reads:
            self.work()

    def fire(self, name: tuple[str, ...]) -> None:
        seconds = self.timers.armed.pop(name)
        self.time += int(seconds * 1000)
        self.app.timer_fired(name)

    def new_session(self) -> str:
        answer = self.finish(self.ask("newSession", cwd="/work"))
        assert answer.value is not None
        session_id = answer.value["session"]["sessionId"]  # type: ignore[index]
        self.disk()
        return str(session_id)

    def settle(self, session_id: str) -> None:
        """Everybody behaves from now on: agents start and answer, the user resumes what is paused."""
        for _ in range(10_000):
            self.disk()
            link = self.links.get(session_id)
            if link is not None and link.state == "starting":
                link.become_ready()
            elif link is not None and link.turn_id is not None:
                link.answer("cancelled" if link.cancelled else "end_turn")
            elif any(name[1] in {"retry", "save", "journal", "end", "hold"} for name in self.timers.armed):
                self.fire(
                    next(name for name in self.timers.armed if name[1] in {"retry", "save", "journal", "end", "hold"})
                )
            else:
                session = self.app.session(session_id)
                assert session is not None
                if session.is_free and not session.queue.items:
                    return
                self.finish(self.ask("resumeQueue", sessionId=session_id))
                self.app.tick()
        raise AssertionError("it never comes to rest")
