"""The raw frames of one agent, kept on request (`agents.trace`). Must never fail the connection that it traces."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import BinaryIO

MAX_BYTES = 64 * 1024 * 1024

log = logging.getLogger(__name__)


class FrameTrace:
    """Appends `milliseconds direction frame` lines to a file that only the user can read; stops at 64 MiB."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO | None = None
        self._size = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = path.open("ab", buffering=0)
            path.chmod(0o600)
            self._size = path.stat().st_size
        except OSError as error:
            log.warning("frames are not kept: %s", error)

    def frame(self, direction: str, data: bytes) -> None:
        if self._file is None:
            return
        line = b"%d %s %s\n" % (time.time() * 1000, direction.encode("ascii"), data.rstrip(b"\n"))
        self._size += len(line)
        try:
            self._file.write(line)
        except OSError as error:
            log.warning("frames are not kept any more: %s", error)
            self.close()
        else:
            if self._size > MAX_BYTES:
                log.warning("the file of raw frames is full")
                self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
