"""OS file locks that prove that a server process lives (B59): no heartbeat, no clock, released by the kernel at death.

Each process holds `locks/<server id>.lock` for its lifetime. Must not touch the database.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

_SUFFIX = ".lock"
_OPENING = "opening"


class ServerLock:
    """This process's proof of life under one home folder."""

    def __init__(self, home: Path) -> None:
        self._folder = home / "locks"
        self._descriptor: int | None = None
        self._path: Path | None = None

    def acquire(self) -> str:
        """Take a lock under a new name and return it: the server's id. Raises OSError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        server_id = f"{os.getpid()}-{uuid.uuid4().hex}"
        path = self._folder / (server_id + _SUFFIX)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._descriptor, self._path = descriptor, path
        return server_id

    def release(self, *, clean: bool) -> None:
        """`clean`: leave nothing behind; else the file tells the next start that this end was none (`dead`)."""
        if self._descriptor is None or self._path is None:
            return
        if clean:
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None

    def is_alive(self, server_id: str) -> bool:
        """Whether the process of this id lives; it may be our own."""
        return _is_locked(self._folder / (server_id + _SUFFIX))

    def others(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(ids that live, ids of processes that ended without releasing), without our own."""
        alive: list[str] = []
        dead: list[str] = []
        for path in sorted(self._folder.glob("*" + _SUFFIX)):
            server_id = path.name.removesuffix(_SUFFIX)
            if path != self._path and server_id != _OPENING:
                (alive if _is_locked(path) else dead).append(server_id)
        return tuple(alive), tuple(dead)

    def forget(self, server_id: str) -> None:
        """Remove what a dead process left; to be called under `opening`."""
        (self._folder / (server_id + _SUFFIX)).unlink(missing_ok=True)

    @contextlib.contextmanager
    def opening(self, timeout_s: float = 20.0) -> Iterator[None]:
        """Only one process at a time checks, sets aside, makes or migrates the database. Raises TimeoutError."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(self._folder / (_OPENING + _SUFFIX), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _wait_for(descriptor, timeout_s)
            yield
        finally:
            os.close(descriptor)


def _wait_for(descriptor: int, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError("another process is opening the database and does not finish") from None
            time.sleep(0.01)
        else:
            return


def _is_locked(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)
