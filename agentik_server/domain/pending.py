"""The pending queue of one session as a value, and the rules of who may enter, change and leave it (B8–B18, B28–B31).

Pure: every method returns a new queue or raises `Refused` and changes nothing. The store loads a queue, asks it, and
writes the difference, all in one transaction; so the rules hold for every process that shares the database.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from agentik_server.domain.message import Attachment, SendKind
from agentik_server.domain.refusal import Refused

PauseReason = Literal["user", "cancel", "start", "auth", "crash", "error", "timeout", "refusal", "restore"]


@dataclass(frozen=True, slots=True)
class Pause:
    """Why nothing is drained. Every reason but "user" came by itself and is lifted by the next send (B30)."""

    reason: PauseReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """B11. Bytes are UTF-8 bytes of text."""

    enabled: bool = True
    max_items: int = 100
    max_text_bytes: int = 1 << 20
    max_files: int = 50
    max_total_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that somebody wants to send, checked by `check_draft`."""

    message_id: str
    text: str
    attachments: tuple[Attachment, ...] = ()
    send_kind: SendKind = "text"


@dataclass(frozen=True, slots=True)
class PendingItem:
    """One waiting message. `position` is its index among the waiting ones."""

    message_id: str
    session_id: str
    text: str
    attachments: tuple[Attachment, ...]
    created_at: int
    position: int
    send_kind: SendKind = "text"


@dataclass(frozen=True, slots=True)
class QueueView:
    """The queue as it is shown: committed, at `revision`. `urgent`: its head goes next whatever the pause says.

    `held_until`: somebody edits the list, nothing is drained before (B16); milliseconds since the epoch, 0 = not held.
    """

    items: tuple[PendingItem, ...] = ()
    pause: Pause | None = None
    held_until: int = 0
    urgent: bool = False
    revision: int = 0

    def may_drain(self, now: int) -> bool:
        return bool(self.items) and (self.urgent or (self.pause is None and self.held_until <= now))


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the rules need to know of a waiting item."""

    message_id: str
    text_bytes: int
    urgent: bool = False


def check_text(text: str, *, has_attachment: bool, limits: QueueLimits) -> None:
    """B10: valid, not blank unless something is attached, not too long. Raises Refused."""
    if "\0" in text:
        raise Refused("invalidText", "the text contains a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Refused("invalidText", "the text contains half of a surrogate pair") from None
    if not text.strip() and not has_attachment:
        raise Refused("emptyText", "there is nothing to send")
    if size > limits.max_text_bytes:
        raise Refused("textTooLong", f"the text is longer than {limits.max_text_bytes} bytes")


def check_draft(draft: Draft, limits: QueueLimits) -> None:
    """The checks of a send that need no queue, in the order of B10. Raises Refused."""
    check_text(draft.text, has_attachment=bool(draft.attachments), limits=limits)
    if len(draft.attachments) > limits.max_files:
        raise Refused("tooManyFiles", f"more than {limits.max_files} files are attached")


@dataclass(frozen=True, slots=True)
class Queue:
    """The waiting items in order, the pause, and whether a turn is running now."""

    waiting: tuple[Waiting, ...] = ()
    pause: Pause | None = None
    running: bool = False

    def admit(self, draft: Draft, limits: QueueLimits, *, urgent: bool) -> Queue:
        """Append (or with `urgent` put first); lifts a pause that came by itself (B30). Raises Refused (B11)."""
        size = len(draft.text.encode())
        if len(self.waiting) >= limits.max_items:
            raise Refused("queueFull", f"{len(self.waiting)} messages are waiting already")
        if sum(item.text_bytes for item in self.waiting) + size > limits.max_total_bytes:
            raise Refused("queueTooLarge", f"the waiting messages would be more than {limits.max_total_bytes} bytes")
        item = Waiting(draft.message_id, size, urgent)
        waiting = (item, *self.waiting) if urgent else (*self.waiting, item)
        pause = self.pause if self.pause is not None and self.pause.reason == "user" else None
        return replace(self, waiting=waiting, pause=pause)

    def edited(self, message_id: str, text: str, attachments: int, limits: QueueLimits) -> Queue:
        """B13: same id, same place. Raises Refused when the new text would not be accepted."""
        index = self.index(message_id)
        check_text(text, has_attachment=attachments > 0, limits=limits)
        if attachments > limits.max_files:
            raise Refused("tooManyFiles", f"more than {limits.max_files} files are attached")
        size = len(text.encode())
        others = sum(item.text_bytes for item in self.waiting) - self.waiting[index].text_bytes
        if others + size > limits.max_total_bytes:
            raise Refused("queueTooLarge", f"the waiting messages would be more than {limits.max_total_bytes} bytes")
        waiting = list(self.waiting)
        waiting[index] = replace(waiting[index], text_bytes=size)
        return replace(self, waiting=tuple(waiting))

    def moved(self, message_id: str, position: int) -> Queue:
        """B15: to `position` (0-based, clamped); the others keep their order."""
        item = self.waiting[self.index(message_id)]
        rest = [other for other in self.waiting if other.message_id != message_id]
        place = max(0, min(position, len(rest)))
        return replace(self, waiting=(*rest[:place], item, *rest[place:]))

    def removed(self, message_id: str) -> Queue:
        self.index(message_id)
        rest = tuple(item for item in self.waiting if item.message_id != message_id)
        return replace(self, waiting=rest).settled()

    def cleared(self) -> Queue:
        return replace(self, waiting=()).settled()

    def sent_now(self, message_id: str) -> Queue:
        """The item goes next whatever comes; the rest follows unpaused."""
        moved = self.moved(message_id, 0)
        head = replace(moved.waiting[0], urgent=True)
        return replace(moved, waiting=(head, *moved.waiting[1:]), pause=None)

    def put_back(self, items: tuple[Waiting, ...], pause: Pause | None) -> Queue:
        """B26: what was claimed and certainly not sent is at the head again, in its order; only urgent ones precede."""
        urgent = tuple(item for item in self.waiting if item.urgent)
        others = tuple(item for item in self.waiting if not item.urgent)
        return replace(self, waiting=(*urgent, *items, *others)).paused_by_itself(pause)

    def paused(self) -> Queue:
        """B28: by the user. An empty idle queue is never paused."""
        return replace(self, pause=Pause("user")).settled()

    def resumed(self) -> Queue:
        return replace(self, pause=None)

    def paused_by_itself(self, pause: Pause | None) -> Queue:
        """B29; a pause by the user is stronger and stays."""
        if pause is not None and (self.pause is None or self.pause.reason != "user"):
            return replace(self, pause=pause).settled()
        return self.settled()

    def settled(self) -> Queue:
        """B28: a pause lives while a turn runs or items wait."""
        if self.pause is not None and not self.running and not self.waiting:
            return replace(self, pause=None)
        return self

    def index(self, message_id: str) -> int:
        for index, item in enumerate(self.waiting):
            if item.message_id == message_id:
                return index
        raise Refused("unknownMessage", "no such message is waiting")
