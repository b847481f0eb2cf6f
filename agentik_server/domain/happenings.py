"""What an agent link tells about its agent: each a value, told to `App.happened(session_id, happening)`.

Adapters make them; they hold no behaviour. Texts are free of lone surrogates and NUL (AGENTS.md section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentik_server.domain.message import PermissionOption, PlanEntry, ToolChange

Connection = Literal[
    "disconnected", "connecting", "initializing", "connected", "has_session", "streaming", "error_startup"
]


@dataclass(frozen=True, slots=True)
class ConnectionChanged:
    """A step of the state machine B38. `attempt` counts from 1."""

    connection: Connection
    detail: str | None = None
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class Controls:
    """What an agent's session offers; None = not told. Values are the agent's JSON, passed on as data."""

    modes: object = None  # [{id, name, description?}]
    mode_id: str | None = None
    config_options: object = None
    commands: object = None
    usage: object = None


@dataclass(frozen=True, slots=True)
class AgentReady:
    """The agent's session is up (HAS_SESSION). `context_reset`: an earlier agent session was not continued (B40)."""

    agent_session_id: str
    how: Literal["new", "loaded", "resumed"]
    context_reset: bool
    controls: Controls
    agent_name: str = ""
    images: bool = False  # the agent takes image blocks
    embedded: bool = False  # the agent takes embedded resources


@dataclass(frozen=True, slots=True)
class StartFailed:
    """No HAS_SESSION was reached. `detail` names the command, exit code and the last of stderr (B45)."""

    reason: Literal["missing", "failed", "timeout", "authRequired"]
    detail: str
    auth_methods: object = None  # [{id, name, description?}]


@dataclass(frozen=True, slots=True)
class PromptNotWritten:
    """Certainly nothing of this turn's prompt reached the agent (B26)."""

    turn_id: str
    detail: str


@dataclass(frozen=True, slots=True)
class PromptWritten:
    """The prompt is being written: what came before belongs to the turn before, what comes now to this one (B37)."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class PromptAnswered:
    """The agent answered `session/prompt`. Either a stop reason as the agent gave it, or its error as one line."""

    turn_id: str
    stop_reason: str | None = None
    error: str | None = None
    auth_required: bool = False


@dataclass(frozen=True, slots=True)
class AgentExited:
    """The agent process is gone. `detail` holds exit code or signal and the last of stderr; `wanted`: we stopped it."""

    detail: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class TextArrived:
    """A chunk of answer or thought. `agent_message_id`: the agent's own id, where it gives one (B37)."""

    kind: Literal["agent", "thought"]
    text: str
    agent_message_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallChanged:
    change: ToolChange


@dataclass(frozen=True, slots=True)
class PlanChanged:
    entries: tuple[PlanEntry, ...]


@dataclass(frozen=True, slots=True)
class ControlsChanged:
    controls: Controls


@dataclass(frozen=True, slots=True)
class TitleSuggested:
    title: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something the person should see in the transcript: an unknown update kind (B46), a refused file request, ..."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class PermissionAsked:
    """`ours`: our own settings want a person to be asked, not the agent."""

    permission_id: str
    tool: ToolChange
    options: tuple[PermissionOption, ...]
    ours: bool = False


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    question_id: str
    message: str
    schema: object = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class AskWithdrawn:
    """The agent took a permission request or question back (`$/cancel_request`), or it died with it."""

    ask_id: str


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """The answer to `AgentLink.call`: `error` is None, or one line for a person."""

    token: str
    result: object = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """One entry of a history that an agent replayed: consecutive chunks of one kind, or one tool call as it ended."""

    kind: Literal["user", "agent", "thought", "tool", "plan"]
    text: str = ""
    tool: ToolChange | None = None
    plan: tuple[PlanEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryReplayed:
    """What `session/load` replayed, in its order. The store is the record: only what it lacks is taken (B54, B58)."""

    entries: tuple[Replayed, ...]


@dataclass(frozen=True, slots=True)
class Activity:
    """Something of this session arrived that shows nothing but restarts the prompt timeout (B41)."""


Happening = (
    ConnectionChanged
    | AgentReady
    | StartFailed
    | PromptNotWritten
    | PromptWritten
    | PromptAnswered
    | AgentExited
    | TextArrived
    | ToolCallChanged
    | PlanChanged
    | ControlsChanged
    | TitleSuggested
    | Remark
    | PermissionAsked
    | QuestionAsked
    | AskWithdrawn
    | CallAnswered
    | HistoryReplayed
    | Activity
)
