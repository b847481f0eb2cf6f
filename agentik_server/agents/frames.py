"""Bytes of an agent's stdout to JSON objects, whatever else is in them (B46, AGENTS.md section 2.1).

No I/O. Must not raise on any input, and must keep no more than one line of at most `limit` bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from json import JSONDecodeError, JSONDecoder
from typing import NamedTuple

import msgspec

LINE_LIMIT = 32 * 1024 * 1024  # bytes; real agents were seen with lines of a few MB
_GLUED_TRIES = 32  # how many braces of a broken line are tried as the start of a frame


class Noise(NamedTuple):
    """What was skipped, and why; `line` is shortened."""

    line: str
    why: str


def _no_number(_literal: str) -> None:
    """NaN and Infinity are no JSON."""


_decoder = JSONDecoder(parse_constant=_no_number)
_decode_strictly = msgspec.json.Decoder().decode


class LineSplitter:
    """Cuts a byte stream at newlines, over any number of reads. A line over the limit is skipped to its end."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[bytes | Noise]:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            line = data[start:end]
            start = end + 1
            if self._skipping:
                self._skipping = False
                continue
            if self._parts:
                line = b"".join([*self._parts, line])
                self._parts.clear()
                self._size = 0
            if line:
                yield line
        yield from self._keep(data[start:])

    def rest(self) -> bytes:
        """What came after the last newline: at the end of a stream it may be a frame."""
        line = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        return line

    def _keep(self, part: bytes) -> Iterator[Noise]:
        if not part or self._skipping:
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            head = self._parts[0][:200].decode("utf-8", "replace")
            self.rest()
            self._skipping = True
            yield Noise(head, f"a line of more than {self._limit} bytes")


def parse_object(line: bytes) -> Mapping[str, object] | None:
    """The object that a line is, fast; None: it may hold something for `parse_line` to find."""
    try:
        value = _decode_strictly(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_line(line: bytes) -> Iterator[Mapping[str, object] | Noise]:
    """The JSON objects of one line. An array is taken for a batch; anything else is noise."""
    text = line.decode("utf-8", "replace")
    try:
        value = _decoder.decode(text)
    except (ValueError, RecursionError):
        yield from _salvage(text)
        return
    yield from _objects(value, text)


def _objects(value: object, text: str) -> Iterator[Mapping[str, object] | Noise]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list) and value:
        for item in value:
            yield item if isinstance(item, dict) else Noise(text[:200], "an array with something that is no object")
    else:
        yield Noise(text[:200], "JSON, but no object")


def _salvage(text: str) -> Iterator[Mapping[str, object] | Noise]:
    """Frames glued to noise or to each other: `Loading... {"jsonrpc": ...}`."""
    position, noise_from, tries = 0, 0, 0
    while tries < _GLUED_TRIES and (brace := text.find("{", position)) >= 0:
        tries += 1
        try:
            value, end = _decoder.raw_decode(text, brace)
        except (JSONDecodeError, ValueError, RecursionError):
            position = brace + 1
            continue
        position = end
        if not is_frame(value):
            continue
        if text[noise_from:brace].strip():
            yield Noise(text[noise_from:brace][:200], "no JSON")
        noise_from = end
        tries = 0
        yield value
    if text[noise_from:].strip():
        yield Noise(text[noise_from:][:200], "no JSON")


def is_frame(value: object) -> bool:
    """Whether a JSON value looks like JSON-RPC, and not like a piece of a log."""
    return isinstance(value, dict) and ("jsonrpc" in value or "method" in value or ("id" in value and len(value) > 1))


def encode(message: Mapping[str, object]) -> bytes:
    """One line. Characters at which some line readers would cut (Node's: U+2028) are escaped; lone surrogates too."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    if not text.isascii():
        for mark in ("\u0085", "\u2028", "\u2029"):
            if mark in text:
                text = text.replace(mark, f"\\u{ord(mark):04x}")
    try:
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
