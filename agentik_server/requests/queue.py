"""Changes of the pending queue. One function a method; the rules are asked in the transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agentik_server import shapes
from agentik_server.app import App
from agentik_server.domain import saves
from agentik_server.domain.pending import Draft
from agentik_server.domain.session import HOLD_MS, Session
from agentik_server.requests.base import Params, Table, steer


class QueueRequests:
    def __init__(self, app: App) -> None:
        self._app = app
        self.table: Table = {
            "editPending": self._edit_pending,
            "movePending": self._move_pending,
            "removePending": self._remove_pending,
            "clearPending": self._clear_pending,
            "sendPendingNow": self._send_pending_now,
            "applyPendingEdits": self._apply_pending_edits,
            "holdPending": self._hold_pending,
            "pauseQueue": lambda params, request: self._pause(params, request, paused=True),
            "resumeQueue": lambda params, request: self._pause(params, request, paused=False),
        }

    def _queue_write(
        self, session_id: str, write: saves.Write, request: int, then: Callable[[], None] | None = None
    ) -> None:
        """Through the session where this process owns it, so that it sees the outcome; else straight to the store.

        `then`: what is to follow in the latter case.
        """

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.change_queue(write, self._app.ports.clock())
            self._app.write_and_answer(session_id, write, request, then)
            return None

        self._app.with_session(session_id, request, use)

    def _edit_pending(self, params: Params, request: int) -> None:
        attachments = tuple(shapes.attachment_from(item) for item in params.get("attachments") or ())
        draft = Draft(params["messageId"], params["text"], attachments)
        keep = params.get("attachments") is None
        limits = self._app.settings.policy.limits
        self._queue_write(
            params["sessionId"], saves.EditPending(params["sessionId"], draft, keep, limits, request), request
        )

    def _move_pending(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]
        write = saves.MovePending(session_id, params["messageId"], params["position"], request)
        self._queue_write(session_id, write, request)

    def _remove_pending(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]
        self._queue_write(session_id, saves.RemovePending(session_id, params["messageId"], request), request)

    def _clear_pending(self, params: Params, request: int) -> None:
        self._queue_write(params["sessionId"], saves.ClearPending(params["sessionId"], request), request)

    def _send_pending_now(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]
        write = saves.SendPendingNow(session_id, params["messageId"], request)
        self._queue_write(session_id, write, request, steer(self._app, session_id))

    def _apply_pending_edits(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]
        edits = tuple(
            saves.PendingEdit(edit["op"], edit["messageId"], edit.get("text"), edit.get("position"))
            for edit in params["edits"]
        )
        limits = self._app.settings.policy.limits
        self._queue_write(session_id, saves.ApplyPendingEdits(session_id, edits, limits, request), request)

    def _hold_pending(self, params: Params, request: int) -> None:
        session_id, now = params["sessionId"], self._app.ports.clock()
        until = now + HOLD_MS if params["hold"] else 0
        self._queue_write(session_id, saves.HoldPending(session_id, until, now, request), request)

    def _pause(self, params: Params, request: int, *, paused: bool) -> None:
        session_id = params["sessionId"]
        self._queue_write(session_id, saves.PauseQueue(session_id, paused, request), request)
