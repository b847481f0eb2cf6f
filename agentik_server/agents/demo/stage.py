"""One turn of the demo agent on the wire: words at a reading pace, thoughts, plans, tools, permissions, questions.

Knows how to show things, not what to say (`scenes.py`). Every step ends at once when the turn is cancelled.
"""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

from agentik_server.agents.demo.wire import Json, Wire

_WORDS = re.compile(r"\s*\S+\s*|\s+")
ALLOW_ONCE = ("allow", "Allow this edit", "allow_once")
REJECT_ONCE = ("reject", "Reject", "reject_once")


class Cancelled(Exception):  # noqa: N818 -- the user's wish, not a fault
    """The turn was cancelled."""


class Stage:
    """The turn of one prompt. `rate`: words a second, 0 = no pause."""

    def __init__(self, wire: Wire, session_id: str, cwd: str, rate: float, client: Json) -> None:
        self._wire = wire
        self._session_id = session_id
        self._client = client
        self._pause_s = 1.0 / rate if rate > 0 else 0.0
        self._cancelled = threading.Event()
        self._tools = 0
        self.cwd = Path(cwd)
        self.spoken: list[str] = []
        self.words = 0

    def cancel(self) -> None:
        self._cancelled.set()

    def check(self) -> None:
        """Raises Cancelled."""
        if self._cancelled.is_set():
            raise Cancelled

    def pause(self, words: float) -> None:
        """As long as so many words take."""
        if self._cancelled.wait(words * self._pause_s) if self._pause_s else self._cancelled.is_set():
            raise Cancelled

    def say(self, text: str) -> None:
        """Answer text, word by word."""
        self._stream("agent_message_chunk", text)
        self.spoken.append(text)

    def think(self, text: str) -> None:
        self._stream("agent_thought_chunk", text)

    def plan(self, entries: list[str], done: int) -> None:
        """The plan with `done` steps completed and the next one in progress."""
        status = ["completed" if i < done else "in_progress" if i == done else "pending" for i in range(len(entries))]
        steps = zip(entries, status, strict=True)
        items = [{"content": entry, "status": state, "priority": "medium"} for entry, state in steps]
        self.update({"sessionUpdate": "plan", "entries": items})

    def tool(self, kind: str, title: str, **fields: object) -> str:
        """A new tool call, pending; its id."""
        self._tools += 1
        tool_call_id = f"demo-{time.monotonic_ns():x}-{self._tools}"
        call: Json = {"sessionUpdate": "tool_call", "toolCallId": tool_call_id, "kind": kind, "title": title}
        self.update({**call, "status": "pending", **fields})
        return tool_call_id

    def tool_update(self, tool_call_id: str, status: str, text: str | None = None, **fields: object) -> None:
        update: Json = {"sessionUpdate": "tool_call_update", "toolCallId": tool_call_id, "status": status, **fields}
        if text is not None:
            update["content"] = [{"type": "content", "content": {"type": "text", "text": text}}]
        self.update(update)

    def may(self, tool_call_id: str, title: str, content: list[Json]) -> bool:
        """Ask the user for permission."""
        options = [{"optionId": i, "name": name, "kind": kind} for i, name, kind in (ALLOW_ONCE, REJECT_ONCE)]
        tool: Json = {"toolCallId": tool_call_id, "kind": "edit", "title": title, "content": content}
        answer = self.ask("session/request_permission", {"toolCall": tool, "options": options}) or {}
        outcome = answer.get("outcome")
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
            raise Cancelled  # this is how a client answers when the turn is cancelled
        return outcome.get("optionId") == ALLOW_ONCE[0]

    def ask(self, method: str, params: Json) -> Json | None:
        """Any request to the client; None for an error."""
        self.check()
        answer = self._wire.ask(method, {"sessionId": self._session_id, **params})
        self.check()
        return answer

    def able(self, *path: str) -> bool:
        """Whether the client said in initialize that it can do this."""
        value: object = self._client
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value is not None and value is not False

    def update(self, update: Json) -> None:
        self.check()
        self._wire.notify("session/update", {"sessionId": self._session_id, "update": update})

    def _stream(self, kind: str, text: str) -> None:
        for word in _WORDS.findall(text):
            self.update({"sessionUpdate": kind, "content": {"type": "text", "text": word}})
            self.words += 1
            self.pause(1)
