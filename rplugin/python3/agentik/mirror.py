"""What the server said about one session, whatever the order and the gaps in which it said it.

Pure: messages of the protocol go in, what changed comes out. No I/O, no clock, no guesses: nothing is here that the
server did not say (no local echo). After any schedule of notifications, reloads and lost connections a mirror that was
loaded last equals a fresh one (B25, B52–B55).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from dataclasses import dataclass
from sys import intern
from typing import Any

import msgspec

LIVE = "streaming"


class Message(msgspec.Struct, rename="camel", kw_only=True):
    """An entry of the transcript, as in PROTOCOL.md. Fields that we do not know are ignored."""

    message_id: str
    session_id: str
    seq: int
    kind: str
    text: str = ""
    status: str = "complete"
    created_at: int = 0
    revision: int = 0
    turn_id: str | None = None
    attachments: list[dict[str, Any]] | None = None
    tool: dict[str, Any] | None = None
    plan: list[dict[str, Any]] | None = None
    deleted: bool | None = None

    def __post_init__(self) -> None:
        """Words that thousands of messages share are kept once."""
        self.session_id, self.kind, self.status = intern(self.session_id), intern(self.kind), intern(self.status)
        self.turn_id = self.turn_id and intern(self.turn_id)


class Token(msgspec.Struct, rename="camel", kw_only=True):
    """A piece of text of a message that is being written. `offset` counts code points; `seq` is the message's place."""

    session_id: str
    message_id: str
    kind: str
    offset: int
    text: str
    turn_id: str | None = None
    seq: int | None = None


class Snapshot(msgspec.Struct, rename="camel", kw_only=True):
    """Result of `agentik/openSession`."""

    session: dict[str, Any]
    messages: list[Message]
    revision: int
    more: bool = False
    pending: list[dict[str, Any]] = msgspec.field(default_factory=list)
    permissions: list[dict[str, Any]] = msgspec.field(default_factory=list)
    questions: list[dict[str, Any]] = msgspec.field(default_factory=list)


class PendingNews(msgspec.Struct, rename="camel", kw_only=True):
    """Params of `agentik/pendingChanged`."""

    session_id: str
    pending: list[dict[str, Any]]
    revision: int
    paused: bool = False
    pause_reason: str | None = None
    pause_detail: str | None = None


@dataclass(frozen=True, slots=True)
class Grown:
    """Text was added at the end of a message that is being written."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Changed:
    """A message is new, or anything of it is different."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Removed:
    message_id: str


@dataclass(frozen=True, slots=True)
class StateChanged:
    """Something beside the transcript changed: "session", "pending", "permissions", "questions" or "more"."""

    part: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Text is missing: the session has to be asked for again, from `Mirror.revision` on."""


Change = Grown | Changed | Removed | StateChanged | Gap


class Mirror:
    """One session as the server last told it. The methods return what changed, in order."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self.session: dict[str, Any] = {}
        self.messages: dict[str, Message] = {}
        self.revision: int | None = None
        """Everything up to here is known; None until the first load."""
        self.more = False
        """Older messages exist that were not loaded."""
        self.pause_reason: str | None = None
        self.pause_detail: str | None = None
        self.permissions: dict[str, dict[str, Any]] = {}
        self.questions: dict[str, dict[str, Any]] = {}
        self._order: list[tuple[int, str]] = []
        self._gone: dict[str, int] = {}
        self._pending: list[dict[str, Any]] = []
        self._pending_revision = -1
        self._announced: dict[str, tuple[int, dict[str, Any]]] = {}
        self._closed: set[str] = set()
        self._asked_during_load: set[str] = set()
        self._held: list[Token] = []
        self._loading = False
        self._doubted: set[str] = set()

    # What is known

    def transcript(self) -> list[Message]:
        """The messages that are there, by `seq`."""
        return [self.messages[message_id] for _, message_id in self._order]

    @property
    def oldest(self) -> int | None:
        """`seq` of the first message that is loaded."""
        return self._order[0][0] if self._order else None

    @property
    def paused(self) -> bool:
        return bool(self.session.get("paused"))

    def pending(self) -> list[dict[str, Any]]:
        """What waits, in order: the last list, without what has arrived in the transcript since (B25)."""
        items = [item for item in self._pending if not self._delivered(item, self._pending_revision)]
        known = {item["messageId"] for item in self._pending}
        for message_id, (revision, item) in self._announced.items():
            if message_id not in known and not self._delivered(item, revision):
                items.append(item)
        return items

    def _delivered(self, item: dict[str, Any], listed_at: int) -> bool:
        message = self.messages.get(item["messageId"])
        return message is not None and (message.revision >= listed_at or item.get("state") == "claimed")

    # Loading

    def loading(self) -> None:
        """`openSession` is on its way: what is said from now on may be newer than its answer (B55)."""
        self._loading = True
        self._asked_during_load.clear()

    def load(self, snapshot: Snapshot, *, after: int | None) -> list[Change]:
        """The answer of `openSession`, which was asked with `after`."""
        changes: list[Change] = []
        if after is None:
            self.more = snapshot.more
            kept = {message.message_id for message in snapshot.messages}
            changes += self._forget_unlisted(kept, snapshot)
        changes += self._drop_doubted(snapshot)
        for message in snapshot.messages:
            changes += self.put(message, snapshot.revision)
        self.revision = max(self.revision or 0, snapshot.revision)
        changes += self.session_changed(snapshot.session)
        changes += self.pending_changed(
            PendingNews(
                session_id=self.session_id,
                pending=snapshot.pending,
                revision=snapshot.revision,
                paused=bool(snapshot.session.get("paused")),
                pause_reason=snapshot.session.get("pauseReason"),
                pause_detail=snapshot.session.get("pauseDetail"),
            )
        )
        changes += self._load_asks("permissions", "permissionId", self.permissions, snapshot.permissions)
        changes += self._load_asks("questions", "questionId", self.questions, snapshot.questions)
        self._loading = False
        held, self._held = self._held, []
        for token in held:
            changes += [change for change in self.grow(token) if not isinstance(change, Gap)]
        changes.append(StateChanged("more"))
        return changes

    def load_failed(self) -> None:
        """The load did not come: what waited for it is dropped, the next token asks again."""
        self._loading = False
        self._held.clear()

    def disconnected(self) -> None:
        """The server is gone: text that it may never have saved is in doubt until the next load lists it."""
        self.load_failed()
        live = [message for message in self.messages.values() if message.status == LIVE]
        self._doubted = {message.message_id for message in live}
        saved = [message.revision for message in live if message.revision > 0]
        if self.revision is not None and saved:
            self.revision = min(self.revision, min(saved) - 1)

    def _drop_doubted(self, snapshot: Snapshot) -> list[Change]:
        lost = self._doubted - {message.message_id for message in snapshot.messages}
        self._doubted = set()
        return [change for message_id in sorted(lost) for change in self._drop(message_id)]

    def page(self, messages: Iterable[Message], *, more: bool, revision: int) -> list[Change]:
        """Older messages (`listMessages` with `before`)."""
        changes: list[Change] = []
        self.more = False
        for message in messages:
            changes += self.put(message, revision)
        self.more = more
        changes.append(StateChanged("more"))
        return changes

    def _forget_unlisted(self, kept: set[str], snapshot: Snapshot) -> list[Change]:
        """A whole load is the truth: what it does not list and nobody told us since is gone."""
        first = min((message.seq for message in snapshot.messages), default=0)
        unlisted = [
            message
            for message in self.transcript()
            if message.message_id not in kept
            and message.revision <= snapshot.revision
            and (message.seq >= first or not snapshot.more)
            and message.status != LIVE
        ]
        changes: list[Change] = []
        for message in unlisted:
            changes += self._drop(message.message_id)
        return changes

    def _load_asks(
        self, part: str, key: str, known: dict[str, dict[str, Any]], listed: list[dict[str, Any]]
    ) -> list[Change]:
        fresh = {ask[key]: ask for ask in listed if ask[key] not in self._closed}
        for ask_id, ask in known.items():
            if ask_id in self._asked_during_load:
                fresh.setdefault(ask_id, ask)
        if fresh == known:
            return []
        known.clear()
        known.update(fresh)
        return [StateChanged(part)]

    # News

    def put(self, message: Message, revision: int = 0) -> list[Change]:
        """A message at its own revision; the higher one wins (B25). `revision`: that of the news it came in."""
        message.revision = message.revision or revision
        message_id = message.message_id
        old = self.messages.get(message_id)
        known = old.revision if old else self._gone.get(message_id, -1)
        if message.revision < known:
            return []
        if message.deleted:
            self._gone[message_id] = message.revision
            return self._drop(message_id)
        oldest = self.oldest
        if old is None and self.more and oldest is not None and message.seq < oldest:
            return []  # it belongs to a page that is not loaded
        if old and message.status == LIVE and old.status == LIVE and old.text.startswith(message.text):
            message.text = old.text  # the store lags behind the stream
        self._gone.pop(message_id, None)
        pending_before = self._lists(message_id)
        if old is None:
            insort(self._order, (message.seq, message_id))
        elif old.seq != message.seq:
            self._order.remove((old.seq, message_id))
            insort(self._order, (message.seq, message_id))
        self.messages[message_id] = message
        changes: list[Change] = [] if old == message else [Changed(message_id)]
        if pending_before:
            changes.append(StateChanged("pending"))
        return changes

    def _drop(self, message_id: str) -> list[Change]:
        message = self.messages.pop(message_id, None)
        if message is None:
            return []
        del self._order[bisect_left(self._order, (message.seq, message_id))]
        changes: list[Change] = [Removed(message_id)]
        if self._lists(message_id):
            changes.append(StateChanged("pending"))
        return changes

    def _lists(self, message_id: str) -> bool:
        return message_id in self._announced or any(item["messageId"] == message_id for item in self._pending)

    def grow(self, token: Token) -> list[Change]:
        """Streamed text: overlap is cut, a gap is told once and the token kept until the load that closes it."""
        changes: list[Change] = []
        message = self.messages.get(token.message_id)
        if message is None and token.message_id in self._gone:
            return []
        if message is not None and message.status != LIVE:
            return []
        length = len(message.text) if message else 0
        if token.offset > length:
            self._held.append(token)
            return [] if self._loading else [Gap()]
        if message is None:
            message = self._begin(token)
            changes.append(Changed(token.message_id))
        text = token.text[length - token.offset :]
        if text:
            # With no other reference to it Python adds to a text in place: a long one is not copied for each token.
            whole, message.text = message.text, ""
            whole += text
            message.text = whole
            changes.append(Grown(token.message_id, text))
        return changes

    def _begin(self, token: Token) -> Message:
        last = self._order[-1][0] if self._order else 0
        message = Message(
            message_id=token.message_id,
            session_id=token.session_id,
            seq=last + 1 if token.seq is None else token.seq,
            kind=token.kind,
            status=LIVE,
            turn_id=token.turn_id,
        )
        self.messages[token.message_id] = message
        insort(self._order, (message.seq, token.message_id))
        return message

    def queued(self, message_id: str, display: str, revision: int) -> list[Change]:
        """A message waits: shown at once, until a list that is as new says more."""
        if revision <= self._pending_revision or message_id in self._announced:
            return []
        item = {
            "messageId": message_id,
            "sessionId": self.session_id,
            "text": display,
            "attachments": [],
            "files": [],
            "state": "pending",
        }
        self._announced[message_id] = (revision, item)
        return [StateChanged("pending")]

    def pending_changed(self, news: PendingNews) -> list[Change]:
        if news.revision < self._pending_revision:
            return []
        self._pending = news.pending
        self._pending_revision = news.revision
        self._announced = {key: value for key, value in self._announced.items() if value[0] > news.revision}
        self.pause_reason = news.pause_reason if news.paused else None
        self.pause_detail = news.pause_detail if news.paused else None
        self.session["paused"] = news.paused
        return [StateChanged("pending")]

    def session_changed(self, session: dict[str, Any]) -> list[Change]:
        if session.get("revision", 0) < self.session.get("revision", 0):
            return []
        if session == self.session:
            return []
        self.session = dict(session)
        return [StateChanged("session")]

    def connection_changed(self, connection: str, detail: str | None) -> list[Change]:
        self.session["connection"] = connection
        self.session["connectionDetail"] = detail
        return [StateChanged("session")]

    def permission_requested(self, permission: dict[str, Any]) -> list[Change]:
        return self._asked("permissions", permission["permissionId"], self.permissions, permission)

    def permission_resolved(self, permission_id: str) -> list[Change]:
        return self._answered("permissions", permission_id, self.permissions)

    def question_asked(self, question: dict[str, Any]) -> list[Change]:
        return self._asked("questions", question["questionId"], self.questions, question)

    def question_resolved(self, question_id: str) -> list[Change]:
        return self._answered("questions", question_id, self.questions)

    def _asked(self, part: str, ask_id: str, known: dict[str, dict[str, Any]], ask: dict[str, Any]) -> list[Change]:
        if ask_id in self._closed or known.get(ask_id) == ask:
            return []
        known[ask_id] = ask
        self._asked_during_load.add(ask_id)
        return [StateChanged(part)]

    def _answered(self, part: str, ask_id: str, known: dict[str, dict[str, Any]]) -> list[Change]:
        self._closed.add(ask_id)
        return [StateChanged(part)] if known.pop(ask_id, None) is not None else []
