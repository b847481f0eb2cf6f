"""One server process and the JSON-RPC spoken with it over its pipes.

Lives as long as the process does. Must not restart anything, and knows no method of the protocol but the JSON-RPC ones.
The handlers of notifications are plain functions: they run in the order of the wire.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from agentik import wire

STDERR_LINES = 50
CONNECTION_LOST = -32099


class RpcError(Exception):
    """The server refused or failed: `code`, `data` as in PROTOCOL.md; the text is for a person."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    @property
    def reason(self) -> str | None:
        return self.data.get("reason") if isinstance(self.data, dict) else None


class LostError(RpcError):
    """The server was gone before it answered: whether the request was carried out is not known."""

    def __init__(self, message: str) -> None:
        super().__init__(CONNECTION_LOST, message)


class Listener(Protocol):
    """What hears the server."""

    def notified(self, method: str, params: wire.Raw) -> None: ...

    def asked(self, method: str, params: wire.Raw) -> Awaitable[Any] | None:
        """A request of the server; None: unknown method."""

    def exited(self, detail: str) -> None:
        """Called once, when the process is gone; the text is one line for a person."""


class Connection(asyncio.SubprocessProtocol):
    """Spawned by `connect`. All methods belong to the loop's thread."""

    def __init__(self, listener: Listener, report: Callable[[str], None]) -> None:
        self._listener = listener
        self._report = report
        self._loop = asyncio.get_running_loop()
        self._decoder = wire.Decoder()
        self._answers: dict[int | str, asyncio.Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self._exited = False
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when the process is gone and its pipes are closed."""
        self._transport: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None

    @classmethod
    async def connect(
        cls, command: Sequence[str], cwd: str, listener: Listener, report: Callable[[str], None]
    ) -> Connection:
        """Starts the server in a session of its own: Neovim's exit must not kill it before it ended in order."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.subprocess_exec(
            lambda: cls(listener, report), *command, cwd=cwd, start_new_session=True
        )
        return connection

    @property
    def pid(self) -> int | None:
        return self._transport.get_pid() if self._transport else None

    @property
    def killed(self) -> bool:
        """Ended by a signal: not its own doing."""
        code = self._transport.get_returncode() if self._transport else None
        return code is not None and code < 0

    @property
    def stderr(self) -> list[str]:
        """The last lines that the server wrote to stderr."""
        return list(self._stderr)

    def request(self, method: str, params: Any) -> asyncio.Future[Any]:
        """Sends a request. The future holds its result, `RpcError`, or `LostError`; cancelling it tells the server."""
        future: asyncio.Future[Any] = self._loop.create_future()
        if self._exited:
            future.set_exception(LostError("the server has stopped"))
            return future
        number = next(self._numbers)
        self._answers[number] = future
        future.add_done_callback(lambda done: self._forget(number, done))
        self._write(wire.request(number, method, params))
        return future

    def notify(self, method: str, params: Any) -> None:
        self._write(wire.notification(method, params))

    def close(self) -> None:
        """The end of stdin: the server ends in order."""
        if self._stdin:
            self._stdin.close()

    def _forget(self, number: int, future: asyncio.Future[Any]) -> None:
        if self._answers.pop(number, None) is not None and future.cancelled():
            self.notify("$/cancelRequest", {"id": number})

    def _write(self, data: bytes) -> None:
        if self._stdin and not self._exited:
            self._stdin.write(data)

    # asyncio.SubprocessProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != 1:
            self._stderr.extend(line for line in data.decode(errors="replace").splitlines() if line.strip())
            return
        try:
            envelopes = self._decoder.feed(data)
        except wire.WireError as error:
            self._report(f"broken frame from the server: {error}")
            self.close()
            return
        for envelope in envelopes:
            try:
                self._dispatch(envelope)
            except Exception as error:  # noqa: BLE001 - a bug in one handler must not end the stream
                self._report(f"{envelope.method or 'an answer'}: {error!r}")

    def process_exited(self) -> None:
        self._exited = True
        code = self._transport.get_returncode() if self._transport else None
        # What is left in the pipe of stderr says why; it is read in this turn of the loop and the next.
        self._loop.call_later(0.02, self._end, code)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _end(self, code: int | None) -> None:
        last = f": {self._stderr[-1]}" if self._stderr and code else ""
        how = f"exit code {code}" if code is None or code >= 0 else f"signal {-code}"
        detail = f"the server stopped ({how}){last}"
        answers, self._answers = self._answers, {}
        for future in answers.values():
            if not future.done():
                future.set_exception(LostError(detail))
        for task in self._tasks:
            task.cancel()
        if self._transport:
            self._transport.close()
        self._listener.exited(detail)

    # Dispatch

    def _dispatch(self, envelope: wire.Envelope) -> None:
        if envelope.method is None:
            self._answered(envelope)
        elif envelope.id is None:
            self._listener.notified(envelope.method, envelope.params)
        else:
            self._asked(envelope.id, envelope.method, envelope.params)

    def _answered(self, envelope: wire.Envelope) -> None:
        future = self._answers.pop(envelope.id, None) if envelope.id is not None else None
        if future is None or future.done():
            return
        if envelope.error is not None:
            error = envelope.error
            message = str(error.get("message") or "the server failed")
            future.set_exception(RpcError(int(error.get("code") or 0), message, error.get("data")))
        else:
            future.set_result(wire.decode(envelope.result))

    def _asked(self, number: int | str, method: str, params: wire.Raw) -> None:
        answer = self._listener.asked(method, params)
        if answer is None:
            self._write(wire.failure(number, -32601, f"no such method: {method}"))
            return
        task = self._loop.create_task(self._answer(number, method, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, number: int | str, method: str, answer: Awaitable[Any]) -> None:
        try:
            self._write(wire.response(number, await answer))
        except Exception as error:  # noqa: BLE001 - the server waits for an answer, whatever went wrong
            self._report(f"{method}: {error!r}")
            self._write(wire.failure(number, -32603, str(error)))
