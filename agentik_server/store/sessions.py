"""Session rows: made, owned, changed, deleted, forgotten (B18, B31, B57, B59, B60).

Called inside a transaction. Who lives is asked of `is_alive`, never found out here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

from agentik_server.domain.pending import Pause
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import (
    CreateSession,
    DeleteSession,
    Done,
    ForgetOld,
    ForkSession,
    Owner,
    ReleaseSession,
    SaveSession,
    Taken,
    TakeSession,
)
from agentik_server.store import codec
from agentik_server.store.asks import take_letters
from agentik_server.store.attachment_rows import drop_files_of_session
from agentik_server.store.purging import doom
from agentik_server.store.queues import LATER, load_queue, store_queue
from agentik_server.store.rows import (
    SessionRow,
    current_revision,
    find_session,
    last_seq,
    load_facts,
    load_messages,
    need_session,
    next_revision,
)
from agentik_server.store.transcript import close_unfinished, save_messages
from agentik_server.store.turns import recover

IsAlive = Callable[[str], bool]

# Keys of SaveSession.changes, and whether the change makes the session the newest one of the list.
_COLUMNS = {
    "agent_id": True,
    "cwd": True,
    "title": True,
    "title_by_user": True,
    "created_at": False,
    "updated_at": False,
    "agent_session_id": False,
    "controls": False,
    "state": False,
    "connection": False,
}


def create_session(db: sqlite3.Connection, write: CreateSession) -> Done:
    facts = write.facts
    if find_session(db, facts.session_id) is not None:
        raise Refused("duplicateId", "there is a session with this id already")
    revision = next_revision(db)
    owner = facts.owner
    db.execute(
        "INSERT INTO sessions (session_id, agent_id, cwd, title, title_by_user, created_at, updated_at,"
        " agent_session_id, controls, state, connection, owner_server, generation, revision)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            facts.session_id,
            facts.agent_id,
            facts.cwd,
            facts.title,
            facts.title_by_user,
            facts.created_at,
            facts.updated_at,
            facts.agent_session_id,
            codec.dump(dict(facts.controls)),
            facts.state,
            facts.connection,
            owner.server_id if owner else None,
            owner.generation if owner else 0,
            revision,
        ),
    )
    session = need_session(db, facts.session_id)
    return Done(facts=load_facts(db, session), queue=LATER, revision=revision)


def fork_session(db: sqlite3.Connection, write: ForkSession) -> Done:
    """A copy of the transcript under a new session; its messages get ids of their own, the files are shared."""
    source = need_session(db, write.session_id)
    done = create_session(db, CreateSession(write.facts))
    copy = need_session(db, write.facts.session_id)
    messages = load_messages(db, source, "deleted = 0")
    save_messages(
        db, copy, (replace(m, message_id=f"{copy.session_id}.f{m.seq}", session_id=copy.session_id) for m in messages)
    )
    return replace(done, revision=current_revision(db))


def take_session(db: sqlite3.Connection, write: TakeSession, is_alive: IsAlive) -> Taken:
    """B59, B60. No change when the session is ours already or another's who lives."""
    session = need_session(db, write.session_id)
    if session.owner is not None and (session.owner.server_id == write.server_id or is_alive(session.owner.server_id)):
        mine = session.owner if session.owner.server_id == write.server_id else None
        return _taken(db, session, mine)
    owner = Owner(write.server_id, session.generation + 1)
    db.execute(
        "UPDATE sessions SET owner_server = ?, generation = ?, state = 'idle', connection = 'disconnected',"
        " revision = ? WHERE number = ?",
        (owner.server_id, owner.generation, next_revision(db), session.number),
    )
    recovery = recover(db, session, write.now)
    closed = close_unfinished(db, session)
    db.execute("DELETE FROM asks WHERE session = ?", (session.number,))
    mail = take_letters(db, session)
    restored = _restore_queue(db, session, pause=write.pause_restored)
    return replace(
        _taken(db, session, owner),
        interrupted=recovery.interrupted or bool(closed),
        restored=restored,
        messages=recovery.messages + closed,
        mail=mail,
    )


def release_session(db: sqlite3.Connection, write: ReleaseSession) -> Done:
    """Nobody owns it now; its generation stays, so that the next owner's is higher."""
    session = need_session(db, write.session_id, write.owner)
    revision = next_revision(db)
    db.execute(
        "UPDATE sessions SET owner_server = NULL, state = 'idle', connection = 'disconnected', revision = ?"
        " WHERE number = ?",
        (revision, session.number),
    )
    return Done(facts=load_facts(db, session), revision=revision)


def save_session(db: sqlite3.Connection, write: SaveSession) -> Done:
    """Writes what differs; a change of nothing is no write. Raises KeyError for what is no column of a session."""
    session = need_session(db, write.session_id, write.owner)
    facts = load_facts(db, session)
    changes = {key: value for key, value in write.changes.items() if getattr(facts, key) != value}
    if not changes:
        return Done(facts=facts, revision=current_revision(db))
    if any(_COLUMNS[key] for key in changes):
        changes.setdefault("updated_at", max(write.now, facts.updated_at))
    names = ", ".join(f"{key} = ?" for key in changes)
    values = [codec.dump(value) if key == "controls" else value for key, value in changes.items()]
    revision = next_revision(db)
    db.execute(f"UPDATE sessions SET {names}, revision = ? WHERE number = ?", (*values, revision, session.number))
    return Done(facts=load_facts(db, session), revision=revision)


def delete_session(db: sqlite3.Connection, write: DeleteSession, is_alive: IsAlive) -> Done:
    """B18: everything of it, but for the ledger (B4). Without an owner: only where no living process owns it."""
    session = need_session(db, write.session_id, write.owner)
    if write.owner is None and session.owner is not None and is_alive(session.owner.server_id):
        raise Refused("notOwner", "another editor runs this session")
    _delete(db, session)
    return Done(revision=next_revision(db))


def forget_old(db: sqlite3.Connection, write: ForgetOld, is_alive: IsAlive) -> Done:
    """B57: never one that has something pending, nor one that a living process runs."""
    rows = db.execute(
        "SELECT session_id FROM sessions WHERE updated_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM pending WHERE pending.session = sessions.number) ORDER BY number",
        (write.before,),
    ).fetchall()
    forgotten = []
    for (session_id,) in rows:
        session = need_session(db, session_id)
        if session.owner is None or not is_alive(session.owner.server_id):
            _delete(db, session)
            forgotten.append(session_id)
    revision = next_revision(db) if forgotten else current_revision(db)
    return Done(session_ids=tuple(forgotten), revision=revision)


def _taken(db: sqlite3.Connection, session: SessionRow, owner: Owner | None) -> Taken:
    return Taken(load_facts(db, session), owner, last_seq(db, session) + 1, LATER)


def _restore_queue(db: sqlite3.Connection, session: SessionRow, *, pause: bool) -> bool:
    """B31: what waited before waits for a key press, also what was to be sent at once."""
    session = need_session(db, session.session_id)
    before = load_queue(db, session)
    if not before.waiting:
        after = before.settled()
    elif pause:
        calm = tuple(replace(item, urgent=False) for item in before.waiting)
        after = replace(before, waiting=calm).paused_by_itself(Pause("restore"))
    else:
        return False
    if after != before:
        store_queue(db, session, before, after)
    return after.pause is not None and after.pause.reason == "restore"


def _delete(db: sqlite3.Connection, session: SessionRow) -> None:
    """All but its messages at once; these leave the disk in steps, and nobody sees them meanwhile."""
    db.execute(
        "UPDATE submissions SET outcome = 'removed' WHERE message_id IN"
        " (SELECT message_id FROM pending WHERE session = ? AND state = 'pending')",
        (session.number,),
    )
    drop_files_of_session(db, session)
    for table in ("pending", "turns", "asks", "mail", "notices"):
        db.execute(f"DELETE FROM {table} WHERE session = ?", (session.number,))
    db.execute("DELETE FROM sessions WHERE number = ?", (session.number,))
    doom(db, session)
