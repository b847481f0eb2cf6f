"""Values of a conversation: messages, tool calls, plans, attachments. Immutable; no rules about who may change them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MessageKind = Literal["user", "agent", "thought", "tool", "plan", "notice"]
MessageStatus = Literal["streaming", "complete", "interrupted", "failed", "unknown"]
SendKind = Literal["text", "command", "skill"]

OPEN_TOOL_STATUS = ("pending", "in_progress")


@dataclass(frozen=True, slots=True)
class Position:
    """Zero-based line, and character in UTF-16 units as in LSP."""

    line: int
    character: int


@dataclass(frozen=True, slots=True)
class Range:
    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Attachment:
    """What the user attached. `text` given: a snapshot (selection, unsaved buffer); absent: the file at `path` itself.

    After storing (B51) `text` is None and `stored` is the absolute path of the kept copy.
    """

    path: str
    name: str | None = None
    range: Range | None = None
    text: str | None = None
    language_id: str | None = None
    mime_type: str | None = None
    stored: str | None = None
    size: int = 0  # bytes of the kept copy


@dataclass(frozen=True, slots=True)
class Location:
    path: str
    line: int | None = None  # 1-based, as agents send it


@dataclass(frozen=True, slots=True)
class Diff:
    path: str
    new_text: str
    old_text: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call of the agent as it stands now; `status` pending | in_progress | completed | failed | cancelled."""

    tool_call_id: str
    title: str = ""
    tool_kind: str = "other"
    status: str = "pending"
    locations: tuple[Location, ...] = ()
    diffs: tuple[Diff, ...] = ()
    output: str = ""
    input: object = None

    @property
    def is_open(self) -> bool:
        return self.status in OPEN_TOOL_STATUS


@dataclass(frozen=True, slots=True)
class ToolChange:
    """News of a tool call from any source (ACP tool_call, tool_call_update, permission request): None = unchanged."""

    tool_call_id: str
    title: str | None = None
    tool_kind: str | None = None
    status: str | None = None
    locations: tuple[Location, ...] | None = None
    diffs: tuple[Diff, ...] | None = None
    output: str | None = None  # replaces the output
    output_delta: str | None = None  # is added to the output
    input: object = None


@dataclass(frozen=True, slots=True)
class PlanEntry:
    content: str
    status: str = "pending"  # pending | in_progress | completed
    priority: str = "medium"


@dataclass(frozen=True, slots=True)
class Message:
    """An entry of the transcript. `seq` orders it in its session, unchanged; `revision` grows with each commit."""

    message_id: str
    session_id: str
    seq: int
    kind: MessageKind
    text: str
    status: MessageStatus
    created_at: int  # milliseconds since the epoch
    turn_id: str | None = None
    revision: int = 0
    attachments: tuple[Attachment, ...] = ()
    tool: ToolCall | None = None
    plan: tuple[PlanEntry, ...] | None = None
    send_kind: SendKind = "text"
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class PermissionOption:
    option_id: str
    name: str
    kind: str  # allow_once | allow_always | reject_once | reject_always, or what the agent invented


@dataclass(frozen=True, slots=True)
class Permission:
    permission_id: str
    session_id: str
    tool_call: ToolCall
    options: tuple[PermissionOption, ...]
    created_at: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the agent to the user (ACP elicitation, or its own ask_user). `schema`: a JSON schema object."""

    question_id: str
    session_id: str
    message: str
    created_at: int
    schema: object = None
    url: str | None = None
