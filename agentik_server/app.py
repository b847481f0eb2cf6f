"""All sessions and the ports: what happened goes in, the effects of the domain are carried out in order.

One choke point: everything enters through `enter`, so nothing interleaves with the effects of what came before.
Must not wait: no async, no futures, no clock and no randomness of its own; what takes time comes back as a call.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import assert_never

from agentik_server import shapes
from agentik_server.domain import effects as want
from agentik_server.domain import news, saves
from agentik_server.domain.audience import Audience
from agentik_server.domain.following import Follower
from agentik_server.domain.happenings import Happening, HistoryReplayed, StartFailed
from agentik_server.domain.mail import read_mail
from agentik_server.domain.pending import QueueView
from agentik_server.domain.policy import SessionPolicy
from agentik_server.domain.refusal import Refused
from agentik_server.domain.session import Session
from agentik_server.ports import AgentLink, Agents, AgentSpec, Editor, Launch, PromptBlock, Reply, Store, Timers

log = logging.getLogger(__name__)

NEVER = 1 << 62  # a revision that no row reaches: a page without messages
WHOLE = 1 << 30  # a limit that no transcript reaches


@dataclass(frozen=True, slots=True)
class AppSettings:
    """What the application obeys; the rest of the settings belongs to the adapters."""

    policy: SessionPolicy = field(default_factory=SessionPolicy)
    pause_restored: bool = True  # B31
    attachments_dir: str = ""
    about: Callable[[], Mapping[str, object]] = dict  # versions, folders, errors: for agentik/status


@dataclass(frozen=True, slots=True)
class Ports:
    store: Store
    editor: Editor
    agents: Agents
    timers: Timers
    clock: Callable[[], int]  # milliseconds since the epoch
    new_id: Callable[[], str]
    server_id: str  # names this process's lock (B59)


@dataclass(slots=True)
class _Owned:
    session: Session
    link: AgentLink


Use = Callable[[Session | None], Iterable[want.Effect] | None]


class App:
    """See the module. `requests.Requests` is the table of the protocol's methods on top of it."""

    def __init__(self, ports: Ports, settings: AppSettings) -> None:
        self.ports = ports
        self.settings = settings
        self._owned: dict[str, _Owned] = {}
        self._followed: dict[str, Follower] = {}
        self._refreshing: dict[str, bool] = {}
        self.audience = Audience()
        self._taking: dict[str, list[tuple[Use, int | None]]] = {}
        self._replies: dict[int, Reply] = {}
        self._request_count = 0
        self._inbox: deque[Callable[[], None]] = deque()
        self._running = False
        self._closing = False

    # ------------------------------------------------------------------------------------ what comes in

    def timer_fired(self, name: tuple[str, ...]) -> None:
        """`name` = (session id, timer of the session)."""
        session_id, timer = name
        self.enter(lambda: self._with_owned(session_id, lambda s: s.timer_fired(timer, self.ports.clock())))

    def tick(self) -> None:
        """The sync tick (B23): drains what waits in free sessions, takes over what a dead process left."""
        self.enter(self._tick)

    def foreign_commit(self) -> None:
        """Another process committed something to the database."""
        self.enter(self._look_at_all)

    def close(self) -> None:
        """The end begins: what is unsaved is saved as it stands, nothing new begins, what is committed is answered."""
        self.enter(self._close)

    def closed(self) -> None:
        """The store carries nothing out any more: what is still open was not done."""
        for request in list(self._replies):
            self.refuse(request, "storeFailed", "the server is ending")

    def happened(self, session_id: str, happening: Happening) -> None:
        """An agent link tells something."""
        if isinstance(happening, HistoryReplayed):
            self.enter(lambda: self._compare_history(session_id, happening))
        self.enter(lambda: self._with_owned(session_id, lambda s: s.happened(happening, self.ports.clock())))

    def enter(self, step: Callable[[], None]) -> None:
        """In order, never nested: a port that calls back at once is heard after the current step."""
        self._inbox.append(step)
        if self._running:
            return
        self._running = True
        try:
            while self._inbox:
                try:
                    self._inbox.popleft()()
                except Exception:  # a bug must not end the server: one traceback, the session lives on (law 6)
                    log.exception("a step failed")
        finally:
            self._running = False

    # -------------------------------------------------------------------------------- for the requests

    def enter_request(self, reply: Reply, step: Callable[[int], None]) -> None:
        """Run `step(request)`; a Refused becomes the answer."""
        self._request_count += 1
        request = self._request_count
        self._replies[request] = reply

        def run() -> None:
            if self._closing:
                self.refuse(request, "storeFailed", "the server is ending")
                return
            try:
                step(request)
            except Refused as refused:
                self.refuse(request, refused.reason, refused.message)
            except Exception:
                self._replies.pop(request, None)
                reply.refuse("internal", "internal error, see the log")
                raise

        self.enter(run)

    def answer(self, request: int | None, value: Mapping[str, object]) -> None:
        reply = self._replies.pop(request, None) if request is not None else None
        if reply is not None:
            reply.result(value)

    def refuse(self, request: int | None, reason: str, message: str) -> None:
        reply = self._replies.pop(request, None) if request is not None else None
        if reply is not None:
            reply.refuse(reason, message)

    def open_session(self, session_id: str) -> None:
        """Its notifications are sent from now on (subscribe first, then fetch: B55)."""
        self.audience.opened(session_id)

    def close_session(self, session_id: str) -> None:
        self.audience.closed(session_id)
        self._followed.pop(session_id, None)

    def session(self, session_id: str) -> Session | None:
        """The session, where this process owns it."""
        owned = self._owned.get(session_id)
        return owned.session if owned is not None else None

    def sessions(self) -> list[Session]:
        return [owned.session for owned in self._owned.values()]

    def follower(self, session_id: str) -> Follower | None:
        return self._followed.get(session_id)

    def with_session(self, session_id: str, request: int | None, use: Use) -> None:
        """Call `use` with the session, taking its ownership first where nobody alive has it; None = another has it."""
        owned = self._owned.get(session_id)
        if owned is not None:
            self._use(owned.session, request, use)
            return
        waiting = self._taking.setdefault(session_id, [])
        waiting.append((use, request))
        if len(waiting) == 1:
            self._take(session_id)

    def look(self, session_id: str, request: int, use: Callable[[saves.SessionPage], None]) -> None:
        """Call `use` with the session as it is committed now; a Refused becomes the answer."""

        def done(page: saves.Page) -> None:
            if isinstance(page, saves.SessionPage):
                try:
                    use(page)
                except Refused as refused:
                    self.refuse(request, refused.reason, refused.message)
            else:
                reason = page.reason if isinstance(page, saves.Denied) else "storeFailed"
                self.refuse(request, reason, getattr(page, "message", "the session could not be read"))

        read = saves.ReadSession(session_id, after=NEVER)
        self.ports.store.read(read, lambda page: self.enter(lambda: done(page)))

    def read(self, read: saves.Read, request: int, answer: Callable[[saves.Page], Mapping[str, object]]) -> None:
        """Answer a request from a page of the store."""

        def done(page: saves.Page) -> None:
            if isinstance(page, saves.Denied):
                self.refuse(request, page.reason, page.message)
            elif isinstance(page, saves.Failed):
                self.refuse(request, "storeFailed", page.detail)
            else:
                self.answer(request, answer(page))

        self.ports.store.read(read, lambda page: self.enter(lambda: done(page)))

    def write(self, write: saves.Write, done: Callable[[saves.Outcome], None]) -> None:
        """A write that belongs to no session of this process."""
        self.ports.store.write(write, lambda outcome: self.enter(lambda: done(outcome)))

    def write_and_answer(
        self, session_id: str, write: saves.Write, request: int, then: Callable[[], None] | None = None
    ) -> None:
        """A write to a session of another process: answered, and then seen like everything of that session.

        `then` is called when it was done, not when it was refused or had been done before.
        """

        def done(outcome: saves.Outcome) -> None:
            match outcome:
                case saves.Admitted():
                    message_id = getattr(write, "message_id", None) or write.draft.message_id  # type: ignore[union-attr]
                    self.answer(request, {"messageId": message_id, "disposition": outcome.disposition})
                case saves.Done() if isinstance(write, saves.ApplyPendingEdits):
                    self.answer(request, {"results": shapes.edit_results(outcome.results)})
                case saves.Denied():
                    self.refuse(request, outcome.reason, outcome.message)
                case saves.Failed():
                    self.refuse(request, "storeFailed", f"not saved: {outcome.detail}")
                case _:
                    self.answer(request, {})
            new = isinstance(outcome, saves.Done) or (isinstance(outcome, saves.Admitted) and not outcome.repeated)
            if new and then is not None:
                then()
            self.refresh(session_id)

        self.write(write, done)

    def post_mail(
        self,
        session_id: str,
        mail: Mapping[str, object],
        request: int | None,
        answer: Mapping[str, object] | None = None,
    ) -> None:
        """A wish for the process that owns the session (see domain/mail)."""

        def done(outcome: saves.Outcome) -> None:
            if isinstance(outcome, saves.Done):
                self.answer(request, answer or {})
            else:
                self.refuse(request, "storeFailed", getattr(outcome, "detail", "not saved"))

        self.write(saves.PostMail(session_id, mail, self.ports.clock()), done)

    def adopt(self, facts: saves.SessionFacts, owner: saves.Owner, next_seq: int, queue: QueueView) -> Session:
        """From now on this process runs the session's turns."""
        session = Session(facts, owner, self.settings.policy, next_seq, queue)
        link = self.ports.agents.link(facts.session_id, partial(self.happened, facts.session_id))
        self._owned[facts.session_id] = _Owned(session, link)
        self._followed.pop(facts.session_id, None)
        return session

    def perform(self, session_id: str, effects: Iterable[want.Effect]) -> None:
        owned = self._owned.get(session_id)
        if owned is None:
            return
        for effect in effects:
            if not self._closing or isinstance(effect, want.Answer | want.Refuse):
                self._perform(owned, effect)

    def show(self, item: news.News) -> None:
        """Tell the editor, if it is to hear of it."""
        if self.audience.hears(item):
            self.ports.editor.notify(*shapes.notification(item))

    def follow(self, page: saves.SessionPage) -> None:
        """Another process owns this session: remember what was shown of it, and look what came since (B55)."""
        self._followed[page.facts.session_id] = Follower(page)
        self.refresh(page.facts.session_id)

    def when_followed(self, session_id: str, request: int, then: Callable[[], None]) -> None:
        """`then` is called when what becomes of another process's session is heard here, also if it is not open."""

        def use(page: saves.SessionPage) -> None:
            if session_id not in self._followed and session_id not in self._owned:
                self.follow(page)
            then()

        if session_id in self._followed:
            then()
        else:
            self.look(session_id, request, use)

    def refresh(self, session_id: str) -> None:
        """Look at a followed session; one look at a time, and one more if something came meanwhile."""
        follower = self._followed.get(session_id)
        if follower is None:
            return
        if session_id in self._refreshing:
            self._refreshing[session_id] = True
            return
        self._refreshing[session_id] = False

        def done(page: saves.Page) -> None:
            again = self._refreshing.pop(session_id)
            if self._followed.get(session_id) is follower and isinstance(page, saves.SessionPage):
                for item in follower.seen(page):
                    self.show(item)
            elif isinstance(page, saves.Denied):
                self._followed.pop(session_id, None)
                for item in follower.gone():
                    self.show(item)
            if again:
                self.refresh(session_id)

        read = saves.ReadSession(session_id, after=follower.revision)
        self.ports.store.read(read, lambda page: self.enter(lambda: done(page)))

    # ------------------------------------------------------------------------------------ ownership

    def _take(self, session_id: str) -> None:
        write = saves.TakeSession(session_id, self.ports.server_id, self.settings.pause_restored, self.ports.clock())
        self.write(write, lambda outcome: self._taken(session_id, outcome))

    def _taken(self, session_id: str, outcome: saves.Outcome) -> None:
        """Before a followed session becomes ours, its editor hears the last of what its former owner committed."""
        follower = self._followed.get(session_id)
        if follower is None or not isinstance(outcome, saves.Taken) or outcome.owner is None:
            self._go_on(session_id, outcome)
            return

        def looked(page: saves.Page) -> None:
            if isinstance(page, saves.SessionPage):
                for item in follower.seen(page):
                    self.show(item)
            self._go_on(session_id, outcome)
            self._look_at(session_id)  # others may have written since it was taken

        read = saves.ReadSession(session_id, after=follower.revision)
        self.ports.store.read(read, lambda page: self.enter(lambda: looked(page)))

    def _go_on(self, session_id: str, outcome: saves.Outcome) -> None:
        """What waited for the ownership, now that it is known who has it."""
        waiting = self._taking.pop(session_id, [])
        if not isinstance(outcome, saves.Taken):
            for _, request in waiting:
                if isinstance(outcome, saves.Denied):
                    self.refuse(request, outcome.reason, outcome.message)
                else:
                    self.refuse(request, "storeFailed", getattr(outcome, "detail", "the session could not be opened"))
            return
        session = None
        if outcome.owner is not None:
            session = self.adopt(outcome.facts, outcome.owner, outcome.next_seq, outcome.queue)
            self._show_taken(session, outcome)
            for mail in outcome.mail:
                self._read_mail(session_id, mail)
        for use, request in waiting:
            self._use(session, request, use)

    def _show_taken(self, session: Session, taken: saves.Taken) -> None:
        """An editor that had followed the session sees what the takeover changed."""
        session_id = session.session_id
        self.show(news.SessionChanged(session.facts, owned=True))
        for message in taken.messages:
            self.show(news.MessageUpdated(session_id, message))
        self.show(news.PendingChanged(session_id, taken.queue))
        if taken.interrupted:
            text = "The last turn was interrupted because the server ended; its outcome is not known."
            self.show(news.Notice("warning", text, session_id))
        if taken.restored:
            count = len(taken.queue.items)
            text = f"{count} waiting message{'s' if count != 1 else ''} restored and paused: resume to send."
            self.show(news.Notice("info", text, session_id))

    def _use(self, session: Session | None, request: int | None, use: Use) -> None:
        try:
            effects = use(session)
        except Refused as refused:
            self.refuse(request, refused.reason, refused.message)
            return
        if session is not None and effects is not None:
            self.perform(session.session_id, effects)

    def _lost(self, session_id: str) -> None:
        """Another process took the session: its agent ends here, and it is followed from now on."""
        owned = self._owned.pop(session_id, None)
        if owned is None:
            return
        log.warning("session %s was taken over by another process", session_id)
        owned.link.kill()
        if self.audience.shows(session_id):
            read = saves.ReadSession(session_id, limit=1)
            self.ports.store.read(read, lambda page: self.enter(lambda: self._follow_page(page)))

    def _follow_page(self, page: saves.Page) -> None:
        if isinstance(page, saves.SessionPage):
            self.follow(page)
            self.show(news.SessionChanged(page.facts, owned=False))

    # -------------------------------------------------------------------------------------- looking

    def _tick(self) -> None:
        now = self.ports.clock()
        for session_id in list(self._owned):
            self._with_owned(session_id, lambda s: s.tick(now))
        for session_id in list(self._followed):
            self.with_session(session_id, None, lambda session: session.start_agent(now) if session else None)

    def _look_at_all(self) -> None:
        for session_id in list(self._followed):
            self.refresh(session_id)
        for session_id in list(self._owned):
            self._look_at(session_id)

    def _look_at(self, session_id: str) -> None:
        read = saves.ReadSession(session_id, after=NEVER)
        self.ports.store.read(read, lambda page: self.enter(lambda: self._looked(page)))

    def _looked(self, page: saves.Page) -> None:
        if not isinstance(page, saves.SessionPage):
            return
        owned = self._owned.get(page.facts.session_id)
        if owned is None:
            return
        if page.mail_waiting:
            session = owned.session
            self._save(owned, saves.TakeMail(session.session_id, session.owner))
        self._with_owned(page.facts.session_id, lambda s: s.committed(page.facts, page.queue, self.ports.clock()))

    # -------------------------------------------------------------------------------- carrying out

    def _with_owned(self, session_id: str, use: Callable[[Session], Iterable[want.Effect]]) -> None:
        owned = self._owned.get(session_id)
        if owned is not None and not self._closing:
            self.perform(session_id, use(owned.session))

    def _perform(self, owned: _Owned, effect: want.Effect) -> None:  # noqa: PLR0912 -- a table
        session_id = owned.session.session_id
        match effect:
            case want.Save(write):
                self._save(owned, write)
            case want.Show(item):
                self.show(item)
            case want.Answer(request, value):
                self.answer(request, value)
            case want.Refuse(request, reason, message):
                self.refuse(request, reason, message)
            case want.StartAgent():
                self._start_agent(owned, effect)
            case want.SendPrompt(turn_id, messages, quiet):
                blocks = [PromptBlock(message.text, message.attachments) for message in messages]
                owned.link.prompt(turn_id, blocks, quiet=quiet)
            case want.CancelPrompt(turn_id):
                owned.link.cancel(turn_id)
            case want.AnswerPermission(permission_id, option_id):
                owned.link.answer_permission(permission_id, option_id)
            case want.AnswerQuestion(question_id, action, content):
                owned.link.answer_question(question_id, action, content)
            case want.CallAgent(request, method, params):
                owned.link.call(str(request), method, params)
            case want.StopAgent():
                owned.link.stop()
            case want.KillAgent():
                owned.link.kill()
            case want.SetTimer(name, seconds):
                self.ports.timers.set((session_id, name), seconds)
            case want.CancelTimer(name):
                self.ports.timers.cancel((session_id, name))
            case _:
                assert_never(effect)

    def _start_agent(self, owned: _Owned, start: want.StartAgent) -> None:
        facts = owned.session.facts
        try:
            spec: AgentSpec = self.ports.agents.spec(facts.agent_id)
        except Refused as refused:
            detail = refused.message
            self.enter(lambda: self._agent_unknown(facts.session_id, detail))
            return
        launch = Launch(
            session_id=facts.session_id,
            spec=spec,
            cwd=facts.cwd,
            agent_session_id=start.agent_session_id,
            attachments_dir=self.settings.attachments_dir,
            want_history=start.want_history,
        )
        owned.link.start(launch, start.attempt)

    def _compare_history(self, session_id: str, history: HistoryReplayed) -> None:
        """B54: what the agent replayed is held against the store's record."""

        def done(page: saves.Page) -> None:
            if isinstance(page, saves.SessionPage):
                now = self.ports.clock()
                self._with_owned(session_id, lambda s: s.take_history(page.messages, history.entries, now))

        read = saves.ReadSession(session_id, limit=WHOLE)
        self.ports.store.read(read, lambda page: self.enter(lambda: done(page)))

    def _agent_unknown(self, session_id: str, detail: str) -> None:
        self._with_owned(session_id, lambda s: s.happened(StartFailed("missing", detail), self.ports.clock()))

    def _save(self, owned: _Owned, write: saves.Write) -> None:
        self.write(write, lambda outcome: self._saved(owned, write, outcome))

    def _saved(self, owned: _Owned, write: saves.Write, outcome: saves.Outcome) -> None:
        session_id = owned.session.session_id
        current = self._owned.get(session_id)
        request: int | None = getattr(write, "request", None)
        if isinstance(outcome, saves.Fenced) or current is not owned:
            self.refuse(request, "notOwner", "another editor runs this session now")
            if current is owned:
                self._lost(session_id)
            return
        self.perform(session_id, owned.session.stored(write, outcome, self.ports.clock()))
        if isinstance(write, saves.TakeMail) and isinstance(outcome, saves.Done):
            for mail in outcome.mail:
                self._read_mail(session_id, mail)
        if isinstance(write, saves.ForkSession) and isinstance(outcome, saves.Done) and outcome.facts is not None:
            self.answer(request, {"session": shapes.session(outcome.facts, owned=False)})
        if isinstance(write, saves.DeleteSession) and isinstance(outcome, saves.Done):
            self._owned.pop(session_id, None)
            self.audience.closed(session_id)

    def _read_mail(self, session_id: str, mail: Mapping[str, object]) -> None:
        try:
            self._with_owned(session_id, lambda s: read_mail(s, mail, self.ports.clock()))
        except Refused as refused:
            log.info("mail came too late: %s", refused.message)

    def _close(self) -> None:
        for session_id in list(self._owned):
            self._with_owned(session_id, lambda s: s.save_all(self.ports.clock()))
        self._closing = True
