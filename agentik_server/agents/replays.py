"""A history that an agent replays while it loads a session, as entries in its order (B54, AGENTS.md section 4).

Only collects: what is taken of it is the application's to say. Must stay bounded, however long the history is.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentik_server.agents.clean import as_dict, as_text, clean_text
from agentik_server.agents.contents import block_text
from agentik_server.agents.telling import merge_changes
from agentik_server.agents.tool_outputs import ToolOutputs
from agentik_server.agents.updates import Updates
from agentik_server.domain.happenings import Happening, PlanChanged, Replayed, TextArrived, ToolCallChanged
from agentik_server.domain.message import ToolChange

MAX_ENTRIES = 20_000
MAX_CHARACTERS = 64 * 1024 * 1024


class ReplayedHistory:
    """Consecutive chunks of one kind and message id are one entry; a tool call is one entry as it ended."""

    def __init__(self) -> None:
        self._updates = Updates(self._hear, ToolOutputs(lambda _terminal: None))
        self._entries: list[Replayed | str] = []  # a tool call stands as its id until the end
        self._tools: dict[str, ToolChange] = {}
        self._parts: list[str] = []
        self._open: tuple[str, str | None] | None = None  # kind and message id of the text that grows
        self._characters = 0

    def apply(self, update: Mapping[str, object]) -> None:
        if len(self._entries) >= MAX_ENTRIES or self._characters >= MAX_CHARACTERS:
            return
        if update.get("sessionUpdate") == "user_message_chunk":
            content = as_dict(update.get("content"))
            text = block_text(content) if content.get("type") in ("text", None) else ""
            self._add_text("user", as_text(update.get("messageId")), clean_text(text))
        else:
            self._updates.apply(update)

    def entries(self) -> tuple[Replayed, ...]:
        """What was replayed so far."""
        self._updates.turn_ended()
        self._close_text()
        return tuple(
            Replayed("tool", tool=self._tools[entry]) if isinstance(entry, str) else entry for entry in self._entries
        )

    def _hear(self, happening: Happening) -> None:
        match happening:
            case TextArrived():
                self._add_text(happening.kind, happening.agent_message_id, happening.text)
            case ToolCallChanged():
                self._add_tool(happening.change)
            case PlanChanged():
                self._close_text()
                self._entries.append(Replayed("plan", plan=happening.entries))
            case _:
                return  # of what the session offers only the newest counts, and that is told elsewhere

    def _add_text(self, kind: str, message_id: str | None, text: str) -> None:
        if self._open != (kind, message_id):
            self._close_text()
            self._open = (kind, message_id)
        self._parts.append(text)
        self._characters += len(text)

    def _add_tool(self, change: ToolChange) -> None:
        known = self._tools.get(change.tool_call_id)
        if known is None:
            self._close_text()
            self._entries.append(change.tool_call_id)
        self._tools[change.tool_call_id] = change if known is None else merge_changes(known, change)
        self._characters += len(change.output or "") + len(change.output_delta or "")

    def _close_text(self) -> None:
        if self._open is not None and any(self._parts):
            self._entries.append(Replayed(self._open[0], "".join(self._parts)))  # type: ignore[arg-type]  # a kind
        self._open = None
        self._parts.clear()
