"""The one way out to the editor: every frame passes here. Nothing else may write to the pipe.

The first change goes at once; streaming text that follows goes once in `GAP_S`. Anything else goes at once and takes
along what waits before it, so that order is kept. While the pipe is full everything waits in the backlog, which merges.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from agentik_server.editor.backlog import LIMIT, TOKEN, Backlog
from agentik_server.editor.codec import frame

logger = logging.getLogger(__name__)

GAP_S: Final = 0.004  # 250 frames a second: shorter than the eye, long enough to merge a flood
WRITE_SIZE: Final = 64 * 1024


class Outbox:
    """`write` takes bytes and calls `pipe_full` when it takes no more for now, `pipe_has_room` when it does again."""

    def __init__(self, write: Callable[[bytes], None], *, limit: int = LIMIT, gap_s: float = GAP_S) -> None:
        self._loop = asyncio.get_running_loop()
        self._write = write
        self._limit = limit
        self._gap_s = gap_s
        self._backlog = Backlog(limit)
        self._timer: asyncio.Handle | None = None
        self._timer_is_soon = False
        self._last_flush = -math.inf
        self._closed = False

    @property
    def is_overfull(self) -> bool:
        """The client leaves so much unread that it gets short answers only."""
        return self._backlog.size > self._limit

    @property
    def is_stuck(self) -> bool:
        """It leaves even those unread."""
        return self._backlog.size > 2 * self._limit

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """A notification; `params` must not be changed afterwards."""
        if self._closed:
            return
        self._backlog.add(method, params)
        if not self._backlog.full:
            self._flush_later() if method == TOKEN else self._flush_soon()

    def send(self, message: Mapping[str, Any]) -> None:
        """A response or a request. Raises TypeError or ValueError when it is no JSON."""
        data = frame(message)
        if not self._closed:
            self._backlog.add_frame(data)
            if not self._backlog.full:
                self._flush_soon()

    def pipe_full(self) -> None:
        self._backlog.full = True

    def pipe_has_room(self) -> None:
        self._backlog.full = False
        self._flush_soon()

    def close(self) -> None:
        """Hand over all that waits to `write`, full or not, and take nothing more."""
        self._closed = True
        while len(self._backlog):
            self._backlog.full = False
            self._flush()

    def _flush_soon(self) -> None:
        """After the callbacks that are due now: what they say goes in one write."""
        if self._timer_is_soon or self._closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_soon(self._flush)
        self._timer_is_soon = True

    def _flush_later(self) -> None:
        if self._timer is not None:
            return
        due = self._last_flush + self._gap_s
        if due <= self._loop.time():
            self._flush_soon()
        else:
            self._timer = self._loop.call_at(due, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._timer_is_soon = False
        self._last_flush = self._loop.time()
        batch = bytearray()
        while not self._backlog.full and (data := self._backlog.take()) is not None:
            batch += data
            if len(batch) >= WRITE_SIZE:
                self._write(bytes(batch))  # may call pipe_full
                batch.clear()
        if batch:
            self._write(bytes(batch))
