"""ACP content blocks and tool calls as domain values, and back for prompts is `prompts.py`.

Pure; keeps nothing. Fields of a wrong type are taken for absent. Sources: ACP "Content", "Tool Calls".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from agentik_server.agents.clean import as_dict, as_int, as_list, as_text, clean_json, clean_text
from agentik_server.domain.message import Diff, Location, PlanEntry, ToolChange

TOOL_KINDS = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)
TOOL_STATUS = frozenset({"pending", "in_progress", "completed", "failed"})
MAX_RAW_OUTPUT = 20_000  # characters of a raw output that is shown for want of a better one


@dataclass(frozen=True, slots=True)
class ToolContent:
    """What a tool call's `content` holds; `terminals` are ids, ours or the agent's own."""

    text: str
    diffs: tuple[Diff, ...]
    terminals: tuple[str, ...]


def block_text(block: object) -> str:
    """A content block as text for the transcript. Texts are not cleaned here: chunks may hold half a character."""
    fields = as_dict(block)
    kind = fields.get("type")
    if kind == "text" or (kind is None and isinstance(fields.get("text"), str)):
        text = fields.get("text")
        return text if isinstance(text, str) else ""
    if kind in {"image", "audio"}:
        mime = as_text(fields.get("mimeType")) or str(kind)
        uri = as_text(fields.get("uri"))
        return f"[{mime}: {uri}]" if uri else f"[{mime}, {_base64_size(fields.get('data'))} bytes]"
    if kind == "resource_link":
        uri = as_text(fields.get("uri")) or ""
        return f"[{as_text(fields.get('title')) or as_text(fields.get('name')) or uri}]({uri})"
    if kind == "resource":
        resource = as_dict(fields.get("resource"))
        text = as_text(resource.get("text"))
        return text if text is not None else f"[{as_text(resource.get('uri')) or 'resource'}]"
    return f"[{clean_text(str(kind))}]" if kind is not None else ""


def tool_content(items: object) -> ToolContent:
    """The `content` list of a tool call; items of an unknown type are shown by their type."""
    texts: list[str] = []
    diffs: list[Diff] = []
    terminals: list[str] = []
    for item in as_list(items):
        fields = as_dict(item)
        kind = fields.get("type")
        if kind == "diff":
            diff = _diff(fields)
            if diff is not None:
                diffs.append(diff)
        elif kind == "terminal":
            terminal = as_text(fields.get("terminalId"))
            if terminal is not None:
                terminals.append(terminal)
        elif kind == "content":
            texts.append(clean_text(block_text(fields.get("content"))))
        else:
            texts.append(clean_text(block_text(fields)))
    return ToolContent("\n".join(text for text in texts if text), tuple(diffs), tuple(terminals))


def tool_change(fields: Mapping[str, object], content: ToolContent | None) -> ToolChange | None:
    """A ToolCall or ToolCallUpdate; None without an id. `content`: of it, if it has any; output: `tool_outputs.py`."""
    tool_call_id = _identity(fields.get("toolCallId"))
    if tool_call_id is None:
        return None
    kind = as_text(fields.get("kind"))
    status = as_text(fields.get("status"))
    raw_input = fields.get("rawInput")
    return ToolChange(
        tool_call_id=tool_call_id,
        title=as_text(fields.get("title")) or as_text(fields.get("name")),
        tool_kind=None if kind is None else kind if kind in TOOL_KINDS else "other",
        status=status if status in TOOL_STATUS else None,
        locations=_locations(fields.get("locations")),
        diffs=None if content is None else content.diffs or None,
        input=None if raw_input is None else clean_json(raw_input),
    )


def raw_output_text(value: object) -> str:
    """An agent's raw output, shown where it sends no content: a text, the text inside a result, else its JSON."""
    if isinstance(value, str):
        return clean_text(value)[:MAX_RAW_OUTPUT]
    if isinstance(value, list):
        texts = [block_text(item) if isinstance(item, dict) else "" for item in value]
        if all(texts) and texts:
            return clean_text("\n".join(texts))[:MAX_RAW_OUTPUT]
    fields = as_dict(value)
    for name in ("output", "formatted_output", "aggregated_output", "stdout", "text", "content", "error"):
        text = as_text(fields.get(name))
        if text:
            return text[:MAX_RAW_OUTPUT]
    if value is None or value in ({}, []):
        return ""
    return json.dumps(clean_json(value), ensure_ascii=False, indent=1)[:MAX_RAW_OUTPUT]


def plan_entries(items: object) -> tuple[PlanEntry, ...]:
    """The entries of a plan; such without content are dropped, odd states are "pending"."""
    entries = []
    for item in as_list(items):
        fields = as_dict(item)
        content = as_text(fields.get("content"))
        if not content:
            continue
        status, priority = fields.get("status"), fields.get("priority")
        entries.append(
            PlanEntry(
                content,
                str(status) if status in ("in_progress", "completed") else "pending",
                str(priority) if priority in ("high", "low") else "medium",
            )
        )
    return tuple(entries)


def _identity(value: object) -> str | None:
    """Ids are opaque; some agents send numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return as_text(value) or None


def _diff(fields: Mapping[str, object]) -> Diff | None:
    path, new = as_text(fields.get("path")), as_text(fields.get("newText"))
    if path is None or new is None:
        return None
    return Diff(path, new, as_text(fields.get("oldText")))


def _locations(items: object) -> tuple[Location, ...] | None:
    if not isinstance(items, list):
        return None
    found = []
    for item in items:
        fields = as_dict(item)
        path = as_text(fields.get("path"))
        if path:
            found.append(Location(path, as_int(fields.get("line"))))
    return tuple(found)


def _base64_size(data: object) -> int:
    return len(data) * 3 // 4 if isinstance(data, str) else 0
