"""Writes the agent's part of a session down: shows chunks at once, saves at most some times a second (law 7). Pure.

What is shown of a message is never older than what was shown before: it is taken as it stands in memory.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentik_server.domain import happenings as told
from agentik_server.domain import news, saves
from agentik_server.domain.effects import Effect, Save, SetTimer, Show
from agentik_server.domain.message import Message, MessageStatus, PlanEntry, ToolCall, ToolChange
from agentik_server.domain.policy import SessionPolicy
from agentik_server.domain.transcript import Transcript

LONG_TEXT = 1 << 18  # characters from which on a growing text is saved less often: each save writes all of it
LONG_TEXT_SAVE_S = 0.9


class Recorder:
    """`out` is the session's list of effects, to which this adds its own."""

    def __init__(
        self, session_id: str, owner: saves.Owner, next_seq: int, policy: SessionPolicy, out: list[Effect]
    ) -> None:
        self._session_id = session_id
        self._owner = owner
        self._policy = policy
        self._out = out
        self._transcript = Transcript(session_id, next_seq, f"{session_id}.{owner.generation}")
        self._saving = False
        self._timer = False

    def reserve(self, count: int) -> int:
        """`count` places of the session's order for messages of the user."""
        return self._transcript.reserve(count)

    @property
    def is_empty(self) -> bool:
        """Whether the session never had a message."""
        return self._transcript.is_empty

    def begin(self, turn_id: str) -> None:
        self._transcript.begin(turn_id)

    def live(self, after: int | None = None) -> tuple[Message, ...]:
        return self._transcript.live(after)

    def text(self, happening: told.TextArrived, now: int) -> None:
        chunk = self._transcript.add_text(happening.kind, happening.text, happening.agent_message_id, now)
        token = news.StreamingToken(
            session_id=self._session_id,
            turn_id=chunk.turn_id,
            message_id=chunk.message_id,
            kind=happening.kind,
            offset=chunk.offset,
            text=happening.text,
            seq=chunk.seq,
        )
        self._out.append(Show(token))
        self._arm(self._interval())

    def tool(self, change: ToolChange, now: int) -> ToolCall:
        """Returns the tool call as it stands now."""
        message = self._transcript.change_tool(change, now)
        self._soon(now)
        return message.tool or ToolCall(change.tool_call_id)

    def plan(self, entries: tuple[PlanEntry, ...], now: int) -> None:
        self._transcript.set_plan(entries, now)
        self._soon(now)

    def remark(self, text: str, now: int) -> None:
        self._transcript.remark(text, now)
        self._soon(now)

    def replayed(self, entries: Iterable[told.Replayed], now: int) -> None:
        """What the agent's history has and ours lacks."""
        self._transcript.add_replayed(entries, now)
        self._soon(now)

    def close_tools(self, status: str, now: int) -> None:
        self._transcript.close_tools(status)
        self.flush(now)

    def end(self, text_status: MessageStatus, tool_status: str) -> tuple[Message, ...]:
        """The turn is over; returns what is to be saved with its end."""
        self._transcript.end(text_status, tool_status)
        return self._transcript.take_dirty()

    def flush(self, now: int) -> None:
        """Save what changed, unless a save is under way."""
        if self._saving:
            return
        messages = self._transcript.take_dirty()
        if messages:
            self._saving = True
            self._out.append(Save(saves.SaveMessages(self._session_id, self._owner, messages, now)))

    def save_all(self, now: int) -> None:
        """At the end of the server, also beside a save that is under way: writes keep their order."""
        self._saving = False
        self.flush(now)

    def timer_fired(self, now: int) -> None:
        self._timer = False
        self.flush(now)

    def saved(self, write: saves.SaveMessages, outcome: saves.Outcome) -> bool:
        """Returns whether it worked; what failed is saved again later."""
        self._saving = False
        if not isinstance(outcome, saves.Done):
            self._transcript.dirty_again(write.messages)
            self._arm(self._policy.sync_s)
            return False
        self.settled(write.messages)
        self.show(outcome.messages)
        if self._transcript.has_dirty:
            self._arm(self._interval())
        return True

    def settled(self, messages: tuple[Message, ...]) -> None:
        """They are in the store."""
        self._transcript.settled(messages)

    def show(self, messages: tuple[Message, ...]) -> None:
        """Saved messages; a growing text is not shown by them but by its chunks."""
        self._transcript.saved(messages)
        live = {message.message_id: message for message in self._transcript.live()}
        for message in messages:
            current = live.get(message.message_id, message)
            if not (current.status == "streaming" and current.kind in {"agent", "thought"}):
                self._out.append(Show(news.MessageUpdated(self._session_id, current)))

    def _soon(self, now: int) -> None:
        """Tool calls, plans and notices are saved at once, under a flood of them with the next save."""
        if not self._saving and not self._timer:
            self.flush(now)

    def _arm(self, seconds: float) -> None:
        if not self._timer and not self._saving:
            self._timer = True
            self._out.append(SetTimer("save", seconds))

    def _interval(self) -> float:
        if self._transcript.live_length < LONG_TEXT:
            return self._policy.save_s
        return max(self._policy.save_s, LONG_TEXT_SAVE_S)
