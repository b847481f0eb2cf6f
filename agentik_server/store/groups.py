"""A group of writes in one transaction and one commit, and what belongs around it: files before, cleaning after.

Runs in the writing connection's thread. Never raises for a write: each gets its outcome.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentik_server.domain.message import Attachment
from agentik_server.domain.pending import check_draft
from agentik_server.domain.refusal import Refused
from agentik_server.domain.saves import (
    Admit,
    Admitted,
    ApplyPendingEdits,
    ClearPending,
    DeleteSession,
    Denied,
    Done,
    EditPending,
    Failed,
    ForgetOld,
    Outcome,
    RemovePending,
    SaveAsk,
    SaveMessages,
    SaveNotice,
    SaveSession,
    Write,
)
from agentik_server.store import purging
from agentik_server.store.attachment_rows import forget_trash, is_used, trash
from agentik_server.store.attachments import AttachmentFiles
from agentik_server.store.ledger import is_known
from agentik_server.store.opening import BUSY_TIMEOUT_S
from agentik_server.store.sessions import IsAlive
from agentik_server.store.transactions import perform_in_group, with_queues

log = logging.getLogger(__name__)

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
BUSY_TIMEOUT_MS = int(BUSY_TIMEOUT_S * 1000)
_AT_ONCE_S = 0.05  # so long a deletion may clean up before it is acknowledged; a big one goes on afterwards
_STRAY_AGE_S = 86_400.0  # a file without a row is somebody's who died before the commit
_DELETING = (RemovePending, ClearPending, ApplyPendingEdits, DeleteSession, ForgetOld)


class GroupWriter:
    """Carries out groups on one connection, always the same one."""

    def __init__(self, files: AttachmentFiles, is_alive: IsAlive) -> None:
        self._files = files
        self._is_alive = is_alive
        self._durable: bool | None = None
        self._data_version: int | None = None
        self._has_steps = False  # something that was deleted is still on the disk
        self._has_log = False  # and in the write-ahead log
        self._is_suspect = False

    @property
    def is_purging(self) -> bool:
        """Whether `purge` has work that it can do now."""
        return self._has_steps

    def begin(self, db: sqlite3.Connection) -> None:
        """The first call: what another process left undone is found, and its commits are news from now on."""
        self._has_steps = purging.is_due(db) or bool(trash(db))
        self.look(db)

    def carry_out(self, db: sqlite3.Connection, writes: Sequence[Write]) -> list[Outcome]:
        """One outcome for each write, in order, after the commit. A failed commit fails all of them (B58)."""
        prepared = [self._with_files(db, write) for write in writes]
        try:
            self._set_durable(db, any(is_acknowledged(write) for write in writes))
            db.execute(
                "BEGIN IMMEDIATE"
            )  # never a read that turns into a write: that fails at once when another writes
            outcomes = [self._carry_out_one(db, *pair) for pair in zip(writes, prepared, strict=True)]
            outcomes = with_queues(db, writes, outcomes)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            self._note(error)
            if db.in_transaction:
                db.execute("ROLLBACK")
            outcomes = [Failed(_line(error)) for _ in writes]
        try:
            self._clean_up(db, writes, prepared, outcomes)
        except OSError as error:  # the writes are committed: nothing of this may take that back
            log.warning("cleaning up failed: %s", error)
        return outcomes

    def look(self, db: sqlite3.Connection) -> bool:
        """Whether another process committed since the last look."""
        try:
            if self._has_log and not self._has_steps:
                self._truncate_log(db)  # a reader had held it up
            version = int(db.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error as error:
            self._note(error)
            return False
        changed = self._data_version is not None and version != self._data_version
        self._data_version = version
        return changed

    def purge(self, db: sqlite3.Connection, seconds: float = 0.01) -> None:
        """B18: what was deleted leaves the disk: rows and words, files, the write-ahead log. Goes on for so long."""
        deadline = time.monotonic() + seconds
        try:
            while self._has_steps:
                db.execute("BEGIN IMMEDIATE")
                self._has_steps = purging.step(db)
                db.execute("COMMIT")
                if self._has_steps and time.monotonic() > deadline:
                    return
            self._remove_unused(db, trash(db), then_forget=True)
            self._truncate_log(db)
        except sqlite3.Error as error:
            self._note(error)
            self._has_steps = False  # not over and over: the next deletion, or the next start, goes on with it
            if db.in_transaction:
                db.execute("ROLLBACK")

    def finish(self, db: sqlite3.Connection) -> bool:
        """The last call before the connection closes; False when the file must be checked at the next start."""
        if self._has_steps or self._has_log:
            self.purge(db, 1.0)  # what is left then, the next process does
        return not self._is_suspect

    def _with_files(self, db: sqlite3.Connection, write: Write) -> Write | Denied | Failed:
        """The write with its attachments stored (B51); refusals that come before files do come first (B10)."""
        if not _has_files(write):
            return write
        assert isinstance(write, Admit | EditPending)
        draft = write.draft
        try:
            if isinstance(write, Admit) and is_known(db, draft.message_id):
                return write  # B4: answered as it was; its files may be gone
            check_draft(draft, write.limits)
            row = db.execute("SELECT cwd FROM sessions WHERE session_id = ?", (write.session_id,)).fetchone()
            if row is None:
                return write  # refused as an unknown session
            kept = tuple(self._files.keep(attachment, row[0]) for attachment in draft.attachments)
        except Refused as refused:
            return Denied(refused.reason, refused.message)
        except OSError as error:
            return Failed(f"an attachment could not be kept: {error.strerror or error}")
        except sqlite3.Error as error:
            self._note(error)
            return Failed(_line(error))
        return replace(write, draft=replace(draft, attachments=kept))

    def _carry_out_one(self, db: sqlite3.Connection, write: Write, prepared: Write | Denied | Failed) -> Outcome:
        if not isinstance(prepared, Denied | Failed) and not all(map(self._files.is_kept, _attachments(prepared))):
            prepared = self._with_files(db, write)  # their last user left, in another process, since they were kept
        if isinstance(prepared, Denied | Failed):
            return prepared
        try:
            return perform_in_group(db, prepared, is_alive=self._is_alive)
        except sqlite3.Error as error:
            if not db.in_transaction:
                raise
            self._note(error)
            return Failed(_line(error))
        except UnicodeEncodeError:
            return Denied("invalidText", "half of a surrogate pair cannot be kept")
        except Exception as error:
            log.exception("a write failed: %s", type(write).__name__)
            if not db.in_transaction:
                raise sqlite3.OperationalError("the transaction was lost") from error
            return Failed("internal error, see the log")

    def _set_durable(self, db: sqlite3.Connection, durable: bool) -> None:
        """FULL: the commit is on the disk when it returns. NORMAL: a power cut may take it, never half of it."""
        if durable is not self._durable:
            db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def _clean_up(
        self,
        db: sqlite3.Connection,
        writes: Sequence[Write],
        prepared: Sequence[Write | Denied | Failed],
        outcomes: Sequence[Outcome],
    ) -> None:
        unused: list[str] = []
        for write, stored, outcome in zip(writes, prepared, outcomes, strict=True):
            if _deletes(write) and isinstance(outcome, Done):
                self._has_steps = self._has_log = True
            if isinstance(write, ForgetOld):
                unused += self._files.older_than(_STRAY_AGE_S)
            changed_nothing = not isinstance(outcome, Done | Admitted) or (
                isinstance(outcome, Admitted) and outcome.repeated
            )
            if changed_nothing and not isinstance(stored, Denied | Failed):
                unused += [attachment.stored for attachment in _attachments(stored) if attachment.stored]
        if unused:
            self._remove_unused(db, unused)
        if self._has_steps:
            self.purge(db, _AT_ONCE_S)

    def _truncate_log(self, db: sqlite3.Connection) -> None:
        """Old texts leave the write-ahead log. A reader in the way holds it up; it is not waited for."""
        try:
            db.execute("PRAGMA busy_timeout = 0")
            self._has_log = bool(db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        finally:
            db.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")

    def _remove_unused(self, db: sqlite3.Connection, stored: Iterable[str], *, then_forget: bool = False) -> None:
        """Under the write lock, so that no other process begins to use one of them meanwhile."""
        files = list(stored)
        if not files:
            return
        try:
            db.execute("BEGIN IMMEDIATE")
            for path in files:
                if not is_used(db, path):
                    self._files.remove(path)
                    self._files.discard_half_written(path)
            if then_forget:
                forget_trash(db)
            db.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if db.in_transaction:
                db.execute("ROLLBACK")
            log.warning("unused attachments could not be removed: %s", error)

    def _note(self, error: sqlite3.Error) -> None:
        log.warning("the database failed: %s", error)
        if int(getattr(error, "sqlite_errorcode", 0)) & 0xFF in _DAMAGE:
            self._is_suspect = True


def is_acknowledged(write: Write) -> bool:
    """Whether somebody relies on it after a power cut (B5): everything but what a running turn says again and again."""
    if isinstance(write, SaveSession):
        return write.request is not None
    return not isinstance(write, SaveMessages | SaveAsk | SaveNotice)


def _deletes(write: Write) -> bool:
    return isinstance(write, _DELETING) or (isinstance(write, EditPending) and not write.keep_attachments)


def _has_files(write: Write) -> bool:
    if isinstance(write, EditPending) and write.keep_attachments:
        return False
    return isinstance(write, Admit | EditPending) and bool(write.draft.attachments)


def _attachments(write: Write) -> tuple[Attachment, ...]:
    if _has_files(write):
        assert isinstance(write, Admit | EditPending)
        return write.draft.attachments
    return ()


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
