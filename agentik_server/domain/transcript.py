"""The agent's part of a conversation while it is written: chunks, tool calls, plans and remarks become messages.

Pure and in memory; it keeps the current turn (and what comes late for it, B37) until the next turn begins.
Ids are made from the turn's id and a count, so no randomness is needed. Must not know stores, editors or agents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from agentik_server.domain.happenings import Replayed
from agentik_server.domain.message import (
    Message,
    MessageKind,
    MessageStatus,
    PlanEntry,
    ToolCall,
    ToolChange,
)

MAX_TOOL_OUTPUT = 1 << 20  # characters kept of one tool's output; agents send megabytes that nobody reads


@dataclass(slots=True)
class _Entry:
    """A message being written. Text grows in parts: joining at each chunk would be quadratic."""

    message_id: str
    seq: int
    turn_id: str | None
    kind: MessageKind
    created_at: int
    status: MessageStatus
    parts: list[str] = field(default_factory=list)
    length: int = 0
    tool: ToolCall | None = None
    plan: tuple[PlanEntry, ...] | None = None
    revision: int = 0

    def append(self, text: str) -> int:
        """Returns the offset at which the text was added, in code points."""
        offset = self.length
        self.parts.append(text)
        self.length += len(text)
        return offset

    def message(self, session_id: str) -> Message:
        if len(self.parts) > 1:
            self.parts = ["".join(self.parts)]
        return Message(
            message_id=self.message_id,
            session_id=session_id,
            seq=self.seq,
            kind=self.kind,
            text=self.parts[0] if self.parts else "",
            status=self.status,
            created_at=self.created_at,
            turn_id=self.turn_id,
            revision=self.revision,
            tool=self.tool,
            plan=self.plan,
        )


@dataclass(frozen=True, slots=True)
class Chunk:
    """Where a text went: shown as streamingToken."""

    message_id: str
    seq: int
    turn_id: str | None
    offset: int


class Transcript:
    """One session's messages in the making. `next_seq` is the first free place in the session's order."""

    def __init__(self, session_id: str, next_seq: int, prefix: str) -> None:
        self._session_id = session_id
        self._next_seq = next_seq
        self._prefix = prefix
        self._count = 0
        self._turn_id: str | None = None
        self._running = False
        self._entries: dict[str, _Entry] = {}
        self._by_agent_id: dict[tuple[str, str], str] = {}
        self._tools: dict[str, str] = {}
        self._plan: str | None = None
        self._last: _Entry | None = None
        self._dirty: dict[str, None] = {}
        self._unsaved: set[str] = set()  # dirty ones, and those whose save is under way

    def reserve(self, count: int) -> int:
        """Take `count` places of the order for the user's messages; returns the first."""
        first = self._next_seq
        self._next_seq += count
        return first

    @property
    def is_empty(self) -> bool:
        return self._next_seq == 1

    def begin(self, turn_id: str) -> None:
        """A prompt is being written: what arrives now belongs to it, and late is only what has the agent's id of a
        message of the turn before (B37).
        """
        before = {key: name for key, name in self._by_agent_id.items() if self._entries[name].turn_id == self._turn_id}
        self._turn_id = turn_id
        self._running = True
        self._last = None
        self._plan = None
        self._by_agent_id = before
        self._tools.clear()
        kept = {*self._dirty, *before.values()}
        self._entries = {key: entry for key, entry in self._entries.items() if key in kept}
        self._unsaved &= kept

    def add_text(self, kind: MessageKind, text: str, agent_message_id: str | None, now: int) -> Chunk:
        """Append a chunk to the message it belongs to: by the agent's id, else to the last one of the same kind."""
        entry = self._text_entry(kind, agent_message_id, now)
        offset = entry.append(text)
        self._mark(entry)
        return Chunk(entry.message_id, entry.seq, entry.turn_id, offset)

    def change_tool(self, change: ToolChange, now: int) -> Message:
        """Upsert by tool call id, from whatever source the news came (AGENTS.md section 5.1)."""
        known = self._tools.get(change.tool_call_id)
        if known is None:
            entry = self._new("tool", now)
            entry.tool = ToolCall(change.tool_call_id)
            self._tools[change.tool_call_id] = entry.message_id
        else:
            entry = self._entries[known]
        entry.tool = merge_tool(entry.tool or ToolCall(change.tool_call_id), change)
        entry.status = self._tool_status(entry.tool)
        self._mark(entry)
        return entry.message(self._session_id)

    def set_plan(self, entries: tuple[PlanEntry, ...], now: int) -> Message:
        """The turn's plan: one message that changes."""
        entry = self._entries[self._plan] if self._plan is not None else self._new("plan", now)
        self._plan = entry.message_id
        entry.plan = entries
        entry.status = "complete"
        self._mark(entry)
        return entry.message(self._session_id)

    def remark(self, text: str, now: int) -> Message:
        """A notice in the transcript."""
        entry = self._new("notice", now)
        entry.append(text)
        entry.status = "complete"
        self._mark(entry)
        return entry.message(self._session_id)

    def add_replayed(self, entries: Iterable[Replayed], now: int) -> None:
        """Turns that the agent knows and we do not: whole messages of no turn of ours."""
        turn_id, self._turn_id, self._last = self._turn_id, None, None
        for replayed in entries:
            entry = self._new(replayed.kind, now)
            entry.status = "complete"
            entry.append(replayed.text)
            if replayed.tool is not None:
                tool = merge_tool(ToolCall(replayed.tool.tool_call_id), replayed.tool)
                entry.tool = replace(tool, status="completed") if tool.is_open else tool
            if replayed.kind == "plan":
                entry.plan = replayed.plan
            self._mark(entry)
        self._turn_id, self._last = turn_id, None

    def close_tools(self, status: str) -> None:
        """Every open tool call gets `status` (agents leave them open; a cancelled turn marks them at once, B32)."""
        for message_id in self._tools.values():
            entry = self._entries[message_id]
            if entry.tool is not None and entry.tool.is_open:
                entry.tool = replace(entry.tool, status=status)
                entry.status = "complete" if status == "completed" else "interrupted"
                self._mark(entry)

    def end(self, text_status: MessageStatus, tool_status: str) -> None:
        """The turn is over: the last text gets `text_status` (B36), open tool calls `tool_status`."""
        self.close_tools(tool_status)
        for entry in self._entries.values():
            if entry.status == "streaming":
                entry.status = text_status
                self._mark(entry)
        self._running = False

    def take_dirty(self) -> tuple[Message, ...]:
        """What changed since the last call, as messages to be saved."""
        dirty = tuple(self._entries[key].message(self._session_id) for key in self._dirty if key in self._entries)
        self._dirty.clear()
        return dirty

    def dirty_again(self, messages: tuple[Message, ...]) -> None:
        """A save of these failed: they are to be saved again."""
        for message in messages:
            if message.message_id in self._entries:
                self._dirty[message.message_id] = None

    def saved(self, messages: tuple[Message, ...]) -> None:
        """Remember the revisions that the store gave."""
        for message in messages:
            entry = self._entries.get(message.message_id)
            if entry is not None:
                entry.revision = message.revision

    def settled(self, messages: tuple[Message, ...]) -> None:
        """These stand in the store as they were then."""
        self._unsaved -= {message.message_id for message in messages if message.message_id not in self._dirty}

    @property
    def has_dirty(self) -> bool:
        return bool(self._dirty)

    @property
    def live_length(self) -> int:
        """Length in characters of the text that grows now: long texts are saved less often."""
        return self._last.length if self._last is not None else 0

    def live(self, after: int | None = None) -> tuple[Message, ...]:
        """The messages in memory as they stand now, newer than what the store holds; with `after` (a revision) only
        those that changed since.
        """
        return tuple(
            entry.message(self._session_id)
            for entry in self._entries.values()
            if after is None or entry.revision > after or entry.message_id in self._unsaved
        )

    def _text_entry(self, kind: MessageKind, agent_message_id: str | None, now: int) -> _Entry:
        key = (kind, agent_message_id) if agent_message_id is not None else None
        if key is not None and key in self._by_agent_id:
            return self._entries[self._by_agent_id[key]]
        last = self._last
        if key is None and last is not None and last.kind == kind and last.tool is None:
            return last
        entry = self._new(kind, now)
        if key is not None:
            self._by_agent_id[key] = entry.message_id
        return entry

    def _new(self, kind: MessageKind, now: int) -> _Entry:
        self._close_last()
        self._count += 1
        status: MessageStatus = "streaming" if self._running else "complete"
        entry = _Entry(f"{self._prefix}.{self._count}", self.reserve(1), self._turn_id, kind, now, status)
        self._entries[entry.message_id] = entry
        self._last = entry
        return entry

    def _close_last(self) -> None:
        """A text is complete when something else begins."""
        last = self._last
        if last is not None and last.status == "streaming" and last.kind in {"agent", "thought"}:
            last.status = "complete"
            self._mark(last)

    def _tool_status(self, tool: ToolCall) -> MessageStatus:
        if tool.is_open:
            return "streaming" if self._running else "complete"
        return "failed" if tool.status == "failed" else "complete"

    def _mark(self, entry: _Entry) -> None:
        self._dirty[entry.message_id] = None
        self._unsaved.add(entry.message_id)


def merge_tool(tool: ToolCall, change: ToolChange) -> ToolCall:
    """`tool` with the news of `change`; what is None there stays."""
    output = tool.output if change.output is None else change.output
    if change.output_delta:
        output += change.output_delta
    return ToolCall(
        tool_call_id=tool.tool_call_id,
        title=tool.title if change.title is None else change.title,
        tool_kind=tool.tool_kind if change.tool_kind is None else change.tool_kind,
        status=tool.status if change.status is None else change.status,
        locations=tool.locations if change.locations is None else change.locations,
        diffs=tool.diffs if change.diffs is None else change.diffs,
        output=output[-MAX_TOOL_OUTPUT:],
        input=tool.input if change.input is None else change.input,
    )
