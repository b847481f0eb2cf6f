"""One life of an agent process and its ACP session: from spawn to the end of its group (B38 to B42).

Every step is told; the end comes once, whatever happens in whatever order. After the end the connection is used up:
`link.py` makes a new one. Must not decide when to start, stop, retry or time out a turn.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from pathlib import Path

from agentik_server.agents import controls
from agentik_server.agents.asks import OpenAsks
from agentik_server.agents.catalogue import quirks_of
from agentik_server.agents.clean import as_dict, one_line
from agentik_server.agents.client_methods import ClientMethods
from agentik_server.agents.exits import Exit
from agentik_server.agents.frames import Noise
from agentik_server.agents.handshake import AgentFacts, NotOpened, Opened, initialize, open_session
from agentik_server.agents.pacing import Pace
from agentik_server.agents.peer import Call, Peer, PeerClosed
from agentik_server.agents.pipes import BITE
from agentik_server.agents.process import STDIN_S, AgentProcess
from agentik_server.agents.replays import ReplayedHistory
from agentik_server.agents.tasks import Tasks
from agentik_server.agents.telling import Teller
from agentik_server.agents.trace import FrameTrace
from agentik_server.agents.turns import Turn
from agentik_server.agents.updates import CONTROL_KINDS, Updates
from agentik_server.domain.happenings import (
    Activity,
    AgentExited,
    AgentReady,
    Connection,
    ConnectionChanged,
    HistoryReplayed,
    PromptNotWritten,
    PromptWritten,
    StartFailed,
)
from agentik_server.ports import AgentPolicy, Launch, OpenBuffers, PromptBlock

OUTPUT_LIMIT = 16 * 1024 * 1024  # bytes that wait for an agent that does not read; then we do not read from it either
FETCH_FACTOR = 5  # times the limit for initialize, for an agent that a runner may have to download
SMALL_BITE = 16384  # bytes read at once from an agent that is paced: its waits are short then
EARLY_LIMIT = 2000  # updates kept that come before the session is known
REPLAY_QUIET_S = 0.1  # after load: so long without updates, before the session counts as up
LATE_REPLAY_QUIET_S = 0.4  # the same for agents that answer before their replay
REPLAY_LIMIT_S = 5.0
EOF_GRACE_S = 0.5  # from the end of stdin or stdout to the end of the process, else it is ended

log = logging.getLogger(__name__)
_names = itertools.count(1)


class Phase(Enum):
    STARTING = "starting"
    LOGIN = "login"  # initialized, but it opens no session before authenticate
    UP = "up"
    ENDING = "ending"
    ENDED = "ended"


class AgentConnection:
    """See the module. `gone` is called once when all is over, before the last happening is told."""

    def __init__(
        self, launch: Launch, attempt: int, policy: AgentPolicy, tell: Teller, buffers: OpenBuffers | None,
        gone: Callable[[], None],
    ) -> None:  # fmt: skip
        self._launch = launch
        self._attempt = attempt
        self._policy = policy
        self._tell = tell
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks()
        self._wanted = False
        self._failure: StartFailed | None = None
        self._early: list[Mapping[str, object]] = []
        self._history = ReplayedHistory()
        self._quirks = launch.spec.quirks
        self._continued = False  # the agent may replay what we have already, until our first prompt
        self._last_sign = self._last_update = self._loop.time()
        self._pace = Pace(self._loop.time())
        self._turn: Turn | None = None
        self._keepalive: asyncio.TimerHandle | None = None
        self._ready = False  # the session has come up; then updates count, also those of an ending process
        self._end: asyncio.Task[None] | None = None
        self.phase = Phase.STARTING
        self.config_options: object = None  # as opened; to know which are made of legacy `models`
        self.agent_session_id: str | None = None
        self.facts: AgentFacts | None = None
        self.ended = asyncio.Event()
        name = f"{next(_names)}-{secrets.token_hex(3)}"
        self._trace = _open_trace(policy, launch, name)
        self.asks = OpenAsks(tell, name)
        self._step("connecting", one_line(" ".join(launch.spec.command), 200))
        self.process = AgentProcess(
            launch.spec.command,
            cwd=launch.cwd,
            env={**os.environ, **launch.spec.env},
            on_data=self._on_data,
            on_exit=self._on_exit,
            on_deaf=self._lost_pipe,
        )
        self.peer = Peer(self.process.write, self.process.discard, self, trace=self._trace)
        self._client = ClientMethods(launch, policy, self.asks, tell, self._tasks, buffers, self._remark)
        self._updates = Updates(tell, self._client.tools)
        runner = f" ({launch.spec.command[0]} may fetch it first)" if "fetched" in self._quirks else ""
        self._step("initializing", f"waiting for {launch.spec.name}{runner}")
        self._tasks.start(self._bring_up(), f"start of {launch.spec.agent_id}")
        self._arm_keepalive()

    # ------------------------------------------------------------------------------------------- starting

    async def _bring_up(self) -> None:
        try:
            limit_s = self._policy.startup_s * (FETCH_FACTOR if "fetched" in self._quirks else 1)
            self.facts = await initialize(self.peer, self._policy, self._launch.spec, _version(), limit_s)
            self._quirks |= quirks_of(self.facts.program)
            self._client.obey(self._quirks)
            self._step("connected", self.facts.name)
            await self._open()
        except NotOpened as failed:
            self._start_failed(failed)
        except PeerClosed:
            return  # `_on_exit` tells it: it has the exit code

    def open_again(self, launch: Launch, attempt: int) -> None:
        """After a login (phase LOGIN): try to open the session once more in the same process."""
        self._launch = launch
        self._attempt = attempt
        self.phase = Phase.STARTING
        self._failure = None
        self._tasks.start(self._reopen(), f"session of {launch.spec.agent_id}")

    async def _reopen(self) -> None:
        try:
            await self._open()
        except NotOpened as failed:
            self._start_failed(failed)
        except PeerClosed:
            return  # as above

    async def _open(self) -> None:
        assert self.facts is not None
        opened = await open_session(self.peer, self.facts, self._launch, self._policy.startup_s, self._last_life)
        self.agent_session_id = opened.session_id
        if opened.how == "loaded":
            await self._replay_quiet()
        self._continued = opened.how != "new"
        self._came_up(opened)

    async def _replay_quiet(self) -> None:
        begun = self._last_update = self._loop.time()
        quiet_s = LATE_REPLAY_QUIET_S if "load_replays_late" in self._quirks else REPLAY_QUIET_S
        while (rest := self._last_update + quiet_s - self._loop.time()) > 0:
            if self._loop.time() - begun > REPLAY_LIMIT_S:
                return
            await asyncio.sleep(rest)

    def _came_up(self, opened: Opened) -> None:
        if self.phase is not Phase.STARTING or self.facts is None:
            return
        self.phase = Phase.UP
        offers = controls.opened_controls(opened.result)
        self.config_options = offers.config_options
        self._ready = True
        self._step("has_session")
        self._tell(
            AgentReady(
                agent_session_id=opened.session_id,
                how=opened.how,
                context_reset=opened.context_reset,
                controls=offers,
                agent_name=self.facts.name,
                images=self.facts.takes.image,
                embedded=self.facts.takes.embedded,
            )
        )
        history = self._history.entries()
        if opened.how == "loaded" and history:
            self._tell(HistoryReplayed(history))
        self._history = ReplayedHistory()
        early, self._early = self._early, []
        for params in early:
            self._update(params)

    def _start_failed(self, failed: NotOpened) -> None:
        detail = failed.detail
        methods = list(self.facts.auth_methods) if self.facts is not None else None
        failure = StartFailed(failed.reason, detail, methods or None)
        if failed.reason == "authRequired":
            self.phase = Phase.LOGIN
            self._step("connected", "a login is needed")
            self._tell(failure)
            return
        tail = self.process.stderr.text(3)
        self._failure = StartFailed(failure.reason, one_line(f"{detail}; stderr: {tail}", 800) if tail else detail)
        self._step("error_startup", self._failure.detail)
        self.process.stop(stdin_s=0.2, term_s=0.5)

    def _last_life(self) -> float:
        """A person who is asked something during the start takes what time they need."""
        return self._loop.time() if len(self.asks) else self._last_sign

    # -------------------------------------------------------------------------------------------- turns

    def prompt(self, turn_id: str, blocks: Sequence[PromptBlock], *, quiet: bool) -> None:
        if self.phase is not Phase.UP or self._turn is not None or self.agent_session_id is None or self.facts is None:
            why = "another prompt is open" if self._turn is not None else "the agent is not connected"
            self._tell(PromptNotWritten(turn_id, why))
            return
        turn = self._turn = Turn(
            turn_id,
            self.agent_session_id,
            self.peer,
            self._tell,
            on_written=self._prompt_written,
            ended=self._turn_ended,
            add_usage=self._updates.add_usage,
        )
        if quiet or any(block.attachments for block in blocks):
            wait = self._until_quiet if quiet else _no_wait
            self._tasks.start(turn.prepare(blocks, self.facts.takes, wait, self._policy), f"prompt {turn_id}")
        else:
            turn.begin(blocks, self.facts.takes)

    def cancel(self, turn_id: str) -> None:
        turn = self._turn
        if turn is None or turn.turn_id != turn_id or turn.cancel():
            return
        self._client.turn_cancelled()
        self.process.resume_reading()

    def _prompt_written(self) -> None:
        self._continued = False
        if self._turn is not None:
            self._tell(PromptWritten(self._turn.turn_id))
        self._client.turn_begins()
        self._step("streaming")

    def _turn_ended(self) -> None:
        turn, self._turn = self._turn, None
        self._last_update = self._loop.time()  # what is late comes after this (B37)
        self._updates.turn_ended()
        self._client.turn_ended()
        if turn is not None and turn.written and self.phase is Phase.UP and self.process.running:
            self._step("has_session")

    def _until_quiet(self) -> float:
        return self._last_update + self._policy.quiet_s - self._loop.time()

    # --------------------------------------------------------------------------------------- the agent says

    def notified(self, method: str, params: object) -> None:
        self._last_sign = self._loop.time()
        if method == "session/update":
            self._update(as_dict(params))
        elif method == "elicitation/complete":
            self.asks.elicitation_done(params)
        else:
            log.debug("%s: notification %s is ignored", self._launch.spec.agent_id, method)
            if as_dict(params).get("sessionId") == self.agent_session_id:  # B41: a sign of this session only
                self._tell(Activity())

    def requested(self, method: str, params: object, call: Call) -> None:
        self._last_sign = self._loop.time()
        self._tell(Activity())
        self._client.requested(method, as_dict(params), call)

    def strayed(self, noise: Noise) -> None:
        log.info("%s: skipped %s: %s", self._launch.spec.agent_id, noise.why, one_line(noise.line, 200))

    def _update(self, params: Mapping[str, object]) -> None:
        self._last_update = self._loop.time()
        if not self._ready:
            if self._is_replay(params):
                self._history.apply(as_dict(params.get("update")))
            elif len(self._early) < EARLY_LIMIT:
                self._early.append(params)
            return
        if params.get("sessionId") in (None, self.agent_session_id):
            self._updates.apply(as_dict(params.get("update")), replayed=self._continued)

    def _is_replay(self, params: Mapping[str, object]) -> bool:
        """Content that comes before a continued session is up is its history, and not news (B40)."""
        wanted = self._launch.agent_session_id
        kind = as_dict(params.get("update")).get("sessionUpdate")
        return wanted is not None and params.get("sessionId") == wanted and kind not in CONTROL_KINDS

    def _remark(self, text: str) -> None:
        self._updates.remark(text, "warning")

    # ------------------------------------------------------------------------------------------- its pipes

    def _on_data(self, data: bytes) -> None:
        if not data:
            self._lost_pipe()
            return
        self.peer.feed(data)
        if self.process.queued_bytes > OUTPUT_LIMIT:
            self.process.pause_reading()
            self._loop.call_later(0.05, self._read_on)
            return
        pause = self._pace.spend(self._tell.waiting, self._loop.time())
        if self._turn is not None and self._turn.cancelling:
            pause /= 10  # an agent that waits to write does not hear the cancel
        if pause > 0:
            self.process.pause_reading()
            self._loop.call_later(pause, self._read_on)
        self.process.read_size = SMALL_BITE if pause > 0 else BITE

    def _read_on(self) -> None:
        if self.process.queued_bytes > OUTPUT_LIMIT and self.process.running:
            self._loop.call_later(0.05, self._read_on)
        else:
            self.process.resume_reading()

    def _lost_pipe(self) -> None:
        """An agent that closed its stdin or stdout is ended: a process that lives on is no connection."""
        self._loop.call_later(EOF_GRACE_S, self._end_deaf_or_mute)

    def _end_deaf_or_mute(self) -> None:
        if self.process.running:
            log.warning("%s closed its stdin or stdout", self._launch.spec.agent_id)
            self.process.kill()

    def _arm_keepalive(self) -> None:
        if self._policy.keepalive_s > 0:
            self._keepalive = self._loop.call_later(self._policy.keepalive_s, self._keep_alive)

    def _keep_alive(self) -> None:
        """The agent is not silent while it waits for a command that it runs through us (B41)."""
        if self.process.running and self._client.terminals.awaited:
            self._tell(Activity())
        self._arm_keepalive()

    # --------------------------------------------------------------------------------------------- its end

    def stop(self) -> None:
        self._wanted = True
        self._ending()
        self.process.stop(0.2 if "ignores_eof" in self._quirks else STDIN_S)

    def kill(self) -> None:
        self._wanted = True
        self._ending()
        self.process.kill()

    def _ending(self) -> None:
        if self.phase is not Phase.ENDED:
            self.phase = Phase.ENDING

    def _on_exit(self, end: Exit) -> None:
        was = self.phase
        self._ending()
        if self._keepalive is not None:
            self._keepalive.cancel()
        if self._turn is not None and not self._turn.written:
            self._turn.drop("the agent ended before the message was sent")
        self.peer.close(PeerClosed("the agent ended"))
        self.asks.cancel_all()
        self._tasks.cancel()
        self._end = self._loop.create_task(self._finish(was, self._detail(end, was)), name="end of an agent")

    async def _finish(self, was: Phase, detail: str) -> None:
        """The very last: files and terminals are closed, then the end is told."""
        await self._tasks.wait()
        await self._client.end()
        if self._trace is not None:
            self._trace.close()
        self.phase = Phase.ENDED
        if was is Phase.STARTING and not self._wanted and self._failure is None:
            self._failure = StartFailed("failed", detail)
            self._step("error_startup", detail)
        self._step("disconnected", None if self._failure is not None else detail)
        self._gone()
        if self._failure is not None and not self._wanted:
            self._tell(self._failure)
        else:
            self._tell(AgentExited(detail, self._wanted))
        self.ended.set()

    def _detail(self, end: Exit, was: Phase) -> str:
        """One line: who ended how, and the last it wrote to stderr (B42, B45)."""
        spec = self._launch.spec
        tail = self.process.stderr.text(5)
        if tail and not self._wanted:
            log.warning("%s: stderr before %s:\n%s", spec.agent_id, end, self.process.stderr.text())
        if end.spawn_error is not None:
            return one_line(f"{spec.name}: {spec.command[0]} could not be started: {end.spawn_error}", 800)
        when = " at its start" if was is Phase.STARTING else ""
        line = f"{spec.name} ended{when}: {end}"
        said = f"; stderr: {tail}" if tail else ""
        return one_line(f"{line}{said}", 800) + f" (command: {spec.command[0]})"

    @property
    def agent_id(self) -> str:
        return self._launch.spec.agent_id

    def _step(self, connection: Connection, detail: str | None = None) -> None:
        self._tell(ConnectionChanged(connection, detail, self._attempt))


def _no_wait() -> float:
    return 0.0


@cache
def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("agentik")
    except PackageNotFoundError:
        return "0"


def _open_trace(policy: AgentPolicy, launch: Launch, name: str) -> FrameTrace | None:
    if not policy.trace or not policy.log_dir:
        return None
    return FrameTrace(Path(policy.log_dir) / f"frames-{launch.spec.agent_id}-{launch.session_id}-{name}.log")
