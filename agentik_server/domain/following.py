"""A session that another process owns, seen through what that process commits (B59). Pure.

Compares successive pages of the store and tells what an owner would have told, in its order: every notification but
dictation.
"""

from __future__ import annotations

from collections.abc import Iterator

from agentik_server.domain import news
from agentik_server.domain.happenings import Connection
from agentik_server.domain.message import Message, Permission, Question
from agentik_server.domain.pending import QueueView
from agentik_server.domain.saves import SessionFacts, SessionPage, TurnFacts

_TEXTS = ("agent", "thought")


class Follower:
    """What is known of one session of another process. `revision`: everything up to it has been told."""

    def __init__(self, page: SessionPage) -> None:
        self.facts: SessionFacts = page.facts.with_queue(page.queue)
        self.queue: QueueView = page.queue
        self.revision: int = page.revision
        self._asks: dict[str, Permission | Question] = {_ask_id(ask): ask for ask in page.asks}
        self._lengths: dict[str, int] = {m.message_id: len(m.text) for m in page.messages if m.kind in _TEXTS}
        self._last_seq = page.last_seq
        self._last_notice = page.notices[-1].number if page.notices else 0
        self._open_turns = {turn.turn_id: turn for turn in page.turns if turn.stop_reason is None}
        self._newest_turn = page.turn.number if page.turn is not None else 0

    def seen(self, page: SessionPage) -> list[news.News]:
        """`page` was read with `after=self.revision`."""
        session_id = self.facts.session_id
        told: list[news.News] = [*self._run_news(page), *self._queue_news(page), *self._ask_news(page)]
        for notice in page.notices:
            if notice.number > self._last_notice:
                self._last_notice = notice.number
                told.append(news.Notice(notice.level, notice.text, session_id))
        if page.facts.connection != self.facts.connection:
            connection: Connection = page.facts.connection  # type: ignore[assignment]  # written by an owner
            told.append(news.ConnectionStep(session_id, connection, None, 1))
        facts = page.facts.with_queue(page.queue)
        if facts != self.facts:
            told.append(news.SessionChanged(facts, owned=False))
        self.facts, self.revision = facts, max(page.revision, self.revision)
        self._last_seq = max(page.last_seq, self._last_seq)
        return told

    def gone(self) -> list[news.News]:
        """The session was deleted: what was open in it ends with it (B35)."""
        session_id = self.facts.session_id
        open_turns = [turn for turn in self._open_turns.values() if turn.written]
        ends: list[news.News] = [news.TurnEnded(session_id, turn.turn_id, "cancelled", None) for turn in open_turns]
        return [*self._closed(set(self._asks), {}), *ends, news.SessionDeleted(session_id)]

    def _run_news(self, page: SessionPage) -> Iterator[news.News]:
        """The owner's turns as their rows tell them, each start and end once (B35), their messages between."""
        session_id = page.facts.session_id
        listed = {turn.turn_id for turn in page.turns}
        for turn in [turn for turn_id, turn in self._open_turns.items() if turn_id not in listed]:
            del self._open_turns[turn.turn_id]
            if turn.written:  # and was put back all the same
                yield news.TurnEnded(session_id, turn.turn_id, "error", "the message was not sent and waits again")
        for message in page.messages:
            if message.turn_id not in listed:
                yield from self._message(message)
        for turn in page.turns:
            yield from self._turn(turn, [message for message in page.messages if message.turn_id == turn.turn_id])

    def _turn(self, turn: TurnFacts, messages: list[Message]) -> Iterator[news.News]:
        """`messages`: what is new of this turn. A turn that had ended at the last look has only those."""
        session_id = self.facts.session_id
        before = self._open_turns.pop(turn.turn_id, None)
        over = before is None and turn.number <= self._newest_turn
        self._newest_turn = max(self._newest_turn, turn.number)
        for message in messages:
            if message.kind == "user":
                yield from self._message(message)
        if turn.written and not over and not (before is not None and before.written):
            yield news.TurnStarted(session_id, turn.turn_id, turn.message_id)
        for message in messages:
            if message.kind != "user":
                yield from self._message(message)
        if turn.stop_reason is None:
            self._open_turns[turn.turn_id] = turn
        elif not over:
            own = turn.stop_reason == "other"
            error, detail = (None, turn.error) if own else (turn.error, None)
            yield news.TurnEnded(session_id, turn.turn_id, turn.stop_reason, error, detail)  # type: ignore[arg-type]  # written by an owner

    def _message(self, message: Message) -> Iterator[news.News]:
        """A text comes as tokens first, also one that is complete when it is seen for the first time."""
        session_id = message.session_id
        if message.kind == "user" and not message.deleted and message.seq > self._last_seq:
            yield news.MessageReceived(session_id, message)
            return
        if message.kind in _TEXTS and not message.deleted:
            offset = self._lengths.get(message.message_id, 0)
            self._lengths[message.message_id] = len(message.text)
            if text := message.text[offset:]:
                yield news.StreamingToken(
                    session_id,
                    message.turn_id,
                    message.message_id,
                    message.kind,
                    offset,
                    text,
                    message.seq,
                )
        if message.status != "streaming" or message.kind not in _TEXTS:
            yield news.MessageUpdated(session_id, message)

    def _queue_news(self, page: SessionPage) -> Iterator[news.News]:
        if page.queue.revision <= self.queue.revision:
            return
        known = {item.message_id for item in self.queue.items}
        for item in page.queue.items:
            if item.message_id not in known:
                yield news.queued(page.facts.session_id, item, page.queue)
        self.queue = page.queue
        yield news.PendingChanged(page.facts.session_id, page.queue)

    def _ask_news(self, page: SessionPage) -> Iterator[news.News]:
        session_id = page.facts.session_id
        now = {_ask_id(ask): ask for ask in page.asks}
        yield from self._closed(set(self._asks) - set(now), dict(page.closed_asks))
        for ask_id, ask in now.items():
            if ask_id not in self._asks:
                if isinstance(ask, Permission):
                    yield news.PermissionRequested(session_id, ask)
                else:
                    yield news.QuestionPosed(session_id, ask)
        self._asks = now

    def _closed(self, ask_ids: set[str], outcomes: dict[str, str]) -> Iterator[news.News]:
        """Without an outcome nobody answered: the owner died, or the session was deleted."""
        session_id = self.facts.session_id
        for ask_id, ask in self._asks.items():
            if ask_id in ask_ids:
                outcome = outcomes.get(ask_id, "cancelled")
                if isinstance(ask, Permission):
                    yield news.PermissionResolved(session_id, ask_id, outcome)
                else:
                    yield news.QuestionResolved(session_id, ask_id, outcome)


def _ask_id(ask: Permission | Question) -> str:
    return ask.permission_id if isinstance(ask, Permission) else ask.question_id
