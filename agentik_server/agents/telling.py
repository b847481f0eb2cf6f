"""The way from an agent to the application: in order, never inside a call of the application, neighbours merged.

A flood of chunks reaches the application as one happening a turn of the loop (AGENTS.md section 2.2: agents forward
every delta). Must not change order: only what stands side by side is merged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import fields, replace

from agentik_server.domain.happenings import (
    Activity,
    Controls,
    ControlsChanged,
    Happening,
    PlanChanged,
    TextArrived,
    ToolCallChanged,
)
from agentik_server.domain.message import ToolChange

log = logging.getLogger(__name__)


class Teller:
    """Calls `tell` from the loop with what was given to it, merged."""

    def __init__(self, tell: Callable[[Happening], None]) -> None:
        self._tell = tell
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Happening] = []
        self._parts: list[str] = []  # of the text that is last in line
        self._scheduled = False

    @property
    def waiting(self) -> int:
        """How many happenings the application has still to hear."""
        return len(self._waiting)

    def __call__(self, happening: Happening) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)
        last = self._waiting[-1] if self._waiting else None
        if isinstance(happening, TextArrived):
            if isinstance(last, TextArrived) and _same_text(last, happening):
                self._parts.append(happening.text)
                return
            self._close_text()
            self._parts.append(happening.text)
            self._waiting.append(happening)
            return
        merged = None if last is None else _merged(last, happening)
        if merged is not None:
            self._waiting[-1] = merged
            return
        self._close_text()
        self._waiting.append(happening)

    def _flush(self) -> None:
        self._scheduled = False
        self._close_text()
        told, self._waiting = self._waiting, []
        for happening in told:
            try:
                self._tell(happening)
            except Exception:
                log.exception("bug: %s was not handled", type(happening).__name__)

    def _close_text(self) -> None:
        last = self._waiting[-1] if self._waiting else None
        if len(self._parts) > 1 and isinstance(last, TextArrived):
            self._waiting[-1] = replace(last, text="".join(self._parts))
        self._parts.clear()


def _same_text(one: TextArrived, other: TextArrived) -> bool:
    return one.kind == other.kind and one.agent_message_id == other.agent_message_id


def _merged(last: Happening, new: Happening) -> Happening | None:
    """`last` and `new` as one happening, or None where they stay two."""
    match last, new:
        case ToolCallChanged(), ToolCallChanged() if last.change.tool_call_id == new.change.tool_call_id:
            return ToolCallChanged(merge_changes(last.change, new.change))
        case PlanChanged(), PlanChanged():
            return new
        case ControlsChanged(), ControlsChanged():
            return ControlsChanged(merge_controls(last.controls, new.controls))
        case _, Activity():
            return last
    return None


def merge_changes(first: ToolChange, second: ToolChange) -> ToolChange:
    """Both news of one tool call as one, as if they had been told in this order."""
    output, delta = second.output, second.output_delta
    if output is None:
        output, delta = first.output, "".join(filter(None, (first.output_delta, delta))) or None
    return ToolChange(
        first.tool_call_id,
        first.title if second.title is None else second.title,
        first.tool_kind if second.tool_kind is None else second.tool_kind,
        first.status if second.status is None else second.status,
        first.locations if second.locations is None else second.locations,
        first.diffs if second.diffs is None else second.diffs,
        output,
        delta,
        first.input if second.input is None else second.input,
    )


def merge_controls(first: Controls, second: Controls) -> Controls:
    """What `second` does not tell stays as `first` told it."""
    return Controls(
        **{
            field.name: getattr(first if getattr(second, field.name) is None else second, field.name)
            for field in fields(Controls)
        }
    )
