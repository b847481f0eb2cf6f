"""Rows as values: the session, its messages, the revision counter. Loads and small writes that every subject needs.

Called inside a transaction. Holds no rule about who may do what.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from agentik_server.domain.message import Message
from agentik_server.domain.pending import Pause
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import Owner, SessionFacts
from agentik_server.store import codec

Row = tuple[Any, ...]


class LostOwnership(Exception):  # noqa: N818 -- a verdict
    """The owner named in a write is not, or no longer, the session's owner (B59)."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """What writes need to know of a session."""

    number: int
    session_id: str
    owner: Owner | None
    generation: int
    pause: Pause | None
    held_until: int
    queue_revision: int
    updated_at: int


def next_revision(db: sqlite3.Connection) -> int:
    """The next value of the database's counter: one for each changed row."""
    row = db.execute("UPDATE meta SET revision = revision + 1 RETURNING revision").fetchone()
    return int(row[0])


def current_revision(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT revision FROM meta").fetchone()[0])


def find_session(db: sqlite3.Connection, session_id: str) -> SessionRow | None:
    row = db.execute(
        "SELECT number, session_id, owner_server, generation, pause_reason, pause_detail, held_until, queue_revision,"
        " updated_at FROM sessions WHERE session_id = ?",
        (session_id,),
    ).fetchone()
    if row is None:
        return None
    number, session_id, server, generation, reason, detail, held_until, queue_revision, updated_at = row
    owner = Owner(server, generation) if server is not None else None
    pause = Pause(reason, detail) if reason is not None else None
    return SessionRow(number, session_id, owner, generation, pause, held_until, queue_revision, updated_at)


def need_session(db: sqlite3.Connection, session_id: str, owner: Owner | None = None) -> SessionRow:
    """The session, fenced by `owner` where one is given. Raises Refused (unknownSession), LostOwnership."""
    session = find_session(db, session_id)
    if session is None:
        raise Refused("unknownSession", "there is no such session")
    if owner is not None and session.owner != owner:
        raise LostOwnership
    return session


def touch_session(db: sqlite3.Connection, session: SessionRow, now: int) -> int:
    """Something of weight happened in the session: it is the newest now. Returns its new revision."""
    revision = next_revision(db)
    db.execute(
        "UPDATE sessions SET updated_at = max(updated_at, ?), revision = ? WHERE number = ?",
        (now, revision, session.number),
    )
    return revision


_FACTS = (
    "SELECT number, session_id, agent_id, cwd, title, created_at, updated_at, agent_session_id, controls, state,"
    " connection, owner_server, generation, pause_reason, pause_detail, title_by_user, revision,"
    " (SELECT count(*) FROM pending AS p WHERE p.session = sessions.number AND p.state = 'pending') FROM sessions "
)


def facts_query(condition: str) -> str:
    """SQL for rows that `facts_of` understands; `condition` is everything after FROM."""
    return _FACTS + condition


def facts_of(row: Row) -> SessionFacts:
    server, generation = row[11], row[12]
    return SessionFacts(
        session_id=row[1],
        agent_id=row[2],
        cwd=row[3],
        title=row[4],
        created_at=row[5],
        updated_at=row[6],
        agent_session_id=row[7],
        controls=json.loads(row[8]),
        state=row[9],
        connection=row[10],
        owner=Owner(server, generation) if server is not None else None,
        paused=row[13] is not None,
        pause_reason=row[13],
        pause_detail=row[14] or None,
        title_by_user=bool(row[15]),
        revision=row[16],
        pending_count=row[17],
    )


def load_facts(db: sqlite3.Connection, session: SessionRow) -> SessionFacts:
    return facts_of(db.execute(facts_query("WHERE number = ?"), (session.number,)).fetchone())


MESSAGE_COLUMNS = (
    "message_id, seq, kind, text, status, created_at, turn_id, revision, attachments, tool, plan, send_kind, deleted"
)


def message_of(row: Row, session_id: str) -> Message:
    """A row of MESSAGE_COLUMNS."""
    message_id, seq, kind, text, status, created_at, turn_id, revision, attachments, tool, plan, send_kind, deleted = (
        row
    )
    return Message(
        message_id,
        session_id,
        seq,
        kind,
        text,
        status,
        created_at,
        turn_id,
        revision,
        codec.load_attachments(attachments) if attachments else (),
        codec.load_tool(tool) if tool else None,
        codec.load_plan(plan) if plan else None,
        send_kind,
        bool(deleted),
    )


def load_messages(db: sqlite3.Connection, session: SessionRow, condition: str, *values: object) -> tuple[Message, ...]:
    """Messages of the session for which the SQL `condition` holds, in transcript order.

    The `+` keeps SQLite from walking the whole session in the order of `seq` instead of using the condition's index.
    """
    sql = f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session = ? AND {condition} ORDER BY +seq, number"
    rows = db.execute(sql, (session.number, *values)).fetchall()
    return tuple(message_of(row, session.session_id) for row in rows)


def last_seq(db: sqlite3.Connection, session: SessionRow) -> int:
    """The highest place of the order that is taken, by tombstones too; 0 = none."""
    row = db.execute("SELECT max(seq) FROM messages WHERE session = ?", (session.number,)).fetchone()
    return int(row[0]) if row[0] is not None else 0


def find_message(db: sqlite3.Connection, session: SessionRow, message_id: str) -> Message | None:
    """Also a tombstone."""
    found = load_messages(db, session, "message_id = ?", message_id)
    return found[0] if found else None
