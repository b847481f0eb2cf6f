"""A model of the server for property tests of the mirror: one session, its store, and the notifications it sends.

Small on purpose: it knows what PROTOCOL.md promises and nothing about how the real server does it.
"""

from __future__ import annotations

import copy
from typing import Any

Note = tuple[str, dict[str, Any]]
SESSION = "s1"


class ModelServer:
    """Every operation that makes sense now, as methods; `notes` collects what goes over the wire."""

    def __init__(self) -> None:
        self.revision = 0
        self.rows: dict[str, dict[str, Any]] = {}
        self.live: dict[str, str] = {}
        self.queue: list[dict[str, Any]] = []
        self.permissions: dict[str, dict[str, Any]] = {}
        self.notes: list[Note] = []
        self._numbers = 0

    # What the outside does

    def enqueue(self) -> None:
        item = {"messageId": self._id("u"), "sessionId": SESSION, "text": "wait", "state": "pending"}
        self.queue.append(item)
        revision = self._commit()
        news = {"sessionId": SESSION, "messageId": item["messageId"], "display": "wait", "revision": revision}
        self.notes.append(("messageQueued", news))
        self._tell_pending()

    def edit(self, text: str) -> None:
        if self.queue:
            self.queue[-1]["text"] = text
            self._commit()
            self._tell_pending()

    def remove(self) -> None:
        if self.queue:
            self.queue.pop()
            self._commit()
            self._tell_pending()

    def deliver(self) -> None:
        if self.queue:
            item = self.queue.pop(0)
            row = self._row(item["messageId"], "user", item["text"], "complete")
            news = {"sessionId": SESSION, "message": copy.deepcopy(row), "revision": self.revision}
            self.notes.append(("messageReceived", news))
            self._tell_pending()

    def put_back(self) -> None:
        users = [row for row in self.rows.values() if row.get("kind") == "user" and not row.get("deleted")]
        if users:
            row = max(users, key=lambda each: int(each["seq"]))
            row.update(deleted=True, revision=self._commit())
            self.queue.insert(
                0, {"messageId": row["messageId"], "sessionId": SESSION, "text": "wait", "state": "pending"}
            )
            self._tell_message(row)
            self._tell_pending()

    def speak(self, text: str) -> None:
        if not self.live:
            message_id = self._id("a")
            self._numbers += 1
            self.live[message_id] = ""
            self.rows[message_id] = {"unsaved": True, "seq": self._numbers, "messageId": message_id}
        message_id = next(iter(self.live))
        token = {
            "sessionId": SESSION,
            "messageId": message_id,
            "kind": "agent",
            "offset": len(self.live[message_id]),
            "text": text,
            "seq": self.rows[message_id]["seq"],
        }
        self.live[message_id] += text
        self.notes.append(("streamingToken", token))

    def save(self) -> None:
        """The store takes what was streamed so far, silently."""
        for message_id, text in self.live.items():
            seq = self.rows[message_id]["seq"]
            self._row(message_id, "agent", text, "streaming", seq)

    def finish(self) -> None:
        for message_id, text in self.live.items():
            self._tell_message(self._row(message_id, "agent", text, "complete", self.rows[message_id]["seq"]))
        self.live.clear()

    def ask(self) -> None:
        permission = {"permissionId": self._id("p"), "sessionId": SESSION, "options": []}
        self.permissions[permission["permissionId"]] = permission
        self.notes.append(("permissionRequested", {"sessionId": SESSION, "permission": permission}))

    def resolve(self) -> None:
        if self.permissions:
            permission_id = next(iter(self.permissions))
            del self.permissions[permission_id]
            self.notes.append(("permissionResolved", {"sessionId": SESSION, "permissionId": permission_id}))

    def crash(self) -> None:
        """Killed and started again: what was not saved is gone, open answers are interrupted."""
        for message_id in list(self.live):
            row = self.rows[message_id]
            if row.get("unsaved"):
                del self.rows[message_id]
            else:
                row.update(status="interrupted", revision=self._commit())
        self.live.clear()
        self.permissions.clear()
        self.notes.clear()

    # What a client asks

    def open(self, after: int | None) -> dict[str, Any]:
        rows = [copy.deepcopy(row) for row in self.rows.values() if not row.get("unsaved")]
        for row in rows:
            row["text"] = self.live.get(row["messageId"], row["text"])
        saved = {row["messageId"] for row in rows}
        for message_id, text in self.live.items():
            if message_id not in saved:
                seq = self.rows[message_id]["seq"]
                rows.append(_message(message_id, "agent", text, "streaming", seq, self.revision))
        if after is None:
            rows = [row for row in rows if not row.get("deleted")]
        else:
            rows = [row for row in rows if row["revision"] > after or row["messageId"] in self.live]
        return {
            "session": {"sessionId": SESSION, "revision": self.revision},
            "messages": rows,
            "more": False,
            "pending": copy.deepcopy(self.queue),
            "permissions": list(self.permissions.values()),
            "questions": [],
            "revision": self.revision,
        }

    # Inside

    def _id(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers}"

    def _commit(self) -> int:
        self.revision += 1
        return self.revision

    def _row(self, message_id: str, kind: str, text: str, status: str, seq: int | None = None) -> dict[str, Any]:
        if seq is None:
            self._numbers += 1
            seq = self._numbers
        self.rows[message_id] = _message(message_id, kind, text, status, seq, self._commit())
        return self.rows[message_id]

    def _tell_message(self, row: dict[str, Any]) -> None:
        news = {"sessionId": SESSION, "message": copy.deepcopy(row), "revision": self.revision}
        self.notes.append(("messageUpdated", news))

    def _tell_pending(self) -> None:
        news = {"sessionId": SESSION, "pending": copy.deepcopy(self.queue), "paused": False, "revision": self.revision}
        self.notes.append(("pendingChanged", news))


def _message(message_id: str, kind: str, text: str, status: str, seq: int, revision: int) -> dict[str, Any]:
    return {
        "messageId": message_id,
        "sessionId": SESSION,
        "kind": kind,
        "text": text,
        "status": status,
        "seq": seq,
        "revision": revision,
    }
