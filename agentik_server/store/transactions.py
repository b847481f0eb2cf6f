"""Each write of the application, carried out: the one door through which anything gets into the database.

`perform` is synchronous and may run on any connection, also one in memory. It touches nothing but the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from agentik_server.domain import saves
from agentik_server.domain.pending import QueueView
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import Admitted, Claimed, Denied, Done, Fenced, Outcome, SaveMessages, Taken, Write
from agentik_server.store import admission, asks, edits, sessions, turns
from agentik_server.store.queues import LATER, load_view
from agentik_server.store.rows import LostOwnership, current_revision, need_session, touch_session
from agentik_server.store.sessions import IsAlive
from agentik_server.store.transcript import save_messages

_TOUCH_EVERY_MS = 60_000  # streaming makes its session the newest one, but not with every save


def nobody_else(server_id: str) -> bool:
    """`is_alive` for a database that only this process uses: every other owner is dead."""
    return False


def perform(db: sqlite3.Connection, write: Write, *, is_alive: IsAlive = nobody_else) -> Outcome:
    """Carry out one write, inside the transaction of the caller, or in one of its own where none is open.

    `is_alive` tells whether the server process of an id lives (locks.py). A refused write changes nothing.
    The connection must not open transactions by itself (`isolation_level=None`). Raises sqlite3.Error; then too
    nothing of this write is left, and possibly nothing of the caller's transaction (`db.in_transaction` tells).
    """
    return with_queues(db, [write], [perform_in_group(db, write, is_alive=is_alive)])[0]


def with_queues(db: sqlite3.Connection, writes: Sequence[Write], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of `perform_in_group`, each with its session's queue as it stands now: loaded once a session."""
    queues: dict[str, QueueView] = {}
    complete = list(outcomes)
    for index, (write, outcome) in enumerate(zip(writes, outcomes, strict=True)):
        if isinstance(outcome, Done | Admitted | Claimed | Taken) and outcome.queue is LATER:
            session_id = session_of(write)
            if session_id not in queues:
                queues[session_id] = load_view(db, session_id)
            complete[index] = replace(outcome, queue=queues[session_id])
    return complete


def perform_in_group(db: sqlite3.Connection, write: Write, *, is_alive: IsAlive) -> Outcome:
    """Like `perform`, but the outcome is not complete before `with_queues`: a hundred sends show one queue once."""
    db.execute("SAVEPOINT one_write")
    try:
        outcome = _carry_out(db, write, is_alive)
    except Refused as refused:
        _undo(db)
        return Denied(refused.reason, refused.message)
    except LostOwnership:
        _undo(db)
        return Fenced()
    except BaseException:
        if db.in_transaction:  # a full disk ends the whole transaction
            _undo(db)
        raise
    db.execute("RELEASE one_write")
    return outcome


def session_of(write: Write) -> str:
    """Empty for a write that belongs to no session."""
    if isinstance(write, saves.CreateSession):
        return write.facts.session_id
    return str(getattr(write, "session_id", ""))


def _undo(db: sqlite3.Connection) -> None:
    db.execute("ROLLBACK TO one_write")
    db.execute("RELEASE one_write")


def _carry_out(db: sqlite3.Connection, write: Write, is_alive: IsAlive) -> Outcome:
    match write:
        case saves.TakeSession():
            return sessions.take_session(db, write, is_alive)
        case saves.DeleteSession():
            return sessions.delete_session(db, write, is_alive)
        case saves.ForgetOld():
            return sessions.forget_old(db, write, is_alive)
        case _:
            return _PERFORMERS[type(write)](db, write)


def _save_messages(db: sqlite3.Connection, write: SaveMessages) -> Done:
    session = need_session(db, write.session_id, write.owner)
    saved = save_messages(db, session, write.messages)
    if saved and write.now >= session.updated_at + _TOUCH_EVERY_MS:
        touch_session(db, session, write.now)
    return Done(messages=saved, revision=current_revision(db))


_PERFORMERS: dict[type, Callable[[sqlite3.Connection, Any], Outcome]] = {
    saves.CreateSession: sessions.create_session,
    saves.ForkSession: sessions.fork_session,
    saves.ReleaseSession: sessions.release_session,
    saves.SaveSession: sessions.save_session,
    saves.Admit: admission.admit,
    saves.Resend: admission.resend,
    saves.Claim: turns.claim,
    saves.Journal: turns.journal,
    saves.PutBack: turns.put_back,
    saves.EndTurn: turns.end_turn,
    saves.SaveMessages: _save_messages,
    saves.EditPending: edits.edit_pending,
    saves.ApplyPendingEdits: edits.apply_edits,
    saves.MovePending: edits.move_pending,
    saves.RemovePending: edits.remove_pending,
    saves.ClearPending: edits.clear_pending,
    saves.SendPendingNow: edits.send_now,
    saves.HoldPending: edits.hold_pending,
    saves.PauseQueue: edits.pause_queue,
    saves.SaveAsk: asks.save_ask,
    saves.CloseAsk: asks.close_ask,
    saves.SaveNotice: asks.save_notice,
    saves.PostMail: asks.post_mail,
    saves.TakeMail: asks.take_mail,
}
