"""The last of an agent's stderr: what is shown when it dies. Must keep no more than it shows, however much comes."""

from __future__ import annotations

import re
from collections import deque

MAX_LINES = 200
MAX_LINE_BYTES = 2000

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]")


class StderrTail:
    """Keeps the newest lines of a byte stream."""

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque(maxlen=MAX_LINES)
        self._open = b""

    def feed(self, data: bytes) -> None:
        lines = data.split(b"\n")
        lines[0] = self._open + lines[0]
        self._open = lines.pop()[-MAX_LINE_BYTES:]
        self._lines.extend(line[-MAX_LINE_BYTES:] for line in lines[-MAX_LINES:])

    def text(self, lines: int = 20) -> str:
        """The last `lines` lines that are not blank, without colours and control characters."""
        decoded = (line.decode("utf-8", "replace") for line in [*self._lines, self._open])
        plain = [_ESCAPES.sub("", line).rstrip() for line in decoded]
        return "\n".join([line for line in plain if line.strip()][-lines:])
