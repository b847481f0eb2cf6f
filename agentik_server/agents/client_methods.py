"""The requests of an agent to us: permissions, questions, files, terminals (ACP "Client" methods).

Answers each exactly once; what is not known is -32601 and never silence (B46, B49).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping

from agentik_server.agents.asks import OpenAsks
from agentik_server.agents.clean import as_dict
from agentik_server.agents.files import Files
from agentik_server.agents.paths import Roots
from agentik_server.agents.peer import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Call
from agentik_server.agents.permits import Permits
from agentik_server.agents.tasks import Tasks
from agentik_server.agents.terminals import Terminals
from agentik_server.agents.tool_outputs import ToolOutputs
from agentik_server.domain.happenings import Happening, ToolCallChanged
from agentik_server.ports import AgentPolicy, Launch, OpenBuffers

Serve = Callable[[Mapping[str, object], Call], None]


class ClientMethods:
    """Serves one connection."""

    def __init__(
        self,
        launch: Launch,
        policy: AgentPolicy,
        asks: OpenAsks,
        tell: Callable[[Happening], None],
        tasks: Tasks,
        buffers: OpenBuffers | None,
        remark: Callable[[str], None],
    ) -> None:
        self._asks = asks
        self._tell = tell
        self._tasks = tasks
        self._cancelling = False
        self._permits = Permits(policy, asks, tell)
        roots = Roots((launch.cwd, *launch.extra_roots), (launch.attachments_dir,))
        self._files = Files(roots, self._permits, buffers, remark)
        env = {**os.environ, **launch.spec.env}
        self.terminals = Terminals(roots, launch.cwd, env, self._permits, remark)
        self.terminals.grew = self._terminal_grew
        self.tools = ToolOutputs(self.terminals.text)
        self._methods: Mapping[str, Serve] = {
            "session/request_permission": self._permission,
            "elicitation/create": self._elicitation,
            "session/elicitation": self._elicitation,
            "fs/read_text_file": lambda params, call: self._run(self._files.read(params, call), call),
            "fs/write_text_file": lambda params, call: self._run(self._files.write(params, call), call),
            "terminal/create": lambda params, call: self._run(self.terminals.create(params, call), call),
            "terminal/output": lambda params, call: self.terminals.serve("output", params, call),
            "terminal/wait_for_exit": lambda params, call: self.terminals.serve("wait_for_exit", params, call),
            "terminal/kill": lambda params, call: self.terminals.serve("kill", params, call),
            "terminal/release": lambda params, call: self.terminals.serve("release", params, call),
        }

    def requested(self, method: str, params: Mapping[str, object], call: Call) -> None:
        serve = self._methods.get(method)
        if serve is not None:
            serve(params, call)
        elif method.rpartition("/")[2] == "ask_user":
            self._question(params, call)
        else:
            call.error(METHOD_NOT_FOUND, f"Method not found: {method}")

    def obey(self, quirks: frozenset[str]) -> None:
        """What is odd about this agent (see the catalogue)."""
        self._files.missing_reads_empty = "missing_reads_empty" in quirks

    def turn_begins(self) -> None:
        self._cancelling = False
        self.terminals.turn_begins()

    def turn_cancelled(self) -> None:
        """Nobody is asked any more, and what runs for the turn is ended (B32)."""
        self._cancelling = True
        self._asks.cancel_all()
        self.terminals.kill_all(refuse=True)

    def turn_ended(self) -> None:
        self._cancelling = False
        self._asks.cancel_all()
        self._permits.turn_ended()
        self.terminals.kill_all(refuse=False)

    async def end(self) -> None:
        """The connection is over: leave no command running."""
        await self.terminals.wait_ended()

    def _permission(self, params: Mapping[str, object], call: Call) -> None:
        change = self.tools.change(as_dict(params.get("toolCall")), asked=True)
        if change is None:
            call.error(INVALID_PARAMS, "toolCall.toolCallId is missing")
        elif self._cancelling:
            call.result({"outcome": {"outcome": "cancelled"}})
        else:
            named = self.tools.all_news(change.tool_call_id)
            self._asks.permission(
                change, params.get("options"), call, lambda kind: self._permits.allowed_by_user(named, kind)
            )

    def _elicitation(self, params: Mapping[str, object], call: Call) -> None:
        if self._cancelling:
            call.result({"action": "cancel"})
        else:
            self._asks.elicitation(params, call)

    def _question(self, params: Mapping[str, object], call: Call) -> None:
        if self._cancelling:
            call.result({"outcome": "cancelled"})
        else:
            self._asks.ask_user(params, call)

    def _run(self, work: Coroutine[object, object, None], call: Call) -> None:
        task = self._tasks.start(work, call.method)
        task.add_done_callback(lambda _task: call.error(INTERNAL_ERROR, f"{call.method} failed"))  # if still open

    def _terminal_grew(self, terminal_id: str, text: str, replaces: bool) -> None:
        change = self.tools.terminal_grew(terminal_id, text, replaces=replaces)
        if change is not None:
            self._tell(ToolCallChanged(change))
