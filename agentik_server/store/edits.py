"""Edits of the waiting items, by any process that shares the database (B13–B16, B18, B28).

Called inside a transaction. An edit that comes too late is refused and changes nothing (B14).
"""

from __future__ import annotations

import sqlite3
from dataclasses import replace

from agentik_server.domain.pending import Queue
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import (
    ApplyPendingEdits,
    ClearPending,
    Done,
    EditPending,
    HoldPending,
    MovePending,
    PauseQueue,
    PendingEdit,
    RemovePending,
    SendPendingNow,
)
from agentik_server.store import codec
from agentik_server.store.attachment_rows import drop_files, keep_files
from agentik_server.store.queues import LATER, load_queue, mark_changed, store_queue
from agentik_server.store.rows import SessionRow, current_revision, find_message, need_session, next_revision


def edit_pending(db: sqlite3.Connection, write: EditPending) -> Done:
    session = need_session(db, write.session_id)
    queue = load_queue(db, session)
    draft = write.draft
    _need_waiting(db, session, queue, draft.message_id)
    count = _attachment_count(db, session, draft.message_id) if write.keep_attachments else len(draft.attachments)
    after = queue.edited(draft.message_id, draft.text, count, write.limits)
    _write_text(db, session, draft.message_id, draft.text)
    if not write.keep_attachments:
        drop_files(db, session, draft.message_id)
        keep_files(db, session, draft.message_id, draft.attachments)
        db.execute(
            "UPDATE pending SET attachments = ? WHERE session = ? AND message_id = ?",
            (codec.dump_attachments(draft.attachments), session.number, draft.message_id),
        )
    return _stored(db, session, queue, after, rewritten=True)


def apply_edits(db: sqlite3.Connection, write: ApplyPendingEdits) -> Done:
    """All of them in one transaction; the ones that are refused are told with their reason, the others apply."""
    session = need_session(db, write.session_id)
    before = queue = load_queue(db, session)
    results: list[tuple[str, str | None]] = []
    texts: dict[str, str] = {}
    for edit in write.edits:
        try:
            _need_waiting(db, session, queue, edit.message_id)
            queue = _edited(db, session, queue, edit, write)
        except Refused as refused:
            results.append((edit.message_id, refused.reason))
            continue
        if edit.op == "edit":
            texts[edit.message_id] = edit.text or ""
        results.append((edit.message_id, None))
    for message_id, text in texts.items():
        _write_text(db, session, message_id, text)
    if not any(reason is None for _, reason in results):
        done = Done(queue=LATER, revision=current_revision(db))
    else:
        done = _stored(db, session, before, queue, rewritten=bool(texts))
    return replace(done, results=tuple(results))


def move_pending(db: sqlite3.Connection, write: MovePending) -> Done:
    session = need_session(db, write.session_id)
    queue = load_queue(db, session)
    _need_waiting(db, session, queue, write.message_id)
    return _stored(db, session, queue, queue.moved(write.message_id, write.position))


def remove_pending(db: sqlite3.Connection, write: RemovePending) -> Done:
    session = need_session(db, write.session_id)
    queue = load_queue(db, session)
    _need_waiting(db, session, queue, write.message_id)
    return _stored(db, session, queue, queue.removed(write.message_id))


def clear_pending(db: sqlite3.Connection, write: ClearPending) -> Done:
    """B18; what is claimed is not touched."""
    session = need_session(db, write.session_id)
    queue = load_queue(db, session)
    return _stored(db, session, queue, queue.cleared())


def send_now(db: sqlite3.Connection, write: SendPendingNow) -> Done:
    session = need_session(db, write.session_id)
    queue = load_queue(db, session)
    _need_waiting(db, session, queue, write.message_id)
    return _stored(db, session, queue, queue.sent_now(write.message_id))


def pause_queue(db: sqlite3.Connection, write: PauseQueue) -> Done:
    session = need_session(db, write.session_id)
    queue = load_queue(db, session)
    return _stored(db, session, queue, queue.paused() if write.paused else queue.resumed())


def hold_pending(db: sqlite3.Connection, write: HoldPending) -> Done:
    """B16."""
    session = need_session(db, write.session_id)
    if session.held_until != write.until:
        db.execute("UPDATE sessions SET held_until = ? WHERE number = ?", (write.until, session.number))
        mark_changed(db, session)
    return Done(queue=LATER, revision=current_revision(db))


def _edited(
    db: sqlite3.Connection, session: SessionRow, queue: Queue, edit: PendingEdit, write: ApplyPendingEdits
) -> Queue:
    match edit.op:
        case "edit":
            count = _attachment_count(db, session, edit.message_id)
            return queue.edited(edit.message_id, edit.text or "", count, write.limits)
        case "move":
            return queue.moved(edit.message_id, edit.position or 0)
        case "remove":
            return queue.removed(edit.message_id)


def _need_waiting(db: sqlite3.Connection, session: SessionRow, queue: Queue, message_id: str) -> None:
    """B14: raises Refused, with what became of the message."""
    if any(item.message_id == message_id for item in queue.waiting):
        return
    message = find_message(db, session, message_id)
    if message is not None and not message.deleted and message.kind == "user":
        raise Refused("alreadyDelivered", "the agent's run has taken this message already")
    raise Refused("unknownMessage", "no such message is waiting")


def _attachment_count(db: sqlite3.Connection, session: SessionRow, message_id: str) -> int:
    row = db.execute(
        "SELECT attachments FROM pending WHERE session = ? AND message_id = ?", (session.number, message_id)
    ).fetchone()
    return len(codec.load_attachments(row[0])) if row is not None else 0


def _write_text(db: sqlite3.Connection, session: SessionRow, message_id: str, text: str) -> None:
    db.execute(
        "UPDATE pending SET text = ?, text_bytes = ?, revision = ? WHERE session = ? AND message_id = ?",
        (text, len(text.encode()), next_revision(db), session.number, message_id),
    )


def _stored(
    db: sqlite3.Connection, session: SessionRow, before: Queue, after: Queue, *, rewritten: bool = False
) -> Done:
    """`rewritten`: a text was written. The queue itself knows only its length, which may be the same."""
    if rewritten or after != before:
        store_queue(db, session, before, after)
    return Done(queue=LATER, revision=current_revision(db))
