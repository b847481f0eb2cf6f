"""The methods of PROTOCOL.md on top of the application. No rule of its own stands here; must not know any adapter."""

from __future__ import annotations

from agentik_server.app import App
from agentik_server.ports import Reply
from agentik_server.requests.agents import AgentRequests
from agentik_server.requests.base import Params, Table
from agentik_server.requests.messages import MessageRequests
from agentik_server.requests.queue import QueueRequests
from agentik_server.requests.sessions import SessionRequests
from agentik_server.requests.turns import TurnRequests


class Requests:
    """`request(method, params, reply)` answers one request, now or later."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._table: Table = {
            **AgentRequests(app).table,
            **SessionRequests(app).table,
            **MessageRequests(app).table,
            **QueueRequests(app).table,
            **TurnRequests(app).table,
        }

    @property
    def methods(self) -> frozenset[str]:
        """Names without the prefix "agentik/"."""
        return frozenset(self._table)

    def request(self, method: str, params: Params, reply: Reply) -> None:
        self._app.enter_request(reply, lambda request: self._table[method](params, request))
