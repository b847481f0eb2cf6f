"""Notifications of the server as calls of a mirror, and as what Lua is told of them. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from agentik.mirror import Change, Message, Mirror, PendingNews


def changes(mirror: Mirror, method: str, news: dict[str, Any]) -> list[Change]:
    """Puts a notification into the session's mirror."""
    match method:
        case "agentik/messageReceived" | "agentik/messageUpdated":
            return mirror.put(msgspec.convert(news["message"], Message), news.get("revision", 0))
        case "agentik/messageQueued":
            return mirror.queued(news["messageId"], news.get("display", ""), news.get("revision", 0))
        case "agentik/pendingChanged":
            return mirror.pending_changed(msgspec.convert(news, PendingNews))
        case "agentik/sessionChanged":
            return mirror.session_changed(news["session"])
        case "agentik/connectionChanged":
            return mirror.connection_changed(news["connection"], news.get("detail"))
        case "agentik/permissionRequested":
            return mirror.permission_requested(news["permission"])
        case "agentik/permissionResolved":
            return mirror.permission_resolved(news["permissionId"])
        case "agentik/questionAsked":
            return mirror.question_asked(news["question"])
        case "agentik/questionResolved":
            return mirror.question_resolved(news["questionId"])
    return []


def slim(news: dict[str, Any]) -> dict[str, Any]:
    """Events for autocommands name things, the views have the state: an output of a megabyte is not sent twice."""
    short = {key: value for key, value in news.items() if key not in {"message", "pending", "session", "permission"}}
    if message := news.get("message"):
        short |= {key: message.get(key) for key in ("messageId", "kind", "status", "turnId")}
        if tool := message.get("tool"):
            short |= {"toolStatus": tool.get("status"), "locations": (tool.get("locations") or [])[-1:]}
    if session := news.get("session"):
        short |= {key: session.get(key) for key in ("sessionId", "state", "title")}
    if permission := news.get("permission"):
        short |= {"permissionId": permission["permissionId"], "title": (permission.get("toolCall") or {}).get("title")}
    return short


def without_none(value: Any) -> Any:
    """Nothing instead of None: in Lua `vim.NIL` is true, and every reader would have to know."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_none(item) for item in value]
    return value
