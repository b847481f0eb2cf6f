"""The running turn and its agent: cancel, answers, session control. One function a method; no rule of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentik_server.app import App
from agentik_server.domain import saves
from agentik_server.domain.message import Permission, Question
from agentik_server.domain.refusal import Refused
from agentik_server.domain.session import Session
from agentik_server.requests.base import Params, Table


class TurnRequests:
    def __init__(self, app: App) -> None:
        self._app = app
        self.table: Table = {
            "cancelTurn": self._cancel_turn,
            "answerPermission": self._answer_permission,
            "answerQuestion": self._answer_question,
            "setMode": self._set_mode,
            "setConfigOption": self._set_config_option,
            "authenticate": self._authenticate,
            "restartAgent": self._restart_agent,
        }

    def _cancel_turn(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]

        def post(page: saves.SessionPage) -> None:
            if page.turn is None or page.turn.stop_reason is not None:
                self._app.answer(request, {"cancelled": False})
            else:
                self._app.post_mail(session_id, {"kind": "cancel"}, request, {"cancelled": True})

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.cancel(request, self._app.ports.clock())
            self._app.look(session_id, request, post)
            return None

        self._app.with_session(session_id, request, use)

    def _answer_permission(self, params: Params, request: int) -> None:
        session_id, permission_id, option_id = params["sessionId"], params["permissionId"], params.get("optionId")

        def post(page: saves.SessionPage) -> None:
            for ask in page.asks:
                if isinstance(ask, Permission) and ask.permission_id == permission_id:
                    if option_id is not None and option_id not in {option.option_id for option in ask.options}:
                        raise Refused("unknownOption", "the agent did not offer this option")
                    mail = {"kind": "answerPermission", "permissionId": permission_id, "optionId": option_id}
                    self._app.post_mail(session_id, mail, request)
                    return
            raise Refused("unknownPermission", "this request is not open any more")

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.answer_permission(permission_id, option_id, request, self._app.ports.clock())
            self._app.look(session_id, request, post)
            return None

        self._app.with_session(session_id, request, use)

    def _answer_question(self, params: Params, request: int) -> None:
        session_id, question_id = params["sessionId"], params["questionId"]
        action, content = params["action"], params.get("content")

        def post(page: saves.SessionPage) -> None:
            if not any(isinstance(ask, Question) and ask.question_id == question_id for ask in page.asks):
                raise Refused("unknownPermission", "this question is not open any more")
            mail = {"kind": "answerQuestion", "questionId": question_id, "action": action, "content": content}
            self._app.post_mail(session_id, mail, request)

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.answer_question(question_id, action, content, request, self._app.ports.clock())
            self._app.look(session_id, request, post)
            return None

        self._app.with_session(session_id, request, use)

    def _set_mode(self, params: Params, request: int) -> None:
        self._call_agent(params["sessionId"], request, "set_mode", {"modeId": params["modeId"]})

    def _set_config_option(self, params: Params, request: int) -> None:
        call = {"configId": params["optionId"], "value": params["value"]}
        self._call_agent(params["sessionId"], request, "set_config_option", call)

    def _authenticate(self, params: Params, request: int) -> None:
        self._call_agent(params["sessionId"], request, "authenticate", {"methodId": params["methodId"]})

    def _call_agent(self, session_id: str, request: int, method: str, call: Mapping[str, object]) -> None:
        def use(session: Session | None) -> list[Any]:
            if session is None:
                raise Refused("notOwner", "another editor runs this session's agent")
            return session.call_agent(request, method, call, self._app.ports.clock())

        self._app.with_session(session_id, request, use)

    def _restart_agent(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.restart_agent(request, self._app.ports.clock())
            self._app.post_mail(session_id, {"kind": "restart"}, request)
            return None

        self._app.with_session(session_id, request, use)
