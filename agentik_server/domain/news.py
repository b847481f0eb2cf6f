"""What editors are told about a session: one value a notification of PROTOCOL.md, named like it. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentik_server.domain.happenings import Connection
from agentik_server.domain.message import Message, Permission, Question
from agentik_server.domain.pending import PendingItem, QueueView
from agentik_server.domain.saves import SessionFacts

DISPLAY_LENGTH = 1000  # characters of a queued message shown before the list itself arrives

StopReason = Literal[
    "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "crashed", "timeout", "error", "other"
]


@dataclass(frozen=True, slots=True)
class MessageQueued:
    session_id: str
    message_id: str
    display: str
    position: int
    revision: int


@dataclass(frozen=True, slots=True)
class MessageReceived:
    session_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class TurnStarted:
    session_id: str
    turn_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class StreamingToken:
    """`offset` in code points from the start of the message; `seq` places a message that the editor sees first here."""

    session_id: str
    turn_id: str | None
    message_id: str
    kind: str
    offset: int
    text: str
    seq: int


@dataclass(frozen=True, slots=True)
class MessageUpdated:
    session_id: str
    message: Message


@dataclass(frozen=True, slots=True)
class TurnEnded:
    session_id: str
    turn_id: str
    stop_reason: StopReason
    error: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class PendingChanged:
    session_id: str
    queue: QueueView


@dataclass(frozen=True, slots=True)
class PermissionRequested:
    session_id: str
    permission: Permission


@dataclass(frozen=True, slots=True)
class PermissionResolved:
    session_id: str
    permission_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class QuestionPosed:
    """agentik/questionAsked."""

    session_id: str
    question: Question


@dataclass(frozen=True, slots=True)
class QuestionResolved:
    session_id: str
    question_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class SessionChanged:
    facts: SessionFacts
    owned: bool


@dataclass(frozen=True, slots=True)
class SessionDeleted:
    session_id: str


@dataclass(frozen=True, slots=True)
class ConnectionStep:
    """agentik/connectionChanged."""

    session_id: str
    connection: Connection
    detail: str | None
    attempt: int


@dataclass(frozen=True, slots=True)
class Notice:
    level: Literal["info", "warning", "error"]
    text: str
    session_id: str | None = None


News = (
    MessageQueued | MessageReceived | TurnStarted | StreamingToken | MessageUpdated | TurnEnded | PendingChanged
    | PermissionRequested | PermissionResolved | QuestionPosed | QuestionResolved | SessionChanged | SessionDeleted
    | ConnectionStep | Notice
)  # fmt: skip


def queued(session_id: str, item: PendingItem, queue: QueueView) -> MessageQueued:
    """That `item` waits in the queue."""
    return MessageQueued(session_id, item.message_id, item.text[:DISPLAY_LENGTH], item.position, queue.revision)
