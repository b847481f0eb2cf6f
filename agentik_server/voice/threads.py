"""The threads of dictation: recognizing sound, and talking to the sound system.

Must not let either slow down the editor: the recognizer's threads (and those its library starts from them) run at
lower priority, and a sound system that hangs keeps neither the event loop nor the end of the process waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")

_NICENESS = 5


def recognizer_threads(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="agentik-speech", initializer=lower_priority)


def lower_priority() -> None:
    """This thread gives way to others. On Linux niceness is per thread, and inherited by the threads started from it.

    Elsewhere niceness is the whole process's, which must stay as it is.
    """
    if sys.platform != "linux":
        return
    # Where a sandbox forbids it, dictation works all the same.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)


class CallThread:
    """One daemon thread that carries out calls in order: PortAudio must not be entered from two threads at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[[], T]) -> T:
        """The result of `function`, run in the thread. Cancelling the wait does not stop the call."""
        return await asyncio.wrap_future(self.post(function))

    def post(self, function: Callable[[], T]) -> Future[T]:
        """Has `function` carried out after all that was asked for before; nobody needs to wait."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        future: Future[T] = Future()
        self._calls.put((function, future))
        return future

    def end(self) -> None:
        """The thread ends after the calls already asked for."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread = None

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            function, future = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(function())
            except BaseException as failure:  # noqa: BLE001 -- it belongs to the caller, who awaits the future
                future.set_exception(failure)
