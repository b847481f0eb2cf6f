"""The contract between an editor and the server, typed: every `agentik/*` message, its fields, its errors.

The source of doc/protocol.md (`render_markdown`). Wire models only; nothing here decides anything. Names are loaded
when first used: pydantic takes a tenth of a second, and `initialize` is answered without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentik_server.protocol.base import InvalidParams, Wire, validated
    from agentik_server.protocol.errors import CODES, PROTOCOL_VERSION, REASONS
    from agentik_server.protocol.markdown import render_markdown
    from agentik_server.protocol.registry import (
        CLIENT_REQUESTS,
        NOTIFICATIONS,
        REQUESTS,
        NotificationType,
        RequestType,
    )

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

_MODULE_OF = {
    "PROTOCOL_VERSION": "errors",
    "CODES": "errors",
    "REASONS": "errors",
    "InvalidParams": "base",
    "Wire": "base",
    "validated": "base",
    "render_markdown": "markdown",
    **dict.fromkeys(("CLIENT_REQUESTS", "NOTIFICATIONS", "REQUESTS", "NotificationType", "RequestType"), "registry"),
}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
