"""The database file before it is used: made private, checked, migrated, or set aside with a notice (B58).

Runs in a thread (it waits for locks and reads files). Never deletes a database.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path

from agentik_server.store import migrations
from agentik_server.store.locks import ServerLock

FILE = "agentik.db"
BUSY_TIMEOUT_S = 5.0  # B62
CHECKED_AT_MOST = 512 << 20  # bytes; a check reads the whole file, about 1.6 GB a second
_WAL_ATTEMPTS = 50
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class StoreUnavailable(Exception):  # noqa: N818 -- says what it is
    """The database cannot be used; `str()` is one line for a person."""


class _SetAside(Exception):  # noqa: N818 -- a verdict
    """The file cannot be used as it is; `word` goes into its new name."""

    def __init__(self, word: str, why: str) -> None:
        super().__init__(why)
        self.word = word


@dataclass(frozen=True, slots=True)
class Prepared:
    """A database that is ready for connections."""

    path: Path
    server_id: str
    database_id: str
    notices: tuple[str, ...]


def prepare(home: Path, lock: ServerLock) -> Prepared:
    """Check or make `home/agentik.db`, and take the server's lock. Raises StoreUnavailable."""
    try:
        make_private_folder(home)
        with lock.opening():
            return _prepare(home / FILE, lock)
    except (OSError, TimeoutError) as error:
        raise StoreUnavailable(f"cannot use {home}: {_line(error)}") from error
    except sqlite3.Error as error:
        raise StoreUnavailable(f"cannot use the database {home / FILE}: {_line(error)}") from error


def connect(
    path: Path, factory: type[sqlite3.Connection] = sqlite3.Connection, *, read_only: bool = False
) -> sqlite3.Connection:
    """A connection that opens no transaction by itself. It may be used in one thread, and made in another."""
    db = sqlite3.connect(
        path,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        factory=factory,
        cached_statements=256,
    )
    try:
        db.execute("PRAGMA secure_delete = ON")  # B18: what is deleted is overwritten
        db.execute("PRAGMA cache_size = -8000")  # 8 MB
        db.execute("PRAGMA journal_size_limit = 16000000")
        if read_only:
            db.execute("PRAGMA query_only = ON")
    except BaseException:
        db.close()
        raise
    return db


def make_private_folder(folder: Path) -> None:
    """0700, whatever the umask, also where it was there already and is ours."""
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    status = folder.stat()
    if status.st_mode & 0o077 and status.st_uid == os.geteuid():
        folder.chmod(0o700)


def _prepare(path: Path, lock: ServerLock) -> Prepared:
    alive, dead = lock.others()
    notices: list[str] = []
    try:
        database_id = _check_and_migrate(path, thorough=bool(dead) and not alive, alone=not alive)
    except _SetAside as verdict:
        if alive:
            raise StoreUnavailable(f"{path} {verdict}, and another editor is using it") from verdict
        notices.append(_set_aside(path, verdict))
        database_id = _check_and_migrate(path, thorough=False, alone=True)
    if not alive:
        for server_id in dead:
            lock.forget(server_id)
    return Prepared(path, lock.acquire(), database_id, tuple(notices))


def _check_and_migrate(path: Path, *, thorough: bool, alone: bool) -> str:
    """The database's id. `thorough`: the last process did not close it, so every page is read once (quick_check).

    `alone`: no other process uses it; under another one the schema is not changed.
    Raises _SetAside, StoreUnavailable, sqlite3.Error.
    """
    _make_private_file(path)
    try:
        with contextlib.closing(connect(path)) as db:
            _check(db, path, thorough=thorough)
            if not alone and migrations.schema_version(db) not in {0, migrations.SCHEMA_VERSION}:
                migrations.refuse_newer(db)
                raise StoreUnavailable(f"an editor with an older version of Agentik uses {path}: close it first")
            migrations.migrate(db)
            _use_wal(db)
            return str(db.execute("SELECT database_id FROM meta").fetchone()[0])
    except migrations.NewerSchema as newer:
        raise _SetAside("newer", "was made by a newer version") from newer
    except sqlite3.DatabaseError as error:
        if _code(error) in _DAMAGE:
            raise _SetAside("damaged", f"is damaged ({_line(error)})") from error
        raise


def _check(db: sqlite3.Connection, path: Path, *, thorough: bool) -> None:
    if thorough and path.stat().st_size <= CHECKED_AT_MOST:
        problem = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise _SetAside("damaged", f"is damaged ({' '.join(str(problem).split())})")
    tables = int(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    ours = int(db.execute("PRAGMA application_id").fetchone()[0]) == migrations.APPLICATION_ID
    if tables and not ours:
        raise _SetAside("damaged", "is no database of Agentik")


def _use_wal(db: sqlite3.Connection) -> None:
    """Several processes that switch at once make it fail although a timeout is set (FACTS.md): try again."""
    for attempt in range(_WAL_ATTEMPTS):
        try:
            mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        except sqlite3.OperationalError:
            if attempt == _WAL_ATTEMPTS - 1:
                raise
            time.sleep(0.02)
        else:
            if mode != "wal":
                raise sqlite3.OperationalError(f"this file system does not carry SQLite's WAL (mode {mode})")
            return


def _make_private_file(path: Path) -> None:
    """0600 before SQLite opens it; its -wal and -shm files get the same mode from SQLite."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        status = os.fstat(descriptor)
        if status.st_mode & 0o177 and status.st_uid == os.geteuid():
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _set_aside(path: Path, verdict: _SetAside) -> str:
    """Rename the file and what belongs to it; returns the notice."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    target = path.with_name(f"{path.name}.{verdict.word}-{stamp}")
    count = 1
    while target.exists():
        count += 1
        target = path.with_name(f"{path.name}.{verdict.word}-{stamp}-{count}")
    for suffix in ("-wal", "-shm", ""):
        source = path.with_name(path.name + suffix)
        if source.exists():
            source.rename(target.with_name(target.name + suffix))
    return f"The database {verdict}. It was set aside as {target}, and a new one was begun."


def _code(error: sqlite3.Error) -> int:
    """The primary result code."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__
