"""A session that another process owns, seen through what that process commits (B59). Pure.

Compares successive pages of the store and tells what an owner would have told: every notification but dictation.
"""

from __future__ import annotations

from agentik_server.domain import news
from agentik_server.domain.happenings import Connection
from agentik_server.domain.message import Message, Permission, Question
from agentik_server.domain.pending import QueueView
from agentik_server.domain.saves import SessionFacts, SessionPage


class Follower:
    """What is known of one session of another process. `revision`: everything up to it has been told."""

    def __init__(self, page: SessionPage) -> None:
        self.facts: SessionFacts = page.facts.with_queue(page.queue)
        self.queue: QueueView = page.queue
        self.revision: int = page.revision
        self._asks: dict[str, Permission | Question] = {_ask_id(ask): ask for ask in page.asks}
        self._lengths: dict[str, int] = {
            message.message_id: len(message.text) for message in page.messages if message.status == "streaming"
        }
        self._known: set[str] = {message.message_id for message in page.messages if message.kind == "user"}
        self._started: set[str] = {turn.turn_id for turn in page.turns if turn.written}
        self._ended: set[str] = {turn.turn_id for turn in page.turns if turn.stop_reason is not None}

    @property
    def asks(self) -> tuple[Permission | Question, ...]:
        return tuple(self._asks.values())

    def seen(self, page: SessionPage) -> list[news.News]:
        """`page` was read with `after=self.revision`."""
        told: list[news.News] = []
        session_id = self.facts.session_id
        for message in page.messages:
            told.extend(self._message(message))
        told.extend(self._turn_news(page))
        told.extend(self._queue_news(page))
        told.extend(self._ask_news(page))
        if page.facts.connection != self.facts.connection:
            connection: Connection = page.facts.connection  # type: ignore[assignment]  # written by an owner
            told.append(news.ConnectionStep(session_id, connection, None, 1))
        facts = page.facts.with_queue(page.queue)
        if facts != self.facts:
            told.append(news.SessionChanged(facts, owned=False))
        self.facts, self.revision = facts, max(page.revision, self.revision)
        return told

    def _message(self, message: Message) -> list[news.News]:
        session_id = message.session_id
        if message.kind == "user" and not message.deleted and message.message_id not in self._known:
            self._known.add(message.message_id)
            return [news.MessageReceived(session_id, message)]
        if message.deleted:
            self._known.discard(message.message_id)
        if message.status != "streaming" or message.kind not in {"agent", "thought"}:
            self._lengths.pop(message.message_id, None)
            return [news.MessageUpdated(session_id, message)]
        offset = self._lengths.get(message.message_id, 0)
        self._lengths[message.message_id] = len(message.text)
        text = message.text[offset:]
        if not text:
            return []
        return [
            news.StreamingToken(
                session_id, message.turn_id, message.message_id, message.kind, offset, text, message.seq
            )
        ]

    def _turn_news(self, page: SessionPage) -> list[news.News]:
        """The owner's turns as their rows tell them: each start and each end once (B35)."""
        session_id = page.facts.session_id
        known = {turn.turn_id for turn in page.turns}
        put_back = self._started - self._ended - known
        detail = "the message was not sent and waits again"
        told: list[news.News] = [news.TurnEnded(session_id, turn_id, "error", detail) for turn_id in put_back]
        for turn in page.turns:
            if turn.written and turn.turn_id not in self._started:
                told.append(news.TurnStarted(session_id, turn.turn_id, turn.message_id))
                self._started.add(turn.turn_id)
            if turn.stop_reason is not None and turn.turn_id not in self._ended:
                told.append(news.TurnEnded(session_id, turn.turn_id, turn.stop_reason, turn.error))  # type: ignore[arg-type]  # written by an owner
                self._ended.add(turn.turn_id)
        self._started &= known
        self._ended &= known
        return told

    def _queue_news(self, page: SessionPage) -> list[news.News]:
        if page.queue.revision <= self.queue.revision:
            return []
        session_id = page.facts.session_id
        known = {item.message_id for item in self.queue.items}
        told: list[news.News] = [
            news.MessageQueued(session_id, item.message_id, item.text[:1000], item.position, page.queue.revision)
            for item in page.queue.items
            if item.message_id not in known
        ]
        self.queue = page.queue
        told.append(news.PendingChanged(session_id, page.queue))
        return told

    def _ask_news(self, page: SessionPage) -> list[news.News]:
        session_id = page.facts.session_id
        now = {_ask_id(ask): ask for ask in page.asks}
        told: list[news.News] = []
        for ask_id, ask in self._asks.items():
            if ask_id not in now:
                closed = news.PermissionResolved if isinstance(ask, Permission) else news.QuestionResolved
                told.append(closed(session_id, ask_id, "answered"))
        for ask_id, ask in now.items():
            if ask_id not in self._asks:
                if isinstance(ask, Permission):
                    told.append(news.PermissionRequested(session_id, ask))
                else:
                    told.append(news.QuestionPosed(session_id, ask))
        self._asks = now
        return told


def _ask_id(ask: Permission | Question) -> str:
    return ask.permission_id if isinstance(ask, Permission) else ask.question_id
