"""The contract between an editor and the server, typed: every `agentik/*` message, its fields, its errors.

The source of doc/protocol.md (`render_markdown`). Wire models only; nothing here decides anything.
"""

from __future__ import annotations

from agentik_server.protocol.base import PROTOCOL_VERSION, InvalidParams, Wire, validated
from agentik_server.protocol.errors import CODES, REASONS
from agentik_server.protocol.markdown import render_markdown
from agentik_server.protocol.registry import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS, NotificationType, RequestType

__all__ = [
    "CLIENT_REQUESTS",
    "CODES",
    "NOTIFICATIONS",
    "PROTOCOL_VERSION",
    "REASONS",
    "REQUESTS",
    "InvalidParams",
    "NotificationType",
    "RequestType",
    "Wire",
    "render_markdown",
    "validated",
]
