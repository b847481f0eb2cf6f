"""Keeps a server at hand: starts it, initializes it, starts it again by itself, and sends each message exactly once.

What was sent and not answered when the server died is sent again with the same message id after the next start; the
server knows the id and starts nothing twice (B4, B60). Must not know what notifications mean.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from agentik import wire
from agentik.connection import Connection, LostError

RESTART_DELAYS_S = (0.2, 1.0, 4.0)
"""Waits before the server is started again by itself, when it dies again and again; then it has to be asked for."""
SETTLED_S = 30.0
"""A server that lived so long begins with the first delay again."""
START_TIMEOUT_S = 30.0


Request = Callable[[str, dict[str, Any]], Awaitable[Any]]


class Owner(Protocol):
    """Who uses the link."""

    def notified(self, method: str, params: wire.Raw) -> None: ...

    def asked(self, method: str, params: wire.Raw) -> Awaitable[Any] | None: ...

    async def connected(self, server: dict[str, Any], request: Request) -> None:
        """The server answers; `server` is its `experimental.agentik`. Requests of others wait until this returns, its
        own go through `request`.
        """

    def disconnected(self, detail: str, *, restarts: bool) -> None:
        """The server is gone. `restarts`: it is started again by itself."""


@dataclass(slots=True)
class _Send:
    """A message on its way. `tries` counts the connections that took it."""

    params: dict[str, Any]
    answer: asyncio.Future[Any]
    tries: int = 0


class Link:
    """The only place that starts servers and speaks JSON-RPC. Use it on the loop."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: str,
        options: dict[str, Any],
        owner: Owner,
        report: Callable[[str], None],
    ) -> None:
        """`options`: initializationOptions. `report` takes one line for the log."""
        self._command = command
        self._cwd = cwd
        self._options = options
        self._owner = owner
        self._report = report
        self._connection: Connection | None = None
        self._started_at = 0.0
        self._starting: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self._outbox: dict[str, _Send] = {}
        self._restarts = 0
        self._closed = False

    @property
    def pid(self) -> int | None:
        return self._connection.pid if self._connection else None

    @property
    def stderr(self) -> list[str]:
        return self._connection.stderr if self._connection else []

    def start(self) -> asyncio.Future[None]:
        """Starts the server unless it runs or starts. The future is done when it answers; it fails with `LostError`."""
        if self._ready is None:
            self._restarts = 0
            self._begin(0.0)
        assert self._ready is not None
        return self._ready

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Calls the server, started if need be. Raises `RpcError`, or `LostError` when it dies before it answers."""
        await asyncio.shield(self.start())
        assert self._connection is not None
        return await self._connection.request(method, params)

    async def send(self, params: dict[str, Any]) -> Any:
        """`agentik/sendMessage`, once, over a restart of the server if need be. Raises as `request`."""
        message_id = params["messageId"]
        entry = self._outbox.get(message_id)
        if entry is None:
            entry = _Send(params, asyncio.get_running_loop().create_future())
            self._outbox[message_id] = entry
            try:
                await asyncio.shield(self.start())
            except LostError:
                self._outbox.pop(message_id, None)
                raise
            if entry.tries == 0:
                self._transmit(entry)
        return await asyncio.shield(entry.answer)

    async def close(self) -> None:
        """No server is wanted any more; returns when it is gone."""
        self._closed = True
        if self._connection:
            self._connection.close()
            await self._connection.ended

    # Starting

    def _begin(self, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._ready = loop.create_future()
        self._ready.add_done_callback(lambda ready: ready.cancelled() or ready.exception())
        self._starting = loop.create_task(self._start(self._ready, delay_s))

    async def _start(self, ready: asyncio.Future[None], delay_s: float) -> None:
        """Resolves `ready`, one way or the other."""
        try:
            await asyncio.sleep(delay_s)
            self._started_at = asyncio.get_running_loop().time()
            self._connection = None
            async with asyncio.timeout(START_TIMEOUT_S):
                self._connection = await Connection.connect(self._command, self._cwd, self, self._report)
                server = await self._initialize(self._connection)
            await self._owner.connected(server, self._connection.request)
        except Exception as error:  # noqa: BLE001 - whoever waits for the server must hear of it
            self._report(f"start of the server: {error!r}")
            self._start_failed(ready, str(error) or "the server does not answer")
            return
        for entry in list(self._outbox.values()):
            self._transmit(entry)
        ready.set_result(None)

    async def _initialize(self, connection: Connection) -> dict[str, Any]:
        result = await connection.request(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": "agentik.nvim"},
                "rootUri": None,
                "capabilities": {"window": {"workDoneProgress": True}},
                "initializationOptions": self._options,
            },
        )
        connection.notify("initialized", {})
        experimental = result.get("capabilities", {}).get("experimental") or {}
        server: dict[str, Any] = experimental.get("agentik") or {}
        return server

    def _start_failed(self, ready: asyncio.Future[None], detail: str) -> None:
        """Killed on the way: tried again. Ended by itself, or no answer: it would do so again."""
        killed = self._connection is not None and self._connection.killed
        if self._connection:
            self._connection.close()
        self._ready = None
        if killed:
            self._gone(detail)
        else:
            self._drop_outbox(detail)
            self._owner.disconnected(detail, restarts=False)
        if self._ready is None:
            ready.set_exception(LostError(detail))
        else:
            self._ready.add_done_callback(lambda done: _copy(done, ready))

    def _gone(self, detail: str) -> None:
        """Starts the server again, or tells that it is gone for good."""
        restarts = self._restarts < len(RESTART_DELAYS_S) and not self._closed
        if not restarts:
            self._drop_outbox(detail)
        self._owner.disconnected(detail, restarts=restarts)
        if restarts:
            self._begin(RESTART_DELAYS_S[self._restarts])
            self._restarts += 1

    # Listener of the connection

    def notified(self, method: str, params: wire.Raw) -> None:
        self._owner.notified(method, params)

    def asked(self, method: str, params: wire.Raw) -> Awaitable[Any] | None:
        return self._owner.asked(method, params)

    def exited(self, detail: str) -> None:
        """The server is gone: another is started when this one had lived, else its end is told."""
        ready = self._ready
        if self._closed or ready is None or not ready.done():
            return  # not wanted any more, or `_start` hears it from its own request
        self._ready = None
        if asyncio.get_running_loop().time() - self._started_at > SETTLED_S:
            self._restarts = 0
        self._gone(detail)

    # Outbox

    def _transmit(self, entry: _Send) -> None:
        assert self._connection is not None
        entry.tries += 1
        answer = self._connection.request("agentik/sendMessage", entry.params)
        answer.add_done_callback(lambda done: self._answered(entry, done))

    def _answered(self, entry: _Send, answer: asyncio.Future[Any]) -> None:
        error = answer.exception()
        if isinstance(error, LostError):
            return  # it is sent again when the next server answers, or dropped when none is started
        self._outbox.pop(entry.params["messageId"], None)
        if entry.answer.done():
            return
        if error is not None:
            entry.answer.set_exception(error)
        else:
            entry.answer.set_result(answer.result())

    def _drop_outbox(self, detail: str) -> None:
        """The person keeps the text: the views take it back when the answer is an error."""
        outbox, self._outbox = self._outbox, {}
        for entry in outbox.values():
            if not entry.answer.done():
                entry.answer.set_exception(LostError(detail))


def _copy(done: asyncio.Future[None], to: asyncio.Future[None]) -> None:
    """Those who waited for a start that was tried again hear how the next one ended."""
    error = done.exception()
    if error is not None:
        to.set_exception(error)
    else:
        to.set_result(None)
