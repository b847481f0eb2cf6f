"""Progress of long work, in the words of LSP's `$/progress`. Must not know who sends it."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import uuid4

EmitProgress = Callable[[str, dict[str, object]], None]
"""`(token, value)`; `value` is an LSP `WorkDoneProgressBegin`, `...Report` or `...End`, ready to be sent."""

_LEAST_INTERVAL_S = 0.1


class Progress:
    """One piece of long work: begins when made, reports at most ten times a second, ends once."""

    def __init__(self, emit: EmitProgress, title: str) -> None:
        self._emit = emit
        self._token = f"agentik-dictation-{uuid4().hex[:12]}"
        self._last: tuple[str, int | None] | None = None
        self._reported_at = 0.0
        emit(self._token, {"kind": "begin", "title": title, "cancellable": False})

    def report(self, message: str, percentage: int | None = None) -> None:
        now = time.monotonic()
        if (message, percentage) == self._last or (now - self._reported_at < _LEAST_INTERVAL_S and percentage != 100):
            return
        self._last, self._reported_at = (message, percentage), now
        value: dict[str, object] = {"kind": "report", "message": message}
        if percentage is not None:
            value["percentage"] = percentage
        self._emit(self._token, value)

    def end(self, message: str) -> None:
        self._emit(self._token, {"kind": "end", "message": message})
