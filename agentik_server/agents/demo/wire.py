"""The demo agent's end of the pipe: JSON-RPC lines out, requests to the client and their answers. Threads, no loop."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator

Json = dict[str, object]


class Wire:
    """Writes whole lines from any thread; a request waits in its own thread for the answer."""

    def __init__(self) -> None:
        self._out = sys.stdout.buffer
        self._writing = threading.Lock()
        self._answered = threading.Condition()
        self._answers: dict[object, Json | None] = {}
        self._count = 0

    def messages(self) -> Iterator[Json]:
        """What the client says, until it closes the pipe. Lines that are no message are skipped."""
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict):
                yield message

    def send(self, message: Json) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"
        try:
            with self._writing:
                self._out.write(line)
                self._out.flush()
        except BrokenPipeError:
            os._exit(0)  # nobody listens any more; other threads may still be talking

    def notify(self, method: str, params: Json) -> None:
        self.send({"method": method, "params": params})

    def answer(self, request_id: object, result: Json) -> None:
        self.send({"id": request_id, "result": result})

    def refuse(self, request_id: object, code: int, message: str) -> None:
        self.send({"id": request_id, "error": {"code": code, "message": message}})

    def ask(self, method: str, params: Json) -> Json | None:
        """A request to the client: its result, or None for an error."""
        with self._answered:
            self._count += 1
            number = self._count
            self.send({"id": number, "method": method, "params": params})
            self._answered.wait_for(lambda: number in self._answers)
            return self._answers.pop(number)

    def hear_answer(self, message: Json) -> None:
        """Called by the reading thread for a message with a result or an error."""
        result = message.get("result")
        with self._answered:
            self._answers[message.get("id")] = result if isinstance(result, dict) else None
            self._answered.notify_all()
