"""What was deleted leaves the disk in short steps, so that a big session stops nobody's writes (B18, B57).

The deletion itself is one transaction that leaves notes here (`doomed`, `meta.index_state`); they survive a crash.
Each step is a transaction of the caller's. FTS5 has no way to forget at once that is as old as our oldest SQLite:
deleted words stay in its segments until these are merged, and a merge, too, is done piece by piece.
"""

from __future__ import annotations

import sqlite3

from agentik_server.store.rows import SessionRow

_MESSAGES_A_STEP = 100
_PAGES_A_STEP = 100
_CLEAN, _DIRTY, _MERGING = 0, 1, 2


def doom(db: sqlite3.Connection, session: SessionRow) -> None:
    """The session's row is deleted by the caller; its messages go step by step."""
    db.execute("INSERT INTO doomed VALUES (?)", (session.number,))


def is_due(db: sqlite3.Connection) -> bool:
    """Whether a step is left, perhaps of a process that died."""
    row = db.execute("SELECT index_state <> 0 OR EXISTS (SELECT 1 FROM doomed) FROM meta").fetchone()
    return bool(row[0])


def step(db: sqlite3.Connection) -> bool:
    """A few milliseconds of work; False when there was none."""
    doomed = db.execute("SELECT session FROM doomed LIMIT 1").fetchone()
    if doomed is not None:
        _delete_some(db, doomed[0])
        return True
    (state,) = db.execute("SELECT index_state FROM meta").fetchone()
    if state == _CLEAN:
        return False
    _merge_some(db, begin=state == _DIRTY)
    return True


def _delete_some(db: sqlite3.Connection, session: int) -> None:
    rows = db.execute("SELECT number FROM messages WHERE session = ? LIMIT ?", (session, _MESSAGES_A_STEP)).fetchall()
    if not rows:
        db.execute("DELETE FROM doomed WHERE session = ?", (session,))
        return
    numbers = tuple(row[0] for row in rows)
    these = ", ".join("?" * len(numbers))
    unindexed = db.execute(
        "INSERT INTO search (search, rowid, session, text)"
        f" SELECT 'delete', number, session, text FROM searchable WHERE number IN ({these})",
        numbers,
    ).rowcount
    if unindexed:
        db.execute("UPDATE meta SET index_state = ?", (_DIRTY,))
    db.execute(f"DELETE FROM messages WHERE number IN ({these})", numbers)


def _merge_some(db: sqlite3.Connection, *, begin: bool) -> None:
    """As FTS5's manual says: a negative number begins a merge of everything, positive ones finish it."""
    before = db.total_changes
    db.execute("INSERT INTO search (search, rank) VALUES ('merge', ?)", (-_PAGES_A_STEP if begin else _PAGES_A_STEP,))
    worked = db.total_changes - before >= 2
    if begin or not worked:
        db.execute("UPDATE meta SET index_state = ?", (_MERGING if worked else _CLEAN,))
