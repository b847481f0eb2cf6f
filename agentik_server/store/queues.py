"""The pending queue of one session as rows: loaded as the domain's `Queue`, the difference written back.

Called inside a transaction. The rules are in `domain/pending.py`; here is only how a queue lies on the disk.
"""

from __future__ import annotations

import sqlite3
from itertools import pairwise

from agentik_server.domain.message import Message
from agentik_server.domain.pending import Draft, PendingItem, Queue, QueueView, Waiting
from agentik_server.store import codec
from agentik_server.store.attachment_rows import drop_files
from agentik_server.store.ledger import mark_removed
from agentik_server.store.rows import SessionRow, find_session, next_revision

LATER = QueueView(revision=-1)  # in an outcome: the queue as it stands when the group of writes is done
_WAITING = "session = ? AND state = 'pending'"


def has_open_turn(db: sqlite3.Connection, session: SessionRow) -> bool:
    sql = "SELECT 1 FROM turns WHERE session = ? AND ended_at IS NULL LIMIT 1"
    return db.execute(sql, (session.number,)).fetchone() is not None


def load_queue(db: sqlite3.Connection, session: SessionRow) -> Queue:
    rows = db.execute(
        f"SELECT message_id, text_bytes, urgent FROM pending WHERE {_WAITING} ORDER BY place", (session.number,)
    ).fetchall()
    waiting = tuple(Waiting(message_id, size, bool(urgent)) for message_id, size, urgent in rows)
    return Queue(waiting, session.pause, has_open_turn(db, session))


def load_view(db: sqlite3.Connection, session_id: str) -> QueueView:
    """The queue as it is shown, from the state of this transaction."""
    session = find_session(db, session_id)
    if session is None:
        return QueueView()
    rows = db.execute(
        "SELECT message_id, text, attachments, created_at, send_kind, urgent FROM pending"
        f" WHERE {_WAITING} ORDER BY place",
        (session.number,),
    ).fetchall()
    items = tuple(
        PendingItem(row[0], session_id, row[1], codec.load_attachments(row[2]), row[3], position, row[4])
        for position, row in enumerate(rows)
    )
    return QueueView(
        items=items,
        pause=session.pause,
        held_until=session.held_until,
        urgent=bool(rows) and bool(rows[0][5]),
        revision=session.queue_revision,
    )


def insert_draft(
    db: sqlite3.Connection, session: SessionRow, draft: Draft, *, created_at: int, urgent: bool, at_head: bool
) -> None:
    """A new waiting row at one end; `store_queue` gives the queue its revision."""
    db.execute(
        "INSERT INTO pending (session, message_id, place, state, text, text_bytes, attachments, send_kind, urgent,"
        " created_at, revision) VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?)",
        (
            session.number,
            draft.message_id,
            _free_place(db, session, at_head=at_head),
            draft.text,
            len(draft.text.encode()),
            codec.dump_attachments(draft.attachments),
            draft.send_kind,
            urgent,
            created_at,
            next_revision(db),
        ),
    )


def put_at_head(db: sqlite3.Connection, session: SessionRow, message: Message) -> None:
    """A message that was taken, and certainly not sent, waits again before all others (B26).

    It is not urgent any more: else it would go on and on against the pause that says why it was not sent.
    """
    row = db.execute(
        "UPDATE pending SET state = 'pending', turn_id = NULL, urgent = 0, place = ?, revision = ?"
        " WHERE session = ? AND message_id = ? RETURNING 1",
        (_free_place(db, session, at_head=True), next_revision(db), session.number, message.message_id),
    ).fetchone()
    if row is None:  # it had gone straight into the run (B2)
        draft = Draft(message.message_id, message.text, message.attachments, message.send_kind)
        insert_draft(db, session, draft, created_at=message.created_at, urgent=False, at_head=True)


def store_queue(
    db: sqlite3.Connection,
    session: SessionRow,
    before: Queue,
    after: Queue,
    now: int | None = None,
    *,
    appended: bool = False,
) -> int:
    """Write what differs (items that left, order, urgency, pause) and give the queue a new revision.

    Items that are new in `after` have been inserted already. `now` as in `mark_changed`. `appended`: all that differs
    in the order is a new item at the end. Returns the revision.
    """
    kept = {item.message_id for item in after.waiting}
    for item in before.waiting:
        if item.message_id not in kept:
            _remove(db, session, item.message_id)
    if not appended:
        _store_order(db, session, after)
    if after.pause != before.pause:
        reason, detail = (after.pause.reason, after.pause.detail) if after.pause else (None, "")
        db.execute(
            "UPDATE sessions SET pause_reason = ?, pause_detail = ? WHERE number = ?", (reason, detail, session.number)
        )
    return mark_changed(db, session, now)


def mark_changed(db: sqlite3.Connection, session: SessionRow, now: int | None = None) -> int:
    """The queue, and with it the session's row, changed: both get this new revision.

    With `now` the session is the newest one, too.
    """
    revision = next_revision(db)
    db.execute(
        "UPDATE sessions SET queue_revision = ?, revision = ?, updated_at = max(updated_at, ?) WHERE number = ?",
        (revision, revision, 0 if now is None else now, session.number),
    )
    return revision


def _remove(db: sqlite3.Connection, session: SessionRow, message_id: str) -> None:
    db.execute(f"DELETE FROM pending WHERE {_WAITING} AND message_id = ?", (session.number, message_id))
    drop_files(db, session, message_id)
    mark_removed(db, message_id)


def _store_order(db: sqlite3.Connection, session: SessionRow, queue: Queue) -> None:
    rows = db.execute(f"SELECT message_id, place, urgent FROM pending WHERE {_WAITING}", (session.number,)).fetchall()
    stored = {message_id: (place, bool(urgent)) for message_id, place, urgent in rows}
    places = [stored[item.message_id][0] for item in queue.waiting]
    if any(left >= right for left, right in pairwise(places)):
        places = list(range(len(places)))
    for item, place in zip(queue.waiting, places, strict=True):
        if stored[item.message_id] != (place, item.urgent):
            db.execute(
                f"UPDATE pending SET place = ?, urgent = ?, revision = ? WHERE {_WAITING} AND message_id = ?",
                (place, item.urgent, next_revision(db), session.number, item.message_id),
            )


def _free_place(db: sqlite3.Connection, session: SessionRow, *, at_head: bool) -> int:
    sql = "SELECT min(place) - 1" if at_head else "SELECT max(place) + 1"
    row = db.execute(f"{sql} FROM pending WHERE {_WAITING}", (session.number,)).fetchone()
    return int(row[0]) if row[0] is not None else 0
