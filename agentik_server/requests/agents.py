"""What is known of agents and of this server. One function a method; no rule of its own."""

from __future__ import annotations

from collections.abc import Mapping

from agentik_server.app import App
from agentik_server.domain import saves
from agentik_server.requests.base import Params, Table


class AgentRequests:
    def __init__(self, app: App) -> None:
        self._app = app
        self.table: Table = {
            "listAgents": self._list_agents,
            "checkAgent": self._check_agent,
            "status": self._status,
        }

    def _list_agents(self, params: Params, request: int) -> None:
        del params
        agents = [
            {
                "agentId": row.agent_id,
                "name": row.name,
                "command": list(row.command),
                "available": row.available,
                "isDefault": row.is_default,
                **({"reason": row.reason} if row.reason else {}),
                **({"installHint": row.install_hint} if row.install_hint else {}),
            }
            for row in self._app.ports.agents.listed()
        ]
        self._app.answer(request, {"agents": agents})

    def _check_agent(self, params: Params, request: int) -> None:
        def done(ok: bool, detail: str, info: Mapping[str, object] | None) -> None:
            answer: dict[str, object] = {"ok": ok, "detail": detail}
            if info is not None:
                answer["agentInfo"] = info
            self._app.answer(request, answer)

        self._app.ports.agents.check(params["agentId"], done)

    def _status(self, params: Params, request: int) -> None:
        del params
        app = self._app

        def answer(page: saves.Page) -> Mapping[str, object]:
            assert isinstance(page, saves.StoreStatus)
            sessions = [
                {
                    "sessionId": session.session_id,
                    "agentId": session.facts.agent_id,
                    "state": session.facts.state,
                    "connection": session.facts.connection,
                    "pauseReason": session.facts.pause_reason,
                }
                for session in app.sessions()
            ]
            return {
                **app.settings.about(),
                "sessions": sessions,
                "agents": list(app.ports.agents.processes()),
                "queues": {session.session_id: len(session.queue.items) for session in app.sessions()},
                "store": {
                    "schemaVersion": page.schema_version,
                    "sessions": page.sessions,
                    "messages": page.messages,
                    "pending": page.pending,
                    "bytes": page.bytes_on_disk,
                },
            }

        app.read(saves.ReadStatus(), request, answer)
