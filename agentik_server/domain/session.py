"""One conversation that this process owns: what is told to it, and what must be done (effects).

Every method returns effects to be carried out in order; a `Refused` means that nothing changed. No clock, no ids of its
own making, no waiting: times come in as arguments (milliseconds since the epoch). The parts: `run` (turns and queue),
`recorder` (the agent's messages), `asks` (permissions and questions), `row` (everything else that is known of it).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agentik_server.domain import happenings as told
from agentik_server.domain import news, saves
from agentik_server.domain.asking import Asks
from agentik_server.domain.effects import (
    Answer,
    AnswerPermission,
    CallAgent,
    Effect,
    KillAgent,
    Refuse,
    Save,
    Show,
    StopAgent,
)
from agentik_server.domain.history import missing
from agentik_server.domain.message import Message, Permission, Question
from agentik_server.domain.pending import Draft, QueueView, check_draft
from agentik_server.domain.policy import SessionPolicy
from agentik_server.domain.recorder import Recorder
from agentik_server.domain.refusal import Refused
from agentik_server.domain.row import SessionRow
from agentik_server.domain.run import Phase, Run
from agentik_server.domain.turn import Cause, Stage

HOLD_MS = 60_000  # B16
DELETION = 0  # no request has this name: nobody waits for the agent's answer


class Session:
    """See the module. `facts` is the session's row as it was when ownership was taken."""

    def __init__(
        self, facts: saves.SessionFacts, owner: saves.Owner, policy: SessionPolicy, next_seq: int, queue: QueueView
    ) -> None:
        self._out: list[Effect] = []
        self._policy = policy
        self._owner = owner
        self._row = SessionRow(facts, owner, self._out)
        self._recorder = Recorder(facts.session_id, owner, next_seq, policy, self._out)
        self._asks = Asks(facts.session_id, owner, policy.tools, self._out)
        self._run = Run(self._row, self._recorder, self._asks, policy, queue, self._out)
        self._login: int | None = None  # the request that authenticates
        self._forks: dict[int, str] = {}  # requests that fork, and the ids of the new sessions
        self._now = facts.updated_at
        self._shown = self._snapshot()

    # ------------------------------------------------------------------------------------- what it shows

    @property
    def session_id(self) -> str:
        return self._row.facts.session_id

    @property
    def owner(self) -> saves.Owner:
        return self._owner

    @property
    def queue(self) -> QueueView:
        return self._run.queue

    @property
    def asks(self) -> tuple[Permission | Question, ...]:
        return self._asks.open

    @property
    def is_free(self) -> bool:
        return self._run.phase is Phase.FREE

    @property
    def facts(self) -> saves.SessionFacts:
        return replace(self._row.facts, state=self._run.state).with_queue(self.queue)

    def live(self, after: int | None = None) -> tuple[Message, ...]:
        """Messages in memory that are newer than what the store holds; `after`: that changed since this revision."""
        return self._recorder.live(after)

    # ------------------------------------------------------------------------------ requests of editors

    def submit(self, draft: Draft, request: int | None, now: int, *, urgent: bool = False) -> list[Effect]:
        """A send (B2). Free: reserved for it at once, so nothing can come between. Raises Refused."""
        check_draft(draft, self._policy.limits)
        write = saves.Admit(
            session_id=self.session_id,
            owner=self._owner,
            draft=draft,
            limits=self._policy.limits,
            free=self._run.reserve(),
            urgent=urgent,
            turn_id=self._run.next_turn_id(),
            seq=self._recorder.reserve(1),
            now=now,
            request=request,
        )
        self._run.wish(1)
        return self._save(write, now)

    def resend(self, message_id: str, request: int | None, now: int) -> list[Effect]:
        """A message whose outcome is unknown, interrupted or failed goes again (B43)."""
        write = saves.Resend(
            session_id=self.session_id,
            owner=self._owner,
            message_id=message_id,
            free=self._run.reserve(),
            turn_id=self._run.next_turn_id(),
            seq=self._recorder.reserve(1),
            limits=self._policy.limits,
            now=now,
            request=request,
        )
        self._run.wish(1)
        return self._save(write, now)

    def change_queue(self, write: saves.Write, now: int) -> list[Effect]:
        """Edits, moves, removals, pause and hold: the rules are asked in the store's transaction."""
        if _goes_on(write):
            self._run.wish(1)
        return self._save(write, now)

    def cancel(self, request: int | None, now: int, cause: Cause = "cancel") -> list[Effect]:
        """B32–B34. Answers {cancelled}: false when nothing runs."""
        cancelled = self._run.cancel(cause)
        self._answer(request, {"cancelled": cancelled})
        return self._done(now)

    def answer_permission(
        self, permission_id: str, option_id: str | None, request: int | None, now: int
    ) -> list[Effect]:
        """The first answer wins. `option_id` None = cancelled. Raises Refused."""
        self._asks.answer_permission(permission_id, option_id)
        self._resumed_clock(now)
        self._answer(request, {})
        return self._done(now)

    def answer_question(
        self, question_id: str, action: str, content: object, request: int | None, now: int
    ) -> list[Effect]:
        """`action`: accept | decline | cancel. Raises Refused when it is not open any more."""
        self._asks.answer_question(question_id, action, content)
        self._resumed_clock(now)
        self._answer(request, {})
        return self._done(now)

    def call_agent(self, request: int, method: str, params: Mapping[str, object], now: int) -> list[Effect]:
        """Session control (modes, options, authenticate). Raises Refused while there is no agent."""
        if method == "authenticate":
            self._login = request
        elif not self._run.ready:
            raise Refused("agentUnavailable", "the agent is not running")
        self._out.append(CallAgent(request, method, params))
        return self._done(now)

    def fork(self, request: int, new_id: str, now: int) -> list[Effect]:
        """A copy that goes its own way, at the agent and here; the agent must be able to. Raises Refused."""
        if not self._run.ready or not self.is_free:
            raise Refused("agentUnavailable", "only an idle session with a running agent can be forked")
        self._forks[request] = new_id
        self._out.append(CallAgent(request, "fork", {"cwd": self._row.facts.cwd}))
        return self._done(now)

    def _forked(self, request: int, result: object, now: int) -> None:
        new_id = self._forks.pop(request)
        agent_session_id = result.get("sessionId") if isinstance(result, Mapping) else None
        if not isinstance(agent_session_id, str):
            self._out.append(Refuse(request, "agentUnavailable", "the agent gave no id of the fork"))
            return
        facts = self._row.facts
        copy = replace(
            facts,
            session_id=new_id,
            title=f"{facts.title} (fork)",
            created_at=now,
            updated_at=now,
            agent_session_id=agent_session_id,
            connection="disconnected",
            owner=None,
        )
        self._out.append(Save(saves.ForkSession(self.session_id, copy, request)))

    def start_agent(self, now: int) -> list[Effect]:
        """In the background, because a chat opened (B9)."""
        self._run.start_in_background()
        return self._done(now)

    def restart_agent(self, request: int | None, now: int) -> list[Effect]:
        self._run.restart()
        self._answer(request, {})
        return self._done(now)

    def rename(self, title: str, request: int | None, now: int) -> list[Effect]:
        self._row.rename(title, request, now)
        return self._done(now)

    def delete(self, request: int | None, now: int) -> list[Effect]:
        """The session, its queue and its agent go (B18)."""
        return self._save(saves.DeleteSession(self.session_id, self._owner, request), now)

    def save_all(self, now: int) -> list[Effect]:
        """The server ends: what is not saved yet is saved as it stands; the rest is as after a crash (B61)."""
        self._recorder.save_all(now)
        return self._done(now)

    # ------------------------------------------------------------------------------- time and other processes

    def tick(self, now: int) -> list[Effect]:
        """B23."""
        self._run.drain(now)
        return self._done(now)

    def committed(self, facts: saves.SessionFacts, queue: QueueView, now: int) -> list[Effect]:
        """The session as it stands in the store after a commit of another process."""
        self._row.seen(facts)
        self._run.see_others(queue, now)
        self._run.drain(now)
        return self._done(now)

    def take_history(self, ours: Iterable[Message], replay: Iterable[told.Replayed], now: int) -> list[Effect]:
        """`ours`: the whole transcript as the store has it. What the agent knows beyond that is added (B54)."""
        self._recorder.replayed(missing(tuple(ours), tuple(replay)), now)
        return self._done(now)

    def timer_fired(self, name: str, now: int) -> list[Effect]:
        match name:
            case "save":
                self._recorder.timer_fired(now)
            case "retry":
                self._run.retry()
            case "prompt":
                self._run.check_prompt(now)
            case "grace":
                self._run.grace_over()
            case "idle":
                self._run.idle_over()
            case "hold":
                self._out.append(Save(saves.HoldPending(self.session_id, 0, now)))
            case "journal" | "end":
                self._run.save_again()
            case _:
                raise ValueError(name)
        return self._done(now)

    # ------------------------------------------------------------------------------- outcomes of the store

    def stored(self, write: saves.Write, outcome: saves.Outcome, now: int) -> list[Effect]:
        """A write of this session ended. Must not be called with `Fenced` (the caller drops the session then)."""
        changed = isinstance(outcome, saves.Done) or (isinstance(outcome, saves.Admitted) and not outcome.repeated)
        if _goes_on(write) and not changed:
            self._run.wish(-1)
        match write:
            case saves.Admit() | saves.Resend():
                self._admitted(write, outcome, now)
            case saves.Claim():
                self._run.claimed(write, outcome, now)
            case saves.Journal():
                self._run.journaled(outcome, now)
            case saves.PutBack() | saves.EndTurn():
                self._run.end_saved(write, outcome, now)
            case saves.SaveMessages():
                self._recorder.saved(write, outcome)
            case saves.ForkSession():
                pass  # answered by the application, which knows how a session looks
            case saves.SaveSession():
                self._row.saved(write, outcome)
            case saves.DeleteSession() if isinstance(outcome, saves.Done):
                return self._deleted(write.request)
            case _ if isinstance(outcome, saves.Done):
                self._queue_changed(write, outcome, now)
        self._tell_failure(write, outcome)
        return self._done(now)

    def _deleted(self, request: int | None) -> list[Effect]:
        """What was open in it ends with it (B35). Nothing of it is told or saved afterwards."""
        self._asks.cancel_all()
        self._run.deleted()
        if self._run.ready and self._run.turn is None:  # the agent forgets it too, where it can
            self._out.extend((CallAgent(DELETION, "delete", {}), StopAgent()))
        else:
            self._out.append(KillAgent())
        self._out.append(Show(news.SessionDeleted(self.session_id)))
        self._answer(request, {})
        effects: list[Effect] = [effect for effect in self._out if not isinstance(effect, Save)]
        self._out.clear()
        return effects

    def _admitted(self, write: saves.Admit | saves.Resend, outcome: saves.Outcome, now: int) -> None:
        if not isinstance(outcome, saves.Admitted):
            self._run.not_admitted(write, now)
            return
        message_id = write.draft.message_id if isinstance(write, saves.Admit) else write.message_id
        self._answer(write.request, {"messageId": message_id, "disposition": outcome.disposition})
        self._run.admitted(write, outcome, now)

    def _queue_changed(self, write: saves.Write, outcome: saves.Done, now: int) -> None:
        """Edits of the queue, and the small records (asks, mail) whose outcome is of no further use."""
        request: int | None = getattr(write, "request", None)
        if isinstance(write, saves.ApplyPendingEdits):
            results = [
                {"messageId": message_id, "applied": reason is None, **({"reason": reason} if reason else {})}
                for message_id, reason in outcome.results
            ]
            self._answer(request, {"results": results})
        else:
            self._answer(request, {})
        if outcome.queue is None:
            return
        self._run.see(outcome.queue, now)
        if isinstance(write, saves.SendPendingNow):
            self._run.cancel("steer")
        self._run.drain(now)

    def _tell_failure(self, write: saves.Write, outcome: saves.Outcome) -> None:
        """Refused to the caller where there is one, else said aloud: no failure is silent (law 6)."""
        request: int | None = getattr(write, "request", None)
        match outcome:
            case saves.Denied() if request is not None:
                self._out.append(Refuse(request, outcome.reason, outcome.message))
            case saves.Failed() if request is not None:
                self._out.append(Refuse(request, "storeFailed", f"not saved: {outcome.detail}"))
            case saves.Failed():
                self._out.append(Show(news.Notice("error", f"not saved: {outcome.detail}", self.session_id)))
            case _:
                pass

    # ----------------------------------------------------------------------------- happenings at the agent

    def happened(self, happening: told.Happening, now: int) -> list[Effect]:  # noqa: PLR0912 -- a table
        """The agent, or its process, did something."""
        if not isinstance(happening, told.ConnectionChanged):
            self._resumed_clock(now)
        match happening:
            case told.TextArrived():
                self._recorder.text(happening, now)
            case told.ToolCallChanged():
                self._recorder.tool(happening.change, now)
            case told.PlanChanged():
                self._recorder.plan(happening.entries, now)
            case told.Remark():
                self._recorder.remark(happening.text, now)
            case told.PermissionAsked():
                self._permission_asked(happening, now)
            case told.QuestionAsked():
                self._asks.ask_question(
                    Question(
                        happening.question_id, self.session_id, happening.message, now, happening.schema, happening.url
                    )
                )
            case told.AskWithdrawn():
                self._asks.close(happening.ask_id, "withdrawn")
            case told.PromptWritten():
                self._run.written(happening.turn_id)
            case told.PromptAnswered():
                self._run.answered(happening, now)
            case told.PromptNotWritten():
                self._run.not_written(happening, now)
            case told.AgentReady():
                self._became_ready(happening, now)
            case told.StartFailed():
                if happening.auth_methods is not None:
                    self._row.merge_controls(told.Controls(), authMethods=happening.auth_methods)
                self._run.start_failed(happening)
            case told.AgentExited():
                self._run.exited(happening, now)
            case told.ConnectionChanged():
                self._row.set(connection=happening.connection)
                step = news.ConnectionStep(self.session_id, happening.connection, happening.detail, happening.attempt)
                self._out.append(Show(step))
            case told.ControlsChanged():
                self._row.merge_controls(happening.controls)
            case told.TitleSuggested():
                self._row.suggest_title(happening.title)
            case told.CallAnswered():
                self._call_answered(happening, now)
            case told.Activity() | told.HistoryReplayed():
                pass  # a history is brought together with the store's first: see take_history
        return self._done(now)

    def _permission_asked(self, happening: told.PermissionAsked, now: int) -> None:
        """B48: it may come before its tool call, and makes it."""
        tool = self._recorder.tool(happening.tool, now)
        turn = self._run.turn
        if turn is not None and turn.stage in {Stage.CANCELLING, Stage.ENDING}:
            self._out.append(AnswerPermission(happening.permission_id, None))
            return
        permission = Permission(happening.permission_id, self.session_id, tool, happening.options, now)
        self._asks.ask_permission(permission, by_policy=not happening.ours)

    def _became_ready(self, happening: told.AgentReady, now: int) -> None:
        if happening.agent_session_id != self._row.facts.agent_session_id:
            self._row.set(agent_session_id=happening.agent_session_id)
        self._row.merge_controls(happening.controls)
        self._row.forget_control("authMethods")
        if happening.context_reset:
            text = "The agent could not continue the earlier conversation: context was reset."
            self._recorder.remark(text, now)
            self._row.notice("warning", text)
        self._run.became_ready()

    def _call_answered(self, happening: told.CallAnswered, now: int) -> None:
        request = int(happening.token)
        logged_in = request == self._login and happening.error is None
        if request == self._login:
            self._login = None
        if happening.error is not None:
            self._forks.pop(request, None)
            self._out.append(Refuse(request, "agentUnavailable", happening.error))
            return
        if request in self._forks:
            self._forked(request, happening.result, now)
            return
        self._answer(request, {})
        if logged_in:
            self._run.start_in_background()
            pause = self.queue.pause
            if pause is not None and pause.reason == "auth":
                self._out.append(Save(saves.PauseQueue(self.session_id, paused=False)))

    # -------------------------------------------------------------------------------------------- helpers

    def _resumed_clock(self, now: int) -> None:
        """B41: the prompt's time-out counts from here."""
        if self._run.turn is not None:
            self._run.turn.last_activity = now

    def _save(self, write: saves.Write, now: int) -> list[Effect]:
        self._out.append(Save(write))
        return self._done(now)

    def _answer(self, request: int | None, value: Mapping[str, object]) -> None:
        if request is not None:
            self._out.append(Answer(request, value))

    def _snapshot(self) -> tuple[object, ...]:
        facts = self._row.facts
        queue = self._run.queue
        return (
            self._run.state,
            facts.connection,
            facts.title,
            facts.controls,
            facts.agent_session_id,
            len(queue.items),
            queue.pause,
        )

    def _done(self, now: int) -> list[Effect]:
        """The effects of this call, with the session's own change shown last."""
        snapshot = self._snapshot()
        if snapshot != self._shown:
            if snapshot[0] != self._shown[0]:
                self._row.set(state=self._run.state)
            self._shown = snapshot
            self._out.append(Show(news.SessionChanged(self.facts, owned=True)))
        self._row.save(now)
        effects = list(self._out)
        self._out.clear()
        return effects


def _goes_on(write: saves.Write) -> bool:
    """Whether the user wants by it that something is sent (B30)."""
    if isinstance(write, saves.PauseQueue):
        return not write.paused
    return isinstance(write, saves.Admit | saves.Resend | saves.SendPendingNow)
