"""What each tool call of a session has put out so far, from its content, a terminal of ours, or `_meta` of the agent.

Pure bookkeeping: news in, ToolChange out. Must keep no more than a bounded number of tool calls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from agentik_server.agents.clean import as_dict, as_int, as_text
from agentik_server.agents.contents import ToolContent, raw_output_text, tool_change, tool_content
from agentik_server.agents.telling import merge_changes
from agentik_server.domain.message import ToolChange

MAX_TOOLS = 1000


@dataclass(slots=True)
class _Known:
    news: ToolChange
    has_text: bool = False
    terminals: set[str] = field(default_factory=set)


class ToolOutputs:
    """`terminal_text` gives what a terminal of ours has put out so far, None for an id that is not ours."""

    def __init__(self, terminal_text: Callable[[str], str | None]) -> None:
        self._terminal_text = terminal_text
        self._known: dict[str, _Known] = {}
        self._tool_of: dict[str, str] = {}  # terminal id → tool call id

    def change(self, fields: Mapping[str, object], *, asked: bool = False) -> ToolChange | None:
        """News of a tool call; None without an id. `asked`: from a permission request, its text is not yet output."""
        items = fields.get("content")
        content = tool_content(items) if isinstance(items, list) else None
        change = tool_change(fields, content)
        if change is None:
            return None
        known = self._remember(change.tool_call_id)
        known.news = merge_changes(known.news, change)
        output, delta = self._from_content(known, change.tool_call_id, content), None
        meta = as_dict(fields.get("_meta"))
        if output is None:
            delta = _meta_output(meta) or None
            known.has_text = known.has_text or delta is not None
        if not known.has_text and not output and delta is None:
            output = raw_output_text(fields.get("rawOutput")) or output
        if asked:
            known.has_text = False
        status = change.status or _meta_status(meta)
        if output is None and delta is None and status is change.status:
            return change
        return replace(change, output=output, output_delta=delta, status=status)

    def all_news(self, tool_call_id: str) -> ToolChange:
        """Everything that was told of a tool call so far but its output; agents tell it in pieces (AGENTS.md 5.1)."""
        known = self._known.get(tool_call_id)
        return ToolChange(tool_call_id) if known is None else known.news

    def terminal_grew(self, terminal_id: str, text: str, *, replaces: bool) -> ToolChange | None:
        """A terminal of ours put out `text`; None while no tool call shows that terminal."""
        tool_call_id = self._tool_of.get(terminal_id)
        if tool_call_id is None:
            return None
        if replaces:
            return ToolChange(tool_call_id, output=text)
        return ToolChange(tool_call_id, output_delta=text)

    def _from_content(self, known: _Known, tool_call_id: str, content: ToolContent | None) -> str | None:
        if content is None:
            return None
        texts = [content.text] if content.text else []
        for terminal in content.terminals:
            output = self._terminal_text(terminal)
            if output is not None and terminal not in known.terminals:
                known.terminals.add(terminal)
                self._tool_of[terminal] = tool_call_id
                texts.append(output)
        if not texts and content.terminals and not known.has_text:
            return ""  # a terminal of the agent's own takes the place of what it showed when it asked
        if not texts or (not content.text and known.has_text):
            return None
        known.has_text = True
        return "\n".join(text for text in texts if text)

    def _remember(self, tool_call_id: str) -> _Known:
        known = self._known.get(tool_call_id)
        if known is None:
            known = self._known[tool_call_id] = _Known(ToolChange(tool_call_id))
            if len(self._known) > MAX_TOOLS:
                forgotten = self._known.pop(next(iter(self._known)))
                for terminal in forgotten.terminals:
                    self._tool_of.pop(terminal, None)
        return known


def _meta_output(meta: Mapping[str, object]) -> str:
    """Output that codex-acp, pi and claude stream beside the tool call: a piece to be added (AGENTS.md 5.14)."""
    pieces = (as_text(as_dict(meta.get(name)).get("data")) for name in ("terminal_output", "terminal_output_delta"))
    return "".join(piece for piece in pieces if piece)


def _meta_status(meta: Mapping[str, object]) -> str | None:
    """The end of such a terminal, for agents that do not end the tool call itself."""
    if "terminal_exit" not in meta:
        return None
    ended = as_dict(meta["terminal_exit"])
    return "completed" if as_int(ended.get("exit_code")) == 0 and not ended.get("signal") else "failed"
