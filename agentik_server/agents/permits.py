"""What an agent may do through us: by the settings, by what the user has just allowed, else by asking (B49).

Never more than the user confirmed: an allowed tool call lets through the one file or command it named, in that turn.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from agentik_server.agents.asks import OpenAsks
from agentik_server.agents.peer import Call
from agentik_server.domain.happenings import Happening, ToolCallChanged
from agentik_server.domain.message import PermissionOption, ToolChange
from agentik_server.ports import AgentPolicy

Deed = Literal["read", "write", "terminal"]
_ALLOW, _ALWAYS, _REJECT = "allow", "allow_always", "reject"


class Permits:
    """Of one connection. `subject` is the path or the command line that a deed is about."""

    def __init__(self, policy: AgentPolicy, asks: OpenAsks, tell: Callable[[Happening], None]) -> None:
        self._rules: Mapping[Deed, str] = {
            "read": policy.files_read,
            "write": policy.files_write,
            "terminal": policy.terminal,
        }
        self._asks = asks
        self._tell = tell
        self._numbers = itertools.count(1)
        self._this_turn: set[str] = set()
        self._always: set[tuple[Deed, str]] = set()

    def rule(self, deed: Deed) -> str:
        """ "allow" | "ask" | "deny" of the settings."""
        return self._rules[deed]

    def allowed_by_user(self, tool: ToolChange, option_kind: str) -> None:
        """The user answered the agent's own permission request: the deeds it named need no second question."""
        if option_kind.startswith("allow"):
            self._this_turn.update(subjects(tool))

    def turn_ended(self) -> None:
        self._this_turn.clear()

    async def may(self, deed: Deed, subject: str, tool: ToolChange, call: Call) -> bool:
        """Whether the deed may be done; asks the user where the settings say so. False also when it was cancelled."""
        rule = self._rules[deed]
        if rule != "ask":
            return rule == "allow"
        if subject in self._this_turn or (deed, subject) in self._always:
            return True
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def answered(option_id: str | None) -> None:
            if not answer.done():
                answer.set_result(option_id)

        tool = replace(tool, tool_call_id=f"{tool.tool_call_id}-{next(self._numbers)}")
        self._asks.own_permission(tool, _options(deed), call, answered)
        option = await answer
        if option == _ALWAYS:
            self._always.add((deed, subject))
        allowed = option in (_ALLOW, _ALWAYS)
        self._tell(ToolCallChanged(ToolChange(tool.tool_call_id, status="completed" if allowed else "failed")))
        return allowed


def _options(deed: Deed) -> tuple[PermissionOption, ...]:
    what = {"read": "reading this file", "write": "writing this file", "terminal": "this command"}[deed]
    return (
        PermissionOption(_ALLOW, "Allow", "allow_once"),
        PermissionOption(_ALWAYS, f"Allow {what} in this chat", "allow_always"),
        PermissionOption(_REJECT, "Reject", "reject_once"),
    )


def subjects(tool: ToolChange) -> set[str]:
    """The paths and command lines that a tool call names: title, places, diffs, and the texts of its input."""
    found = {diff.path for diff in tool.diffs or ()} | {place.path for place in tool.locations or ()}
    if tool.title:
        found.add(tool.title.strip().strip("`"))
    found.update(_texts(tool.input))
    return found


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            yield " ".join(value)  # a command as argv
        for item in value:
            yield from _texts(item)
