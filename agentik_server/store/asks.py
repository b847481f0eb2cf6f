"""Open permissions and questions, notices, and the mail between the processes that share a session (B48, B59).

Called inside a transaction.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from agentik_server.domain.message import Permission, Question
from agentik_server.domain.saves import CloseAsk, Done, NoticeFacts, PostMail, SaveAsk, SaveNotice, TakeMail
from agentik_server.store import codec
from agentik_server.store.rows import SessionRow, current_revision, need_session

_CLOSED_KEPT = 20  # so many outcomes another editor can still read
_NOTICES_KEPT = 10


def save_ask(db: sqlite3.Connection, write: SaveAsk) -> Done:
    session = need_session(db, write.session_id, write.owner)
    ask = write.ask
    ask_id = ask.permission_id if isinstance(ask, Permission) else ask.question_id
    db.execute(
        "INSERT INTO asks (session, ask_id, body) VALUES (?, ?, ?)"
        " ON CONFLICT (session, ask_id) DO UPDATE SET body = excluded.body, outcome = NULL",
        (session.number, ask_id, codec.dump_ask(ask)),
    )
    return Done(revision=current_revision(db))


def close_ask(db: sqlite3.Connection, write: CloseAsk) -> Done:
    """The first outcome stays; one that is not open changes nothing."""
    session = need_session(db, write.session_id, write.owner)
    db.execute(
        "UPDATE asks SET outcome = ? WHERE session = ? AND ask_id = ? AND outcome IS NULL",
        (write.outcome, session.number, write.ask_id),
    )
    db.execute(
        "DELETE FROM asks WHERE session = ? AND outcome IS NOT NULL AND rowid NOT IN"
        " (SELECT rowid FROM asks WHERE session = ? AND outcome IS NOT NULL ORDER BY rowid DESC LIMIT ?)",
        (session.number, session.number, _CLOSED_KEPT),
    )
    return Done(revision=current_revision(db))


def open_asks(db: sqlite3.Connection, session: SessionRow) -> tuple[Permission | Question, ...]:
    rows = db.execute(
        "SELECT body, ask_id FROM asks WHERE session = ? AND outcome IS NULL ORDER BY rowid", (session.number,)
    ).fetchall()
    return tuple(codec.load_ask(body, ask_id, session.session_id) for body, ask_id in rows)


def closed_asks(db: sqlite3.Connection, session: SessionRow) -> tuple[tuple[str, str], ...]:
    rows = db.execute(
        "SELECT ask_id, outcome FROM asks WHERE session = ? AND outcome IS NOT NULL ORDER BY rowid", (session.number,)
    ).fetchall()
    return tuple((ask_id, outcome) for ask_id, outcome in rows)


def save_notice(db: sqlite3.Connection, write: SaveNotice) -> Done:
    session = need_session(db, write.session_id, write.owner)
    db.execute("INSERT INTO notices (session, level, text) VALUES (?, ?, ?)", (session.number, write.level, write.text))
    db.execute(
        "DELETE FROM notices WHERE session = ? AND number NOT IN"
        " (SELECT number FROM notices WHERE session = ? ORDER BY number DESC LIMIT ?)",
        (session.number, session.number, _NOTICES_KEPT),
    )
    return Done(revision=current_revision(db))


def last_notices(db: sqlite3.Connection, session: SessionRow) -> tuple[NoticeFacts, ...]:
    rows = db.execute("SELECT number, level, text FROM notices WHERE session = ? ORDER BY number", (session.number,))
    return tuple(NoticeFacts(number, level, text) for number, level, text in rows)


def post_mail(db: sqlite3.Connection, write: PostMail) -> Done:
    session = need_session(db, write.session_id)
    db.execute(
        "INSERT INTO mail (session, body, posted_at) VALUES (?, ?, ?)",
        (session.number, codec.dump(dict(write.mail)), write.now),
    )
    return Done(revision=current_revision(db))


def take_mail(db: sqlite3.Connection, write: TakeMail) -> Done:
    """In the order of posting; each letter once. Nothing there: nothing is written."""
    session = need_session(db, write.session_id, write.owner)
    return Done(mail=take_letters(db, session), revision=current_revision(db))


def has_mail(db: sqlite3.Connection, session: SessionRow) -> bool:
    return db.execute("SELECT 1 FROM mail WHERE session = ? LIMIT 1", (session.number,)).fetchone() is not None


def take_letters(db: sqlite3.Connection, session: SessionRow) -> tuple[Mapping[str, object], ...]:
    rows = db.execute("SELECT body FROM mail WHERE session = ? ORDER BY number", (session.number,)).fetchall()
    if rows:
        db.execute("DELETE FROM mail WHERE session = ?", (session.number,))
    return tuple(json.loads(body) for (body,) in rows)
