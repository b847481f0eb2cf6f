"""The ends of an agent's pipes on the event loop: a writer that never blocks, a reader that reads in bounded bites.

They know bytes only. Must not wait, and must not hold the loop for longer than one bite takes.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable

BITE = 65536  # bytes read in one turn of the loop: the size of a pipe on Linux

log = logging.getLogger(__name__)


class Ticket:
    """One piece of outgoing bytes: `started` once its first byte is in the pipe, `failed` when it never will be."""

    __slots__ = ("failed", "rest", "started")

    def __init__(self, data: bytes) -> None:
        self.rest = memoryview(data)
        self.started = False
        self.failed = False


class PipeWriter:
    """Writes to a pipe in order, as far as the other side reads; the rest is kept and written when it reads on.

    `on_broken` is called once when the other side closes its end, also while nothing is written.
    """

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, on_broken: Callable[[], None] = lambda: None) -> None:
        os.set_blocking(fd, False)
        self._on_broken = on_broken
        self._fd = fd
        self._loop = loop
        self._queue: deque[Ticket] = deque()
        self._waiting = False
        self._broken = False
        self._closing = False
        self.queued_bytes = 0
        loop.add_reader(fd, self._break)  # the writing end of a pipe becomes readable when nobody can read it any more

    @property
    def broken(self) -> bool:
        """The other side has closed its end, or we have closed ours."""
        return self._broken or self._closing

    def write(self, data: bytes) -> Ticket:
        ticket = Ticket(data)
        if self.broken:
            ticket.failed = True
            return ticket
        self._queue.append(ticket)
        self.queued_bytes += len(data)
        if not self._waiting:
            self._flush()
        return ticket

    def discard(self, ticket: Ticket) -> bool:
        """Take back what was not begun; False when a byte of it was written."""
        if ticket.started:
            return False
        if not ticket.failed:
            self._queue.remove(ticket)
            self.queued_bytes -= len(ticket.rest)
            ticket.failed = True
        return True

    def close(self) -> None:
        """Close the pipe once what was begun is through, or at once when nothing was; what was not begun has failed."""
        if self._closing:
            return
        self._closing = True
        begun = [ticket for ticket in self._queue if ticket.started]
        self._fail_queue(keep=begun)
        if not begun:
            self._close_fd()

    def abort(self) -> None:
        """Close the pipe at once."""
        self._closing = True
        self._fail_queue(keep=[])
        self._close_fd()

    def _flush(self) -> None:
        while self._queue:
            ticket = self._queue[0]
            try:
                count = os.write(self._fd, ticket.rest)
            except BlockingIOError:
                self._wait_for_room()
                return
            except OSError:
                self._break()
                return
            ticket.started = True
            self.queued_bytes -= count
            ticket.rest = ticket.rest[count:]
            if not ticket.rest:
                self._queue.popleft()
        self._stop_waiting()
        if self._closing:
            self._close_fd()

    def _break(self) -> None:
        self._loop.remove_reader(self._fd)
        self._broken = True
        self._fail_queue(keep=[])
        self._stop_waiting()
        if self._closing:
            self._close_fd()
        else:
            self._on_broken()

    def _wait_for_room(self) -> None:
        if not self._waiting:
            self._waiting = True
            self._loop.add_writer(self._fd, self._flush)

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting = False
            self._loop.remove_writer(self._fd)

    def _fail_queue(self, keep: list[Ticket]) -> None:
        for ticket in self._queue:
            ticket.failed = ticket not in keep
        self._queue = deque(keep)
        self.queued_bytes = sum(len(ticket.rest) for ticket in keep)

    def _close_fd(self) -> None:
        if self._fd >= 0:
            self._stop_waiting()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


class PipeReader:
    """Reads a pipe one bite a turn of the loop. `on_data(b"")` is the end; what `on_data` raises is a bug, logged."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, on_data: Callable[[bytes], None]) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._loop = loop
        self._on_data = on_data
        self.bite = BITE
        self._reading = False
        self.resume()

    def pause(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self._reading and self._fd >= 0:
            self._reading = True
            self._loop.add_reader(self._fd, self._bite)

    def drain(self, limit: int) -> None:
        """Read what is in the pipe now, at most `limit` bytes, without waiting for its end; then close."""
        while limit > 0 and self._fd >= 0:
            count = self._bite()
            if count == 0:
                break
            limit -= count
        self.close()

    def close(self) -> None:
        self.pause()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _bite(self) -> int:
        """Read once; how many bytes came."""
        try:
            data = os.read(self._fd, self.bite)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if not data:
            self.close()
        try:
            self._on_data(data)
        except Exception:
            log.exception("bug: a reader of agent output failed")
        return len(data)
