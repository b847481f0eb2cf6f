"""session/update of one agent session → happenings (ACP "Prompt Turn", schema v1).

Pure but for its memory of tool calls and of half characters. Knows no wire and no process. Unknown kinds are kept as
remarks (B46), few of them: a flood of oddities must not become the transcript.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Literal

from agentik_server.agents import controls
from agentik_server.agents.clean import SurrogateJoiner, as_dict, as_text, clean_text, one_line
from agentik_server.agents.contents import block_text, plan_entries
from agentik_server.agents.tool_outputs import ToolOutputs
from agentik_server.domain.happenings import (
    Activity,
    Controls,
    ControlsChanged,
    Happening,
    PlanChanged,
    Remark,
    TextArrived,
    TitleSuggested,
    ToolCallChanged,
)

MAX_REMARKS = 5  # a turn
_LEVELS: Mapping[object, Literal["info", "warning", "error"]] = {"warning": "warning", "error": "error"}
CONTROL_KINDS = frozenset(
    {
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
    }
)

log = logging.getLogger(__name__)


class Updates:
    """The translator of one session. `tell` gets the happenings in wire order."""

    def __init__(self, tell: Callable[[Happening], None], tools: ToolOutputs) -> None:
        self._tell = tell
        self._tools = tools
        self._text: tuple[Literal["agent", "thought"], str | None] = ("agent", None)
        self._joiner = SurrogateJoiner()
        self._remarks = 0
        self._remarked: set[str] = set()
        self._usage: dict[str, object] = {}

    def apply(self, update: Mapping[str, object], *, replayed: bool = False) -> None:
        """One update. `replayed`: of a history that we have already; only what the session offers is taken from it."""
        kind = update.get("sessionUpdate")
        if kind not in ("agent_message_chunk", "agent_thought_chunk"):
            self._end_text()
        if replayed and kind not in CONTROL_KINDS:
            return
        match kind:
            case "agent_message_chunk":
                self._chunk("agent", update)
            case "agent_thought_chunk":
                self._chunk("thought", update)
            case "tool_call" | "tool_call_update":
                change = self._tools.change(update)
                self._tell(Activity() if change is None else ToolCallChanged(change))
            case "plan":
                self._tell(PlanChanged(plan_entries(update.get("entries"))))
            case _ if kind in CONTROL_KINDS:
                self._offer(str(kind), update)
            case _:
                self._uncommon(kind, update)

    def turn_ended(self) -> None:
        """What was kept back of the last text comes out; the next turn may have remarks of its own."""
        self._end_text()
        self._remarks = 0
        self._remarked.clear()

    def add_usage(self, usage: Mapping[str, object] | None) -> None:
        """Usage from anywhere: what it does not name stays as it was."""
        if usage:
            self._usage.update(usage)
            self._tell(ControlsChanged(Controls(usage=dict(self._usage))))

    def remark(self, text: str, level: Literal["info", "warning", "error"] = "info") -> None:
        """A remark in the transcript, as long as this turn has few; the rest goes to the log."""
        log.info("remark: %s", text)
        if text in self._remarked:
            self._tell(Activity())
            return
        self._remarks += 1
        if self._remarks > MAX_REMARKS:
            self._tell(Activity())
            return
        self._remarked.add(text)
        self._tell(Remark(text, level))

    def _chunk(self, kind: Literal["agent", "thought"], update: Mapping[str, object]) -> None:
        message_id = as_text(update.get("messageId"))
        if self._text != (kind, message_id):
            self._end_text()
            self._text = (kind, message_id)
        content = update.get("content")
        if isinstance(content, dict) and content.get("type") == "text":
            text = content.get("text")
        elif isinstance(content, list):
            text = "".join(block_text(block) for block in content)
        else:
            text = content if isinstance(content, str) else block_text(content)
        text = self._joiner.feed(text) if isinstance(text, str) else ""
        self._tell(TextArrived(kind, text, message_id) if text else Activity())

    def _end_text(self) -> None:
        rest = self._joiner.end()
        if rest:
            self._tell(TextArrived(self._text[0], rest, self._text[1]))

    def _offer(self, kind: str, update: Mapping[str, object]) -> None:
        match kind:
            case "available_commands_update":
                self._tell(ControlsChanged(Controls(commands=controls.commands(update.get("availableCommands")))))
            case "current_mode_update":
                mode = as_text(update.get("currentModeId")) or as_text(update.get("modeId"))
                self._tell(Activity() if mode is None else ControlsChanged(Controls(mode_id=mode)))
            case "config_option_update":
                options = controls.config_options(update.get("configOptions"))
                self._tell(Activity() if options is None else ControlsChanged(Controls(config_options=options)))
            case "session_info_update":
                title = as_text(update.get("title"))
                self._tell(TitleSuggested(one_line(title, 200)) if title else Activity())
            case _:
                self.add_usage(controls.usage(update))
                self._tell(Activity())

    def _uncommon(self, kind: object, update: Mapping[str, object]) -> None:
        match kind:
            case "user_message_chunk":
                self._tell(Activity())  # an echo of what is in the transcript already (AGENTS.md 5.11)
            case "plan_update" if "entries" in as_dict(update.get("plan")):
                self._tell(PlanChanged(plan_entries(as_dict(update["plan"])["entries"])))
            case "plan_removed":
                self._tell(PlanChanged(()))
            case "notice":
                text = (
                    as_text(update.get("message")) or as_text(update.get("text")) or block_text(update.get("content"))
                )
                self.remark(one_line(text or "notice"), _LEVELS.get(update.get("level"), "info"))
            case "compaction_update":
                self.remark(f"context compaction: {one_line(as_text(update.get('status')) or 'running')}")
            case "compaction_summary_chunk":
                self._tell(Activity())
            case str():
                self.remark(f"the agent sent an update of an unknown kind: {one_line(clean_text(kind), 80)}")
            case _:
                self._tell(Activity())
