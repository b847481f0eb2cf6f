"""The methods of PROTOCOL.md on top of the application: one function a method. No rule of its own stands here.

`params` are what the editor adapter validated (camelCase). Must not wait and must not know any adapter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agentik_server import shapes
from agentik_server.app import WHOLE, App
from agentik_server.domain import export, saves
from agentik_server.domain.message import Permission, Question
from agentik_server.domain.pending import Draft, QueueView, check_draft
from agentik_server.domain.refusal import Refused
from agentik_server.domain.session import HOLD_MS, Session
from agentik_server.ports import Reply

Params = Mapping[str, Any]


class Requests:
    """`request(method, params, reply)` answers one request, now or later."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._table: dict[str, Callable[[Params, int], None]] = {
            "listAgents": self._list_agents,
            "checkAgent": self._check_agent,
            "newSession": self._new_session,
            "listSessions": self._list_sessions,
            "openSession": self._open_session,
            "closeSession": self._close_session,
            "deleteSession": self._delete_session,
            "renameSession": self._rename_session,
            "forkSession": self._fork_session,
            "importSessions": self._import_sessions,
            "listMessages": self._list_messages,
            "searchMessages": self._search_messages,
            "exportSession": self._export_session,
            "sendMessage": self._send_message,
            "resendMessage": self._resend_message,
            "editPending": self._edit_pending,
            "movePending": self._move_pending,
            "removePending": self._remove_pending,
            "clearPending": self._clear_pending,
            "sendPendingNow": self._send_pending_now,
            "applyPendingEdits": self._apply_pending_edits,
            "holdPending": self._hold_pending,
            "pauseQueue": lambda params, request: self._pause(params, request, paused=True),
            "resumeQueue": lambda params, request: self._pause(params, request, paused=False),
            "cancelTurn": self._cancel_turn,
            "answerPermission": self._answer_permission,
            "answerQuestion": self._answer_question,
            "setMode": self._set_mode,
            "setConfigOption": self._set_config_option,
            "authenticate": self._authenticate,
            "restartAgent": self._restart_agent,
            "status": self._status,
        }

    @property
    def methods(self) -> frozenset[str]:
        """Names without the prefix "agentik/"."""
        return frozenset(self._table)

    def request(self, method: str, params: Params, reply: Reply) -> None:
        self._app.enter_request(reply, lambda request: self._table[method](params, request))

    # --------------------------------------------------------------------------------------- agents

    def _list_agents(self, params: Params, request: int) -> None:
        del params
        agents = [
            {
                "agentId": row.agent_id,
                "name": row.name,
                "command": list(row.command),
                "available": row.available,
                "isDefault": row.is_default,
                **({"reason": row.reason} if row.reason else {}),
                **({"installHint": row.install_hint} if row.install_hint else {}),
            }
            for row in self._app.ports.agents.listed()
        ]
        self._app.answer(request, {"agents": agents})

    def _check_agent(self, params: Params, request: int) -> None:
        def done(ok: bool, detail: str, info: Mapping[str, object] | None) -> None:
            answer: dict[str, object] = {"ok": ok, "detail": detail}
            if info is not None:
                answer["agentInfo"] = info
            self._app.answer(request, answer)

        self._app.ports.agents.check(params["agentId"], done)

    # ------------------------------------------------------------------------------------- sessions

    def _new_session(self, params: Params, request: int) -> None:
        app = self._app
        spec = app.ports.agents.spec(params.get("agentId"))
        now = app.ports.clock()
        owner = saves.Owner(app.ports.server_id, 1)
        title = params.get("title") or ""
        facts = saves.SessionFacts(
            app.ports.new_id(), spec.agent_id, params["cwd"], title, now, now, owner=owner, title_by_user=bool(title)
        )

        def done(outcome: saves.Outcome) -> None:
            if not isinstance(outcome, saves.Done) or outcome.facts is None:
                app.refuse(request, "storeFailed", getattr(outcome, "detail", "the session could not be saved"))
                return
            app.open_session(facts.session_id)
            session = app.adopt(outcome.facts, owner, 1, QueueView())
            app.answer(request, {"session": shapes.session(session.facts, owned=True)})
            app.perform(facts.session_id, session.start_agent(self._app.ports.clock()))

        app.write(saves.CreateSession(facts), done)

    def _list_sessions(self, params: Params, request: int) -> None:
        read = saves.ReadSessions(
            params.get("cwd"), params.get("agentId"), params.get("query"), params.get("limit", 50), params.get("cursor")
        )

        def answer(page: saves.Page) -> Mapping[str, object]:
            assert isinstance(page, saves.SessionList)
            sessions = []
            for facts in page.sessions:
                session = self._app.session(facts.session_id)
                shown = facts if session is None else session.facts
                sessions.append(shapes.session(shown, owned=session is not None))
            return {"sessions": sessions} | ({"nextCursor": page.next_cursor} if page.next_cursor else {})

        self._app.read(read, request, answer)

    def _open_session(self, params: Params, request: int) -> None:
        session_id: str = params["sessionId"]
        self._app.open_session(session_id)
        read = saves.ReadSession(session_id, params.get("after"), params.get("limit", 200))

        def answer(page: saves.Page) -> Mapping[str, object]:
            assert isinstance(page, saves.SessionPage)
            session = self._app.session(session_id)
            if session is None and self._app.follower(session_id) is None:
                self._app.follow(page)
            return _opened(page, session)

        def use(session: Session | None) -> list[Any] | None:
            self._app.read(read, request, answer)
            return session.start_agent(self._app.ports.clock()) if session is not None else None

        self._app.with_session(session_id, request, use)

    def _close_session(self, params: Params, request: int) -> None:
        self._app.close_session(params["sessionId"])
        self._app.answer(request, {})

    def _delete_session(self, params: Params, request: int) -> None:
        def use(session: Session | None) -> list[Any]:
            if session is None:
                raise Refused("notOwner", "another editor runs this session: delete it there")
            return session.delete(request, self._app.ports.clock())

        self._app.with_session(params["sessionId"], request, use)

    def _rename_session(self, params: Params, request: int) -> None:
        app = self._app
        session_id, title, now = params["sessionId"], params["title"], app.ports.clock()

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.rename(title, request, now)
            changes = {"title": title, "title_by_user": True}
            app.write_and_answer(session_id, saves.SaveSession(session_id, None, changes, now), request)
            return None

        app.with_session(session_id, request, use)

    def _fork_session(self, params: Params, request: int) -> None:
        app = self._app

        def use(session: Session | None) -> list[Any]:
            if session is None:
                raise Refused("notOwner", "another editor runs this session: fork it there")
            if params.get("messageId") is not None:
                raise Refused("agentUnavailable", "agents can fork a session only at its end")
            return session.fork(request, app.ports.new_id(), app.ports.clock())

        app.with_session(params["sessionId"], request, use)

    def _import_sessions(self, params: Params, request: int) -> None:
        """Sessions that exist only at the agent get a row here; their history comes when they are opened."""
        app = self._app
        agent_id, cwd = params["agentId"], params["cwd"]

        def listed(found: Sequence[Mapping[str, object]] | None, why: str) -> None:
            if found is None:
                app.refuse(request, "agentUnavailable", why)
                return
            app.ports.store.read(
                saves.ReadSessions(cwd, agent_id, limit=WHOLE), lambda page: app.enter(lambda: compare(found, page))
            )

        def compare(found: Sequence[Mapping[str, object]], page: saves.Page) -> None:
            known = (
                {facts.agent_session_id for facts in page.sessions} if isinstance(page, saves.SessionList) else set()
            )
            new = [facts for item in found if (facts := self._foreign(item, agent_id, cwd)) is not None]
            new = [facts for facts in new if facts.agent_session_id not in known]
            made: list[saves.Outcome] = []

            def created(outcome: saves.Outcome) -> None:
                made.append(outcome)
                if len(made) == len(new):
                    sessions = [o.facts for o in made if isinstance(o, saves.Done) and o.facts is not None]
                    app.answer(request, {"sessions": [shapes.session(facts, owned=False) for facts in sessions]})

            for facts in new:
                app.write(saves.CreateSession(facts), created)
            if not new:
                app.answer(request, {"sessions": []})

        app.ports.agents.list_sessions(agent_id, cwd, lambda found, why: app.enter(lambda: listed(found, why)))

    def _foreign(self, item: Mapping[str, object], agent_id: str, cwd: str) -> saves.SessionFacts | None:
        """A session as an agent lists it."""
        agent_session_id, title = item.get("sessionId"), item.get("title")
        if not isinstance(agent_session_id, str) or item.get("cwd") not in {cwd, None}:
            return None
        now = self._app.ports.clock()
        return saves.SessionFacts(
            self._app.ports.new_id(),
            agent_id,
            cwd,
            title if isinstance(title, str) else "",
            now,
            now,
            agent_session_id=agent_session_id,
        )

    # ------------------------------------------------------------------------------------- messages

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

        def use(session: Session | None) -> list[Any] | None:
            now = app.ports.clock()
            if session is not None:
                return session.submit(draft, request, now, urgent=urgent)
            write = saves.Admit(session_id, None, draft, limits, False, urgent, "", 0, now)
            app.write_and_answer(session_id, write, request, self._steer(session_id) if urgent else None)
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

    # --------------------------------------------------------------------------------- pending queue

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

    def _steer(self, session_id: str) -> Callable[[], None]:
        """The owner is to cancel its turn, because a message was put before it."""
        return lambda: self._post(session_id, {"kind": "steer"}, None)

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
        self._queue_write(session_id, write, request, self._steer(session_id))

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

    # ------------------------------------------------------------------------- the turn and the agent

    def _cancel_turn(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.cancel(request, self._app.ports.clock())
            follower = self._app.follower(session_id)
            running = follower is not None and follower.facts.state != "idle"
            if not running:
                self._app.answer(request, {"cancelled": False})
                return None
            self._post(session_id, {"kind": "cancel"}, request, {"cancelled": True})
            return None

        self._app.with_session(session_id, request, use)

    def _answer_permission(self, params: Params, request: int) -> None:
        session_id, permission_id, option_id = params["sessionId"], params["permissionId"], params.get("optionId")

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.answer_permission(permission_id, option_id, request, self._app.ports.clock())
            follower = self._app.follower(session_id)
            open_asks = follower.asks if follower is not None else ()
            for ask in open_asks:
                if isinstance(ask, Permission) and ask.permission_id == permission_id:
                    if option_id is not None and option_id not in {option.option_id for option in ask.options}:
                        raise Refused("unknownOption", "the agent did not offer this option")
                    mail = {"kind": "answerPermission", "permissionId": permission_id, "optionId": option_id}
                    self._post(session_id, mail, request)
                    return None
            raise Refused("unknownPermission", "this request is not open any more")

        self._app.with_session(session_id, request, use)

    def _answer_question(self, params: Params, request: int) -> None:
        session_id, question_id = params["sessionId"], params["questionId"]
        action, content = params["action"], params.get("content")

        def use(session: Session | None) -> list[Any] | None:
            if session is not None:
                return session.answer_question(question_id, action, content, request, self._app.ports.clock())
            follower = self._app.follower(session_id)
            asks = follower.asks if follower is not None else ()
            if not any(isinstance(ask, Question) and ask.question_id == question_id for ask in asks):
                raise Refused("unknownPermission", "this question is not open any more")
            mail = {"kind": "answerQuestion", "questionId": question_id, "action": action, "content": content}
            self._post(session_id, mail, request)
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
            self._post(session_id, {"kind": "restart"}, request)
            return None

        self._app.with_session(session_id, request, use)

    def _post(
        self,
        session_id: str,
        mail: Mapping[str, object],
        request: int | None,
        answer: Mapping[str, object] | None = None,
    ) -> None:
        """A wish for the process that owns the session."""

        def done(outcome: saves.Outcome) -> None:
            if isinstance(outcome, saves.Done):
                self._app.answer(request, answer or {})
            else:
                self._app.refuse(request, "storeFailed", getattr(outcome, "detail", "not saved"))

        self._app.write(saves.PostMail(session_id, mail, self._app.ports.clock()), done)

    # --------------------------------------------------------------------------------------- status

    def _status(self, params: Params, request: int) -> None:
        del params
        app = self._app

        def answer(page: saves.Page) -> Mapping[str, object]:
            assert isinstance(page, saves.StoreStatus)
            sessions = [
                {
                    "sessionId": session.session_id,
                    "agentId": session.facts.agent_id,
                    "state": session.facts.state,
                    "connection": session.facts.connection,
                    "pauseReason": session.facts.pause_reason,
                }
                for session in app.sessions()
            ]
            return {
                **app.settings.about(),
                "sessions": sessions,
                "agents": list(app.ports.agents.processes()),
                "queues": {session.session_id: len(session.queue.items) for session in app.sessions()},
                "store": {
                    "schemaVersion": page.schema_version,
                    "sessions": page.sessions,
                    "messages": page.messages,
                    "pending": page.pending,
                    "bytes": page.bytes_on_disk,
                },
            }

        app.read(saves.ReadStatus(), request, answer)


def _opened(page: saves.SessionPage, session: Session | None) -> Mapping[str, object]:
    """The result of openSession. What the owner holds in memory is newer than the page and replaces it."""
    messages = {message.message_id: message for message in page.messages}
    if session is not None:
        messages.update({message.message_id: message for message in session.live()})
    queue = page.queue if session is None else session.queue
    facts = (page.facts if session is None else session.facts).with_queue(queue)
    asks = page.asks if session is None else session.asks
    return {
        "session": shapes.session(facts, owned=session is not None),
        "messages": [shapes.message(m) for m in sorted(messages.values(), key=lambda m: m.seq)],
        "more": page.more,
        "pending": [shapes.pending_item(item) for item in queue.items],
        "permissions": [shapes.permission(ask) for ask in asks if isinstance(ask, Permission)],
        "questions": [shapes.question(ask) for ask in asks if isinstance(ask, Question)],
        "revision": page.revision,
    }
