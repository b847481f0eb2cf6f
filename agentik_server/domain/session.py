"""One conversation that this process owns: what is told to it, and what must be done (effects).

The states of a run: FREE → (ADMITTING | CLAIMING) → TURN → CLAIMING → ... → FREE. Every method returns effects to be
carried out in order; a `Refused` means that nothing changed. No clock, no ids of its own making, no waiting: times come
in as arguments (milliseconds since the epoch), the ids of turns are counted within the generation of ownership.
Must not know editors, agents or databases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from agentik_server.domain import happenings as told
from agentik_server.domain import news, saves
from agentik_server.domain.asking import Asks
from agentik_server.domain.effects import (
    Answer,
    AnswerPermission,
    AnswerQuestion,
    CallAgent,
    CancelPrompt,
    CancelTimer,
    Effect,
    KillAgent,
    Refuse,
    Save,
    SendPrompt,
    SetTimer,
    Show,
    StartAgent,
    StopAgent,
)
from agentik_server.domain.message import Message, Permission, Question, ToolCall
from agentik_server.domain.pending import Draft, Pause, QueueLimits, QueueView, check_draft
from agentik_server.domain.refusal import Refused
from agentik_server.domain.transcript import Transcript, merge_tool
from agentik_server.domain.turn import (
    Cause,
    Conclusion,
    Stage,
    Turn,
    conclude_by_answer,
    conclude_by_cause,
    conclude_by_error,
    conclude_by_exit,
)

HOLD_MS = 60_000  # B16
MAX_RESTARTS = 2  # of an agent that goes away before the prompt is written
DISPLAY_LENGTH = 1000  # characters of a queued message shown before the list itself arrives


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """The settings that a session obeys; times in seconds."""

    limits: QueueLimits = field(default_factory=QueueLimits)
    drain_all: bool = False
    pause_on_cancel: bool = True
    prompt_s: float = 300.0
    retry_delay_s: float = 0.3
    cancel_grace_s: float = 5.0
    idle_agent_s: float = 900.0
    save_s: float = 0.25
    sync_s: float = 2.0
    tools: Mapping[str, str] = field(default_factory=dict)


class Phase(Enum):
    FREE = "free"
    ADMITTING = "admitting"  # reserved for a message whose admission is being saved
    CLAIMING = "claiming"  # the head of the queue is being claimed
    TURN = "turn"


class Session:
    """See the module. `facts` is the session's row as it was when ownership was taken."""

    def __init__(
        self, facts: saves.SessionFacts, owner: saves.Owner, policy: SessionPolicy, next_seq: int, queue: QueueView
    ) -> None:
        self._facts = replace(facts, state="idle", connection="disconnected", owner=owner)
        self._owner = owner
        self._policy = policy
        self._queue = queue
        self._prefix = f"{facts.session_id}.{owner.generation}"
        self._transcript = Transcript(facts.session_id, next_seq, self._prefix)
        self._asks = Asks(policy.tools)
        self._phase = Phase.FREE
        self._turn: Turn | None = None
        self._turn_count = 0
        self._in_run = False  # between the first turn and the release: the state stays busy while the next is claimed
        self._cancel_latched: Cause | None = None
        self._ready = False
        self._starting = 0  # attempt that is under way, 0 = none
        self._quiet = False
        self._revive = False
        self._saving = False
        self._save_timer = False
        self._facts_saving = False
        self._facts_dirty: set[str] = set()
        self._conclusion: Conclusion | None = None
        self._shown = self._snapshot()
        self._out: list[Effect] = []

    # ------------------------------------------------------------------------------------- what it shows

    @property
    def session_id(self) -> str:
        return self._facts.session_id

    @property
    def owner(self) -> saves.Owner:
        return self._owner

    @property
    def queue(self) -> QueueView:
        return self._queue

    @property
    def asks(self) -> tuple[Permission | Question, ...]:
        return self._asks.open

    @property
    def is_free(self) -> bool:
        return self._phase is Phase.FREE

    @property
    def agent_runs(self) -> bool:
        return self._ready or self._starting > 0

    @property
    def facts(self) -> saves.SessionFacts:
        return replace(
            self._facts,
            state=self._state(),
            pending_count=len(self._queue.items),
            paused=self._queue.pause is not None,
        )

    def live(self) -> tuple[Message, ...]:
        """Messages in memory that are newer than what the store holds."""
        return self._transcript.live()

    # ------------------------------------------------------------------------------ requests of editors

    def submit(self, draft: Draft, request: int | None, now: int, *, urgent: bool = False) -> list[Effect]:
        """A send (B2). Free: reserved for it at once, so nothing can come between. Raises Refused."""
        check_draft(draft, self._policy.limits)
        free = self._phase is Phase.FREE
        if free:
            self._phase = Phase.ADMITTING
        self._save(
            saves.Admit(
                session_id=self.session_id,
                owner=self._owner,
                draft=draft,
                limits=self._policy.limits,
                free=free,
                urgent=urgent,
                turn_id=self._next_turn_id(),
                seq=self._transcript.reserve(1),
                now=now,
                request=request,
            )
        )
        return self._done()

    def resend(self, message_id: str, request: int | None, now: int) -> list[Effect]:
        """A message whose outcome is unknown, interrupted or failed goes again (B43)."""
        free = self._phase is Phase.FREE
        if free:
            self._phase = Phase.ADMITTING
        self._save(
            saves.Resend(
                session_id=self.session_id,
                owner=self._owner,
                message_id=message_id,
                free=free,
                turn_id=self._next_turn_id(),
                seq=self._transcript.reserve(1),
                limits=self._policy.limits,
                now=now,
                request=request,
            )
        )
        return self._done()

    def change_queue(self, write: saves.Write) -> list[Effect]:
        """Edits, moves, removals, pause and hold: the rules are asked in the store's transaction."""
        self._save(write)
        return self._done()

    def cancel(self, request: int | None, cause: Cause = "cancel") -> list[Effect]:
        """B32–B34. Answers {cancelled}: false when nothing runs."""
        cancelled = self._cancel(cause)
        if request is not None:
            self._out.append(Answer(request, {"cancelled": cancelled}))
        return self._done()

    def answer_permission(
        self, permission_id: str, option_id: str | None, request: int | None, now: int
    ) -> list[Effect]:
        """The first answer wins. `option_id` None = cancelled. Raises Refused."""
        if option_id is None:
            self._asks.permission(permission_id)
        else:
            self._asks.option(permission_id, option_id)
        self._out.append(AnswerPermission(permission_id, option_id))
        self._close_ask(permission_id, option_id or "cancelled", now)
        if request is not None:
            self._out.append(Answer(request, {}))
        return self._done()

    def answer_question(
        self, question_id: str, action: str, content: object, request: int | None, now: int
    ) -> list[Effect]:
        """`action`: accept | decline | cancel. Raises Refused when it is not open any more."""
        self._asks.question(question_id)
        self._out.append(AnswerQuestion(question_id, action, content))
        self._close_ask(question_id, action, now)
        if request is not None:
            self._out.append(Answer(request, {}))
        return self._done()

    def call_agent(self, request: int, method: str, params: Mapping[str, object]) -> list[Effect]:
        """Session control (modes, options, authenticate). Raises Refused while there is no agent."""
        if not self._ready and method != "authenticate":
            raise Refused("agentUnavailable", "the agent is not running")
        self._out.append(CallAgent(request, method, params))
        return self._done()

    def start_agent(self) -> list[Effect]:
        """In the background, because a chat opened: tries once and is silent (B9)."""
        if not self._ready and not self._starting:
            self._start(1)
        return self._done()

    def restart_agent(self, request: int | None) -> list[Effect]:
        """One keystroke out of a wedged agent: ends the turn as cancelled, kills the process, starts it again."""
        self._revive = True
        if self._turn is not None and self._turn.stage in {Stage.PROMPTING, Stage.CANCELLING}:
            self._turn.cause = self._turn.cause or "restart"
            self._turn.stage = Stage.CANCELLING
        if self.agent_runs:
            self._out.append(KillAgent())
        else:
            self._revived()
        if request is not None:
            self._out.append(Answer(request, {}))
        return self._done()

    def rename(self, title: str, request: int | None, now: int) -> list[Effect]:
        self._facts = replace(self._facts, title=title, title_by_user=True)
        self._save(
            saves.SaveSession(self.session_id, self._owner, {"title": title, "title_by_user": True}, now, request)
        )
        return self._done()

    def delete(self, request: int | None) -> list[Effect]:
        """The session, its queue and its agent go (B18)."""
        self._out.append(KillAgent())
        self._save(saves.DeleteSession(self.session_id, self._owner, request))
        return self._done()

    # ------------------------------------------------------------------------------- time and other processes

    def queue_seen(self, queue: QueueView, now: int) -> list[Effect]:
        """Another process changed the queue, or the sync tick looked at it (B23)."""
        self._see(queue, now)
        self._drain(now)
        return self._done()

    def timer_fired(self, name: str, now: int) -> list[Effect]:
        match name:
            case "save":
                self._save_timer = False
                self._flush(now)
            case "retry":
                if self._turn is not None and self._turn.stage is Stage.READYING and not self._ready:
                    self._start(2)
            case "prompt":
                self._check_prompt(now)
            case "grace":
                if self._turn is not None and self._turn.stage is Stage.CANCELLING:
                    self._revive = True
                    self._out.append(KillAgent())
            case "idle":
                if self._phase is Phase.FREE and self._ready:
                    self._out.append(StopAgent())
            case "hold":
                self._save(saves.HoldPending(self.session_id, 0, now))
            case "journal" | "end":
                self._repeat_save(now)
            case _:
                raise ValueError(name)
        return self._done()

    # ------------------------------------------------------------------------------- outcomes of the store

    def stored(self, write: saves.Write, outcome: saves.Outcome, now: int) -> list[Effect]:
        """A write of this session ended. Must not be called after `Fenced` (the caller drops the session)."""
        match write, outcome:
            case saves.Admit() | saves.Resend(), _:
                self._admitted(write, outcome, now)
            case saves.Claim(), saves.Claimed():
                self._claimed(write, outcome, now)
            case saves.Claim(), _:
                self._phase = Phase.FREE
                self._in_run = False
                self._store_failed(outcome)
            case saves.Journal(), saves.Done():
                self._journaled(now)
            case saves.Journal(), _:
                self._store_failed(outcome)
                self._out.append(SetTimer("journal", self._policy.sync_s))
            case saves.PutBack(), saves.Done():
                self._was_put_back(outcome, now)
            case saves.EndTurn(), saves.Done():
                self._ended(outcome, now)
            case saves.PutBack() | saves.EndTurn(), _:
                self._store_failed(outcome)
                self._unsaved_end = write
                self._out.append(SetTimer("end", self._policy.sync_s))
            case saves.SaveMessages(), _:
                self._messages_saved(write, outcome, now)
            case saves.SaveSession(), _:
                self._session_saved(write, outcome, now)
            case saves.DeleteSession(), saves.Done():
                self._out.append(Show(news.SessionDeleted(self.session_id)))
                self._answer(write.request, {})
            case _:
                self._queue_changed(write, outcome, now)
        return self._done()

    def _admitted(self, write: saves.Admit | saves.Resend, outcome: saves.Outcome, now: int) -> None:
        if write.free and not (isinstance(outcome, saves.Admitted) and outcome.disposition == "started"):
            self._phase = Phase.FREE
        cause, self._cancel_latched = (self._cancel_latched, None) if write.free else (None, self._cancel_latched)
        if not isinstance(outcome, saves.Admitted):
            self._refuse(write.request, outcome)
            self._drain(now)
            return
        message_id = write.draft.message_id if isinstance(write, saves.Admit) else write.message_id
        answer: dict[str, object] = {"messageId": message_id, "disposition": outcome.disposition}
        self._answer(write.request, answer)
        if outcome.repeated:
            self._phase = Phase.FREE if write.free else self._phase
            self._drain(now)
            return
        self._out.extend(Show(news.MessageUpdated(self.session_id, message)) for message in outcome.gone)
        if outcome.disposition == "started":
            self._see(outcome.queue, now)
            self._take_turn(write.turn_id, outcome.messages, now, cause)
            return
        self._show_queued(message_id, outcome.queue)
        self._see(outcome.queue, now)
        if isinstance(write, saves.Admit) and write.urgent:
            self._cancel("steer")
        self._drain(now)

    def _show_queued(self, message_id: str, queue: QueueView) -> None:
        for item in queue.items:
            if item.message_id == message_id:
                text = item.text[:DISPLAY_LENGTH]
                self._out.append(
                    Show(news.MessageQueued(self.session_id, message_id, text, item.position, queue.revision))
                )

    def _claimed(self, write: saves.Claim, outcome: saves.Claimed, now: int) -> None:
        cause, self._cancel_latched = self._cancel_latched, None
        self._see(outcome.queue, now)
        if outcome.messages:
            self._take_turn(write.turn_id, outcome.messages, now, cause)
            return
        self._phase = Phase.FREE
        self._in_run = False
        self._arm_idle()

    def _take_turn(self, turn_id: str, messages: tuple[Message, ...], now: int, cause: Cause | None) -> None:
        """The messages are in the transcript and journaled; the agent does not know them yet (B6)."""
        self._phase = Phase.TURN
        self._in_run = True
        self._turn = Turn(turn_id, messages, last_activity=now)
        self._out.append(CancelTimer("idle"))
        self._out.extend(Show(news.MessageReceived(self.session_id, message)) for message in messages)
        self._title_from(messages, now)
        if cause is not None:
            self._turn.cause = cause
            self._conclude(conclude_by_cause(cause, pause_on_cancel=self._policy.pause_on_cancel), now)
        elif self._ready:
            self._journal()
        elif not self._starting:
            self._start(1)

    def _journal(self) -> None:
        turn = self._turn
        if turn is not None and turn.stage is Stage.READYING and not turn.journaling:
            turn.journaling = True
            self._save(saves.Journal(self.session_id, self._owner, turn.turn_id))

    def _journaled(self, now: int) -> None:
        turn = self._turn
        if turn is None or turn.stage is not Stage.READYING:
            return  # cancelled meanwhile: the prompt is never written (B34)
        turn.journaling = False
        if not self._ready:
            if not self._starting:
                self._start_anew(turn, "the agent ended before the prompt was sent")
            return
        turn.stage = Stage.PROMPTING
        turn.shown = True
        turn.last_activity = now
        self._transcript.begin(turn.turn_id)
        self._out.append(Show(news.TurnStarted(self.session_id, turn.turn_id, turn.first_message_id)))
        self._out.append(SendPrompt(turn.turn_id, turn.messages, self._quiet))
        self._quiet = False
        self._out.append(SetTimer("prompt", self._policy.prompt_s))

    def _was_put_back(self, outcome: saves.Done, now: int) -> None:
        turn, self._turn = self._turn, None
        self._phase = Phase.FREE
        self._in_run = False
        conclusion, self._conclusion = self._conclusion, None
        self._out.extend(Show(news.MessageUpdated(self.session_id, message)) for message in outcome.messages)
        if outcome.queue is not None:
            for message in outcome.messages:
                self._show_queued(message.message_id, outcome.queue)
            self._see(outcome.queue, now)
        if turn is not None and turn.shown and conclusion is not None:
            self._out.append(
                Show(news.TurnEnded(self.session_id, turn.turn_id, conclusion.stop_reason, conclusion.error))
            )
        self._drain(now)

    def _ended(self, outcome: saves.Done, now: int) -> None:
        turn, self._turn = self._turn, None
        conclusion, self._conclusion = self._conclusion, None
        self._phase = Phase.FREE
        self._show_messages(outcome.messages)
        if turn is not None and conclusion is not None:
            ended = news.TurnEnded(
                self.session_id, turn.turn_id, conclusion.stop_reason, conclusion.error, conclusion.detail
            )
            self._out.append(Show(ended))
            self._quiet = conclusion.stop_reason in {"cancelled", "timeout"}
        if outcome.queue is not None:
            self._see(outcome.queue, now)
        self._drain(now)
        self._in_run = self._phase is not Phase.FREE
        if not self._in_run:
            self._arm_idle()
        self._revived()

    def _messages_saved(self, write: saves.SaveMessages, outcome: saves.Outcome, now: int) -> None:
        self._saving = False
        if isinstance(outcome, saves.Done):
            self._show_messages(outcome.messages)
        else:
            self._transcript.dirty_again(write.messages)
            self._store_failed(outcome)
            self._arm_save(self._policy.sync_s)
            return
        if self._transcript.has_dirty:
            self._arm_save(self._save_interval())
        del now

    def _show_messages(self, messages: tuple[Message, ...]) -> None:
        """As they stand now (newer than what was saved is never taken back); a growing text is shown by its chunks."""
        self._transcript.saved(messages)
        now_live = {message.message_id: message for message in self._transcript.live()}
        for message in messages:
            current = now_live.get(message.message_id, message)
            if not (current.status == "streaming" and current.kind in {"agent", "thought"}):
                self._out.append(Show(news.MessageUpdated(self.session_id, current)))

    def _session_saved(self, write: saves.SaveSession, outcome: saves.Outcome, now: int) -> None:
        if write.request is None:
            self._facts_saving = False
        if isinstance(outcome, saves.Done):
            if outcome.facts is not None:
                self._facts = replace(self._facts, revision=outcome.facts.revision, updated_at=outcome.facts.updated_at)
            self._answer(write.request, {})
            if write.request is not None:
                self._out.append(Show(news.SessionChanged(self.facts, owned=True)))
        else:
            self._refuse(write.request, outcome)
        self._save_facts(now)

    def _queue_changed(self, write: saves.Write, outcome: saves.Outcome, now: int) -> None:
        """Edits of the queue, and the small records (asks, mail) whose outcome is of no further use."""
        request: int | None = getattr(write, "request", None)
        if not isinstance(outcome, saves.Done):
            self._refuse(request, outcome)
            return
        if isinstance(write, saves.ApplyPendingEdits):
            results = [
                {"messageId": message_id, "applied": reason is None} | ({"reason": reason} if reason else {})
                for message_id, reason in outcome.results
            ]
            self._answer(request, {"results": results})
        else:
            self._answer(request, {})
        if outcome.queue is not None:
            self._see(outcome.queue, now)
            if isinstance(write, saves.SendPendingNow):
                self._cancel("steer")
            self._drain(now)

    def _repeat_save(self, now: int) -> None:
        """The store could not save a step of the turn; it is tried again until it can."""
        del now
        turn = self._turn
        if turn is None:
            return
        if turn.stage is Stage.ENDING and self._unsaved_end is not None:
            write, self._unsaved_end = self._unsaved_end, None
            self._save(write)
        elif turn.stage is Stage.READYING:
            turn.journaling = False
            self._journal()

    _unsaved_end: saves.Write | None = None

    # ----------------------------------------------------------------------------- happenings at the agent

    def happened(self, happening: told.Happening, now: int) -> list[Effect]:  # noqa: PLR0912 -- a table
        """The agent, or its process, did something."""
        if self._turn is not None and not isinstance(happening, told.ConnectionChanged):
            self._turn.last_activity = now
        match happening:
            case told.TextArrived():
                self._add_text(happening, now)
            case told.ToolCallChanged():
                self._transcript.change_tool(happening.change, now)
                self._changed(now)
            case told.PlanChanged():
                self._transcript.set_plan(happening.entries, now)
                self._changed(now)
            case told.Remark():
                self._transcript.remark(happening.text, now)
                self._changed(now)
            case told.PermissionAsked():
                self._permission_asked(happening, now)
            case told.QuestionAsked():
                question = Question(
                    happening.question_id, self.session_id, happening.message, now, happening.schema, happening.url
                )
                self._asks.add(question)
                self._save(saves.SaveAsk(self.session_id, self._owner, question))
                self._out.append(Show(news.QuestionPosed(self.session_id, question)))
            case told.AskWithdrawn():
                self._close_ask(happening.ask_id, "withdrawn", now)
            case told.PromptAnswered():
                self._answered(happening, now)
            case told.PromptNotWritten():
                self._not_written(happening, now)
            case told.AgentReady():
                self._became_ready(happening, now)
            case told.StartFailed():
                self._start_failed(happening, now)
            case told.AgentExited():
                self._exited(happening, now)
            case told.ConnectionChanged():
                self._facts = replace(self._facts, connection=happening.connection)
                self._out.append(
                    Show(
                        news.ConnectionStep(self.session_id, happening.connection, happening.detail, happening.attempt)
                    )
                )
                self._facts_changed("connection")
            case told.ControlsChanged():
                self._merge_controls(happening.controls)
            case told.TitleSuggested():
                if not self._facts.title_by_user and happening.title.strip():
                    self._facts = replace(self._facts, title=happening.title.strip())
                    self._facts_changed("title")
            case told.CallAnswered():
                self._call_answered(happening)
            case told.Activity():
                pass
        return self._done()

    def _add_text(self, happening: told.TextArrived, now: int) -> None:
        chunk = self._transcript.add_text(happening.kind, happening.text, happening.agent_message_id, now)
        self._out.append(
            Show(
                news.StreamingToken(
                    self.session_id,
                    chunk.turn_id,
                    chunk.message_id,
                    happening.kind,
                    chunk.offset,
                    happening.text,
                    chunk.seq,
                )
            )
        )
        self._arm_save(self._save_interval())

    def _permission_asked(self, happening: told.PermissionAsked, now: int) -> None:
        tool = merge_tool(ToolCall(happening.tool.tool_call_id), happening.tool)
        message = self._transcript.change_tool(happening.tool, now)
        self._changed(now)
        permission = Permission(happening.permission_id, self.session_id, message.tool or tool, happening.options, now)
        turn = self._turn
        if turn is not None and turn.stage in {Stage.CANCELLING, Stage.ENDING}:
            self._out.append(AnswerPermission(permission.permission_id, None))
            return
        decided = self._asks.decided(permission)
        if decided is not None:
            self._out.append(AnswerPermission(permission.permission_id, decided))
            return
        self._asks.add(permission)
        self._save(saves.SaveAsk(self.session_id, self._owner, permission))
        self._out.append(Show(news.PermissionRequested(self.session_id, permission)))

    def _answered(self, happening: told.PromptAnswered, now: int) -> None:
        turn = self._turn
        if turn is None or turn.turn_id != happening.turn_id or turn.stage is Stage.ENDING:
            return
        if turn.cause is not None:
            conclusion = conclude_by_cause(turn.cause, pause_on_cancel=self._policy.pause_on_cancel)
        elif happening.error is not None:
            conclusion = conclude_by_error(happening.error, auth=happening.auth_required)
        else:
            conclusion = conclude_by_answer(happening.stop_reason)
        self._conclude(conclusion, now)

    def _not_written(self, happening: told.PromptNotWritten, now: int) -> None:
        turn = self._turn
        if turn is None or turn.turn_id != happening.turn_id or turn.stage is Stage.ENDING:
            return
        if turn.cause is not None:
            self._conclude(conclude_by_cause(turn.cause, pause_on_cancel=self._policy.pause_on_cancel), now)
        else:
            self._put_back(Pause("error", happening.detail), happening.detail)

    def _became_ready(self, happening: told.AgentReady, now: int) -> None:
        self._ready = True
        self._starting = 0
        self._out.append(CancelTimer("retry"))
        self._facts = replace(self._facts, agent_session_id=happening.agent_session_id)
        self._facts_changed("agent_session_id")
        self._merge_controls(happening.controls)
        if happening.context_reset:
            text = "The agent could not continue the earlier conversation: context was reset."
            self._transcript.remark(text, now)
            self._changed(now)
            self._out.append(Show(news.Notice("warning", text, self.session_id)))
        self._journal()
        if self._phase is Phase.FREE:
            self._arm_idle()

    def _start_failed(self, happening: told.StartFailed, now: int) -> None:
        del now
        self._ready = False
        attempt, self._starting = self._starting, 0
        if happening.auth_methods is not None:
            self._merge_controls(told.Controls(), {"authMethods": happening.auth_methods})
        turn = self._turn
        if turn is None or turn.stage is not Stage.READYING:
            return
        if happening.reason != "authRequired" and attempt < 2:
            self._out.append(SetTimer("retry", self._policy.retry_delay_s))
            return
        self._out.append(Show(news.Notice("error", happening.detail, self.session_id)))
        reason = "auth" if happening.reason == "authRequired" else "start"
        self._put_back(Pause(reason, happening.detail), happening.detail)  # type: ignore[arg-type]  # one of the two

    def _exited(self, happening: told.AgentExited, now: int) -> None:
        self._ready = False
        self._starting = 0
        self._out.append(CancelTimer("idle"))
        for ask in self._asks.close_all():
            self._show_closed(ask, "cancelled")
        turn = self._turn
        if turn is not None and turn.stage in {Stage.PROMPTING, Stage.CANCELLING}:
            if turn.cause is not None:
                conclusion = conclude_by_cause(turn.cause, pause_on_cancel=self._policy.pause_on_cancel)
            else:
                conclusion = conclude_by_exit(happening.detail)
            self._conclude(conclusion, now)
        elif turn is not None and turn.stage is Stage.READYING and not turn.journaling:
            self._start_anew(turn, happening.detail)
        elif turn is None:
            self._revived()

    def _call_answered(self, happening: told.CallAnswered) -> None:
        request = int(happening.token)
        if happening.error is not None:
            self._out.append(Refuse(request, "agentUnavailable", happening.error))
            return
        self._answer(request, {})

    # ------------------------------------------------------------------------------------- steps of a turn

    def _cancel(self, cause: Cause) -> bool:
        if self._phase in {Phase.ADMITTING, Phase.CLAIMING}:
            # A send-now beside an admission does not cancel what is not there yet: its own item is urgent already.
            if cause == "cancel":
                self._cancel_latched = cause
            return True
        turn = self._turn
        if turn is None or turn.stage is Stage.ENDING:
            return False
        if turn.stage is Stage.READYING and cause == "steer":
            self._put_back(None, "another message goes first")  # nothing was sent: it waits behind the urgent one
        elif turn.stage is Stage.READYING:
            turn.cause = cause
            conclusion = conclude_by_cause(cause, pause_on_cancel=self._policy.pause_on_cancel)
            self._conclude(conclusion, turn.last_activity)
        elif turn.stage is Stage.PROMPTING:
            turn.cause = cause
            turn.stage = Stage.CANCELLING
            for ask in self._asks.close_all():
                self._answer_cancelled(ask)
                self._show_closed(ask, "cancelled")
            self._transcript.close_tools("cancelled")
            self._flush(turn.last_activity)
            self._out.append(CancelPrompt(turn.turn_id))
            self._out.append(CancelTimer("prompt"))
            self._out.append(SetTimer("grace", self._policy.cancel_grace_s))
        return True

    def _conclude(self, conclusion: Conclusion, now: int) -> None:
        """The one place where a turn ends (B35)."""
        turn = self._turn
        assert turn is not None
        turn.stage = Stage.ENDING
        self._conclusion = conclusion
        self._out.extend((CancelTimer("prompt"), CancelTimer("grace"), CancelTimer("retry")))
        for ask in self._asks.close_all():
            self._answer_cancelled(ask)
            self._show_closed(ask, "cancelled")
        self._transcript.end(conclusion.text_status, conclusion.tool_status)
        self._save(
            saves.EndTurn(
                session_id=self.session_id,
                owner=self._owner,
                turn_id=turn.turn_id,
                stop_reason=conclusion.stop_reason,
                user_status=conclusion.user_status,
                messages=self._transcript.take_dirty(),
                pause=conclusion.pause,
                now=now,
                error=conclusion.error,
            )
        )

    def _put_back(self, pause: Pause | None, error: str) -> None:
        turn = self._turn
        assert turn is not None
        turn.stage = Stage.ENDING
        self._conclusion = Conclusion("error", "failed", "interrupted", "failed", pause, error)
        self._out.extend((CancelTimer("prompt"), CancelTimer("grace"), CancelTimer("retry")))
        self._save(saves.PutBack(self.session_id, self._owner, turn.turn_id, pause))

    def _check_prompt(self, now: int) -> None:
        """B41: only silence counts, and not the time in which a person is asked."""
        turn = self._turn
        if turn is None or turn.stage is not Stage.PROMPTING:
            return
        silent_s = (now - turn.last_activity) / 1000
        if len(self._asks):
            self._out.append(SetTimer("prompt", self._policy.prompt_s))
        elif silent_s >= self._policy.prompt_s:
            self._cancel("timeout")
        else:
            self._out.append(SetTimer("prompt", self._policy.prompt_s - silent_s))

    def _start_anew(self, turn: Turn, detail: str) -> None:
        """The agent went away under a prompt that was not written; an agent that always does must not loop."""
        turn.restarts += 1
        if turn.restarts > MAX_RESTARTS:
            self._put_back(Pause("crash", detail), detail)
        else:
            self._start(1)

    def _start(self, attempt: int) -> None:
        self._starting = attempt
        self._out.append(StartAgent(attempt, self._facts.agent_session_id))

    def _revived(self) -> None:
        if self._revive and not self.agent_runs:
            self._revive = False
            self._start(1)

    def _drain(self, now: int) -> None:
        """B21, B22: whenever the session is free and something may go, the head is claimed."""
        if self._phase is not Phase.FREE or not self._queue.may_drain(now):
            return
        self._phase = Phase.CLAIMING
        count = max(len(self._queue.items), self._policy.limits.max_items) if self._policy.drain_all else 1
        self._save(
            saves.Claim(
                session_id=self.session_id,
                owner=self._owner,
                turn_id=self._next_turn_id(),
                seq=self._transcript.reserve(count),
                take_all=self._policy.drain_all,
                now=now,
            )
        )

    # -------------------------------------------------------------------------------------------- helpers

    def _see(self, queue: QueueView, now: int) -> None:
        """The newest committed queue; shown when it changed."""
        if queue.revision < self._queue.revision:
            return
        changed = queue.revision > self._queue.revision
        self._queue = queue
        if changed:
            self._out.append(Show(news.PendingChanged(self.session_id, queue)))
        if queue.held_until > now:
            self._out.append(SetTimer("hold", (queue.held_until - now) / 1000 + 0.05))

    def _changed(self, now: int) -> None:
        """A tool call, plan or notice changed: saved at once, or with what follows while a save is under way."""
        if not self._saving and not self._save_timer:
            self._flush(now)

    def _flush(self, now: int) -> None:
        if self._saving:
            return
        messages = self._transcript.take_dirty()
        if messages:
            self._saving = True
            self._save(saves.SaveMessages(self.session_id, self._owner, messages, now))

    def _arm_save(self, seconds: float) -> None:
        if not self._save_timer and not self._saving:
            self._save_timer = True
            self._out.append(SetTimer("save", seconds))

    def _save_interval(self) -> float:
        """At most 4 times a second (law 7), long texts less often: each save writes the whole text."""
        return self._policy.save_s if self._transcript.live_length < 1 << 18 else max(self._policy.save_s, 0.9)

    def _arm_idle(self) -> None:
        if self._ready and self._policy.idle_agent_s > 0:
            self._out.append(SetTimer("idle", self._policy.idle_agent_s))

    def _close_ask(self, ask_id: str, outcome: str, now: int) -> None:
        ask = self._asks.close(ask_id)
        if ask is not None:
            self._show_closed(ask, outcome)
        if self._turn is not None:
            self._turn.last_activity = now  # the agent's time runs again

    def _answer_cancelled(self, ask: Permission | Question) -> None:
        if isinstance(ask, Permission):
            self._out.append(AnswerPermission(ask.permission_id, None))
        else:
            self._out.append(AnswerQuestion(ask.question_id, "cancel", None))

    def _show_closed(self, ask: Permission | Question, outcome: str) -> None:
        if isinstance(ask, Permission):
            ask_id = ask.permission_id
            self._out.append(Show(news.PermissionResolved(self.session_id, ask_id, outcome)))
        else:
            ask_id = ask.question_id
            self._out.append(Show(news.QuestionResolved(self.session_id, ask_id, outcome)))
        self._save(saves.CloseAsk(self.session_id, self._owner, ask_id, outcome))

    def _merge_controls(self, controls: told.Controls, more: Mapping[str, object] | None = None) -> None:
        merged = dict(self._facts.controls)
        named = {
            "modes": controls.modes,
            "modeId": controls.mode_id,
            "configOptions": controls.config_options,
            "commands": controls.commands,
            "usage": controls.usage,
            **(more or {}),
        }
        merged.update({key: value for key, value in named.items() if value is not None})
        if merged != self._facts.controls:
            self._facts = replace(self._facts, controls=merged)
            self._facts_changed("controls")

    def _title_from(self, messages: tuple[Message, ...], now: int) -> None:
        """A session without a title is called by its first words."""
        del now
        if self._facts.title or not messages:
            return
        words = " ".join(messages[0].text.split())
        self._facts = replace(self._facts, title=words[:60] + ("…" if len(words) > 60 else ""))
        self._facts_changed("title")

    def _facts_changed(self, *names: str) -> None:
        self._facts_dirty.update(names)

    def _save_facts(self, now: int) -> None:
        """Keep the row up to date for other editors and the next start; one save under way at a time."""
        if self._facts_saving or not self._facts_dirty:
            return
        facts = self.facts
        changes = {name: getattr(facts, name) for name in sorted(self._facts_dirty)}
        self._facts_dirty.clear()
        self._facts_saving = True
        self._out.append(Save(saves.SaveSession(self.session_id, self._owner, changes, now)))

    def _save(self, write: saves.Write) -> None:
        self._out.append(Save(write))

    def _answer(self, request: int | None, value: Mapping[str, object]) -> None:
        if request is not None:
            self._out.append(Answer(request, value))

    def _refuse(self, request: int | None, outcome: saves.Outcome) -> None:
        if request is None:
            self._store_failed(outcome)
        elif isinstance(outcome, saves.Denied):
            self._out.append(Refuse(request, outcome.reason, outcome.message))
        else:
            detail = outcome.detail if isinstance(outcome, saves.Failed) else "the session moved to another editor"
            self._out.append(Refuse(request, "storeFailed", f"not saved: {detail}"))

    def _store_failed(self, outcome: saves.Outcome) -> None:
        if isinstance(outcome, saves.Failed):
            self._out.append(Show(news.Notice("error", f"not saved: {outcome.detail}", self.session_id)))

    def _next_turn_id(self) -> str:
        self._turn_count += 1
        return f"{self._prefix}.t{self._turn_count}"

    def _state(self) -> str:
        turn = self._turn
        if turn is None:
            return "busy" if self._in_run else "idle"
        if turn.stage is Stage.CANCELLING:
            return "cancelling"
        return "waiting" if len(self._asks) else "busy"

    def _snapshot(self) -> tuple[object, ...]:
        facts = self._facts
        return (
            self._state(),
            facts.connection,
            facts.title,
            facts.controls,
            facts.agent_session_id,
            len(self._queue.items),
            self._queue.pause,
        )

    def _done(self) -> list[Effect]:
        """The effects of this call, with the session's own change shown last."""
        snapshot = self._snapshot()
        if snapshot != self._shown:
            if snapshot[0] != self._shown[0]:
                self._facts_changed("state")
            self._shown = snapshot
            self._out.append(Show(news.SessionChanged(self.facts, owned=True)))
        self._save_facts(self._facts.updated_at)
        effects, self._out = self._out, []
        return effects
