"""What the tables of requests share. `params` are what the editor adapter validated (camelCase)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agentik_server.app import App

Params = Mapping[str, Any]
Table = dict[str, Callable[[Params, int], None]]
"""Method without the prefix "agentik/" → what answers it; the number is the application's name of the request."""


def steer(app: App, session_id: str) -> Callable[[], None]:
    """For a session of another process: its owner is to cancel the turn, because a message was put before it."""
    return lambda: app.post_mail(session_id, {"kind": "steer"}, None)
