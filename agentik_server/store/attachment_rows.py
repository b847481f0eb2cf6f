"""Who needs which kept file (B51). The files themselves are `attachments.py`'s; here are only rows.

Called inside a transaction.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from agentik_server.domain.message import Attachment
from agentik_server.store.rows import SessionRow


def keep_files(db: sqlite3.Connection, session: SessionRow, message_id: str, attachments: Iterable[Attachment]) -> None:
    """The message needs these files, whether it waits or is in the transcript."""
    rows = [(attachment.stored, session.number, message_id) for attachment in attachments if attachment.stored]
    if rows:
        db.executemany("INSERT OR IGNORE INTO attachment_uses VALUES (?, ?, ?)", rows)


def drop_files(db: sqlite3.Connection, session: SessionRow, message_id: str) -> None:
    """The message needs its files no more; those that nobody needs go to the trash."""
    _drop(db, "session = ? AND message_id = ?", (session.number, message_id))


def drop_files_of_session(db: sqlite3.Connection, session: SessionRow) -> None:
    _drop(db, "session = ?", (session.number,))


def is_used(db: sqlite3.Connection, stored: str) -> bool:
    return db.execute("SELECT 1 FROM attachment_uses WHERE stored = ? LIMIT 1", (stored,)).fetchone() is not None


def trash(db: sqlite3.Connection) -> list[str]:
    """Files that somebody stopped needing; they may be needed again meanwhile (`is_used`)."""
    return [row[0] for row in db.execute("SELECT stored FROM trash")]


def forget_trash(db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM trash")


def _drop(db: sqlite3.Connection, condition: str, values: tuple[object, ...]) -> None:
    files = [row[0] for row in db.execute(f"SELECT DISTINCT stored FROM attachment_uses WHERE {condition}", values)]
    if not files:
        return
    db.execute(f"DELETE FROM attachment_uses WHERE {condition}", values)
    unused = [(stored,) for stored in files if not is_used(db, stored)]
    db.executemany("INSERT OR IGNORE INTO trash VALUES (?)", unused)
