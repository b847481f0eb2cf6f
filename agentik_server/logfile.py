"""The server's log: a file, one line an event, rotated; nothing of it ever reaches stdout.

Message texts belong to level DEBUG only; secrets to none.
"""

from __future__ import annotations

import logging
from collections import deque
from logging.handlers import RotatingFileHandler
from pathlib import Path

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_MAX_BYTES = 4 << 20
_REMEMBERED = 20

_errors: deque[str] = deque(maxlen=_REMEMBERED)


class _Remember(logging.Handler):
    """Keeps the last warnings and errors as lines, for agentik/status."""

    def emit(self, record: logging.LogRecord) -> None:
        _errors.append(f"{record.levelname} {record.name}: {record.getMessage()}")


def recent_errors() -> list[str]:
    """The last warnings and errors of this process, oldest first, one line each."""
    return [line.splitlines()[0][:500] for line in _errors]


def log_to(path: Path, level: str) -> None:
    """Replace what was logged to before. Raises OSError."""
    path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    handler = RotatingFileHandler(path, maxBytes=_MAX_BYTES, backupCount=2, encoding="utf-8", errors="backslashreplace")
    handler.setFormatter(logging.Formatter(_FORMAT))
    path.chmod(0o600)
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.addHandler(_Remember(logging.WARNING))
    root.setLevel(level.upper())
    logging.getLogger("pygls").setLevel("WARNING")  # its INFO lines hold every payload
    logging.getLogger("aiosqlite").setLevel("WARNING")
    logging.getLogger("asyncio").setLevel("WARNING")
