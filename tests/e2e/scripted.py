"""The scripted agent in an editor: what it does stands in the message (tests/agents/scripted.py)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.kit import ROOT, Editor

AGENT = ROOT / "tests/agents/scripted.py"


def options(more: str = "", program: Path = AGENT, **scenario: Any) -> str:
    """What setup() is given: the scripted agent, or another `program` like it, and `more` (Lua)."""
    arguments = _arguments(program, scenario)
    agent = f"{{ name = 'Scripted', command = {json.dumps(sys.executable)}, args = {{ {arguments} }} }}"
    return f"{{ agent = 'scripted', settings = {{ agents = {{ scripted = {agent} }} }}, {more} }}"


def fresh(share_editor: Callable[..., Editor], more: str = "", **arguments: Any) -> Editor:
    """A shared editor with a new session of the scripted agent, hidden."""
    editor = share_editor(options=options(more), **arguments)
    previous = editor.state("session_id")
    editor.lua("require('agentik').new('scripted')")
    editor.until("a session of the scripted agent", lambda: editor.state("session_id") not in {None, previous})
    editor.lua("require('agentik').close()")
    editor.lua("vim.fn.setqflist({})")
    editor.events.clear()
    return editor


def _arguments(program: Path, scenario: dict[str, Any]) -> str:
    arguments = [str(program), *(["--scenario", json.dumps(scenario)] if scenario else [])]
    return ", ".join(json.dumps(argument) for argument in arguments)


def play(editor: Editor, *lines: str, turn: int = 1) -> None:
    """The agent carries out the lines; the `turn`th turn ends."""
    editor.lua("require('agentik').send(...)", "\n".join(lines))
    editor.wait_event("TurnEnded", turn)


def tool(tool_id: str, title: str, *, status: str = "completed", kind: str = "edit", **fields: Any) -> str:
    """A line that makes a tool call, with `content` and `locations` if wanted."""
    call = {"sessionUpdate": "tool_call", "toolCallId": tool_id, "title": title, "kind": kind, "status": status}
    return "#update " + escaped(call | fields)


def escaped(value: Any) -> str:
    """JSON without the two characters that the agent makes a line break of."""
    return json.dumps(value).replace("\\n", "\\u000a")


def diff(path: object, new: str, old: str | None = None) -> dict[str, Any]:
    """A change as agents send it."""
    change = {"type": "diff", "path": str(path), "newText": new}
    return change if old is None else change | {"oldText": old}
