"""What a session wants of the world: data, carried out in order by `app.py`. No behaviour here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentik_server.domain.message import Message
from agentik_server.domain.news import News
from agentik_server.domain.saves import Write


@dataclass(frozen=True, slots=True)
class Save:
    """Ask the store; the outcome comes back as `Session.stored(write, outcome)`."""

    write: Write


@dataclass(frozen=True, slots=True)
class Show:
    """Tell every editor that has the session open."""

    news: News


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a request of the editor with a JSON-able value."""

    request: int
    value: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Refuse:
    request: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class StartAgent:
    attempt: int
    agent_session_id: str | None
    want_history: bool


@dataclass(frozen=True, slots=True)
class SendPrompt:
    turn_id: str
    messages: tuple[Message, ...]
    quiet: bool


@dataclass(frozen=True, slots=True)
class CancelPrompt:
    turn_id: str


@dataclass(frozen=True, slots=True)
class AnswerPermission:
    permission_id: str
    option_id: str | None


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    question_id: str
    action: str
    content: object


@dataclass(frozen=True, slots=True)
class CallAgent:
    """Session control; the answer comes back as CallAnswered with this request as token."""

    request: int
    method: str
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StopAgent:
    """In order: stdin closed, TERM, KILL."""


@dataclass(frozen=True, slots=True)
class KillAgent:
    """At once."""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """One-shot; comes back as `Session.timer_fired(name)`."""

    name: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CancelTimer:
    name: str


Effect = (
    Save | Show | Answer | Refuse | StartAgent | SendPrompt | CancelPrompt | AnswerPermission | AnswerQuestion
    | CallAgent | StopAgent | KillAgent | SetTimer | CancelTimer
)  # fmt: skip
