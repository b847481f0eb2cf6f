"""Tool calls and permission requests as lines: status, title, places, diffs, head and tail of the output.

The agent's words are shown, never interpreted. Must not decide anything about an answer.
"""

from __future__ import annotations

from typing import Any

from agentik.mirror import Message
from agentik.render.blocks import Drawing, Fold, Lead, Place, begin
from agentik.render.diff import Difference, difference
from agentik.render.look import Scene
from agentik.render.text import chop, one_line, plain, visible

_STATUS = {
    "pending": ("pending", "Pending"),
    "in_progress": ("running", "Running"),
    "completed": ("done", "Done"),
    "failed": ("failed", "Error"),
    "cancelled": ("cancelled", "Warning"),
}
_OPEN = ("pending", "in_progress")


def draw_tool(message: Message, lead: Lead, scene: Scene) -> Drawing:
    """A tool call as it stands now."""
    drawing = begin(message, lead, scene)
    tool = message.tool or {}
    title = one_line(str(tool.get("title") or message.text or "Tool call"))
    row = drawing.line(title, group="ToolTitle")
    icon, group = _STATUS.get(str(tool.get("status")), _STATUS["pending"])
    drawing.sign(row, scene.look.icon(icon), group)
    differences = [
        (diff, difference(diff.get("oldText"), str(diff.get("newText", "")))) for diff in _list(tool, "diffs")
    ]
    drawing.tail(row, _summary(tool, differences), "ToolKind")
    _places(drawing, tool, row, title, scene)
    for diff, changes in differences:
        path = str(diff.get("path", ""))
        named = len(differences) == 1 and scene.place(path) in title
        _diff(drawing, path, changes, row if named else None, scene)
    _output(drawing, plain(str(tool.get("output") or "")).strip("\n"), scene)
    last = len(drawing.lines) - 1
    if last > row and tool.get("status") not in _OPEN:
        closed = scene.look.fold_tools and not differences and tool.get("status") == "completed"
        drawing.fold = Fold(row, last, closed)
    return drawing


def _list(tool: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [entry for entry in tool.get(name) or () if isinstance(entry, dict)]


def _summary(tool: dict[str, Any], differences: list[tuple[dict[str, Any], Difference]]) -> str:
    """What stands after the title: kind, size of the change, lines of output."""
    parts = [one_line(str(tool.get("toolKind") or "other"), 20)]
    if differences:
        added = sum(changes.added for _, changes in differences)
        removed = sum(changes.removed for _, changes in differences)
        parts.append(f"+{added} -{removed}")
    output = str(tool.get("output") or "").strip("\n")
    if output:
        count = output.count("\n") + 1
        parts.append("1 line" if count == 1 else f"{count} lines")
    return "  ".join(part for part in parts if part)


def _places(drawing: Drawing, tool: dict[str, Any], row: int, title: str, scene: Scene) -> None:
    """Where the tool works. A place that the title names already belongs to the title's line."""
    diffed = {str(diff.get("path", "")) for diff in _list(tool, "diffs")}
    for location in _list(tool, "locations")[:20]:
        path, line = str(location.get("path", "")), location.get("line")
        shown = one_line(scene.place(path)) + (f":{line}" if line else "")
        if not path or path in diffed:
            continue
        if scene.place(path) in title:
            drawing.places.append(Place(row, path, line))
        else:
            drawing.places.append(Place(drawing.line(shown, group="Place"), path, line))


def _diff(drawing: Drawing, path: str, changes: Difference, title_row: int | None, scene: Scene) -> None:
    """`title_row`: the title names this one file already; it needs no line of its own."""
    first = changes.hunks[0][0].number if changes.hunks and changes.hunks[0] else None
    row = title_row
    if row is None:
        row = drawing.line(one_line(scene.place(path)), group="Place")
        drawing.tail(row, f"+{changes.added} -{changes.removed}", "ToolKind")
    drawing.places.append(Place(row, path, first))
    room = scene.look.diff_lines
    shown = [line for hunk in changes.hunks for line in hunk]
    for line in shown[:room]:
        row = drawing.line(chop(visible(line.text))[0])
        drawing.places.append(Place(row, path, line.number))
        if line.change == "+":
            drawing.marks.fills.append((row, "DiffAdd"))
            drawing.sign(row, "+", "DiffAddSign")
        elif line.change == "-":
            drawing.marks.fills.append((row, "DiffDelete"))
            drawing.sign(row, "-", "DiffDeleteSign")
    if len(shown) > room:
        _more(drawing, len(shown) - room, scene)


def _output(drawing: Drawing, output: str, scene: Scene) -> None:
    if not output:
        return
    lines = output.split("\n")
    room = scene.look.output_lines
    fits = len(lines) <= 2 * room + 1
    for line in lines if fits else lines[:room]:
        drawing.line(chop(line)[0], fill="Output")
    if not fits:
        _more(drawing, len(lines) - 2 * room, scene)
        for line in lines[-room:]:
            drawing.line(chop(line)[0], fill="Output")


def _more(drawing: Drawing, count: int, scene: Scene) -> None:
    hint = f": {scene.look.keys['open']} shows all" if "open" in scene.look.keys else ""
    drawing.line(f"{scene.look.icon('ellipsis')} {count} more lines{hint}", group="More")


def draw_permission(permission: dict[str, Any], number: int, count: int, lead: Lead, scene: Scene) -> Drawing:
    """A request that waits for an answer: the agent's own labels, numbered as the keys that choose them."""
    drawing = Drawing()
    if lead.kind is not None:
        drawing.line("")
    tool = permission.get("toolCall") or {}
    which = f" ({number}/{count})" if count > 1 else ""
    title = one_line(str(tool.get("title") or "a tool call"))
    row = drawing.line(f"{one_line(scene.agent_name)} asks{which}: {title}", group="Question", fill="QuestionLine")
    drawing.sign(row, scene.look.icon("question"), "Question")
    for index, option in enumerate(permission.get("options") or (), 1):
        row = drawing.line(f"{index}  {one_line(str(option.get('name', '')), 120)}")
        drawing.marks.spans.append((row, 0, len(str(index)), "Key"))
    files = len(_list(tool, "diffs"))
    if files and "diff" in scene.look.keys:
        what = "the change" if files == 1 else f"the changes of {files} files"
        drawing.line(f"{scene.look.keys['diff']} shows {what}", group="More")
    return drawing


def draw_question(question: dict[str, Any], lead: Lead, scene: Scene) -> Drawing:
    """A question of the agent; its form is asked with vim.ui when the person opens it."""
    drawing = Drawing()
    if lead.kind is not None:
        drawing.line("")
    text = one_line(str(question.get("message", "")), 2000)
    row = drawing.line(f"{one_line(scene.agent_name)} asks: {text}", group="Question", fill="QuestionLine")
    drawing.sign(row, scene.look.icon("question"), "Question")
    if "open" in scene.look.keys:
        drawing.line(f"{scene.look.keys['open']} answers", group="More")
    return drawing
