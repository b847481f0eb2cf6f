"""A lock proves that its process lives; the kernel releases it at death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agentik_server.store.locks import ServerLock

HOLD = """
import sys, pathlib
from agentik_server.store.locks import ServerLock
lock = ServerLock(pathlib.Path(sys.argv[1]))
print(lock.acquire(), flush=True)
sys.stdin.read()
"""


def _holder(home: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_alive_while_held_and_dead_after_release(tmp_path: Path) -> None:  # B59
    lock, other = ServerLock(tmp_path), ServerLock(tmp_path)
    server_id = lock.acquire()
    assert (lock.is_alive(server_id), other.is_alive(server_id)) == (True, True)
    lock.release(clean=True)
    assert not other.is_alive(server_id)
    assert not other.is_alive("never was")


def test_dead_at_once_after_kill_9(tmp_path: Path) -> None:  # B59 B60
    process, server_id = _holder(tmp_path)
    lock = ServerLock(tmp_path)
    assert lock.is_alive(server_id)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert not lock.is_alive(server_id)
    assert lock.others() == ((), (server_id,))


def test_a_child_of_the_server_does_not_keep_its_lock(tmp_path: Path) -> None:  # B59
    lock = ServerLock(tmp_path)
    server_id = lock.acquire()
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        lock.release(clean=False)
        assert not ServerLock(tmp_path).is_alive(server_id)
    finally:
        child.communicate()


def test_others_tells_who_lives_and_who_left_in_disorder(tmp_path: Path) -> None:
    mine, living, dead, gone = (ServerLock(tmp_path) for _ in range(4))
    ids = [lock.acquire() for lock in (mine, living, dead, gone)]
    dead.release(clean=False)
    gone.release(clean=True)
    assert mine.others() == ((ids[1],), (ids[2],))
    mine.forget(ids[2])
    assert mine.others() == ((ids[1],), ())


def test_only_one_opens_at_a_time(tmp_path: Path) -> None:
    first, second = ServerLock(tmp_path), ServerLock(tmp_path)
    order: list[str] = []

    def open_second() -> None:
        with second.opening():
            order.append("second")

    with first.opening():
        thread = threading.Thread(target=open_second)
        thread.start()
        with pytest.raises(TimeoutError), second.opening(timeout_s=0.0):
            order.append("never")
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_locks_are_private(tmp_path: Path) -> None:
    lock = ServerLock(tmp_path)
    lock.acquire()
    folder = tmp_path / "locks"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o600]
