"""A send enters: straight into the run, or into the queue, or refused; each id once (B2, B4, B8, B30, B43).

Called inside a transaction. The attachments of a draft have been stored as files before.
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from agentik_server.domain.message import Message
from agentik_server.domain.pending import Draft, Queue, QueueLimits, check_draft
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import Admit, Admitted, Disposition, Owner, Resend
from agentik_server.store import ledger
from agentik_server.store.attachment_rows import keep_files
from agentik_server.store.queues import LATER, insert_draft, load_queue, store_queue
from agentik_server.store.rows import (
    SessionRow,
    current_revision,
    find_message,
    need_session,
    touch_session,
)
from agentik_server.store.transcript import delete_message, save_message
from agentik_server.store.turns import open_turn, recover

RESENDABLE = ("unknown", "interrupted", "failed")


def admit(db: sqlite3.Connection, write: Admit) -> Admitted:
    """B2, B4, B8. Raises Refused, LostOwnership."""
    draft = write.draft
    known = ledger.first_outcome(db, draft.message_id, draft.text)
    if known is not None:
        return Admitted(known, LATER, repeated=True, revision=current_revision(db))
    session = need_session(db, write.session_id, write.owner)
    check_draft(draft, write.limits)
    present = find_message(db, session, draft.message_id)
    if present is not None and not present.deleted:
        raise Refused("duplicateId", "this message id was used for another message")
    if write.free:
        session = _close_strays(db, session, write.now)
    queue = load_queue(db, session)
    if _goes_straight(queue, write.limits, free=write.free):
        ledger.enter(db, write.session_id, draft.message_id, draft.text, "started")
        return _start(db, session, draft, write)
    _refuse_waiting(write.limits, write.owner)
    after = queue.admit(draft, write.limits, urgent=write.urgent)
    ledger.enter(db, write.session_id, draft.message_id, draft.text, "queued")
    return _wait(db, session, draft, queue, after, write)


def resend(db: sqlite3.Connection, write: Resend) -> Admitted:
    """B43. The message leaves its old place, where a copy stays, and is sent as a new one. Raises Refused.

    Asked again while it waits or runs, it answers what it answered first and does nothing.
    """
    session = need_session(db, write.session_id, write.owner)
    repeated = _resent_already(db, session, write)
    if repeated is not None:
        return repeated
    old = find_message(db, session, write.message_id)
    if old is None or old.deleted or old.kind != "user":
        raise Refused("unknownMessage", "there is no such message")
    if old.status not in RESENDABLE:
        raise Refused("alreadyDelivered", "the agent has answered this message")
    if write.free:
        session = _close_strays(db, session, write.now)
    queue = load_queue(db, session)
    straight = _goes_straight(queue, write.limits, free=write.free)
    draft = Draft(old.message_id, old.text, old.attachments, old.send_kind)
    after = queue
    if not straight:
        _refuse_waiting(write.limits, write.owner)
        after = queue.admit(draft, write.limits, urgent=False)
    gone = delete_message(db, session, old)
    kept = save_message(db, session, replace(old, message_id=_copy_id(db, session, old)))
    admitted = _start(db, session, draft, write) if straight else _wait(db, session, draft, queue, after, write)
    return replace(admitted, gone=(gone,), kept=kept)


def _goes_straight(queue: Queue, limits: QueueLimits, *, free: bool) -> bool:
    """B8: enqueue iff enabled and (busy or something waits)."""
    return free and not queue.running and not (queue.waiting and limits.enabled)


def _refuse_waiting(limits: QueueLimits, owner: Owner | None) -> None:
    if limits.enabled:
        return
    if owner is None:
        raise Refused("notOwner", "another editor runs this session, and the queue is disabled")
    raise Refused("sessionBusy", "the agent is busy, and the queue is disabled")


def _close_strays(db: sqlite3.Connection, session: SessionRow, now: int) -> SessionRow:
    """The owner is free, so a turn that is open on the disk is one whose end could not be saved."""
    recover(db, session, now)
    return need_session(db, session.session_id)


def _start(db: sqlite3.Connection, session: SessionRow, draft: Draft, write: Admit | Resend) -> Admitted:
    open_turn(db, session, write.turn_id, draft.message_id, write.now)
    message = Message(
        draft.message_id, write.session_id, write.seq, "user", draft.text, "complete", write.now, write.turn_id,
        attachments=draft.attachments, send_kind=draft.send_kind,
    )  # fmt: skip
    received = save_message(db, session, message, index=False) or message
    touch_session(db, session, write.now)
    return Admitted("started", LATER, (received,), revision=received.revision)


def _wait(
    db: sqlite3.Connection, session: SessionRow, draft: Draft, before: Queue, after: Queue, write: Admit | Resend
) -> Admitted:
    urgent = isinstance(write, Admit) and write.urgent
    insert_draft(db, session, draft, created_at=write.now, urgent=urgent, at_head=urgent)
    keep_files(db, session, draft.message_id, draft.attachments)
    revision = store_queue(db, session, before, after, write.now, appended=not urgent)
    return Admitted("queued", LATER, revision=revision)


def _resent_already(db: sqlite3.Connection, session: SessionRow, write: Resend) -> Admitted | None:
    row = db.execute(
        "SELECT state FROM pending WHERE session = ? AND message_id = ?", (session.number, write.message_id)
    ).fetchone()
    if row is None:
        row = db.execute(
            "SELECT 'running' FROM messages AS m JOIN turns AS t USING (session, turn_id)"
            " WHERE m.session = ? AND m.message_id = ? AND t.ended_at IS NULL AND m.deleted = 0",
            (session.number, write.message_id),
        ).fetchone()
    if row is None:
        return None
    disposition: Disposition = "queued" if row[0] == "pending" else "started"
    return Admitted(disposition, LATER, repeated=True, revision=current_revision(db))


def _copy_id(db: sqlite3.Connection, session: SessionRow, message: Message) -> str:
    """An id for what stays in the old place: `seq` is that place's own."""
    copy = f"{message.message_id}@{message.seq}"
    while find_message(db, session, copy) is not None:
        copy += "+"
    return copy
