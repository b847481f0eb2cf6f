"""The ledger of submissions (B4): which message ids came, with which text, and what became of them at first.

Called inside a transaction. It outlives messages and sessions, over the whole database.
"""

from __future__ import annotations

import hashlib
import sqlite3

from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import Disposition


def first_outcome(db: sqlite3.Connection, message_id: str, text: str) -> Disposition | None:
    """None when the id is new in the database, whatever the session. Raises Refused: it came with another text."""
    row = db.execute("SELECT text_hash, outcome FROM submissions WHERE message_id = ?", (message_id,)).fetchone()
    if row is None:
        return None
    known_hash, outcome = row
    if known_hash != _hash(text):
        raise Refused("duplicateId", "this message id was used for another message")
    return outcome  # type: ignore[no-any-return]  # the column's CHECK holds


def is_known(db: sqlite3.Connection, message_id: str) -> bool:
    return db.execute("SELECT 1 FROM submissions WHERE message_id = ?", (message_id,)).fetchone() is not None


def enter(db: sqlite3.Connection, session_id: str, message_id: str, text: str, outcome: Disposition) -> None:
    db.execute("INSERT INTO submissions VALUES (?, ?, ?, ?)", (message_id, session_id, _hash(text), outcome))


def mark_removed(db: sqlite3.Connection, message_id: str) -> None:
    db.execute("UPDATE submissions SET outcome = 'removed' WHERE message_id = ?", (message_id,))


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
