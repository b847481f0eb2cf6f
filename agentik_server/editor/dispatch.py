"""From a request's frame to the application and back: validation, refusals, and bugs that cost one answer only.

Plain calls in the order of the wire; decides nothing about sessions.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from agentik_server.domain.refusal import Refused
from agentik_server.editor.codec import Request
from agentik_server.editor.outbox import Outbox
from agentik_server.editor.replies import MOST_OPEN, OpenReply, Replies
from agentik_server.ports import Application
from agentik_server.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, REFUSED

logger = logging.getLogger(__name__)

PREFIX: Final = "agentik/"
# Heard in any flood, answered if there is room for an answer.
ALWAYS_HEARD: Final = frozenset({"agentik/cancelTurn"})


class Dispatcher:
    """Hands `agentik/*` requests to the application."""

    def __init__(self, application: Application, replies: Replies, outbox: Outbox) -> None:
        self._application = application
        self._replies = replies
        self._outbox = outbox
        self._deaf = False

    def serve(self, request: Request) -> None:
        # Here, not above: pydantic takes a tenth of a second, and `initialize` is answered without it.
        from agentik_server.protocol import REQUESTS, InvalidParams, validated

        kind = REQUESTS.get(request.method)
        if kind is None:
            self._error(request, METHOD_NOT_FOUND, f"no method {request.method}")
        elif request.id in self._replies:
            self._error(request, INVALID_REQUEST, f"the id {request.id!r} is in use")
        elif not self._has_room(request):
            return
        elif request.bad_text is not None:
            data = {"reason": "invalidText", "field": request.bad_text}
            self._error(request, REFUSED, "the text holds half a surrogate pair", data)
        else:
            try:
                params = validated(kind.params_model, as_object(request.params))
            except InvalidParams as problem:
                details = {"field": problem.field, "reason": problem.reason, "problems": problem.problems}
                self._error(request, INVALID_PARAMS, f"{request.method}: {problem}", details)
            else:
                self._hand_over(params, self._replies.open(request.id, request.method, read_only=kind.read_only))

    def _hand_over(self, params: dict[str, Any], reply: OpenReply) -> None:
        try:
            self._application.request(reply.method.removeprefix(PREFIX), params, reply)
        except Refused as refused:
            reply.refuse(refused.reason, refused.message, refused.data)
        except Exception:
            logger.exception("%s ended in a bug", reply.method)
            if reply.is_open:
                reply.fail(INTERNAL_ERROR, f"internal error in {reply.method}; the server's log says more")

    def _has_room(self, request: Request) -> bool:
        """False, and answered as far as possible, when the client asks and asks and does not read."""
        if request.method in ALWAYS_HEARD:
            return True
        if self._outbox.is_stuck:
            if not self._deaf:
                logger.error("the client does not read and goes on asking: its requests are dropped")
            self._deaf = True
            return False
        self._deaf = False
        if len(self._replies) < MOST_OPEN and not self._outbox.is_overfull:
            return True
        self._error(request, REFUSED, "too many requests at a time", {"reason": "serverBusy"})
        return False

    def _error(self, request: Request, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        self._replies.send_error(request.id, code, message, data)


def as_object(params: Any) -> dict[str, Any]:
    """Raises InvalidParams."""
    from agentik_server.protocol import InvalidParams

    if not isinstance(params, dict):
        raise InvalidParams("params", "must be an object")
    return params
