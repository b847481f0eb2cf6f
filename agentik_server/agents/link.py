"""ports.AgentLink over ACP: one session's agent, started and ended on demand; a new connection for each life of it.

Calls return at once; everything is told from the loop, in order (B38). Must not retry and must not time out turns:
that is the application's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from agentik_server.agents.connection import AgentConnection, Phase
from agentik_server.agents.session_calls import SessionCalls
from agentik_server.agents.telling import Teller
from agentik_server.domain.happenings import (
    AgentExited,
    CallAnswered,
    ConnectionChanged,
    Happening,
    PromptNotWritten,
    StartFailed,
)
from agentik_server.ports import AgentPolicy, AgentSpec, Launch, OpenBuffers, PromptBlock


class AcpLink:
    """See the module. A start that is asked for while the old process ends is carried out after its end."""

    def __init__(
        self, tell: Callable[[Happening], None], policy: Callable[[], AgentPolicy], buffers: OpenBuffers | None
    ) -> None:
        self._tell = Teller(tell)
        self._policy = policy
        self._buffers = buffers
        self._connection: AgentConnection | None = None
        self._calls: SessionCalls | None = None
        self._next: tuple[Launch, int] | None = None

    def start(self, launch: Launch, attempt: int) -> None:
        connection = self._connection
        if connection is None:
            self._connect(launch, attempt)
        elif connection.phase is Phase.LOGIN:
            self._calls = None
            connection.open_again(launch, attempt)
        elif connection.phase in (Phase.ENDING, Phase.ENDED):
            self._next = (launch, attempt)

    def prompt(self, turn_id: str, blocks: Sequence[PromptBlock], *, quiet: bool) -> None:
        if self._connection is None:
            self._tell(PromptNotWritten(turn_id, "the agent is not running"))
        else:
            self._connection.prompt(turn_id, blocks, quiet=quiet)

    def cancel(self, turn_id: str) -> None:
        if self._connection is not None:
            self._connection.cancel(turn_id)

    def answer_permission(self, permission_id: str, option_id: str | None) -> None:
        if self._connection is not None:
            self._connection.asks.choose(permission_id, option_id)

    def answer_question(self, question_id: str, action: str, content: object) -> None:
        if self._connection is not None:
            self._connection.asks.reply(question_id, action, content)

    def call(self, token: str, method: str, params: Mapping[str, object]) -> None:
        connection = self._connection
        able = (Phase.UP, Phase.LOGIN, Phase.STARTING) if method == "authenticate" else (Phase.UP, Phase.LOGIN)
        if connection is None or connection.facts is None or connection.phase not in able:
            self._tell(CallAnswered(token, error="the agent is not running"))
            return
        if self._calls is None or not self._calls.belongs_to(connection.peer, connection.agent_session_id):
            self._calls = SessionCalls(
                connection.peer, connection.facts, connection.agent_session_id, connection.config_options, self._tell
            )
        self._calls.call(token, method, params)

    def stop(self) -> None:
        self._next = None
        if self._connection is None:
            self._tell(AgentExited("the agent was not running", wanted=True))
        else:
            self._connection.stop()

    def kill(self) -> None:
        self._next = None
        if self._connection is None:
            self._tell(AgentExited("the agent was not running", wanted=True))
        else:
            self._connection.kill()

    @property
    def pids(self) -> tuple[int, ...]:
        """The guard and the agent, for `agentik/status`."""
        if self._connection is None:
            return ()
        process = self._connection.process
        return (process.guard_pid, *(() if process.agent_pid is None else (process.agent_pid,)))

    def process_facts(self) -> dict[str, object]:
        """{agentId, pids, state, stderr} of the running agent; empty when there is none."""
        connection = self._connection
        if connection is None:
            return {}
        stderr = connection.process.stderr.text(5)
        return {
            "agentId": connection.agent_id,
            "pids": list(self.pids),
            "state": connection.phase.value,
            "stderr": stderr,
        }

    async def ended(self) -> None:
        """Until no process of this link is left."""
        while self._connection is not None:
            await self._connection.ended.wait()

    def _connect(self, launch: Launch, attempt: int) -> None:
        command = find_command(launch.spec, launch.cwd)
        if command is None:
            self._fail(attempt, StartFailed("missing", missing_text(launch.spec)))
            return
        if not Path(launch.cwd).is_dir():
            self._fail(attempt, StartFailed("failed", f"the folder {launch.cwd} does not exist"))
            return
        launch = replace(launch, spec=replace(launch.spec, command=(command, *launch.spec.command[1:])))
        try:
            self._connection = AgentConnection(launch, attempt, self._policy(), self._tell, self._buffers, self._gone)
        except OSError as error:
            detail = f"{launch.spec.name}: {command} could not be started: {error.strerror or error}"
            self._fail(attempt, StartFailed("failed", detail))

    def _fail(self, attempt: int, failure: StartFailed) -> None:
        self._tell(ConnectionChanged("error_startup", failure.detail, attempt))
        self._tell(ConnectionChanged("disconnected", None, attempt))
        self._tell(failure)

    def _gone(self) -> None:
        self._connection = None
        self._calls = None
        if self._next is not None:
            (launch, attempt), self._next = self._next, None
            asyncio.get_running_loop().call_soon(self.start, launch, attempt)  # after the end was told


def find_command(spec: AgentSpec, cwd: str) -> str | None:
    """The absolute path of the agent's program by the PATH that it will have; None when there is none."""
    command = spec.command[0]
    if os.sep in command:
        path = os.path.join(cwd, os.path.expanduser(command))
        return path if os.access(path, os.X_OK) and not os.path.isdir(path) else None
    return shutil.which(command, path=spec.env.get("PATH", os.environ.get("PATH")))


def missing_text(spec: AgentSpec) -> str:
    """B45: what was not found and how it is installed."""
    hint = f"; install it: {spec.install_hint}" if spec.install_hint else ""
    return f"{spec.name}: the command {spec.command[0]} was not found{hint}"
