"""What the server sends by itself: the params of its notifications and of its requests to the client.

For documentation and tests; nothing is validated on the streaming path.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentik_server.protocol.base import Milliseconds, Revision, Wire
from agentik_server.protocol.values import (
    AuthMethod,
    Connection,
    Message,
    PendingItem,
    Permission,
    Question,
    Session,
    StopReason,
)


class MessageQueued(Wire):
    session_id: str
    message_id: str
    display: str = Field(description="how to show it")
    position: int
    revision: Revision


class MessageReceived(Wire):
    session_id: str
    message_id: str
    message: Message
    revision: Revision


class TurnStarted(Wire):
    session_id: str
    turn_id: str
    message_id: str


class StreamingToken(Wire):
    session_id: str
    turn_id: str | None
    message_id: str
    kind: Literal["agent", "thought"]
    seq: int = Field(description="of the message: where it stands in the transcript")
    offset: int = Field(description="Unicode code points of the message's text before this piece")
    text: str


class MessageUpdated(Wire):
    session_id: str
    message: Message
    revision: Revision


class TurnEnded(Wire):
    session_id: str
    turn_id: str
    stop_reason: StopReason
    error: str | None = Field(None, description="one line for a person")
    detail: str | None = Field(None, description="with `other`: the agent's own reason")


class PendingChanged(Wire):
    session_id: str
    pending: list[PendingItem]
    paused: bool
    pause_reason: str | None = Field(None, description="one word: who or what paused it")
    pause_detail: str | None = Field(None, description="what the word does not say, one line for a person")
    held_until: Milliseconds | None = Field(None, description="the head is held while the list is edited")
    revision: Revision


class PermissionRequested(Wire):
    session_id: str
    permission: Permission


class PermissionResolved(Wire):
    session_id: str
    permission_id: str
    outcome: str = Field(description="the chosen option's id, or `cancelled`")


class QuestionAsked(Wire):
    session_id: str
    question: Question


class QuestionResolved(Wire):
    session_id: str
    question_id: str
    outcome: str = Field(description="accept, decline or cancel")


class SessionDeleted(Wire):
    session_id: str


class SessionChanged(Wire):
    session: Session


class ConnectionChanged(Wire):
    session_id: str
    connection: Connection
    detail: str | None = None
    attempt: int | None = Field(None, description="counts from 1")
    auth_methods: list[AuthMethod] | None = Field(None, description="given when the agent wants a login")


class Notice(Wire):
    session_id: str | None = None
    level: Literal["info", "warning", "error"]
    text: str = Field(description="one line")


class Resync(Wire):
    session_id: str


class DictationState(Wire):
    dictation_id: str
    state: Literal["loading", "listening", "speech", "transcribing", "stopped", "failed"]
    detail: str | None = None


class DictationPartial(Wire):
    dictation_id: str
    text: str = Field(description='the running guess; "" takes it away')
    stable: str | None = Field(None, description="the beginning of it that two guesses agree on")


class DictationFinal(Wire):
    dictation_id: str
    text: str
    command: Literal["newline", "scratch", "send"] | None = Field(None, description="said alone; `text` is empty then")


class DictationLevel(Wire):
    dictation_id: str
    level: float = Field(description="0 to 1")


class ReadBuffer(Wire):
    path: str


class ReadBufferResult(Wire):
    loaded: bool
    modified: bool
    text: str | None = Field(None, description="the buffer's text, at least when it is modified")


class WriteBuffer(Wire):
    path: str
    text: str


class WriteBufferResult(Wire):
    applied: bool
    reason: str | None = None
