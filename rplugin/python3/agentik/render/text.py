"""Text from outside, made safe to stand in a buffer: no line break, no raw control character, no endless line.

Must not know who wrote it or where it is shown.
"""

from __future__ import annotations

import re

MAX_LINE_BYTES = 8192
"""A longer line costs 10–26 ms a redraw (FACTS.md); it is broken."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ANSI = re.compile(
    "\x1b\\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    "|\x1b[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\|$)"  # OSC, DCS and their like: titles, links
    "|\x1b[ -/]*[0-~]"  # two characters, character sets
    "|\x9b[0-?]*[ -/]*[@-~]"
)


def _show(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return f"^{chr(code + 0x40)}"
    if code == 0x7F:
        return "^?"
    return f"<{code:02x}>" if code < 0xA0 else "\ufffd"


def visible(text: str) -> str:
    """Control characters as `^[`, `^@`, `<9b>`, so that they do nothing and are seen; tab and newline stay."""
    return _CONTROL.sub(_show, text) if _CONTROL.search(text) else text


def plain(output: str) -> str:
    """What a terminal would show of a command's output: colours dropped, text overwritten by carriage returns too."""
    output = _ANSI.sub("", output).replace("\r\n", "\n")
    if "\r" in output:
        output = "\n".join(_after_return(line) for line in output.split("\n"))
    if "\b" in output:
        output = re.sub("[^\n\b]\b", "", output)
    return visible(output)


def _after_return(line: str) -> str:
    parts = [part for part in line.split("\r") if part]
    return parts[-1] if parts else ""


def one_line(text: str, limit: int = 400) -> str:
    """For titles and labels: blanks of any kind as one blank, cut at `limit` characters."""
    flat = visible(" ".join(plain(text).split()))
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def bytes_before(line: str, index: int) -> int:
    """Byte column of the character at `index`, as Neovim counts."""
    return index if line.isascii() else len(line[:index].encode())


def size(line: str) -> int:
    """Length in bytes."""
    return len(line) if line.isascii() else len(line.encode())


def chop(line: str, room: int = MAX_LINE_BYTES) -> list[str]:
    """Pieces of at most `MAX_LINE_BYTES` bytes, the first of at most `room` (it may be empty); no character in two."""
    if len(line) * 4 <= room or size(line) <= room:
        return [line]
    pieces: list[str] = []
    data = line.encode()
    start = 0
    while start < len(data):
        end = min(start + room, len(data))
        while start < end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(data[start:end].decode())
        start, room = end, MAX_LINE_BYTES
    return pieces


def lines_of(text: str) -> list[str]:
    """Safe lines of a text that is complete."""
    lines = visible(text.replace("\r\n", "\n")).split("\n")
    return [piece for line in lines for piece in chop(line)]
