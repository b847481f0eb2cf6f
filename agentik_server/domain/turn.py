"""One turn: a prompt and its end. Decides how a turn ended; the first cause wins (B33, B35). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from agentik_server.domain.message import Message, MessageStatus
from agentik_server.domain.news import StopReason
from agentik_server.domain.pending import Pause

Cause = Literal["cancel", "steer", "timeout", "restart", "deleted"]

NORMAL_ENDS: frozenset[str] = frozenset({"end_turn", "max_tokens", "max_turn_requests"})


class Stage(Enum):
    READYING = "readying"  # the agent starts, or the prompt is being journaled: certainly not written
    PROMPTING = "prompting"  # written, or about to be
    CANCELLING = "cancelling"  # session/cancel is sent, the answer is awaited
    ENDING = "ending"  # its end is being saved


@dataclass(slots=True)
class Turn:
    turn_id: str
    messages: tuple[Message, ...]  # the user's
    stage: Stage = Stage.READYING
    cause: Cause | None = None  # why we end it, once we do
    shown: bool = False  # turnStarted was sent
    journaling: bool = False
    restarts: int = 0
    last_activity: int = 0  # milliseconds since the epoch
    wishes: int = 0  # to go on, since the user cancelled: sends and resumes

    @property
    def first_message_id(self) -> str:
        return self.messages[0].message_id if self.messages else ""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How everything of the turn ends."""

    stop_reason: StopReason
    user_status: MessageStatus
    text_status: MessageStatus
    tool_status: str
    pause: Pause | None = None
    error: str | None = None
    detail: str | None = None


def conclude_by_cause(cause: Cause, *, pause_on_cancel: bool, detail: str | None = None) -> Conclusion:
    """We ended it: whatever the agent said to that is not an error (B33)."""
    if cause == "timeout":
        text = "the agent sent nothing for too long"
        return Conclusion("timeout", "interrupted", "interrupted", "failed", Pause("timeout", text), text, detail)
    pause = Pause("cancel") if cause in {"cancel", "restart"} and pause_on_cancel else None
    return Conclusion("cancelled", "interrupted", "interrupted", "cancelled", pause, None, detail)


def conclude_by_answer(stop_reason: str | None) -> Conclusion:
    """The agent answered the prompt by itself."""
    if stop_reason == "refusal":
        return Conclusion("refusal", "complete", "complete", "completed", Pause("refusal", "the agent refused"))
    if stop_reason == "cancelled":
        return Conclusion("cancelled", "complete", "interrupted", "cancelled")
    if stop_reason in NORMAL_ENDS:
        return Conclusion(stop_reason, "complete", "complete", "completed")  # type: ignore[arg-type]  # one of the three
    return Conclusion("other", "complete", "complete", "completed", detail=stop_reason or "no stop reason given")


def conclude_by_error(error: str, *, auth: bool) -> Conclusion:
    pause = Pause("auth" if auth else "error", error)
    return Conclusion("error", "failed", "interrupted", "failed", pause, error)


def conclude_by_exit(detail: str) -> Conclusion:
    """B42, B43: the outcome of the prompt is not known."""
    return Conclusion("crashed", "unknown", "interrupted", "failed", Pause("crash", detail), detail)
