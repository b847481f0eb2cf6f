"""Stdin and stdout on the event loop: never a thread, never a blocking read or write.

Moves bytes and says when the pipe is full; knows nothing of frames. Files and the null device work too: no event loop
can wait for them, so they are read and written directly.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

CHUNK: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class StdioEvents:
    """What happens at the pipes. `ended`: stdin is at its end, or nobody reads stdout any more."""

    received: Callable[[bytes], None]
    ended: Callable[[], None]
    full: Callable[[], None]
    room: Callable[[], None]


def claim_stdio() -> tuple[int, int]:
    """Take stdin and stdout for the protocol alone; returns private file descriptors of both.

    Descriptor 0 becomes the null device and 1 becomes stderr: no library can write between the frames, and no child
    process inherits the editor's pipes.
    """
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return incoming, outgoing


class Stdio:
    """Both pipes, open. `write` never blocks; what the pipe does not take is kept, and `events.full` says so."""

    def __init__(self) -> None:
        self._events: StdioEvents
        self._loop = asyncio.get_running_loop()
        self._reader: asyncio.ReadTransport | _FileReader | None = None
        self._writer: asyncio.WriteTransport | _FileWriter | None = None
        self._empty = asyncio.Event()
        self._empty.set()
        self._restore: list[int] = []

    async def open(self, incoming: int, outgoing: int, events: StdioEvents) -> None:
        """Take over both descriptors: they are closed by `close`."""
        self._events = events
        if _can_wait_for(outgoing):
            self._keep_mode(outgoing)
            # The event loop closes the file objects with its transports.
            out = os.fdopen(outgoing, "wb", buffering=0)
            transport, _ = await self._loop.connect_write_pipe(lambda: _Writing(self), out)
            transport.set_write_buffer_limits(high=0)  # full as soon as the kernel takes no more
            self._writer = transport
        else:
            self._writer = _FileWriter(outgoing)
        if _can_wait_for(incoming):
            self._keep_mode(incoming)
            source = os.fdopen(incoming, "rb", buffering=0)
            read_transport, _ = await self._loop.connect_read_pipe(lambda: _Reading(self._events), source)
            self._reader = read_transport
        else:
            self._reader = _FileReader(incoming, self._loop, self._events)

    def write(self, data: bytes) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(data)

    async def close(self, limit_s: float) -> None:
        """Write what is left, for at most `limit_s`; then close both."""
        if self._reader is not None:
            self._reader.close()
        try:
            await asyncio.wait_for(self._empty.wait(), limit_s)
        except TimeoutError:
            pass  # the client does not read; what it has not read is lost with it
        finally:
            self._restore_modes()
            if isinstance(self._writer, _FileWriter):
                self._writer.close()
            elif self._writer is not None and not self._writer.is_closing():
                self._writer.abort()

    def pipe_full(self) -> None:
        self._empty.clear()
        self._events.full()

    def pipe_has_room(self) -> None:
        self._empty.set()
        self._events.room()

    def pipe_lost(self) -> None:
        self._empty.set()
        self._events.ended()

    def _keep_mode(self, fd: int) -> None:
        """A terminal shares its mode with the shell: it must be blocking again when we are gone."""
        if os.isatty(fd) and os.get_blocking(fd):
            self._restore.append(fd)

    def _restore_modes(self) -> None:
        for fd in self._restore:
            try:
                os.set_blocking(fd, True)
            except OSError:
                continue  # closed by the loop already
        self._restore.clear()


def _can_wait_for(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


class _Reading(asyncio.Protocol):
    def __init__(self, events: StdioEvents) -> None:
        self._events = events

    def data_received(self, data: bytes) -> None:
        self._events.received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._events.ended()


class _Writing(asyncio.BaseProtocol):
    def __init__(self, stdio: Stdio) -> None:
        self._stdio = stdio

    def pause_writing(self) -> None:
        self._stdio.pipe_full()

    def resume_writing(self) -> None:
        self._stdio.pipe_has_room()

    def connection_lost(self, error: Exception | None) -> None:
        self._stdio.pipe_lost()


class _FileReader:
    """Reads a file piece by piece, giving way to everything else in between."""

    def __init__(self, fd: int, loop: asyncio.AbstractEventLoop, events: StdioEvents) -> None:
        self._fd = fd
        self._loop = loop
        self._events = events
        self._next = loop.call_soon(self._read)

    def _read(self) -> None:
        data = os.read(self._fd, CHUNK)
        if data:
            self._next = self._loop.call_soon(self._read)
            self._events.received(data)
        else:
            self._events.ended()

    def close(self) -> None:
        self._next.cancel()
        os.close(self._fd)


class _FileWriter:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._closed = False

    def is_closing(self) -> bool:
        return self._closed

    def write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._fd, left) :]

    def close(self) -> None:
        self._closed = True
        os.close(self._fd)
