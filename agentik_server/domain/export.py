"""A session's transcript as Markdown, for a person to keep (agentik/exportSession).

Pure and stable: the same messages give the same text, and a message more adds lines only at its place, so that two
exports can be compared. Holds nothing that changes by itself (revisions, ids, counts).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from agentik_server.domain.message import Attachment, Diff, Location, Message, MessageStatus, ToolCall
from agentik_server.domain.saves import SessionFacts

_STATUS: dict[MessageStatus, str] = {
    "streaming": "not finished",
    "interrupted": "interrupted",
    "failed": "failed",
    "unknown": "sent, outcome not known",
}
_PLAN_MARKS = {"completed": "[x]", "in_progress": "[~]"}
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_BACKTICKS = re.compile(r"`+")


def markdown(facts: SessionFacts, messages: Iterable[Message]) -> str:
    """The whole transcript, in order; deleted messages are left out. Ends with a newline."""
    parts = [_head(facts)]
    parts += [part for message in messages if not message.deleted for part in _message(message)]
    return "\n\n".join(parts) + "\n"


def _head(facts: SessionFacts) -> str:
    lines = [
        f"# {_one_line(facts.title) or 'Untitled session'}",
        "",
        f"- Agent: {facts.agent_id}",
        f"- Folder: {_code(facts.cwd)}",
        f"- Started: {_time(facts.created_at)}",
    ]
    return "\n".join(lines)


def _message(message: Message) -> Iterator[str]:
    """The paragraphs of one message."""
    note = f" ({_STATUS[message.status]})" if message.status in _STATUS else ""
    match message.kind:
        case "user":
            yield f"## You, {_time(message.created_at)}{note}"
            yield from _text(message.text)
            if message.attachments:
                yield "\n".join(f"- Attached: {_attachment(attachment)}" for attachment in message.attachments)
        case "agent":
            yield f"## Agent{note}"
            yield from _text(message.text)
        case "thought":
            yield f"### Thought{note}"
            yield from (_quote(text) for text in _text(message.text))
        case "tool":
            yield from _tool(message, note)
        case "plan":
            yield f"### Plan{note}"
            entries = message.plan or ()
            if entries:
                yield "\n".join(
                    f"- {_PLAN_MARKS.get(entry.status, '[ ]')} {_one_line(entry.content)}" for entry in entries
                )
            yield from _text(message.text)
        case "notice":
            yield from (_quote(f"**Notice:** {text}") for text in _text(message.text))


def _tool(message: Message, note: str) -> Iterator[str]:
    tool = message.tool or ToolCall("")
    yield f"### Tool: {_one_line(tool.title) or tool.tool_kind} ({tool.status}){note}"
    yield from _text(message.text)
    if tool.locations:
        yield "\n".join(f"- {_code(_location(place))}" for place in tool.locations)
    for diff in tool.diffs:
        yield _fenced(_unified(diff), "diff")
    if tool.output.strip():
        yield _fenced(tool.output)


def _text(text: str) -> Iterator[str]:
    """The message as it was written, without the blank lines around it; nothing for an empty one.

    A code block that an interrupted answer left open is closed, else it would swallow all that follows.
    """
    stripped = text.replace("\r\n", "\n").strip("\n")
    if stripped.strip():
        yield stripped + _missing_fence(stripped)


def _missing_fence(text: str) -> str:
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if found is None:
            continue
        marks, rest = found.groups()
        if not fence:
            fence = marks
        elif marks.startswith(fence) and not rest.strip():
            fence = ""
    return f"\n{fence}" if fence else ""


def _attachment(attachment: Attachment) -> str:
    if attachment.range is None:
        return _code(attachment.path)
    first, last = attachment.range.start.line + 1, attachment.range.end.line + 1
    lines = f"line {first}" if first == last else f"lines {first} to {last}"
    return f"{_code(attachment.path)}, {lines}"


def _location(place: Location) -> str:
    return place.path if place.line is None else f"{place.path}:{place.line}"


def _unified(diff: Diff) -> str:
    old, new = _lines(diff.old_text or ""), _lines(diff.new_text)
    source = "/dev/null" if diff.old_text is None else diff.path
    lines = list(difflib.unified_diff(old, new, source, diff.path, lineterm=""))
    return "\n".join(lines) if lines else f"--- {source}\n+++ {diff.path}"


def _lines(text: str) -> list[str]:
    """Not splitlines: U+2028 and its kin end no line of a file."""
    text = text.replace("\r\n", "\n").removesuffix("\n")
    return text.split("\n") if text else []


def _fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    body = text.replace("\r\n", "\n").rstrip("\n")
    return f"{fence}{language}\n{body}\n{fence}"


def _code(text: str) -> str:
    """Inline code of one line, whatever backticks are in it."""
    line = _one_line(text)
    longest = max((len(run) for run in _BACKTICKS.findall(line)), default=0)
    if longest == 0:
        return f"`{line}`"
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}"


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _time(milliseconds: int) -> str:
    """UTC, so that the place of the export does not change it."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
