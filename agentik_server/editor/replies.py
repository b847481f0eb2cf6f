"""The open requests of the editor, and their answers: one each, whatever the application does.

Holds no rule about what is answered. A request that only reads can be ended early; the others are answered in the end.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from agentik_server.editor.codec import MessageId
from agentik_server.editor.outbox import Outbox
from agentik_server.protocol.errors import CANCELLED, INTERNAL_ERROR, REFUSED

logger = logging.getLogger(__name__)

MOST_OPEN: Final = 1000


class OpenReply:
    """ports.Reply for one request."""

    __slots__ = ("_ended_early", "_id", "_open", "_replies", "method", "read_only")

    def __init__(self, replies: Replies, number: MessageId, method: str, read_only: bool) -> None:
        self._replies = replies
        self._id = number
        self._open = True
        self._ended_early = False
        self.method = method
        self.read_only = read_only

    @property
    def is_open(self) -> bool:
        return self._open

    def result(self, value: object) -> None:
        if self._close():
            self._replies.send_result(self._id, self.method, value)

    def refuse(self, reason: str, message: str, data: Mapping[str, object] | None = None) -> None:
        if self._close():
            self._replies.send_error(self._id, REFUSED, message, {**(data or {}), "reason": reason})

    def fail(self, code: int, message: str) -> None:
        if self._close():
            self._replies.send_error(self._id, code, message)

    def end_early(self, message: str) -> None:
        """Answered without waiting for the application; what it says later is dropped."""
        if self._open:
            self.fail(CANCELLED, message)
            self._ended_early = True

    def _close(self) -> bool:
        if self._open:
            self._open = False
            self._replies.closed(self._id)
            return True
        if not self._ended_early:
            logger.error("a second answer to %s was dropped", self.method, stack_info=True)
        return False


class Replies:
    """All open requests by id."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._open: dict[MessageId, OpenReply] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, number: MessageId) -> bool:
        return number in self._open

    def open(self, number: MessageId, method: str, *, read_only: bool) -> OpenReply:
        reply = OpenReply(self, number, method, read_only)
        self._open[number] = reply
        return reply

    def closed(self, number: MessageId) -> None:
        del self._open[number]

    def cancel(self, number: object) -> None:
        """`$/cancelRequest`: the client does not want the answer any more."""
        reply = self._open.get(number) if isinstance(number, int | str) else None
        if reply is not None and reply.read_only:
            reply.end_early("cancelled")

    def end_all(self, message: str) -> None:
        """Answer whatever is open."""
        for reply in list(self._open.values()):
            reply.end_early(message)

    def send_result(self, number: MessageId, method: str, value: object) -> None:
        if self._outbox.is_stuck:
            self.send_error(number, INTERNAL_ERROR, "the answer was dropped: the client does not read")
            return
        try:
            self._outbox.send({"jsonrpc": "2.0", "id": number, "result": value})
        except (TypeError, ValueError, RecursionError):
            logger.exception("the result of %s is no JSON", method)
            self.send_error(number, INTERNAL_ERROR, f"internal error in {method}")

    def send_error(
        self, number: MessageId | None, code: int, message: str, data: Mapping[str, Any] | None = None
    ) -> None:
        error: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        try:
            self._outbox.send({"jsonrpc": "2.0", "id": number, "error": error})
        except (TypeError, ValueError, RecursionError):
            logger.exception("the data of an error are no JSON")
            self._outbox.send({"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}})
