"""The messages of a session: saved as they stand, never written when nothing changed, kept in the full-text index.

Called inside a transaction. Knows nothing of turns and queues; no rule about who may save.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import replace

from agentik_server.domain.message import Message
from agentik_server.store import codec
from agentik_server.store.attachment_rows import drop_files, keep_files
from agentik_server.store.rows import SessionRow, find_message, next_revision

_CONTENT = "turn_id, kind, text, status, attachments, tool, plan, send_kind, deleted"


def save_message(
    db: sqlite3.Connection, session: SessionRow, message: Message, *, index: bool = True
) -> Message | None:
    """Insert, or update by id keeping `seq` and `created_at`; None when it stands there already (B54).

    A tombstone that is saved again is a new entry: it takes the new `seq`. With `index` false the text cannot be
    searched yet (a user's message whose turn runs).
    """
    content = _content(message)
    row = db.execute(
        f"SELECT number, seq, created_at, indexed, {_CONTENT} FROM messages WHERE session = ? AND message_id = ?",
        (session.number, message.message_id),
    ).fetchone()
    if row is None:
        return _insert(db, session, message, content, index=index)
    number, seq, created_at, indexed, *stored = row
    if tuple(stored) == content:
        if index and not indexed and _is_searchable(message):
            _index(db, number)
        return None
    revived = bool(stored[-1]) and not message.deleted
    if revived:
        seq, created_at = message.seq, message.created_at
    if indexed:
        _unindex(db, number)
    revision = next_revision(db)
    db.execute(
        f"UPDATE messages SET ({_CONTENT}) = (?, ?, ?, ?, ?, ?, ?, ?, ?), seq = ?, created_at = ?, unfinished = ?,"
        " words = ?, revision = ? WHERE number = ?",
        (*content, seq, created_at, _is_unfinished(message), _words(message), revision, number),
    )
    if index and _is_searchable(message):
        _index(db, number)
    if stored[4] != content[4]:
        drop_files(db, session, message.message_id)
        keep_files(db, session, message.message_id, message.attachments)
    return replace(message, seq=seq, created_at=created_at, revision=revision, session_id=session.session_id)


def save_messages(db: sqlite3.Connection, session: SessionRow, messages: Iterable[Message]) -> tuple[Message, ...]:
    """Those that were new or changed, with their revisions."""
    saved = (save_message(db, session, message) for message in messages)
    return tuple(message for message in saved if message is not None)


def delete_message(
    db: sqlite3.Connection, session: SessionRow, message: Message, *, keep_attachments: bool = False
) -> Message:
    """Leave a tombstone: the row without its content. With `keep_attachments` its files stay in use by its id."""
    tombstone = replace(message, text="", attachments=(), tool=None, plan=None, deleted=True)
    number, indexed = db.execute(
        "SELECT number, indexed FROM messages WHERE session = ? AND message_id = ?",
        (session.number, message.message_id),
    ).fetchone()
    if indexed:
        _unindex(db, number)
    revision = next_revision(db)
    db.execute(
        "UPDATE messages SET text = '', attachments = NULL, tool = NULL, plan = NULL, words = NULL, deleted = 1,"
        " unfinished = 0, revision = ? WHERE number = ?",
        (revision, number),
    )
    if not keep_attachments:
        drop_files(db, session, message.message_id)
    return replace(tombstone, revision=revision)


def close_unfinished(db: sqlite3.Connection, session: SessionRow) -> tuple[Message, ...]:
    """What a dead owner left open: streaming messages become interrupted, open tool calls failed (B36, B60)."""
    rows = db.execute(
        "SELECT message_id FROM messages WHERE session = ? AND unfinished = 1 ORDER BY +seq", (session.number,)
    ).fetchall()
    closed = []
    for (message_id,) in rows:
        message = find_message(db, session, message_id)
        if message is None:
            continue
        if message.tool is not None and message.tool.is_open:
            message = replace(message, tool=replace(message.tool, status="failed"))
        if message.status == "streaming":
            message = replace(message, status="interrupted")
        closed.append(message)
    return save_messages(db, session, closed)


def _insert(
    db: sqlite3.Connection, session: SessionRow, message: Message, content: tuple[object, ...], *, index: bool
) -> Message:
    revision = next_revision(db)
    number = db.execute(
        f"INSERT INTO messages (session, message_id, seq, created_at, unfinished, words, revision, {_CONTENT})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING number",
        (
            session.number,
            message.message_id,
            message.seq,
            message.created_at,
            _is_unfinished(message),
            _words(message),
            revision,
            *content,
        ),
    ).fetchone()[0]
    if index and _is_searchable(message):
        _index(db, number)
    keep_files(db, session, message.message_id, message.attachments)
    return replace(message, revision=revision, session_id=session.session_id)


def _content(message: Message) -> tuple[object, ...]:
    """The columns _CONTENT: what makes a save a change."""
    return (
        message.turn_id,
        message.kind,
        message.text,
        message.status,
        codec.dump_attachments(message.attachments),
        codec.dump_tool(message.tool),
        codec.dump_plan(message.plan),
        message.send_kind,
        int(message.deleted),
    )


def _words(message: Message) -> str | None:
    return " ".join(entry.content for entry in message.plan) if message.plan else None


def _is_unfinished(message: Message) -> bool:
    if message.deleted:
        return False
    return message.status == "streaming" or (message.tool is not None and message.tool.is_open)


def _is_searchable(message: Message) -> bool:
    return message.kind != "notice" and not message.deleted and not _is_unfinished(message)


def _index(db: sqlite3.Connection, number: int) -> None:
    db.execute("UPDATE messages SET indexed = 1 WHERE number = ?", (number,))
    db.execute(
        "INSERT INTO search (rowid, session, text) SELECT number, session, text FROM searchable WHERE number = ?",
        (number,),
    )


def _unindex(db: sqlite3.Connection, number: int) -> None:
    """Must come before the row changes: the index asks for the words it was given."""
    db.execute(
        "INSERT INTO search (search, rowid, session, text)"
        " SELECT 'delete', number, session, text FROM searchable WHERE number = ?",
        (number,),
    )
    db.execute("UPDATE messages SET indexed = 0 WHERE number = ?", (number,))
