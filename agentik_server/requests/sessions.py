"""Sessions: made, listed, opened, renamed, deleted, forked, imported. One function a method; no rule of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentik_server import shapes
from agentik_server.app import NEVER, WHOLE, App
from agentik_server.domain import saves
from agentik_server.domain.message import Permission, Question
from agentik_server.domain.pending import QueueView
from agentik_server.domain.refusal import Refused
from agentik_server.domain.session import Session
from agentik_server.requests.base import Params, Table


class SessionRequests:
    def __init__(self, app: App) -> None:
        self._app = app
        self.table: Table = {
            "newSession": self._new_session,
            "listSessions": self._list_sessions,
            "openSession": self._open_session,
            "closeSession": self._close_session,
            "deleteSession": self._delete_session,
            "renameSession": self._rename_session,
            "forkSession": self._fork_session,
            "importSessions": self._import_sessions,
        }

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
            return _opened(page, session, read.after)

        def use(session: Session | None) -> list[Any] | None:
            self._app.read(read, request, answer)
            return session.start_agent(self._app.ports.clock()) if session is not None else None

        self._app.with_session(session_id, request, use)

    def _close_session(self, params: Params, request: int) -> None:
        session_id = params["sessionId"]
        self._app.close_session(session_id)
        self._app.read(saves.ReadSession(session_id, after=NEVER), request, lambda _: {})

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


def _opened(page: saves.SessionPage, session: Session | None, after: int | None) -> Mapping[str, object]:
    """The result of openSession. What the owner holds in memory is newer than the page and replaces it."""
    messages = {message.message_id: message for message in page.messages}
    queue = page.queue
    if session is not None:
        messages.update({message.message_id: message for message in session.live(after)})
        queue = max(page.queue, session.queue, key=lambda view: view.revision)
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
