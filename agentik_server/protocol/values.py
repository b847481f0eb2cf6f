"""The values of PROTOCOL.md: sessions, messages, pending items, attachments, permissions, questions.

Wire models only: domain values are others (law 4); adapters and the application convert at the border.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from agentik_server.protocol.base import Line, Milliseconds, Path, Revision, Wire

SessionState = Literal["idle", "busy", "cancelling", "waiting"]
Connection = Literal[
    "disconnected", "connecting", "initializing", "connected", "has_session", "streaming", "error_startup"
]
MessageKind = Literal["user", "agent", "thought", "tool", "plan", "notice"]
MessageStatus = Literal["streaming", "complete", "interrupted", "failed", "unknown"]
SendKind = Literal["text", "command", "skill"]
StopReason = Literal[
    "end_turn",
    "max_tokens",
    "max_turn_requests",
    "refusal",
    "cancelled",
    "crashed",
    "timeout",
    "error",
    "other",
]


class Position(Wire):
    line: int = Field(ge=0, description="zero-based")
    character: int = Field(ge=0, description="zero-based, in UTF-16 units as in LSP")


class Range(Wire):
    start: Position
    end: Position


class Attachment(Wire):
    """A file or a piece of one. `text` given: a snapshot (selection, unsaved buffer), stored as a file when sent.
    `text` absent: the file itself."""

    path: Path = Field(description="the file, or the name of the buffer that the text comes from")
    name: Line | None = Field(None, description="how to show it; else the last part of the path")
    range: Range | None = Field(None, description="what part of the file `text` is; `end` is exclusive")
    text: str | None = Field(None, description="a snapshot taken by the editor")
    language_id: Line | None = Field(None, description="filetype, for code blocks")
    mime_type: Line | None = None


class Location(Wire):
    path: str
    line: int | None = Field(None, description="1-based")


class Diff(Wire):
    path: str
    new_text: str
    old_text: str | None = Field(None, description="absent for a new file")


class ToolCall(Wire):
    """A tool call of the agent as it stands now."""

    tool_call_id: str
    title: str
    tool_kind: str = Field(
        description="read, edit, delete, move, search, execute, think, fetch, switch_mode, other, or the agent's own"
    )
    status: str = Field(description="pending, in_progress, completed, failed, cancelled")
    locations: list[Location] | None = None
    diffs: list[Diff] | None = None
    output: str | None = None
    input: Any = Field(None, description="what the agent called the tool with: any JSON, passed on as it came")


class PlanEntry(Wire):
    content: str
    status: str = Field("pending", description="pending, in_progress, completed")
    priority: str = Field("medium", description="high, medium, low")


class AuthMethod(Wire):
    id: str
    name: str
    description: str | None = None


class Session(Wire):
    session_id: str
    agent_id: str
    agent_session_id: str | None = Field(description="the agent's own id, null before it has one")
    title: str
    cwd: str
    created_at: Milliseconds
    updated_at: Milliseconds
    state: SessionState = Field(description="`waiting`: a permission or a question is open")
    connection: Connection
    owned: bool = Field(description="true when this server process runs the session's turns")
    modes: Any = Field(None, description="[{id, name, description?}] as the agent offers them")
    mode_id: str | None = None
    config_options: Any = Field(None, description="the agent's configuration options, as they came")
    commands: Any = Field(None, description="the agent's slash commands, as they came")
    usage: Any = Field(None, description="tokens and cost as the agent reports them")
    auth_methods: list[AuthMethod] | None = Field(None, description="given while the agent wants a login")
    pending_count: int
    paused: bool
    pause_reason: str | None = Field(None, description="as in `agentik/pendingChanged`")
    pause_detail: str | None = Field(None, description="as in `agentik/pendingChanged`")
    revision: Revision


class Message(Wire):
    """An entry of the transcript."""

    message_id: str
    session_id: str
    seq: int = Field(description="order in the session; gaps allowed, never changed")
    turn_id: str | None
    kind: MessageKind
    text: str
    status: MessageStatus = Field(description="`unknown`: sent, outcome not known")
    created_at: Milliseconds
    revision: Revision
    attachments: list[Attachment] | None = None
    tool: ToolCall | None = None
    plan: list[PlanEntry] | None = None
    send_kind: SendKind | None = Field(None, description="`kind` of the sendMessage that it came from")
    deleted: bool | None = Field(None, description="true: a tombstone, the message left the transcript")


class PendingItem(Wire):
    message_id: str
    session_id: str
    text: str
    attachments: list[Attachment]
    files: list[str] = Field(description="absolute paths of the attachments as kept on disk")
    created_at: Milliseconds
    position: int = Field(description="zero-based index among the waiting items")
    state: Literal["pending", "claimed"]


class PermissionOption(Wire):
    option_id: str
    name: str = Field(description="the agent's own label")
    kind: str = Field(description="allow_once, allow_always, reject_once, reject_always, or the agent's own")


class Permission(Wire):
    permission_id: str
    session_id: str
    tool_call: ToolCall
    options: list[PermissionOption]
    created_at: Milliseconds


class Question(Wire):
    question_id: str
    message: str
    schema_: Any = Field(None, alias="schema", description="JSON schema of the answer's `content`")
    url: str | None = Field(None, description="a page where the question is answered")
    session_id: str | None = None
    created_at: int | None = Field(None, description="milliseconds since the epoch")


class Agent(Wire):
    agent_id: str
    name: str
    command: list[str] = Field(description="argv")
    available: bool = Field(description="its command is found on this machine")
    reason: str | None = Field(None, description="why it is not available")
    install_hint: str | None = None
    is_default: bool


VALUES: tuple[type[Wire], ...] = (
    Session,
    Message,
    PendingItem,
    Attachment,
    Range,
    Position,
    ToolCall,
    Location,
    Diff,
    PlanEntry,
    Permission,
    PermissionOption,
    Question,
    Agent,
    AuthMethod,
)
