"""ports.Progress over the wire: LSP work-done progress, made by the server.

The client is asked for a token first, without waiting: what is reported before its answer is sent after it, the last
report of them only. A client that refuses the token, or cannot show progress, is told nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

CREATE: Final = "window/workDoneProgress/create"

Notify = Callable[[str, Mapping[str, Any]], None]
Created = Callable[[bool], None]


class WireProgress:
    """`create(token, then)` asks the client and calls `then(granted)`."""

    def __init__(self, title: str, token: str, create: Callable[[str, Created], None], notify: Notify) -> None:
        self._title = title
        self._token = token
        self._notify = notify
        self._granted: bool | None = None
        self._waiting: list[dict[str, Any]] = []
        self._ended = False
        create(token, self._answered)

    def report(self, message: str, percentage: int | None = None) -> None:
        if self._ended:
            return
        value: dict[str, Any] = {"kind": "report", "message": message}
        if percentage is not None:
            value["percentage"] = min(100, max(0, percentage))
        self._say(value)

    def end(self, message: str | None = None) -> None:
        if self._ended:
            return
        self._ended = True
        self._say({"kind": "end", "message": message} if message is not None else {"kind": "end"})

    def _say(self, value: dict[str, Any]) -> None:
        if self._granted:
            self._notify("$/progress", {"token": self._token, "value": value})
        elif self._granted is None:
            if value["kind"] == "report":
                self._waiting.clear()
            self._waiting.append(value)

    def _answered(self, granted: bool) -> None:
        self._granted = granted
        waiting, self._waiting = self._waiting, []
        self._say({"kind": "begin", "title": self._title})
        for value in waiting:
            self._say(value)
