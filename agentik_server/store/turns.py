"""Turns on the disk: claim, journal, put back, end, and the end of what a dead owner left open (B6, B24, B26, B60).

Called inside a transaction; every write here is fenced by the owner.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace

from agentik_server.domain.message import Message, MessageStatus
from agentik_server.domain.pending import Pause, Queue
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import Claim, Claimed, Done, EndTurn, Journal, PutBack, TurnFacts
from agentik_server.store import codec
from agentik_server.store.queues import (
    LATER,
    load_queue,
    mark_changed,
    put_at_head,
    store_queue,
)
from agentik_server.store.rows import (
    SessionRow,
    current_revision,
    load_messages,
    need_session,
    touch_session,
)
from agentik_server.store.transcript import close_unfinished, delete_message, save_message, save_messages

NEWEST_TURNS = 50


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of an open turn whose owner is gone."""

    messages: tuple[Message, ...] = ()
    interrupted: bool = False  # a turn that may have reached the agent has been ended
    put_back: bool = False  # messages that certainly did not wait again


def open_turn(db: sqlite3.Connection, session: SessionRow, turn_id: str, message_id: str, now: int) -> None:
    """A turn begins with this message of the user; nothing of it has reached the agent before `Journal`."""
    db.execute(
        "INSERT INTO turns (session, turn_id, message_id, started_at) VALUES (?, ?, ?, ?)",
        (session.number, turn_id, message_id, now),
    )


def newest_turns(db: sqlite3.Connection, session: SessionRow) -> tuple[TurnFacts, ...]:
    """More than can begin and end between two looks of another process, oldest first."""
    rows = db.execute(
        "SELECT turn_id, message_id, journaled, stop_reason, error, number FROM turns WHERE session = ?"
        " ORDER BY number DESC LIMIT ?",
        (session.number, NEWEST_TURNS),
    ).fetchall()
    return tuple(TurnFacts(row[0], row[1], bool(row[2]), *row[3:]) for row in reversed(rows))


def claim(db: sqlite3.Connection, write: Claim) -> Claimed:
    """B24. Respects pause and hold as they stand in this transaction, whoever set them; an urgent head overrides them.

    A turn that is open although the owner is free to claim is one whose end could not be saved: it is closed as a
    crash would be.
    """
    session = need_session(db, write.session_id, write.owner)
    recover(db, session, write.now)
    session = need_session(db, write.session_id)
    count = _claimable(load_queue(db, session), write, held=session.held_until > write.now)
    if count == 0:
        return Claimed((), LATER)
    rows = db.execute(
        "UPDATE pending SET state = 'claimed', turn_id = ? WHERE session = ? AND state = 'pending' AND message_id IN"
        " (SELECT message_id FROM pending WHERE session = ? AND state = 'pending' ORDER BY place LIMIT ?)"
        " RETURNING place, message_id, text, attachments, created_at, send_kind",
        (write.turn_id, session.number, session.number, count),
    ).fetchall()
    rows.sort()  # by place: RETURNING keeps no order
    open_turn(db, session, write.turn_id, rows[0][1], write.now)
    taken = []
    for offset, (_, message_id, text, attachments, created_at, send_kind) in enumerate(rows):
        message = Message(
            message_id, write.session_id, write.seq + offset, "user", text, "complete", created_at, write.turn_id,
            attachments=codec.load_attachments(attachments), send_kind=send_kind,
        )  # fmt: skip
        taken.append(save_message(db, session, message, index=False) or message)
    mark_changed(db, session, write.now)
    return Claimed(tuple(taken), LATER)


def journal(db: sqlite3.Connection, write: Journal) -> Done:
    """Raises Refused when this turn is not open: then its prompt must not be written."""
    session = need_session(db, write.session_id, write.owner)
    row = db.execute(
        "UPDATE turns SET journaled = 1 WHERE session = ? AND turn_id = ? AND ended_at IS NULL RETURNING 1",
        (session.number, write.turn_id),
    ).fetchone()
    if row is None:
        raise Refused("alreadyDelivered", "this turn is not open")
    return Done(revision=current_revision(db))


def put_back(db: sqlite3.Connection, write: PutBack) -> Done:
    """B26. `Done.messages` are the tombstones; a turn that is not open any more changes nothing."""
    session = need_session(db, write.session_id, write.owner)
    gone: tuple[Message, ...] = ()
    if _is_open(db, session, write.turn_id):
        gone = _put_back(db, session, write.turn_id, write.pause)
    return Done(messages=gone, queue=LATER, revision=current_revision(db))


def end_turn(db: sqlite3.Connection, write: EndTurn) -> Done:
    """The claimed rows are finished; a turn that had ended before only gets its `messages` saved."""
    session = need_session(db, write.session_id, write.owner)
    changed = save_messages(db, session, write.messages)
    if _is_open(db, session, write.turn_id):
        changed += _finish(
            db, session, write.turn_id, write.user_status, write.now, stop_reason=write.stop_reason, error=write.error
        )
        before = replace(load_queue(db, session), running=True)
        after = replace(before, running=False).paused_by_itself(write.pause)
        if after.pause != before.pause:
            store_queue(db, session, before, after, write.now)
        else:
            touch_session(db, session, write.now)
    return Done(messages=changed, queue=LATER, revision=current_revision(db))


def recover(db: sqlite3.Connection, session: SessionRow, now: int) -> Recovery:
    """Close every open turn of the session as the crash of its owner (B43, B60); no turn open: nothing happens."""
    turns = db.execute(
        "SELECT turn_id, journaled FROM turns WHERE session = ? AND ended_at IS NULL", (session.number,)
    ).fetchall()
    changed: tuple[Message, ...] = ()
    interrupted = put_back = False
    for turn_id, journaled in turns:
        if journaled:
            changed += _finish(db, session, turn_id, "unknown", now, stop_reason="crashed", error=None)
            interrupted = True
        else:
            changed += _put_back(db, session, turn_id, None)
            put_back = True
    if turns:
        changed += close_unfinished(db, session)
    return Recovery(changed, interrupted, put_back)


def _claimable(queue: Queue, write: Claim, *, held: bool) -> int:
    """How many items may go from the head into one turn."""
    if queue.pause is None and not held:
        return len(queue.waiting) if write.take_all else min(1, len(queue.waiting))
    urgent = 0
    while urgent < len(queue.waiting) and queue.waiting[urgent].urgent:
        urgent += 1
    return urgent if write.take_all else min(1, urgent)


def _is_open(db: sqlite3.Connection, session: SessionRow, turn_id: str) -> bool:
    sql = "SELECT 1 FROM turns WHERE session = ? AND turn_id = ? AND ended_at IS NULL"
    return db.execute(sql, (session.number, turn_id)).fetchone() is not None


def _user_messages(db: sqlite3.Connection, session: SessionRow, turn_id: str) -> tuple[Message, ...]:
    return load_messages(db, session, "turn_id = ? AND kind = 'user' AND deleted = 0", turn_id)


def _finish(
    db: sqlite3.Connection,
    session: SessionRow,
    turn_id: str,
    status: MessageStatus,
    now: int,
    *,
    stop_reason: str,
    error: str | None,
) -> tuple[Message, ...]:
    db.execute(
        "UPDATE turns SET ended_at = ?, stop_reason = ?, error = ? WHERE session = ? AND turn_id = ?",
        (now, stop_reason, error, session.number, turn_id),
    )
    db.execute("DELETE FROM pending WHERE session = ? AND state = 'claimed' AND turn_id = ?", (session.number, turn_id))
    ended = [replace(message, status=status) for message in _user_messages(db, session, turn_id)]
    return save_messages(db, session, ended)


def _put_back(db: sqlite3.Connection, session: SessionRow, turn_id: str, pause: Pause | None) -> tuple[Message, ...]:
    before = load_queue(db, session)
    messages = _user_messages(db, session, turn_id)
    for message in reversed(messages):
        put_at_head(db, session, message)
    gone = tuple(delete_message(db, session, message, keep_attachments=True) for message in messages)
    db.execute("DELETE FROM turns WHERE session = ? AND turn_id = ?", (session.number, turn_id))
    returned = load_queue(db, session).waiting[: len(messages)]
    after = replace(before, running=False).put_back(returned, pause)
    store_queue(db, session, before, after)
    return gone
