"""How a process ended, and the one thing that waits for it: by pidfd where there is one, else by a thread (B42).

Must not look at pipes: a grandchild may hold them open long after the process has ended.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a process: an exit code, or the name of the signal, or the error that kept it from starting."""

    code: int | None = None
    signal: str | None = None
    spawn_error: str | None = None

    def __str__(self) -> str:
        if self.spawn_error is not None:
            return self.spawn_error
        return f"killed by {self.signal}" if self.signal else f"exit code {self.code}"


def exit_of(returncode: int) -> Exit:
    """From a return code as `subprocess` has it (negative: signal number)."""
    if returncode >= 0:
        return Exit(code=returncode)
    try:
        return Exit(signal=signal.Signals(-returncode).name)
    except ValueError:
        return Exit(signal=f"signal {-returncode}")


def when_ended(process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
    """Call `then` once on `loop` when `process` has ended and was reaped, whoever still holds its pipes."""
    if sys.platform == "linux":
        try:
            pidfd = os.pidfd_open(process.pid)
        except OSError:
            pass  # an old kernel, or a sandbox that forbids it: the thread below does it
        else:
            _watch_pidfd(pidfd, process, loop, then)
            return
    threading.Thread(target=_wait, args=(process, loop, then), name="agentik-exit", daemon=True).start()


def _watch_pidfd(
    pidfd: int, process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, then: Callable[[], None]
) -> None:
    def ended() -> None:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        process.wait()
        then()

    loop.add_reader(pidfd, ended)


def _wait(process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop, then: Callable[[], None]) -> None:
    process.wait()
    try:
        loop.call_soon_threadsafe(then)
    except RuntimeError:
        return  # the loop was closed: nobody is left to be told
