"""The LSP base protocol and the JSON-RPC envelope, without I/O: bytes in, messages out, and back.

`FrameParser` finds frames and survives whatever stands between them; `decode` tells requests, notifications, responses
and what is none of them apart. Nested JSON is data: it is never looked into. Nothing here raises on bad input.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import msgspec

from agentik_server.protocol.errors import INVALID_REQUEST, PARSE_ERROR

logger = logging.getLogger(__name__)

MAX_BODY: Final = 64 * 1024 * 1024
MAX_HEADER: Final = 8192

MessageId = int | str

# A header that starts a frame. Inside a JSON text it cannot occur: a string holds no raw line end.
_HEADER_START = re.compile(rb"content-length[ \t]{0,8}:[ \t]{0,8}[0-9]{1,20}[ \t]{0,8}\r\n", re.IGNORECASE)
_LONGEST_START = 80
_LENGTH = re.compile(rb"[ \t]*([0-9]{1,20})[ \t]*")


@dataclass(frozen=True, slots=True)
class BrokenFrame:
    """Something that is no frame; the parser goes on at the next header."""

    reason: str


class FrameParser:
    """`feed` bytes as they come, split anywhere; returns the bodies that are complete.

    After a header that says no usable length it looks for the next `Content-Length`, and drops what is before it.
    Holds at most one frame.
    """

    __slots__ = ("_at", "_buffer", "_lost", "_need", "_searched", "max_body")

    def __init__(self, max_body: int = MAX_BODY) -> None:
        self.max_body = max_body
        self._buffer = bytearray()
        self._at = 0  # where the unread part begins
        self._searched = 0  # up to here nothing was found of what is looked for
        self._need = -1  # length of the body that is awaited; -1: a header is
        self._lost = False

    def feed(self, data: bytes) -> list[bytes | BrokenFrame]:
        self._buffer += data
        found: list[bytes | BrokenFrame] = []
        while self._step(found):
            pass
        del self._buffer[: self._at]
        self._searched = max(0, self._searched - self._at)
        self._at = 0
        return found

    def _step(self, found: list[bytes | BrokenFrame]) -> bool:
        """True when there may be more in the buffer."""
        if self._lost:
            return self._find_header()
        if self._need < 0:
            return self._read_header(found)
        end = self._at + self._need
        if len(self._buffer) < end:
            return self._find_header_in_body(found)
        found.append(bytes(memoryview(self._buffer)[self._at : end]))
        self._at = self._searched = end
        self._need = -1
        return True

    def _find_header_in_body(self, found: list[bytes | BrokenFrame]) -> bool:
        """A wrong length must not swallow what follows: where a header stands, no body goes on."""
        start = max(self._at, self._searched - _LONGEST_START)
        self._searched = len(self._buffer)
        if self._buffer.find(b"\r\n", start) < 0:  # so it is with nearly every body; this is fast
            return False
        match = _HEADER_START.search(self._buffer, start)
        if match is None:
            return False
        found.append(BrokenFrame(f"a body of {self._need} bytes was announced, and another frame came within it"))
        self._at = self._searched = match.start()
        self._need = -1
        return True

    def _read_header(self, found: list[bytes | BrokenFrame]) -> bool:
        end = self._buffer.find(b"\r\n\r\n", max(self._at, self._searched - 3))
        if end < 0:
            self._searched = len(self._buffer)
            if len(self._buffer) - self._at <= MAX_HEADER:
                return False
            return self._lose(found, f"no end of the header within {MAX_HEADER} bytes")
        length = _content_length(bytes(memoryview(self._buffer)[self._at : end]))
        if length is None:
            return self._lose(found, "the header has no valid Content-Length")
        if length > self.max_body:
            return self._lose(found, f"a message of {length} bytes is longer than {self.max_body}")
        self._at = self._searched = end + 4
        self._need = length
        return True

    def _lose(self, found: list[bytes | BrokenFrame], reason: str) -> bool:
        found.append(BrokenFrame(reason))
        self._lost = True
        self._at += 1  # the bad header itself must not be found again
        return True

    def _find_header(self) -> bool:
        match = _HEADER_START.search(self._buffer, self._at)
        if match is None:
            self._at = max(self._at, len(self._buffer) - _LONGEST_START)
            return False
        self._at = self._searched = match.start()
        self._lost = False
        return True


def _content_length(header: bytes) -> int | None:
    length: int | None = None
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            match = _LENGTH.fullmatch(value)
            length = int(match[1]) if match else None
    return length


@dataclass(frozen=True, slots=True)
class Request:
    """`params` is an object, or what else came. `bad_text`: path of a text with half a surrogate pair, if any."""

    id: MessageId
    method: str
    params: Any = field(default_factory=dict)
    bad_text: str | None = None


@dataclass(frozen=True, slots=True)
class Notification:
    method: str
    params: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """An answer of the client: `error` is None, or {code, message, data?}."""

    id: MessageId
    result: Any = None
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Invalid:
    """No JSON-RPC message: to be answered with this error. `id` where one could be read."""

    code: int
    message: str
    id: MessageId | None = None


Incoming = Request | Notification | Response | Invalid

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def decode(body: bytes) -> Incoming:
    """One frame's body as a message."""
    bad_text: str | None = None
    try:
        message = _decode(body)
    except (msgspec.DecodeError, RecursionError):
        try:
            message = _decode_slowly(body)
            bad_text = _find_bad_text(message)
        except (ValueError, RecursionError) as error:
            return Invalid(PARSE_ERROR, f"no JSON: {str(error)[:200]}")
    return _envelope(message, bad_text)


def _envelope(message: Any, bad_text: str | None) -> Incoming:
    if not isinstance(message, dict):
        what = "a batch" if isinstance(message, list) else "no object"
        return Invalid(INVALID_REQUEST, f"no JSON-RPC message: {what}")
    given_id = message.get("id")
    number = given_id if isinstance(given_id, int | str) and not isinstance(given_id, bool) else None
    if message.get("jsonrpc") != "2.0":
        return Invalid(INVALID_REQUEST, 'no JSON-RPC message: "jsonrpc" is not "2.0"', number)
    if "id" in message and number is None and not (given_id is None and "error" in message):
        return Invalid(INVALID_REQUEST, "an id is a string or an integer")
    if "method" not in message:
        return _response(message, number)
    method = message["method"]
    if not isinstance(method, str):
        return Invalid(INVALID_REQUEST, "a method is a string", number)
    params = message.get("params")
    if params is None:
        params = {}
    if not isinstance(params, dict | list):
        return Invalid(INVALID_REQUEST, "params are an object", number)
    if number is None:
        return Notification(method, params)
    return Request(number, method, params, bad_text)


def _response(message: Mapping[str, Any], number: MessageId | None) -> Incoming:
    error = message.get("error")
    if error is not None:
        if not isinstance(error, dict):
            return Invalid(INVALID_REQUEST, "an error is an object", number)
        return Response(number if number is not None else "", None, error)
    if number is None or "result" not in message:
        return Invalid(INVALID_REQUEST, "no JSON-RPC message: neither method nor result", number)
    return Response(number, message["result"])


def _decode_slowly(body: bytes) -> Any:
    """What the fast decoder refuses: half surrogate pairs (so that they can be told as such). Raises ValueError."""
    return json.loads(body.decode(), parse_constant=_no_constant, parse_float=_finite)


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise ValueError("a number out of range")
    return number


def _find_bad_text(value: Any, path: str = "") -> str | None:
    """Path of the first text inside `value` that is not valid Unicode; paths below "params" leave that word out."""
    if isinstance(value, str):
        return None if _is_unicode(value) else path.removeprefix("params.") or "params"
    if isinstance(value, dict):
        pairs = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
        pairs += [(path, key) for key in value]
    elif isinstance(value, list):
        pairs = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    else:
        return None
    return next((bad for where, item in pairs if (bad := _find_bad_text(item, where)) is not None), None)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def frame(message: Mapping[str, Any]) -> bytes:
    """A message as bytes for the pipe. Raises TypeError or ValueError for what is no JSON (a bug of the sender)."""
    try:
        body = _encode(message)
    except UnicodeEncodeError:
        logger.warning("half a surrogate pair was replaced in an outgoing message")
        body = _encode(_mended(message))
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {_mended(key): _mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in value]
    return value
