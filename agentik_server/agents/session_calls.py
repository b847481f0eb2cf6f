"""Session control: what an editor asks of the agent besides prompts (ACP "Session Modes", "Session Config Options").

Each call ends in exactly one CallAnswered. Must use only what the agent advertised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentik_server.agents import controls, faults
from agentik_server.agents.clean import as_dict, clean_json
from agentik_server.agents.handshake import AgentFacts
from agentik_server.agents.peer import Answer, Peer, RpcError
from agentik_server.domain.happenings import CallAnswered, Controls, ControlsChanged, Happening

CALL_S = 60.0  # to wait for an answer; a login may open a browser and take longer
LOGIN_S = 600.0


class SessionCalls:
    """The calls of one connection with a session (`session_id` None: before there is one)."""

    def __init__(
        self, peer: Peer, facts: AgentFacts, session_id: str | None, options: object, tell: Callable[[Happening], None]
    ) -> None:
        self._peer = peer
        self._facts = facts
        self._session_id = session_id
        self._options = options
        self._tell = tell

    def belongs_to(self, peer: Peer, session_id: str | None) -> bool:
        """Whether these are the calls of that connection and session."""
        return self._peer is peer and self._session_id == session_id

    def call(self, token: str, method: str, params: Mapping[str, object]) -> None:
        if self._session_id is None and method not in ("authenticate", "logout", "list"):
            self._tell(CallAnswered(token, error="the agent has no session yet"))
            return
        match method:
            case "set_mode":
                mode_id = params.get("modeId")
                news = Controls(mode_id=str(mode_id))
                self._send(token, "session/set_mode", {"modeId": mode_id}, lambda _result: news)
            case "set_config_option":
                self._set_option(token, params.get("configId", params.get("optionId")), params.get("value"))
            case "authenticate":
                self._authenticate(token, params.get("methodId"))
            case "list":
                self._where(token, self._facts.list_sessions, "session/list", dict(params))
            case "fork":
                self._where(token, self._facts.fork, "session/fork", {"mcpServers": [], **params})
            case "delete":
                self._where(token, self._facts.delete, "session/delete", {})
            case "close":
                self._where(token, self._facts.close, "session/close", {})
            case "logout":
                self._where(token, True, "logout", {})
            case _:
                self._tell(CallAnswered(token, error=f"there is no call {method}"))

    def _set_option(self, token: str, option_id: object, value: object) -> None:
        if option_id == controls.LEGACY_MODEL:
            params: dict[str, object] = {"modelId": value}
            method = "session/set_model"
        else:
            params = {"configId": option_id, "value": value}
            method = "session/set_config_option"
            if isinstance(value, bool):
                params["type"] = "boolean"

        def news(result: object) -> Controls:
            options = controls.config_options(as_dict(result).get("configOptions"))
            if options is None:
                options = controls.with_value(self._options, str(option_id), value)
            self._options = options
            return Controls(config_options=options)

        self._send(token, method, params, news)

    def _authenticate(self, token: str, method_id: object) -> None:
        for method in self._facts.auth_methods:
            if method.get("id") == method_id and method.get("type") == "terminal":
                command = method.get("command")
                line = " ".join(map(str, command)) if isinstance(command, list) else self._facts.name
                self._tell(CallAnswered(token, error=f"log in by running this in a terminal: {line}"))
                return
        self._send(token, "authenticate", {"methodId": method_id}, None, LOGIN_S)

    def _where(self, token: str, able: bool, method: str, params: dict[str, object]) -> None:
        if able:
            self._send(token, method, params, None)
        else:
            self._tell(CallAnswered(token, error=f"{self._facts.name} does not support {method}"))

    def _send(
        self,
        token: str,
        method: str,
        params: dict[str, object],
        news: Callable[[object], Controls] | None,
        timeout_s: float = CALL_S,
    ) -> None:
        if method not in ("authenticate", "logout", "session/list"):
            params = {"sessionId": self._session_id, **params}

        def answered(answer: Answer) -> None:
            if answer.error is not None:
                error = answer.error
                line = faults.describe(error) if isinstance(error, RpcError) else str(error)
                self._tell(CallAnswered(token, error=line))
                return
            if news is not None:
                self._tell(ControlsChanged(news(answer.result)))
            self._tell(CallAnswered(token, clean_json(answer.result)))

        self._peer.request(method, params, answered, timeout_s)
