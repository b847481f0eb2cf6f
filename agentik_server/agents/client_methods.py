"""The requests of an agent to us: permissions, questions, files, terminals (ACP "Client" methods).

Answers each exactly once; what is not known is -32601 and never silence (B46, B49).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentik_server.agents.asks import OpenAsks
from agentik_server.agents.clean import as_dict
from agentik_server.agents.peer import INVALID_PARAMS, METHOD_NOT_FOUND, Call
from agentik_server.agents.tool_outputs import ToolOutputs


class ClientMethods:
    """Serves one connection. `cancelling`: the turn is being cancelled, nobody is asked any more (B32)."""

    def __init__(self, asks: OpenAsks) -> None:
        self._asks = asks
        self.tools = ToolOutputs(lambda _terminal: None)
        self.cancelling = False
        self._methods: Mapping[str, Callable[[Mapping[str, object], Call], None]] = {
            "session/request_permission": self._permission,
            "elicitation/create": self._elicitation,
            "session/elicitation": self._elicitation,
        }

    def requested(self, method: str, params: Mapping[str, object], call: Call) -> None:
        serve = self._methods.get(method)
        if serve is not None:
            serve(params, call)
        elif method.rpartition("/")[2] == "ask_user":
            self._question(params, call)
        else:
            call.error(METHOD_NOT_FOUND, f"Method not found: {method}")

    def turn_ended(self) -> None:
        self.cancelling = False

    def _permission(self, params: Mapping[str, object], call: Call) -> None:
        change = self.tools.change(as_dict(params.get("toolCall")))
        if change is None:
            call.error(INVALID_PARAMS, "toolCall.toolCallId is missing")
        elif self.cancelling:
            call.result({"outcome": {"outcome": "cancelled"}})
        else:
            self._asks.permission(change, params.get("options"), call)

    def _elicitation(self, params: Mapping[str, object], call: Call) -> None:
        if self.cancelling:
            call.result({"action": "cancel"})
        else:
            self._asks.elicitation(params, call)

    def _question(self, params: Mapping[str, object], call: Call) -> None:
        if self.cancelling:
            call.result({"outcome": "cancelled"})
        else:
            self._asks.ask_user(params, call)
