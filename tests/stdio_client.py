"""A client of the stdio protocol for tests: starts any server command and talks to it as an editor would.

Waits are for events, never for time; a time limit only guards. When the body of `async with` fails, every frame, the
server's stderr and its log are printed. Kills only its own child. Has its own strict parser on purpose: whatever is on
stdout besides well-formed frames is a failure, and so is a message that does not match `agentik_server.protocol`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from agentik_server.protocol import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS, Wire

Params = dict[str, Any]
SHOWN = 2000  # characters of a frame in the report


class RpcError(Exception):
    """The server answered with an error. `reason`: data.reason of error 4000, else None."""

    def __init__(self, code: int, message: str, data: Any) -> None:
        super().__init__(f"{code}: {message} {data if data is not None else ''}".rstrip())
        self.code = code
        self.message = message
        self.data = data

    @property
    def reason(self) -> str | None:
        return self.data.get("reason") if isinstance(self.data, dict) else None


class ServerGone(Exception):  # noqa: N818 -- a fact, not a fault of the caller
    """The server ended while an answer or a notification was awaited."""


@dataclass(frozen=True)
class Note:
    """A notification as it came."""

    method: str
    params: Params


@dataclass
class _Waiter:
    future: asyncio.Future[Note]
    matches: Callable[[Note], bool]


class StdioClient(asyncio.SubprocessProtocol):
    """`async with StdioClient([python, "-m", "agentik_server"]) as client:`; see the methods.

    `notifications`: all of them, in order. `check`: compare every message with the protocol's models.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        log: Path | None = None,
        limit_s: float = 15.0,
        check: bool = True,
    ) -> None:
        self.command = list(command)
        self.notifications: list[Note] = []
        self.raw_errors: list[Params] = []  # error responses without id
        self.violations: list[str] = []
        self.stderr = bytearray()
        self.returncode: int | None = None
        self.exited = asyncio.Event()
        self.heard: Callable[[Note], None] | None = None  # called with each notification, at once
        self._env = {**os.environ, **(env or {})}
        self._cwd = cwd
        self._log = log
        self._limit_s = limit_s
        self._check = check
        self._frames: deque[str] = deque(maxlen=5000)
        self._started_at = time.monotonic()
        self._buffer = bytearray()
        self._open: dict[int | str, tuple[str, asyncio.Future[Any]]] = {}
        self._waiters: list[_Waiter] = []
        self._answers: dict[str, Callable[[Params], Any]] = {}
        self._last_id = 0
        self._transport: asyncio.SubprocessTransport

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> Self:
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.subprocess_exec(lambda: self, *self.command, env=self._env, cwd=self._cwd)
        return self

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
        if kind is None and self.violations:
            print(self.report())
            raise AssertionError("the server broke the protocol: " + "; ".join(self.violations[:5]))
        if kind is not None:
            print(self.report())

    async def close(self) -> None:
        """End the child: first by closing its stdin, then by force."""
        self.close_stdin()
        self.resume_reading()
        try:
            await asyncio.wait_for(self.exited.wait(), self._limit_s)
        except TimeoutError:
            self.violations.append("the server did not end after the end of its stdin")
            self.kill()
            await self.exited.wait()
        self._transport.close()

    @property
    def pid(self) -> int:
        return self._transport.get_pid()

    def kill(self) -> None:
        """SIGKILL of the child."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()

    def close_stdin(self) -> None:
        self._stdin.close()

    async def wait_exit(self, limit_s: float | None = None) -> int:
        """The exit code, once the process is gone."""
        await self._guarded(self.exited.wait(), "the server's exit", limit_s)
        assert self.returncode is not None
        return self.returncode

    def stop_reading(self) -> None:
        """Leave the server's stdout unread from now on: its pipe fills up."""
        self._stdout.pause_reading()

    def resume_reading(self) -> None:
        with contextlib.suppress(RuntimeError):  # not paused, or closed already
            self._stdout.resume_reading()

    # -- talking ------------------------------------------------------------------------------------------------------

    async def initialize(
        self, home: str | Path | None = None, settings: Params | None = None, **params: Any
    ) -> dict[str, Any]:
        """`initialize` and `initialized`; returns capabilities.experimental.agentik."""
        options = {"home": str(home) if home else None, "settings": settings}
        options = {key: value for key, value in options.items() if value is not None}
        result = await self.request(
            "initialize",
            {"processId": os.getpid(), "rootUri": None, "capabilities": {}, "initializationOptions": options, **params},
        )
        self.notify("initialized", {})
        found: dict[str, Any] = result["capabilities"]["experimental"]["agentik"]
        return found

    async def shutdown(self) -> int:
        """`shutdown`, `exit`; returns the exit code."""
        await self.request("shutdown")
        self.notify("exit")
        return await self.wait_exit()

    async def request(self, method: str, params: Any = None, *, limit_s: float | None = None) -> Any:
        """The result. Raises RpcError."""
        return await self._guarded(self.send_request(method, params), f"the answer to {method}", limit_s)

    async def answer_of(self, future: asyncio.Future[Any], limit_s: float | None = None) -> Any:
        """The result of a `send_request`, guarded. Raises RpcError."""
        return await self._guarded(future, "the answer", limit_s)

    def send_request(self, method: str, params: Any = None, id: int | str | None = None) -> asyncio.Future[Any]:  # noqa: A002 -- JSON-RPC's name
        """Send without waiting; the future ends in the result or RpcError."""
        if id is None:
            self._last_id += 1
            id = self._last_id  # noqa: A001 -- JSON-RPC's name
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        future.add_done_callback(lambda done: done.cancelled() or done.exception())  # an ignored error is no warning
        self._open[id] = (method, future)
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return future

    def notify(self, method: str, params: Any = None) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, method: str, function: Callable[[Params], Any]) -> None:
        """How to answer a request of the server ("agentik/readBuffer", ...); others get -32601.

        `function` returns the result, or None to leave the request without an answer.
        """
        self._answers[method] = function

    def send_bytes(self, data: bytes) -> None:
        self._frames.append(f"{self._now()} -> raw {data[:SHOWN]!r}")
        self._stdin.write(data)

    # -- waiting ------------------------------------------------------------------------------------------------------

    async def wait_for(
        self,
        method: str,
        predicate: Callable[[Params], bool] | None = None,
        *,
        since: int = 0,
        limit_s: float | None = None,
    ) -> Params:
        """Params of the first notification `method` from index `since` on that `predicate` accepts, past or future."""
        method = method if method.startswith(("agentik/", "$/", "window/")) else f"agentik/{method}"

        def matches(note: Note) -> bool:
            return note.method == method and (predicate is None or predicate(note.params))

        for note in self.notifications[since:]:
            if matches(note):
                return note.params
        future: asyncio.Future[Note] = asyncio.get_running_loop().create_future()
        waiter = _Waiter(future, matches)
        self._waiters.append(waiter)
        if self.exited.is_set():
            future.set_exception(ServerGone(f"waited for {method}"))
        try:
            found: Note = await self._guarded(future, method, limit_s)
            return found.params
        finally:
            self._waiters = [other for other in self._waiters if other is not waiter]

    def mark(self) -> int:
        """For `since`: the notifications that come after now."""
        return len(self.notifications)

    def of(self, method: str, since: int = 0) -> list[Params]:
        """Params of all notifications `method` (short or full name) so far."""
        full = method if "/" in method else f"agentik/{method}"
        return [note.params for note in self.notifications[since:] if note.method == full]

    async def _guarded(self, awaitable: Any, what: str, limit_s: float | None) -> Any:
        try:
            return await asyncio.wait_for(awaitable, limit_s or self._limit_s)
        except TimeoutError:
            raise AssertionError(f"no sign of {what} within {limit_s or self._limit_s} s") from None

    # -- what comes from the child ------------------------------------------------------------------------------------

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        assert isinstance(data, bytes)
        if fd == 2:
            self.stderr += data
            return
        self._buffer += data
        while (body := self._take_body()) is not None:
            self._received(body)

    def process_exited(self) -> None:
        self.returncode = self._transport.get_returncode()
        gone = ServerGone(f"the server ended with {self.returncode}")
        for _method, future in self._open.values():
            if not future.done():
                future.set_exception(gone)
        for waiter in self._waiters:
            if not waiter.future.done():
                waiter.future.set_exception(gone)
        self.exited.set()

    def _take_body(self) -> bytes | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        name, _, value = bytes(self._buffer[:end]).partition(b": ")
        if name != b"Content-Length" or not value.isdigit():
            self.violations.append(f"stdout holds something else than frames: {bytes(self._buffer[:200])!r}")
            self._buffer.clear()
            return None
        start, stop = end + 4, end + 4 + int(value)
        if len(self._buffer) < stop:
            return None
        body = bytes(self._buffer[start:stop])
        del self._buffer[:stop]
        return body

    def _received(self, body: bytes) -> None:
        self._frames.append(f"{self._now()} <- {body[:SHOWN].decode(errors='replace')}")
        message = json.loads(body)
        if message.get("jsonrpc") != "2.0":
            self.violations.append(f"not JSON-RPC 2.0: {body[:200]!r}")
        if "method" not in message:
            self._response(message)
        elif "id" in message:
            self._request_of_server(message)
        else:
            self._notification(Note(message["method"], message.get("params") or {}))

    def _response(self, message: Params) -> None:
        error = message.get("error")
        if message.get("id") is None:
            self.raw_errors.append(error or {})
            self._notification(Note("$/error", error or {}))
            return
        method, future = self._open.pop(message["id"], ("", None))
        if future is None:
            self.violations.append(f"a response to no open request: {str(message)[:200]}")
        elif error is not None:
            if not future.done():
                future.set_exception(RpcError(error["code"], error["message"], error.get("data")))
        else:
            if method in REQUESTS:
                self._compare(f"result of {method}", REQUESTS[method].result_model, message["result"])
            if not future.done():
                future.set_result(message["result"])

    def _notification(self, note: Note) -> None:
        if note.method.startswith("agentik/"):
            known = NOTIFICATIONS.get(note.method)
            if known is None and self._check:
                self.violations.append(f"{note.method} is not in the protocol")
            elif known is not None:
                self._compare(note.method, known.params_model, note.params)
        self.notifications.append(note)
        if self.heard is not None:
            self.heard(note)
        for waiter in self._waiters:
            if not waiter.future.done() and waiter.matches(note):
                waiter.future.set_result(note)

    def _request_of_server(self, message: Params) -> None:
        method, params = message["method"], message.get("params") or {}
        if method in CLIENT_REQUESTS:
            self._compare(method, CLIENT_REQUESTS[method].params_model, params)
        function = self._answers.get(method)
        if function is None:
            self._send(
                {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": f"no method {method}"}}
            )
        elif (result := function(params)) is not None:
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _compare(self, what: str, model: type[Wire], value: Any) -> None:
        if not self._check:
            return
        try:
            model.model_validate(value, extra="forbid")
        except ValidationError as error:
            found = error.errors(include_url=False, include_input=False, include_context=False)
            self.violations.append(f"{what}: " + "; ".join(f"{item['loc']} {item['msg']}" for item in found[:5]))

    # -- the rest -----------------------------------------------------------------------------------------------------

    def report(self) -> str:
        """Everything that helps to see why a test failed."""
        parts = [f"--- {' '.join(self.command)} (exit code {self.returncode}); frames:", *self._frames]
        parts += [f"--- broken: {text}" for text in self.violations]
        parts += ["--- stderr:", self.stderr.decode(errors="replace")[-20_000:]]
        if self._log is not None and self._log.exists():
            parts += [f"--- {self._log}:", self._log.read_text(errors="replace")[-20_000:]]
        return "\n".join(parts)

    @property
    def _stdin(self) -> asyncio.WriteTransport:
        transport = self._transport.get_pipe_transport(0)
        assert isinstance(transport, asyncio.WriteTransport)
        return transport

    @property
    def _stdout(self) -> asyncio.ReadTransport:
        transport = self._transport.get_pipe_transport(1)
        assert isinstance(transport, asyncio.ReadTransport)
        return transport

    def _send(self, message: Params) -> None:
        body = json.dumps(message, ensure_ascii=False).encode()
        self._frames.append(f"{self._now()} -> {body[:SHOWN].decode(errors='replace')}")
        self._stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def _now(self) -> str:
        return f"{time.monotonic() - self._started_at:8.3f}"


def server_command(*arguments: str) -> list[str]:
    """The server of this tree, as the plugin starts it."""
    return [sys.executable, "-m", "agentik_server", *arguments]
