"""Domain values to and from the text columns that hold them (JSON). Pure; knows no table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentik_server.domain.message import (
    Attachment,
    Diff,
    Location,
    Permission,
    PermissionOption,
    PlanEntry,
    Position,
    Question,
    Range,
    ToolCall,
)


def dump(value: object) -> str:
    """Compact JSON in ASCII, so that half a surrogate pair in an agent's data cannot make a write fail."""
    return json.dumps(value, separators=(",", ":"))


def dump_attachments(attachments: tuple[Attachment, ...]) -> str | None:
    """None for none. Only stored attachments come here: their text is in a file (B51)."""
    return dump([_attachment_json(attachment) for attachment in attachments]) if attachments else None


def load_attachments(text: str | None) -> tuple[Attachment, ...]:
    return tuple(_attachment(value) for value in json.loads(text)) if text else ()


def dump_tool(tool: ToolCall | None) -> str | None:
    return dump(_tool_json(tool)) if tool is not None else None


def load_tool(text: str | None) -> ToolCall | None:
    return _tool(json.loads(text)) if text else None


def dump_plan(plan: tuple[PlanEntry, ...] | None) -> str | None:
    if plan is None:
        return None
    return dump([{"content": entry.content, "status": entry.status, "priority": entry.priority} for entry in plan])


def load_plan(text: str | None) -> tuple[PlanEntry, ...] | None:
    return tuple(PlanEntry(**value) for value in json.loads(text)) if text else None


def dump_ask(ask: Permission | Question) -> str:
    if isinstance(ask, Permission):
        options = [[option.option_id, option.name, option.kind] for option in ask.options]
        body = {"is": "permission", "tool": _tool_json(ask.tool_call), "options": options, "at": ask.created_at}
        return dump(body)
    return dump({"is": "question", "message": ask.message, "schema": ask.schema, "url": ask.url, "at": ask.created_at})


def load_ask(text: str, ask_id: str, session_id: str) -> Permission | Question:
    body = json.loads(text)
    if body["is"] == "permission":
        options = tuple(PermissionOption(*option) for option in body["options"])
        return Permission(ask_id, session_id, _tool(body["tool"]), options, body["at"])
    return Question(ask_id, session_id, body["message"], body["at"], body["schema"], body["url"])


def _attachment_json(attachment: Attachment) -> dict[str, object]:
    body: dict[str, object] = {"path": attachment.path, "size": attachment.size}
    for key in ("name", "text", "language_id", "mime_type", "stored"):
        value = getattr(attachment, key)
        if value is not None:
            body[key] = value
    if attachment.range is not None:
        start, end = attachment.range.start, attachment.range.end
        body["range"] = [start.line, start.character, end.line, end.character]
    return body


def _attachment(body: dict[str, Any]) -> Attachment:
    numbers = body.pop("range", None)
    if numbers is None:
        return Attachment(**body)
    return Attachment(**body, range=Range(Position(*numbers[:2]), Position(*numbers[2:])))


def _tool_json(tool: ToolCall) -> dict[str, object]:
    return {
        "id": tool.tool_call_id,
        "title": tool.title,
        "kind": tool.tool_kind,
        "status": tool.status,
        "locations": [[place.path, place.line] for place in tool.locations],
        "diffs": [[diff.path, diff.new_text, diff.old_text] for diff in tool.diffs],
        "output": tool.output,
        "input": tool.input,
    }


def _tool(body: Mapping[str, Any]) -> ToolCall:
    return ToolCall(
        tool_call_id=body["id"],
        title=body["title"],
        tool_kind=body["kind"],
        status=body["status"],
        locations=tuple(Location(*place) for place in body["locations"]),
        diffs=tuple(Diff(*diff) for diff in body["diffs"]),
        output=body["output"],
        input=body["input"],
    )
