"""Messages: sent, sent again, listed, searched, exported. One function a method; no rule of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentik_server import shapes
from agentik_server.app import App
from agentik_server.domain import export, saves
from agentik_server.domain.pending import Draft, check_draft
from agentik_server.domain.session import Session
from agentik_server.requests.base import Params, Table, steer


class MessageRequests:
    def __init__(self, app: App) -> None:
        self._app = app
        self.table: Table = {
            "listMessages": self._list_messages,
            "searchMessages": self._search_messages,
            "exportSession": self._export_session,
            "sendMessage": self._send_message,
            "resendMessage": self._resend_message,
        }

    def _list_messages(self, params: Params, request: int) -> None:
        read = saves.ReadMessages(
            params["sessionId"], params.get("before"), params.get("after"), params.get("limit", 100)
        )

        def answer(page: saves.Page) -> Mapping[str, object]:
            assert isinstance(page, saves.MessagePage)
            messages = [shapes.message(message) for message in page.messages]
            return {"messages": messages, "more": page.more, "revision": page.revision}

        self._app.read(read, request, answer)

    def _search_messages(self, params: Params, request: int) -> None:
        def answer(page: saves.Page) -> Mapping[str, object]:
            assert isinstance(page, saves.Matches)
            return {"matches": [shapes.match(match) for match in page.matches]}

        read = saves.SearchMessages(params["query"], params.get("sessionId"), params.get("limit", 50))
        self._app.read(read, request, answer)

    def _export_session(self, params: Params, request: int) -> None:
        def answer(page: saves.Page) -> Mapping[str, object]:
            assert isinstance(page, saves.SessionPage)
            return {"text": export.markdown(page.facts, page.messages)}

        self._app.read(saves.ReadSession(params["sessionId"], limit=1 << 30), request, answer)

    def _send_message(self, params: Params, request: int) -> None:
        app = self._app
        session_id: str = params["sessionId"]
        attachments = tuple(shapes.attachment_from(item) for item in params.get("attachments") or ())
        draft = Draft(params["messageId"], params["text"], attachments, params.get("kind") or "text")
        urgent = bool(params.get("now"))
        limits = app.settings.policy.limits
        check_draft(draft, limits)

        app.audience.sent(session_id, draft.message_id)

        def use(session: Session | None) -> list[Any] | None:
            now = app.ports.clock()
            if session is not None:
                return session.submit(draft, request, now, urgent=urgent)
            write = saves.Admit(session_id, None, draft, limits, False, urgent, "", 0, now)
            then = steer(app, session_id) if urgent else None
            app.when_followed(session_id, request, lambda: app.write_and_answer(session_id, write, request, then))
            return None

        app.with_session(session_id, request, use)

    def _resend_message(self, params: Params, request: int) -> None:
        app = self._app
        session_id, message_id, now = params["sessionId"], params["messageId"], app.ports.clock()

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.resend(message_id, request, now)
            limits = app.settings.policy.limits
            write = saves.Resend(session_id, None, message_id, False, "", 0, limits, now)
            app.write_and_answer(session_id, write, request)
            return None

        app.with_session(session_id, request, use)
