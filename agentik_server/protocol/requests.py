"""The requests of the client: their params and results, a model where one is needed.

What is refused for reasons of state (unknown session, full queue) is not said here; see registry.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from agentik_server.protocol.base import (
    AbsolutePath,
    Id,
    Integer,
    Limit,
    Line,
    Milliseconds,
    Natural,
    Revision,
    Wire,
)
from agentik_server.protocol.values import (
    Agent,
    Attachment,
    Message,
    PendingItem,
    Permission,
    Question,
    SendKind,
    Session,
)


class OfSession(Wire):
    session_id: Id


class OfMessage(OfSession):
    message_id: Id


class ListAgentsResult(Wire):
    agents: list[Agent]


class OfAgent(Wire):
    agent_id: Id


class CheckAgentResult(Wire):
    ok: bool
    detail: str = Field(description="one line: what the agent said, or why it failed")
    agent_info: Any = Field(None, description="the agent's own words about itself: name, version, capabilities")


class NewSession(Wire):
    cwd: AbsolutePath
    agent_id: Id | None = Field(None, description="else the setting `defaultAgent`")
    title: Line | None = None


class SessionResult(Wire):
    session: Session


class ListSessions(Wire):
    cwd: AbsolutePath | None = Field(None, description="only sessions of this folder")
    agent_id: Id | None = None
    query: str | None = Field(None, description="words of the title or of the messages")
    limit: Limit | None = None
    cursor: str | None = Field(None, description="`nextCursor` of the page before")


class ListSessionsResult(Wire):
    sessions: list[Session] = Field(description="newest first")
    next_cursor: str | None = None


class OpenSession(OfSession):
    after: Natural | None = Field(None, description="a revision: everything that changed since, whatever its age")
    limit: Limit = Field(200, description="without `after`: so many of the newest messages")


class OpenSessionResult(Wire):
    session: Session
    messages: list[Message] = Field(description="by `seq`")
    more: bool = Field(description="older ones exist")
    pending: list[PendingItem]
    permissions: list[Permission]
    questions: list[Question]
    revision: Revision


class RenameSession(OfSession):
    title: Line


class ForkSession(OfSession):
    message_id: Id | None = Field(None, description="the last message that the fork keeps; else all")


class ImportSessions(Wire):
    cwd: AbsolutePath
    agent_id: Id


class SessionsResult(Wire):
    sessions: list[Session]


class ListMessages(OfSession):
    before: Integer | None = Field(None, description="a `seq`: the messages just before it")
    after: Integer | None = Field(None, description="a `seq`: the messages just after it")
    limit: Limit = 100


class ListMessagesResult(Wire):
    messages: list[Message] = Field(description="by `seq`; without `before` and `after`: the oldest")
    more: bool
    revision: Revision


class SearchMessages(Wire):
    query: str
    session_id: Id | None = None
    limit: Limit | None = None


class Match(Wire):
    session_id: str
    message_id: str
    snippet: str
    created_at: Milliseconds


class SearchMessagesResult(Wire):
    matches: list[Match]


class ExportSession(OfSession):
    format: Literal["markdown"]


class TextResult(Wire):
    text: str


class SendMessage(OfMessage):
    text: str
    attachments: list[Attachment] | None = None
    kind: SendKind = Field("text", description="how it is shown; the agent gets the text")
    now: bool = Field(False, description="steer: cancel the running turn, this message first, the rest waits unpaused")


class SendMessageResult(Wire):
    message_id: str
    disposition: Literal["started", "queued", "removed"]


class EditPending(OfMessage):
    text: str
    attachments: list[Attachment] | None = Field(None, description="absent: as they are")


class MovePending(OfMessage):
    position: Integer = Field(description="clamped to the places there are")


class PendingEdit(Wire):
    op: Literal["edit", "move", "remove"]
    message_id: Id
    text: str | None = Field(None, description="for `edit`")
    position: Integer | None = Field(None, description="for `move`")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.op == "edit" and self.text is None:
            msg = "`edit` needs `text`"
            raise ValueError(msg)
        if self.op == "move" and self.position is None:
            msg = "`move` needs `position`"
            raise ValueError(msg)
        return self


class ApplyPendingEdits(OfSession):
    edits: list[PendingEdit] = Field(max_length=1000)


class EditOutcome(Wire):
    message_id: str
    applied: bool
    reason: str | None = None


class ApplyPendingEditsResult(Wire):
    results: list[EditOutcome]


class HoldPending(OfSession):
    hold: bool = Field(description="while held the head is not drained; ends by itself after 60 s unless renewed")


class CancelTurnResult(Wire):
    cancelled: bool = Field(description="false: nothing ran")


class AnswerPermission(OfSession):
    permission_id: Id
    option_id: str | None = Field(description="null: cancelled")


class AnswerQuestion(OfSession):
    question_id: Id
    action: Literal["accept", "decline", "cancel"]
    content: Any = Field(None, description="with `accept`: what the question's `schema` asks for")


class SetMode(OfSession):
    mode_id: str


class SetConfigOption(OfSession):
    option_id: str
    value: str | bool


class Authenticate(OfSession):
    method_id: str


class StartDictation(Wire):
    language: Line | None = None
    device: Line | int | None = None
    hotwords: list[Line] | None = Field(None, max_length=5000, description="names in view, to be written as they are")


class DictationStarted(Wire):
    dictation_id: str


class OfDictation(Wire):
    dictation_id: Id


class Microphone(Wire):
    device: str
    name: str
    is_default: bool


class ListMicrophonesResult(Wire):
    microphones: list[Microphone]


class Status(Wire):
    """For health checks and bug reports; holds no message text and no secret."""

    versions: dict[str, str] = Field(description="of the server, the protocol, Python and the libraries")
    folders: dict[str, str] = Field(description="home, database, attachments, log, settings")
    sessions: list[Any] = Field(description="the open ones: id, agent, state, connection, owner")
    agents: list[Any] = Field(description="the agent processes: session, agent, pid, since")
    queues: dict[str, int] = Field(description="waiting items by session")
    store: dict[str, int] = Field(
        description="schema version; counts of sessions, messages, waiting items; bytes on disk"
    )
    last_errors: list[str]
    settings_problems: list[str]
