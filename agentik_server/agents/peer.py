"""A JSON-RPC 2.0 peer over lines, both ways, that no agent can end or hang (B46, AGENTS.md section 2.1).

Knows JSON-RPC and not ACP; owns no pipe and no process: bytes go in by `feed`, out by `write`. Handlers are plain
functions called in wire order. Must not raise on any input, and must not keep a request open for ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentik_server.agents.frames import LINE_LIMIT, LineSplitter, Noise, encode, parse_line, parse_object
from agentik_server.agents.pipes import Ticket

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
CANCELLED, AUTH_REQUIRED, NOT_FOUND = -32800, -32000, -32002
MAX_OPEN_CALLS = 500  # requests of the agent that wait for us at one time

log = logging.getLogger(__name__)


class RpcError(Exception):
    """The other side answered with an error. `code` None: it was no JSON-RPC error object."""

    def __init__(self, code: int | None, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class RequestTimedOut(Exception):  # noqa: N818 -- a happening, not a fault of ours
    """The other side has not answered in time."""


class PeerClosed(Exception):  # noqa: N818 -- a happening, not a fault of ours
    """The connection ended before the answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a request of ours ended: with a result, or with RpcError, RequestTimedOut or PeerClosed."""

    result: object = None
    error: Exception | None = None


class Request:
    """A request of ours that waits for its answer."""

    __slots__ = ("done", "method", "number", "ticket", "timer")

    def __init__(self, number: int, method: str, done: Callable[[Answer], None]) -> None:
        self.number = number
        self.method = method
        self.done = done
        self.ticket: Ticket | None = None
        self.timer: asyncio.TimerHandle | None = None


class Call:
    """A request of the agent: answered once by `result` or `error`; later answers are dropped."""

    __slots__ = ("_answered", "_peer", "id", "method", "on_cancel")

    def __init__(self, peer: Peer, id_: object, method: str) -> None:
        self._peer = peer
        self._answered = False
        self.id = id_
        self.method = method
        self.on_cancel: Callable[[], None] | None = None

    @property
    def is_open(self) -> bool:
        return not self._answered

    def result(self, value: object) -> None:
        self._answer({"result": value})

    def error(self, code: int, message: str, data: object = None) -> None:
        error: dict[str, object] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self._answer({"error": error})

    def _answer(self, body: dict[str, object]) -> None:
        if not self._answered:
            self._answered = True
            self._peer.answer(self, body)


class Handler(Protocol):
    """Who hears the agent. Called in wire order; must return at once."""

    def notified(self, method: str, params: object) -> None: ...

    def requested(self, method: str, params: object, call: Call) -> None: ...

    def strayed(self, noise: Noise) -> None:
        """Something on the wire that was no message; it was skipped."""


class Trace(Protocol):
    """Who keeps the raw frames (`agents.trace`)."""

    def frame(self, direction: str, data: bytes) -> None: ...


class Peer:
    """One connection. `write` puts bytes into the agent's stdin and never waits; `discard` takes back unbegun ones."""

    def __init__(
        self,
        write: Callable[[bytes], Ticket],
        discard: Callable[[Ticket], bool],
        handler: Handler,
        *,
        trace: Trace | None = None,
        line_limit: int = LINE_LIMIT,
    ) -> None:
        self._write = write
        self._discard = discard
        self._handler = handler
        self._trace = trace
        self._lines = LineSplitter(line_limit)
        self._loop = asyncio.get_running_loop()
        self._number = 0
        self._requests: dict[int, Request] = {}
        self._calls: set[Call] = set()
        self._closed: Exception | None = None

    # -- ours to the agent

    def request(
        self, method: str, params: Mapping[str, object], done: Callable[[Answer], None], timeout_s: float | None = None
    ) -> Request:
        """Send a request; `done` is called once, in wire order. A time-out also sends `$/cancel_request`."""
        self._number += 1
        request = Request(self._number, method, done)
        if self._closed is not None:
            self._loop.call_soon(done, Answer(error=self._closed))
            return request
        self._requests[request.number] = request
        request.ticket = self._send({"jsonrpc": "2.0", "id": request.number, "method": method, "params": params})
        if request.ticket.failed:
            del self._requests[request.number]
            self._loop.call_soon(done, Answer(error=PeerClosed("the agent does not read its input any more")))
        elif timeout_s is not None:
            request.timer = self._loop.call_later(timeout_s, self._time_out, request, timeout_s)
        return request

    async def ask(self, method: str, params: Mapping[str, object], timeout_s: float | None = None) -> object:
        """Send a request and wait for its result. Raises RpcError, RequestTimedOut, PeerClosed."""
        future: asyncio.Future[Answer] = self._loop.create_future()

        def done(answer: Answer) -> None:
            if not future.done():
                future.set_result(answer)

        request = self.request(method, params, done, timeout_s)
        try:
            answer = await future
        except asyncio.CancelledError:
            self.give_up(request)
            raise
        if answer.error is not None:
            raise answer.error
        return answer.result

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        if self._closed is None:
            self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def withdraw(self, request: Request) -> bool:
        """Take back a request of which nothing was written; then `done` is never called. False: it is on its way."""
        if request.ticket is None or not self._discard(request.ticket):
            return False
        self._forget(request)
        return True

    def give_up(self, request: Request) -> None:
        """We do not want the answer any more: say so, and drop what still comes."""
        if self._forget(request) and not self.withdraw(request):
            self.notify("$/cancel_request", {"requestId": request.number})

    # -- the agent to us

    def feed(self, data: bytes) -> None:
        for line in self._lines.feed(data):
            self._take(line)

    def close(self, why: Exception) -> None:
        """The connection is over: a last line without newline is heard, then every open request ends with `why`."""
        if self._closed is not None:
            return
        rest = self._lines.rest()
        if rest:
            self._take(rest)
        self._closed = why
        for call in list(self._calls):
            self._cancel_call(call)
        for request in list(self._requests.values()):
            self._settle(request, Answer(error=why))

    def answer(self, call: Call, body: Mapping[str, object]) -> None:
        """Write the answer to a request of the agent (called by Call only)."""
        self._calls.discard(call)
        if self._closed is not None:
            return
        try:
            self._send({"jsonrpc": "2.0", "id": call.id, **body})
        except (TypeError, ValueError) as error:
            log.exception("bug: an answer to %s is no JSON", call.method)
            self._send({"jsonrpc": "2.0", "id": call.id, "error": {"code": INTERNAL_ERROR, "message": str(error)}})

    def _send(self, message: Mapping[str, object]) -> Ticket:
        data = encode(message)
        if self._trace is not None:
            self._trace.frame(">", data)
        return self._write(data)

    def _take(self, line: bytes | Noise) -> None:
        if isinstance(line, Noise):
            self._handler.strayed(line)
            return
        if self._trace is not None:
            self._trace.frame("<", line)
        message = parse_object(line)
        if message is not None:
            self._hear(message)
            return
        for found in parse_line(line):
            if isinstance(found, Noise):
                self._handler.strayed(found)
            else:
                self._hear(found)

    def _hear(self, message: Mapping[str, object]) -> None:
        try:
            self._dispatch(message)
        except Exception:
            log.exception("bug: a message of the agent was not handled")

    def _dispatch(self, message: Mapping[str, object]) -> None:
        method = message.get("method")
        if method is None and "id" in message:
            self._answered(message)
        elif not isinstance(method, str):
            self._malformed(message)
        elif method == "$/cancel_request":
            self._cancel_requested(message.get("params"))
        elif message.get("id") is None:
            self._handler.notified(method, message.get("params"))
        else:
            self._called(method, message)

    def _malformed(self, message: Mapping[str, object]) -> None:
        self._handler.strayed(Noise(json.dumps(message)[:200], "JSON, but no JSON-RPC message"))
        if message.get("id") is not None and "method" in message:
            error = {"code": INVALID_REQUEST, "message": "method must be a string"}
            self._send({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _called(self, method: str, message: Mapping[str, object]) -> None:
        call = Call(self, message["id"], method)
        self._calls.add(call)
        if len(self._calls) > MAX_OPEN_CALLS:
            call.error(INTERNAL_ERROR, f"more than {MAX_OPEN_CALLS} requests are open")
            return
        try:
            self._handler.requested(method, message.get("params"), call)
        except Exception as error:
            log.exception("bug: %s of the agent was not handled", method)
            call.error(INTERNAL_ERROR, f"internal error: {error}")

    def _cancel_requested(self, params: object) -> None:
        wanted = params.get("requestId") if isinstance(params, dict) else None
        for call in [call for call in self._calls if same_id(call.id, wanted)]:
            self._cancel_call(call)

    def _cancel_call(self, call: Call) -> None:
        if call.on_cancel is not None:
            call.on_cancel()
        call.error(CANCELLED, "the request was cancelled")

    def _answered(self, message: Mapping[str, object]) -> None:
        request = self._find(message)
        if request is None:
            self._handler.strayed(Noise(json.dumps(message)[:200], "an answer to nothing that was asked"))
            return
        error = message.get("error")
        if error is None:
            self._settle(request, Answer(result=message.get("result")))
        else:
            self._settle(request, Answer(error=error_of(error)))

    def _find(self, message: Mapping[str, object]) -> Request | None:
        """The request an answer belongs to: by its id as given or as text; for a parse error without id the newest."""
        id_ = message.get("id")
        if id_ is None:
            error = error_of(message.get("error"))
            lost = error.code in (PARSE_ERROR, INVALID_REQUEST) and self._requests
            return self._requests[max(self._requests)] if lost else None
        for number in self._requests:
            if same_id(number, id_):
                return self._requests[number]
        return None

    def _settle(self, request: Request, answer: Answer) -> None:
        if self._forget(request):
            request.done(answer)

    def _forget(self, request: Request) -> bool:
        if request.timer is not None:
            request.timer.cancel()
        return self._requests.pop(request.number, None) is not None

    def _time_out(self, request: Request, timeout_s: float) -> None:
        if request.number in self._requests:
            self.give_up(request)
            request.done(Answer(error=RequestTimedOut(f"no answer to {request.method} in {timeout_s:g} s")))


def same_id(ours: object, given: object) -> bool:
    """Whether an id that came back is the one that was sent: "3" and 3.0 are taken for 3, true is not taken for 1."""
    if isinstance(ours, bool) or isinstance(given, bool):
        return ours is given
    if ours == given:
        return True
    return isinstance(ours, int) and isinstance(given, str) and given.strip() == str(ours)


def error_of(error: object) -> RpcError:
    """An error member as an exception, whatever it is."""
    if not isinstance(error, dict):
        return RpcError(None, error if isinstance(error, str) else json.dumps(error), error)
    code = error.get("code")
    if isinstance(code, str) and code.lstrip("-").isdigit():
        code = int(code)
    message = error.get("message")
    if not isinstance(message, str):
        message = json.dumps(error if message is None else message)
    return RpcError(code if isinstance(code, int) else None, message, error.get("data"))
