"""LSP base protocol and JSON-RPC 2.0 as bytes in, messages out. No I/O, no process, no meaning of methods.

Decoding leaves `params` and `result` raw, so that each is parsed once, into the type its reader wants.
"""

from __future__ import annotations

from typing import Any

import msgspec

Raw = msgspec.Raw

MAX_BODY = 64 << 20
_NULL = msgspec.Raw(b"null")


class WireError(Exception):
    """The peer's bytes are not LSP frames; the stream cannot go on."""


class Envelope(msgspec.Struct):
    """A JSON-RPC message of any kind: `method` for requests and notifications, `id` for requests and responses."""

    method: str | None = None
    id: int | str | None = None
    params: msgspec.Raw = _NULL
    result: msgspec.Raw = _NULL
    error: dict[str, Any] | None = None


_decode_envelope = msgspec.json.Decoder(Envelope).decode
_encode = msgspec.json.Encoder().encode


def decode(raw: msgspec.Raw | bytes) -> Any:
    """Parse raw JSON into plain Python values."""
    return msgspec.json.decode(raw)


def frame(message: dict[str, Any]) -> bytes:
    """One LSP frame."""
    body = _encode(message)
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def request(number: int, method: str, params: Any) -> bytes:
    return frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: Any) -> bytes:
    return frame({"jsonrpc": "2.0", "method": method, "params": params})


def response(number: int | str, result: Any) -> bytes:
    return frame({"jsonrpc": "2.0", "id": number, "result": result})


def failure(number: int | str, code: int, message: str) -> bytes:
    return frame({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}})


class Decoder:
    """Cuts a byte stream into envelopes, however the bytes are split."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._need = -1

    def feed(self, data: bytes) -> list[Envelope]:
        """Take bytes, give the messages that are complete now. Raises `WireError` when the stream is beyond repair."""
        self._buffer += data
        envelopes: list[Envelope] = []
        position = 0
        while True:
            if self._need < 0:
                end = self._buffer.find(b"\r\n\r\n", position)
                if end < 0:
                    break
                self._need = _content_length(bytes(self._buffer[position:end]))
                position = end + 4
            if len(self._buffer) - position < self._need:
                break
            with memoryview(self._buffer) as view:
                body = bytes(view[position : position + self._need])  # a message of megabytes is copied once
            position += self._need
            self._need = -1
            try:
                envelopes.append(_decode_envelope(body))
            except msgspec.DecodeError as error:
                raise WireError(f"not JSON-RPC ({error}): {body[:80]!r}") from error
        del self._buffer[:position]
        return envelopes


def _content_length(header: bytes) -> int:
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            try:
                length = int(value)
            except ValueError:
                break
            if 0 <= length <= MAX_BODY:
                return length
    raise WireError(f"no usable Content-Length in {header[:80]!r}")
