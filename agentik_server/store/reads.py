"""Pages: what the application reads. Called inside a (read) transaction; changes nothing."""

from __future__ import annotations

import sqlite3

from agentik_server.domain.message import Message
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import (
    Denied,
    MessagePage,
    Page,
    Read,
    ReadMessages,
    ReadSession,
    ReadSessions,
    ReadStatus,
    SearchMessages,
    SessionFacts,
    SessionList,
    SessionPage,
    StoreStatus,
)
from agentik_server.store.asks import closed_asks, has_mail, last_notices, open_asks
from agentik_server.store.migrations import schema_version
from agentik_server.store.queues import load_view
from agentik_server.store.rows import (
    MESSAGE_COLUMNS,
    SessionRow,
    current_revision,
    facts_of,
    facts_query,
    last_seq,
    load_facts,
    load_messages,
    message_of,
    need_session,
)
from agentik_server.store.search import search_messages, sessions_with
from agentik_server.store.turns import newest_turns


def fetch(db: sqlite3.Connection, read: Read) -> Page:
    """Answer from the state of the transaction that is open."""
    try:
        match read:
            case ReadSession():
                return _session_page(db, read)
            case ReadMessages():
                return _message_page(db, read)
            case ReadSessions():
                return _session_list(db, read)
            case SearchMessages():
                return search_messages(db, read)
            case ReadStatus():
                return _status(db)
    except Refused as refused:
        return Denied(refused.reason, refused.message)


def _session_page(db: sqlite3.Connection, read: ReadSession) -> SessionPage:
    session = need_session(db, read.session_id)
    if read.after is None:
        messages, more = _newest(db, session, None, read.limit)
    else:
        messages, more = load_messages(db, session, "revision > ?", read.after), False
    return SessionPage(
        load_facts(db, session),
        messages,
        more,
        load_view(db, read.session_id),
        open_asks(db, session),
        current_revision(db),
        closed_asks(db, session),
        has_mail(db, session),
        newest_turns(db, session),
        last_notices(db, session),
        last_seq(db, session),
    )


def _message_page(db: sqlite3.Connection, read: ReadMessages) -> MessagePage:
    session = need_session(db, read.session_id)
    if read.before is not None and read.after is not None:
        between = (read.after, read.before)
        messages, more = _page(db, session, "deleted = 0 AND seq > ? AND seq < ?", between, "ASC", read.limit)
    elif read.before is not None:
        messages, more = _newest(db, session, read.before, read.limit)
    else:
        messages, more = _oldest(db, session, read.after, read.limit)
    return MessagePage(messages, more, current_revision(db))


def _newest(
    db: sqlite3.Connection, session: SessionRow, before: int | None, limit: int
) -> tuple[tuple[Message, ...], bool]:
    condition = "deleted = 0" + ("" if before is None else " AND seq < ?")
    messages, more = _page(db, session, condition, () if before is None else (before,), "DESC", limit)
    return messages[::-1], more


def _oldest(
    db: sqlite3.Connection, session: SessionRow, after: int | None, limit: int
) -> tuple[tuple[Message, ...], bool]:
    condition = "deleted = 0" + ("" if after is None else " AND seq > ?")
    return _page(db, session, condition, () if after is None else (after,), "ASC", limit)


def _page(
    db: sqlite3.Connection, session: SessionRow, condition: str, values: tuple[int, ...], order: str, limit: int
) -> tuple[tuple[Message, ...], bool]:
    limit = max(1, limit)
    rows = db.execute(
        f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE session = ? AND {condition} ORDER BY seq {order} LIMIT ?",
        (session.number, *values, limit + 1),
    ).fetchall()
    return tuple(message_of(row, session.session_id) for row in rows[:limit]), len(rows) > limit


def _session_list(db: sqlite3.Connection, read: ReadSessions) -> SessionList:
    """Newest first, by (updated_at, session id); the cursor names the last one given."""
    conditions, values = _session_filter(read)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    rows = db.execute(facts_query(f"{where}ORDER BY updated_at DESC, session_id DESC"), values)
    wanted = (read.query or "").casefold()
    holding = sessions_with(db, wanted)
    limit = max(1, read.limit)
    found: list[SessionFacts] = []
    for row in rows:  # read as far as the page needs; titles are matched here, for SQLite folds ASCII only
        facts = facts_of(row)
        if wanted not in facts.title.casefold() and row[0] not in holding:
            continue
        if len(found) == limit:
            last = found[-1]
            return SessionList(tuple(found), f"{last.updated_at}:{last.session_id}")
        found.append(facts)
    return SessionList(tuple(found))


def _session_filter(read: ReadSessions) -> tuple[list[str], list[object]]:
    conditions: list[str] = []
    values: list[object] = []
    for column, value in (("cwd", read.cwd), ("agent_id", read.agent_id)):
        if value is not None:
            conditions.append(f"{column} = ?")
            values.append(value)
    if read.cursor is not None:
        updated_at, _, session_id = read.cursor.partition(":")
        if not updated_at.removeprefix("-").isdecimal():
            raise Refused("unknownSession", "this cursor is none of ours")
        conditions.append("(updated_at, session_id) < (?, ?)")
        values += [int(updated_at), session_id]
    return conditions, values


def _status(db: sqlite3.Connection) -> StoreStatus:
    def count(sql: str) -> int:
        return int(db.execute(sql).fetchone()[0])

    return StoreStatus(
        schema_version=schema_version(db),
        sessions=count("SELECT count(*) FROM sessions"),
        messages=count("SELECT count(*) FROM messages"),
        pending=count("SELECT count(*) FROM pending WHERE state = 'pending'"),
        bytes_on_disk=count("PRAGMA page_count") * count("PRAGMA page_size"),
    )
