"""The run of a session, FREE → (ADMITTING | CLAIMING) → TURN → CLAIMING → ... → FREE, and the agent that it needs.

Pure. Decides when a message goes to the agent, how a turn ends, and what is drained next. The queue itself lives in the
store: here is only its last committed view. Must not know editors, agents or databases.
"""

from __future__ import annotations

from enum import Enum

from agentik_server.domain import happenings as told
from agentik_server.domain import news, saves
from agentik_server.domain.asking import Asks
from agentik_server.domain.effects import (
    CancelPrompt,
    CancelTimer,
    Effect,
    KillAgent,
    Save,
    SendPrompt,
    SetTimer,
    Show,
    StartAgent,
    StopAgent,
)
from agentik_server.domain.message import Message
from agentik_server.domain.pending import Pause, QueueView
from agentik_server.domain.policy import SessionPolicy
from agentik_server.domain.recorder import Recorder
from agentik_server.domain.row import SessionRow
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

MAX_RESTARTS = 2  # of an agent that goes away before the prompt is written
MAX_ATTEMPTS = 2  # B39: tried once more


class Phase(Enum):
    FREE = "free"
    ADMITTING = "admitting"  # reserved for a message whose admission is being saved
    CLAIMING = "claiming"  # the head of the queue is being claimed
    TURN = "turn"


class Run:
    """`out` is the session's list of effects, to which this adds its own. Times in milliseconds since the epoch."""

    def __init__(
        self,
        row: SessionRow,
        recorder: Recorder,
        asks: Asks,
        policy: SessionPolicy,
        queue: QueueView,
        out: list[Effect],
    ) -> None:
        facts = row.facts
        assert facts.owner is not None
        self._session_id = facts.session_id
        self._owner = facts.owner
        self._prefix = f"{facts.session_id}.{facts.owner.generation}"
        self._row, self._recorder, self._asks = row, recorder, asks
        self._policy = policy
        self._out = out
        self.queue = queue
        self._told = {item.message_id for item in queue.items}  # those of which the editor knows that they wait
        self.phase = Phase.FREE
        self.turn: Turn | None = None
        self.in_run = False  # between the first turn and the release: the state stays busy while the next is claimed
        self.ready = False
        self._starting = 0  # the attempt that is under way, 0 = none
        self._turn_count = 0
        self._cancel_latched: Cause | None = None
        self._conclusion: Conclusion | None = None
        self._unsaved_end: saves.Write | None = None
        self._quiet = False
        self._revive = False

    # -------------------------------------------------------------------------------- what it shows

    @property
    def agent_runs(self) -> bool:
        return self.ready or self._starting > 0

    @property
    def state(self) -> str:
        """Of PROTOCOL.md's Session."""
        if self.turn is None:
            return "busy" if self.in_run else "idle"
        if self.turn.stage is Stage.CANCELLING:
            return "cancelling"
        return "waiting" if len(self._asks) else "busy"

    # -------------------------------------------------------------------------- a message comes in

    def reserve(self) -> bool:
        """TryStart (B2): true when the session was free; it is then kept for this message until its outcome."""
        if self.phase is not Phase.FREE:
            return False
        self.phase = Phase.ADMITTING
        return True

    def next_turn_id(self) -> str:
        """Unique without randomness: the generation of ownership is."""
        self._turn_count += 1
        return f"{self._prefix}.t{self._turn_count}"

    def admitted(self, write: saves.Admit | saves.Resend, outcome: saves.Admitted, now: int) -> None:
        cause = self._released(write)
        if outcome.repeated:
            self.drain(now)
            return
        left = outcome.gone if outcome.kept is None else (*outcome.gone, outcome.kept)
        self._out.extend(Show(news.MessageUpdated(self._session_id, message)) for message in left)
        if outcome.disposition == "started":
            self.see(outcome.queue, now)
            self._take_turn(write.turn_id, outcome.messages, now, cause)
            return
        message_id = write.draft.message_id if isinstance(write, saves.Admit) else write.message_id
        self._show_queued(message_id, outcome.queue)
        self.see(outcome.queue, now)
        if isinstance(write, saves.Admit) and write.urgent:
            self.cancel("steer")
        self.drain(now)

    def not_admitted(self, write: saves.Admit | saves.Resend, now: int) -> None:
        self._released(write)
        self.drain(now)

    def _released(self, write: saves.Admit | saves.Resend) -> Cause | None:
        """The reservation ends; returns what was cancelled meanwhile."""
        if not write.free:
            return None
        self.phase = Phase.FREE
        cause, self._cancel_latched = self._cancel_latched, None
        return cause

    def claimed(self, write: saves.Claim, outcome: saves.Outcome, now: int) -> None:
        cause, self._cancel_latched = self._cancel_latched, None
        if isinstance(outcome, saves.Claimed):
            self.see(outcome.queue, now)
            if outcome.messages:
                self._take_turn(write.turn_id, outcome.messages, now, cause)
                return
        self.phase = Phase.FREE
        self.in_run = False
        self._arm_idle()

    def _show_queued(self, message_id: str, queue: QueueView) -> None:
        for item in queue.items:
            if item.message_id == message_id and message_id not in self._told:
                self._told.add(message_id)
                self._out.append(Show(news.queued(self._session_id, item, queue)))

    def wish(self, count: int) -> None:
        """B30: a send or a resume after the user's cancel lifts its pause, also while the agent has not ended the turn;
        -1: it was refused, or had come before.
        """
        if self.turn is not None and self.turn.stage is Stage.CANCELLING:
            self.turn.wishes = max(0, self.turn.wishes + count)

    # ----------------------------------------------------------------------------------- the queue

    def see(self, queue: QueueView, now: int) -> None:
        """The newest committed queue; shown when it changed."""
        if queue.revision < self.queue.revision:
            return
        changed = queue.revision > self.queue.revision
        self.queue = queue
        self._told &= {item.message_id for item in queue.items}
        if changed:
            self._out.append(Show(news.PendingChanged(self._session_id, queue)))
        if queue.held_until > now:
            self._out.append(SetTimer("hold", (queue.held_until - now) / 1000 + 0.05))

    def see_others(self, queue: QueueView, now: int) -> None:
        """As `see`, perhaps with messages that other processes sent."""
        if queue.revision > self.queue.revision:
            for item in queue.items:
                self._show_queued(item.message_id, queue)
        self.see(queue, now)

    def drain(self, now: int) -> None:
        """B21, B22: whenever the session is free and something may go, the head is claimed."""
        if self.phase is not Phase.FREE or not self.queue.may_drain(now):
            return
        self.phase = Phase.CLAIMING
        count = max(len(self.queue.items), self._policy.limits.max_items) if self._policy.drain_all else 1
        claim = saves.Claim(
            session_id=self._session_id,
            owner=self._owner,
            turn_id=self.next_turn_id(),
            seq=self._recorder.reserve(count),
            take_all=self._policy.drain_all,
            now=now,
        )
        self._out.append(Save(claim))

    # ---------------------------------------------------------------------------- a turn begins

    def _take_turn(self, turn_id: str, messages: tuple[Message, ...], now: int, cause: Cause | None) -> None:
        """The messages are in the transcript and in flight; the agent does not know them yet (B6)."""
        self.phase = Phase.TURN
        self.in_run = True
        self.turn = Turn(turn_id, messages, last_activity=now)
        self._out.append(CancelTimer("idle"))
        self._out.extend(Show(news.MessageReceived(self._session_id, message)) for message in messages)
        self._row.name_after(messages)
        if cause is not None:
            self.turn.cause = cause
            self._conclude(self._by_cause(cause), now)
        elif self.ready:
            self._journal(self.turn)
        elif not self._starting:
            self._start(1)

    def _journal(self, turn: Turn) -> None:
        if turn.stage is Stage.READYING and not turn.journaling:
            turn.journaling = True
            self._out.append(Save(saves.Journal(self._session_id, self._owner, turn.turn_id)))

    def journaled(self, outcome: saves.Outcome, now: int) -> None:
        turn = self.turn
        if turn is None or turn.stage is not Stage.READYING:
            return  # cancelled meanwhile: the prompt is never written (B34)
        turn.journaling = False
        if not isinstance(outcome, saves.Done):
            self._out.append(SetTimer("journal", self._policy.sync_s))
        elif self.ready:
            self._prompt(turn, now)
        elif not self._starting:
            self._start_anew(turn, "the agent ended before the prompt was sent")

    def _prompt(self, turn: Turn, now: int) -> None:
        turn.stage = Stage.PROMPTING
        turn.shown = True
        turn.last_activity = now
        self._out.append(Show(news.TurnStarted(self._session_id, turn.turn_id, turn.first_message_id)))
        self._out.append(SendPrompt(turn.turn_id, turn.messages, self._quiet))
        self._out.append(SetTimer("prompt", self._policy.prompt_s))
        self._quiet = False

    def written(self, turn_id: str) -> None:
        """Until now the quiet after a cancel was awaited, perhaps: what came in it was late (B37)."""
        if self._open_turn(turn_id) is not None:
            self._recorder.begin(turn_id)

    # ------------------------------------------------------------------------------ a turn ends

    def cancel(self, cause: Cause) -> bool:
        """B32–B34; returns whether something was running."""
        if self.phase in {Phase.ADMITTING, Phase.CLAIMING}:
            if cause == "cancel":  # an urgent message needs none: it is at the head already
                self._cancel_latched = cause
            return True
        turn = self.turn
        if turn is None or turn.stage is Stage.ENDING:
            return False
        if turn.stage is Stage.READYING and cause == "steer":
            self._put_back(turn, None, "another message goes first")  # nothing was sent: it waits behind that
        elif turn.stage is Stage.READYING:
            turn.cause = cause
            self._conclude(self._by_cause(cause), turn.last_activity)
        elif turn.stage is Stage.PROMPTING:
            turn.cause = cause
            turn.stage = Stage.CANCELLING
            self._asks.cancel_all()
            self._recorder.close_tools("cancelled", turn.last_activity)
            self._out.append(CancelPrompt(turn.turn_id))
            self._out.append(CancelTimer("prompt"))
            self._out.append(SetTimer("grace", self._policy.cancel_grace_s))
        return True

    def answered(self, happening: told.PromptAnswered, now: int) -> None:
        turn = self._open_turn(happening.turn_id)
        if turn is None:
            return
        if turn.cause is not None:
            self._conclude(self._by_cause(turn.cause), now)
        elif happening.error is not None:
            self._conclude(conclude_by_error(happening.error, auth=happening.auth_required), now)
        else:
            self._conclude(conclude_by_answer(happening.stop_reason), now)

    def not_written(self, happening: told.PromptNotWritten, now: int) -> None:
        turn = self._open_turn(happening.turn_id)
        if turn is None:
            return
        if turn.cause is not None:
            self._conclude(self._by_cause(turn.cause), now)
        else:
            self._put_back(turn, Pause("error", happening.detail), happening.detail)

    def deleted(self) -> None:
        """The turn ends with its session."""
        if self.turn is not None and self.turn.shown:
            self._out.append(Show(news.TurnEnded(self._session_id, self.turn.turn_id, "cancelled", None, None)))

    def _open_turn(self, turn_id: str) -> Turn | None:
        turn = self.turn
        if turn is None or turn.turn_id != turn_id or turn.stage is Stage.ENDING:
            return None
        return turn

    def _by_cause(self, cause: Cause) -> Conclusion:
        goes_on = self.turn is not None and self.turn.wishes > 0
        return conclude_by_cause(cause, pause_on_cancel=self._policy.pause_on_cancel and not goes_on)

    def _conclude(self, conclusion: Conclusion, now: int) -> None:
        """The one place where a turn ends (B35)."""
        turn = self.turn
        assert turn is not None
        self._close(turn, conclusion)
        reason = conclusion.detail if conclusion.stop_reason == "other" else conclusion.error
        end = saves.EndTurn(
            session_id=self._session_id,
            owner=self._owner,
            turn_id=turn.turn_id,
            stop_reason=conclusion.stop_reason,
            user_status=conclusion.user_status,
            messages=self._recorder.end(conclusion.text_status, conclusion.tool_status),
            pause=conclusion.pause,
            now=now,
            error=reason,
        )
        self._out.append(Save(end))

    def _put_back(self, turn: Turn, pause: Pause | None, error: str) -> None:
        """B26: certainly not sent; the messages wait again, at the head."""
        self._close(turn, Conclusion("error", "failed", "interrupted", "failed", pause, error))
        self._out.append(Save(saves.PutBack(self._session_id, self._owner, turn.turn_id, pause)))

    def _close(self, turn: Turn, conclusion: Conclusion) -> None:
        turn.stage = Stage.ENDING
        self._conclusion = conclusion
        self._out.extend((CancelTimer("prompt"), CancelTimer("grace"), CancelTimer("retry")))
        self._asks.cancel_all()

    def end_saved(self, write: saves.EndTurn | saves.PutBack, outcome: saves.Outcome, now: int) -> None:
        """The turn's end is on disk: now it is told, and the next is claimed."""
        if not isinstance(outcome, saves.Done):
            self._unsaved_end = write
            self._out.append(SetTimer("end", self._policy.sync_s))
            return
        turn, self.turn = self.turn, None
        conclusion, self._conclusion = self._conclusion, None
        assert turn is not None
        assert conclusion is not None
        self.phase = Phase.FREE
        if isinstance(write, saves.EndTurn):
            self._recorder.settled(write.messages)
        self._recorder.show(outcome.messages)
        if isinstance(write, saves.PutBack) and outcome.queue is not None:
            for message in turn.messages:
                self._show_queued(message.message_id, outcome.queue)
            if conclusion.pause is not None and not turn.shown:  # B45: no turnEnded tells it
                self._row.notice("error", conclusion.error or "")
        if turn.shown or isinstance(write, saves.EndTurn):
            reason, error, detail = conclusion.stop_reason, conclusion.error, conclusion.detail
            self._out.append(Show(news.TurnEnded(self._session_id, turn.turn_id, reason, error, detail)))
        self._quiet = conclusion.stop_reason in {"cancelled", "timeout"}
        if outcome.queue is not None:
            self.see(outcome.queue, now)
        self.drain(now)
        self.in_run = self.phase is not Phase.FREE
        if not self.in_run:
            self._arm_idle()
        self._revived()

    # ------------------------------------------------------------------------------ the agent

    def became_ready(self) -> None:
        self.ready = True
        self._starting = 0
        self._out.append(CancelTimer("retry"))
        if self.turn is not None:
            self._journal(self.turn)
        elif self.phase is Phase.FREE:
            self._arm_idle()

    def start_failed(self, happening: told.StartFailed) -> None:
        """Without a message that waits for it, a failed start is silent (B9)."""
        self.ready = False
        attempt, self._starting = self._starting, 0
        turn = self.turn
        if turn is None or turn.stage is not Stage.READYING:
            return
        needs_login = happening.reason == "authRequired"
        if not needs_login and attempt < MAX_ATTEMPTS:
            self._out.append(SetTimer("retry", self._policy.retry_delay_s))
            return
        self._put_back(turn, Pause("auth" if needs_login else "start", happening.detail), happening.detail)

    def exited(self, happening: told.AgentExited, now: int) -> None:
        self.ready = False
        self._starting = 0
        self._out.append(CancelTimer("idle"))
        self._asks.cancel_all()
        turn = self.turn
        if turn is None:
            self._revived()
        elif turn.stage in {Stage.PROMPTING, Stage.CANCELLING}:
            by_us = turn.cause is not None
            self._conclude(self._by_cause(turn.cause) if by_us else conclude_by_exit(happening.detail), now)  # type: ignore[arg-type]  # by_us
        elif turn.stage is Stage.READYING and not turn.journaling:
            self._start_anew(turn, happening.detail)

    def start_in_background(self) -> None:
        """Because a chat opened: tries once and is silent (B9)."""
        if not self.agent_runs:
            self._start(1)

    def restart(self) -> None:
        """One keystroke out of a wedged agent: ends the turn as cancelled, kills the process, starts it again."""
        self._revive = True
        turn = self.turn
        if turn is not None and turn.stage in {Stage.PROMPTING, Stage.CANCELLING}:
            turn.cause = turn.cause or "restart"
            turn.stage = Stage.CANCELLING
        if self.agent_runs:
            self._gone(KillAgent())
        else:
            self._revived()

    def _gone(self, effect: StopAgent | KillAgent) -> None:
        """Nothing is prompted any more from here on, though its exit is told later; a start waits for that."""
        self.ready = False
        self._starting = 0
        self._out.append(effect)

    def _start_anew(self, turn: Turn, detail: str) -> None:
        """The agent went away under a prompt that was not written; an agent that always does must not loop."""
        turn.restarts += 1
        if turn.restarts > MAX_RESTARTS:
            self._put_back(turn, Pause("crash", detail), detail)
        else:
            self._start(1)

    def _start(self, attempt: int) -> None:
        self._revive = False
        self._starting = attempt
        known = self._row.facts.agent_session_id
        self._out.append(StartAgent(attempt, known, want_history=known is not None and self._recorder.is_empty))

    def _revived(self) -> None:
        if self._revive and not self.agent_runs:
            self._start(1)

    def _arm_idle(self) -> None:
        if self.ready and self._policy.idle_agent_s > 0:
            self._out.append(SetTimer("idle", self._policy.idle_agent_s))

    # ------------------------------------------------------------------------------------ timers

    def retry(self) -> None:
        if self.turn is not None and self.turn.stage is Stage.READYING and not self.agent_runs:
            self._start(MAX_ATTEMPTS)

    def check_prompt(self, now: int) -> None:
        """B41: only silence counts, and not the time in which a person is asked."""
        turn = self.turn
        if turn is None or turn.stage is not Stage.PROMPTING:
            return
        silent_s = (now - turn.last_activity) / 1000
        if len(self._asks):
            self._out.append(SetTimer("prompt", self._policy.prompt_s))
        elif silent_s >= self._policy.prompt_s:
            self.cancel("timeout")
        else:
            self._out.append(SetTimer("prompt", self._policy.prompt_s - silent_s))

    def grace_over(self) -> None:
        """B32: the cancel was not answered in time."""
        if self.turn is not None and self.turn.stage is Stage.CANCELLING:
            self._revive = True
            self._gone(KillAgent())

    def idle_over(self) -> None:
        if self.phase is Phase.FREE and self.ready:
            self._gone(StopAgent())

    def save_again(self) -> None:
        """The store could not save a step of the turn; it is tried again until it can."""
        turn = self.turn
        if turn is None:
            return
        if turn.stage is Stage.ENDING and self._unsaved_end is not None:
            self._out.append(Save(self._unsaved_end))
            self._unsaved_end = None
        elif turn.stage is Stage.READYING:
            self._journal(turn)
