"""What the application asks of the store: writes (each one transaction) and reads, and what comes back.

Data only. An outcome is told after the commit (B5); `Failed` means that nothing of the write is on disk.
Writes that carry an `Owner` are fenced by it (B59): a process that lost the session gets `Fenced`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from agentik_server.domain.message import Message, MessageStatus, Permission, Question
from agentik_server.domain.pending import Draft, Pause, QueueLimits, QueueView

Disposition = Literal["started", "queued", "removed"]
NoticeLevel = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Owner:
    """Who runs a session's turns: a server process (its lock file's name) and the fencing number."""

    server_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A session's row. Times in milliseconds since the epoch; `controls` holds modes, commands, usage ... as told."""

    session_id: str
    agent_id: str
    cwd: str
    title: str
    created_at: int
    updated_at: int
    agent_session_id: str | None = None
    controls: Mapping[str, object] = field(default_factory=dict)
    state: str = "idle"
    connection: str = "disconnected"
    owner: Owner | None = None
    pending_count: int = 0
    paused: bool = False
    pause_reason: str | None = None
    pause_detail: str | None = None
    title_by_user: bool = False
    revision: int = 0

    def with_queue(self, queue: QueueView) -> SessionFacts:
        """The same session with what its queue says."""
        return replace(
            self,
            pending_count=len(queue.items),
            paused=queue.pause is not None,
            pause_reason=queue.pause.reason if queue.pause else None,
            pause_detail=(queue.pause.detail or None) if queue.pause else None,
        )


# ---------------------------------------------------------------------------------------------- writes


@dataclass(frozen=True, slots=True)
class CreateSession:
    facts: SessionFacts
    request: int | None = None


@dataclass(frozen=True, slots=True)
class TakeSession:
    """Own the session if nobody alive does; ends what a dead owner left open (B60)."""

    session_id: str
    server_id: str
    pause_restored: bool  # B31
    now: int
    request: int | None = None


@dataclass(frozen=True, slots=True)
class ReleaseSession:
    session_id: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class SaveSession:
    """Changed columns of a session; keys are fields of SessionFacts (agent_session_id, title, controls, state, ...)."""

    session_id: str
    owner: Owner | None
    changes: Mapping[str, object]
    now: int
    request: int | None = None


@dataclass(frozen=True, slots=True)
class ForkSession:
    """A new session (`facts`, without owner) with a copy of the transcript; its messages have ids of their own."""

    session_id: str
    facts: SessionFacts
    request: int | None = None


@dataclass(frozen=True, slots=True)
class DeleteSession:
    session_id: str
    owner: Owner | None
    request: int | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """A send (B2, B4). `free`: the caller owns the session and keeps it reserved for this message until the outcome."""

    session_id: str
    owner: Owner | None
    draft: Draft
    limits: QueueLimits
    free: bool
    urgent: bool
    turn_id: str
    seq: int
    now: int
    request: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Take the head (or all) of the queue into a turn (B24): one atomic statement."""

    session_id: str
    owner: Owner
    turn_id: str
    seq: int
    take_all: bool
    now: int


@dataclass(frozen=True, slots=True)
class Journal:
    """From here on the prompt of this turn may have reached the agent (B6, B43)."""

    session_id: str
    owner: Owner
    turn_id: str


@dataclass(frozen=True, slots=True)
class PutBack:
    """B26: the turn's messages leave the transcript and wait again at the head. The turn never was."""

    session_id: str
    owner: Owner
    turn_id: str
    pause: Pause | None


@dataclass(frozen=True, slots=True)
class EndTurn:
    """The turn is over: `messages` as they end, the user's messages get `user_status`, the queue perhaps a pause."""

    session_id: str
    owner: Owner
    turn_id: str
    stop_reason: str
    user_status: MessageStatus
    messages: tuple[Message, ...]
    pause: Pause | None
    now: int
    error: str | None = None


@dataclass(frozen=True, slots=True)
class SaveMessages:
    """Messages of the agent as they stand now (upsert by id). Not durable at once: a power cut may lose the last."""

    session_id: str
    owner: Owner
    messages: tuple[Message, ...]
    now: int


@dataclass(frozen=True, slots=True)
class EditPending:
    session_id: str
    draft: Draft
    keep_attachments: bool
    limits: QueueLimits
    request: int | None = None


@dataclass(frozen=True, slots=True)
class PendingEdit:
    """One edit of `ApplyPendingEdits`."""

    op: Literal["edit", "move", "remove"]
    message_id: str
    text: str | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True)
class ApplyPendingEdits:
    """All edits in one transaction; each that comes too late is reported, the others apply."""

    session_id: str
    edits: tuple[PendingEdit, ...]
    limits: QueueLimits
    request: int | None = None


@dataclass(frozen=True, slots=True)
class MovePending:
    session_id: str
    message_id: str
    position: int
    request: int | None = None


@dataclass(frozen=True, slots=True)
class RemovePending:
    session_id: str
    message_id: str
    request: int | None = None


@dataclass(frozen=True, slots=True)
class ClearPending:
    session_id: str
    request: int | None = None


@dataclass(frozen=True, slots=True)
class SendPendingNow:
    session_id: str
    message_id: str
    request: int | None = None


@dataclass(frozen=True, slots=True)
class HoldPending:
    """B16. `until`: milliseconds since the epoch, 0 = released."""

    session_id: str
    until: int
    now: int
    request: int | None = None


@dataclass(frozen=True, slots=True)
class PauseQueue:
    """By the user: paused or resumed (B28)."""

    session_id: str
    paused: bool
    request: int | None = None


@dataclass(frozen=True, slots=True)
class Resend:
    """A message that is unknown, interrupted or failed goes again (B43), under its own id.

    In its old place a copy stays (another id, same seq and status): the record of what happened is not rewritten.
    """

    session_id: str
    owner: Owner | None
    message_id: str
    free: bool
    turn_id: str
    seq: int
    limits: QueueLimits
    now: int
    request: int | None = None


@dataclass(frozen=True, slots=True)
class SaveAsk:
    """An open permission or question, for editors that do not own the session (B48, B59)."""

    session_id: str
    owner: Owner
    ask: Permission | Question


@dataclass(frozen=True, slots=True)
class CloseAsk:
    session_id: str
    owner: Owner
    ask_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class SaveNotice:
    """What the person should read, for editors that do not own the session (B59)."""

    session_id: str
    owner: Owner
    level: NoticeLevel
    text: str


@dataclass(frozen=True, slots=True)
class PostMail:
    """A wish for the owner from an editor that does not own: {"kind": "cancel" | "answer" | ..., ...}."""

    session_id: str
    mail: Mapping[str, object]
    now: int
    request: int | None = None


@dataclass(frozen=True, slots=True)
class TakeMail:
    session_id: str
    owner: Owner


@dataclass(frozen=True, slots=True)
class ForgetOld:
    """B57: delete sessions untouched since `before` (milliseconds since the epoch) that have nothing pending."""

    before: int


Write = (
    CreateSession | ForkSession | TakeSession | ReleaseSession | SaveSession | DeleteSession | Admit | Claim | Journal
    | PutBack | EndTurn | SaveMessages | EditPending | ApplyPendingEdits | MovePending | RemovePending | ClearPending
    | SendPendingNow | HoldPending | PauseQueue | Resend | SaveAsk | CloseAsk | SaveNotice | PostMail | TakeMail
    | ForgetOld
)  # fmt: skip


# -------------------------------------------------------------------------------------------- outcomes


@dataclass(frozen=True, slots=True)
class Done:
    """Committed. What belongs to the write is set, the rest is empty."""

    messages: tuple[Message, ...] = ()
    queue: QueueView | None = None
    facts: SessionFacts | None = None
    revision: int = 0
    results: tuple[tuple[str, str | None], ...] = ()  # ApplyPendingEdits: (message id, why not)
    mail: tuple[Mapping[str, object], ...] = ()
    session_ids: tuple[str, ...] = ()  # ForgetOld


@dataclass(frozen=True, slots=True)
class Admitted:
    """Of Admit and Resend. `repeated`: this id had come before, nothing was done (B4)."""

    disposition: Disposition
    queue: QueueView
    messages: tuple[Message, ...] = ()
    gone: tuple[Message, ...] = ()  # Resend: the tombstone of the old place
    kept: Message | None = None  # Resend: the copy that stays in the old place
    repeated: bool = False
    revision: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """Of Claim; `messages` is empty when there was nothing to claim."""

    messages: tuple[Message, ...]
    queue: QueueView


@dataclass(frozen=True, slots=True)
class Taken:
    """Of TakeSession. `owner` is None when another process that lives owns the session."""

    facts: SessionFacts
    owner: Owner | None
    next_seq: int
    queue: QueueView
    interrupted: bool = False  # a turn was open and has been ended
    restored: bool = False  # the queue was paused by this (B31)
    messages: tuple[Message, ...] = ()  # changed by ending what was open, tombstones included
    mail: tuple[Mapping[str, object], ...] = ()  # what the owner before never read; its turn is over


@dataclass(frozen=True, slots=True)
class Denied:
    """Refused by a rule; nothing changed."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another process owns the session now."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The disk or the database failed; nothing of this is there."""

    detail: str


Outcome = Done | Admitted | Claimed | Taken | Denied | Fenced | Failed


# ----------------------------------------------------------------------------------------------- reads


@dataclass(frozen=True, slots=True)
class ReadSession:
    """Without `after`: the newest `limit` messages. With: everything with a higher revision, tombstones included."""

    session_id: str
    after: int | None = None
    limit: int = 200


@dataclass(frozen=True, slots=True)
class ReadMessages:
    """A page by `seq`, ascending; the newest below `before`, or the oldest above `after` (and below `before`), or the
    oldest of all.
    """

    session_id: str
    before: int | None = None
    after: int | None = None
    limit: int = 100


@dataclass(frozen=True, slots=True)
class ReadSessions:
    """Newest first. `query`: of the title or of the messages; `cursor` is what the page before gave."""

    cwd: str | None = None
    agent_id: str | None = None
    query: str | None = None
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True, slots=True)
class SearchMessages:
    """Full text, words and prefixes and "phrases"; no query syntax can fail."""

    query: str
    session_id: str | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ReadStatus:
    """Counts for agentik/status."""


Read = ReadSession | ReadMessages | ReadSessions | SearchMessages | ReadStatus


@dataclass(frozen=True, slots=True)
class TurnFacts:
    """A turn's row. `written`: it is journaled (see Journal); `stop_reason` is None while it runs.

    `number` grows with each turn of the database and is never given twice.
    """

    turn_id: str
    message_id: str  # of the first message of the user
    written: bool
    stop_reason: str | None = None
    error: str | None = None  # for the stop reason `other`: the agent's own reason
    number: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class NoticeFacts:
    """`number` grows with each notice of the database."""

    number: int
    level: NoticeLevel
    text: str


@dataclass(frozen=True, slots=True)
class SessionPage:
    """`turns` are the session's newest ones, oldest first; a turn that was put back is none any more (B26)."""

    facts: SessionFacts
    messages: tuple[Message, ...]
    more: bool
    queue: QueueView
    asks: tuple[Permission | Question, ...]
    revision: int
    closed_asks: tuple[tuple[str, str], ...] = ()  # the last that were closed: (ask id, outcome)
    mail_waiting: bool = False  # PostMail rows that the owner has not taken
    turns: tuple[TurnFacts, ...] = ()
    notices: tuple[NoticeFacts, ...] = ()  # the last ones, oldest first
    last_seq: int = 0  # of the messages that there are, whatever the page holds

    @property
    def turn(self) -> TurnFacts | None:
        """The newest."""
        return self.turns[-1] if self.turns else None


@dataclass(frozen=True, slots=True)
class MessagePage:
    messages: tuple[Message, ...]
    more: bool
    revision: int


@dataclass(frozen=True, slots=True)
class SessionList:
    sessions: tuple[SessionFacts, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class Match:
    session_id: str
    message_id: str
    snippet: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Matches:
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class StoreStatus:
    schema_version: int
    sessions: int
    messages: int
    pending: int
    bytes_on_disk: int


Page = SessionPage | MessagePage | SessionList | Matches | StoreStatus | Denied | Failed
