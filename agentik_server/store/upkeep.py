"""`agentik-server --vacuum`: checks the database, gives free space back, removes files that nobody needs.

Runs alone on a home folder, in a thread of its own; the running store does not use it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from agentik_server.store import migrations, purging
from agentik_server.store.attachment_rows import forget_trash, is_used
from agentik_server.store.attachments import AttachmentFiles
from agentik_server.store.locks import ServerLock
from agentik_server.store.opening import FILE, StoreUnavailable, connect


def vacuum(home: Path) -> str:
    """Returns one line for a person. Raises StoreUnavailable while an editor uses the database, or if it is damaged."""
    path = home / FILE
    if not path.is_file():
        raise StoreUnavailable(f"there is no database in {home}")
    lock = ServerLock(home)
    try:
        with lock.opening():
            alive, _ = lock.others()
            if alive:
                raise StoreUnavailable("the database is in use: close every editor that uses Agentik first")
            before = _size(home)
            removed = _vacuum(path, AttachmentFiles(home / "attachments"))
            after = _size(home)
    except (OSError, TimeoutError, sqlite3.Error) as error:
        raise StoreUnavailable(f"cannot vacuum {path}: {' '.join(str(error).split())}") from error
    files = f", {removed} unused attachment{'s' if removed != 1 else ''} removed" if removed else ""
    return f"{path}: {before / 1e6:.1f} MB before, {after / 1e6:.1f} MB now{files}"


def _vacuum(path: Path, files: AttachmentFiles) -> int:
    """Returns the number of files that were removed."""
    with contextlib.closing(connect(path)) as db:
        migrations.migrate(db)
        problem = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if problem != "ok":
            raise sqlite3.DatabaseError(f"it is damaged ({problem})")
        removed = 0
        for stored in list(files.older_than(0.0)):
            if not is_used(db, stored):
                files.remove(stored)
                files.discard_half_written(stored)
                removed += 1
        forget_trash(db)
        while purging.step(db):
            pass
        db.execute("INSERT INTO search (search) VALUES ('optimize')")
        db.execute("VACUUM")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return removed


def _size(home: Path) -> int:
    names = (FILE, FILE + "-wal")
    return sum((home / name).stat().st_size for name in names if (home / name).exists())
