"""One message as lines and marks: headers, text, thoughts, plans, notices, and what its status says.

Tool calls and permissions are drawn by `tools`. A block knows its neighbours only through `Lead`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agentik.mirror import LIVE, Message
from agentik.render.flow import Flow
from agentik.render.look import Scene
from agentik.render.marks import Marks
from agentik.render.text import lines_of, one_line, size


@dataclass(frozen=True, slots=True)
class Place:
    """A line that stands for a place in a file; `line` counts from 1."""

    row: int
    path: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Fold:
    """Rows `first` to `last` of a block; `closed` at first."""

    first: int
    last: int
    closed: bool


@dataclass(frozen=True, slots=True)
class Lead:
    """What stands before a block: nothing, or a message of some kind. Decides about the blank line and the header."""

    kind: str | None = None
    ends_at: int | None = None
    """When the next message of the turn began (milliseconds), for the length of a thought."""

    def blank(self, kind: str) -> bool:
        """A blank line goes before: always, but at the top and in a run of tool calls."""
        return self.kind is not None and not (kind == self.kind and kind in {"tool", "notice"})

    def headed(self, kind: str) -> bool:
        """The first thing the agent does after a message of the user bears the agent's name."""
        return kind in {"agent", "thought", "tool", "plan"} and self.kind in {None, "user", "notice"}


@dataclass(slots=True)
class Drawing:
    """A message drawn: its lines, marks, places and fold. `flow` lives on while its text is streamed."""

    lines: list[str] = field(default_factory=list)
    marks: Marks = field(default_factory=Marks)
    places: list[Place] = field(default_factory=list)
    fold: Fold | None = None
    flow: Flow | None = None
    """Grows the last line of the drawing."""
    head: int = 0
    """Lines before those of `flow`."""

    def line(self, text: str, *, group: str | None = None, fill: str | None = None) -> int:
        """Adds a line; gives its row."""
        row = len(self.lines)
        self.lines.append(text)
        if group and text:
            self.marks.spans.append((row, 0, size(text), group))
        if fill:
            self.marks.fills.append((row, fill))
        return row

    def sign(self, row: int, text: str, group: str) -> None:
        if text:
            self.marks.signs.append((row, text, group))

    def tail(self, row: int, text: str, group: str) -> None:
        """Adds a remark of ours to the end of a line."""
        if text:
            start = size(self.lines[row]) + 2
            self.lines[row] += f"  {text}"
            self.marks.spans.append((row, start, start + size(text), group))

    def body(self, text: str, *, markdown: bool, live: bool, fill: str | None = None) -> None:
        """Adds text that may still grow."""
        flow = Flow(markdown=markdown, fill=fill)
        start = len(self.lines)
        _, marks = flow.add(text)
        self.lines += flow.lines
        self.marks.extend(marks, start)
        if live:
            self.flow, self.head = flow, start
        else:
            self.marks.extend(flow.finish(), start)


def begin(message: Message, lead: Lead, scene: Scene) -> Drawing:
    """The lines that any message starts with."""
    drawing = Drawing()
    if lead.blank(message.kind):
        drawing.line("")
    if message.kind == "user":
        _header(drawing, "You", message, "User", scene)
    elif lead.headed(message.kind):
        _header(drawing, scene.agent_name, message, "Agent", scene)
    return drawing


def _header(drawing: Drawing, name: str, message: Message, group: str, scene: Scene) -> None:
    row = drawing.line(one_line(name), group=group, fill="UserLine" if group == "User" else None)
    drawing.sign(row, scene.look.icon(group.lower()), group)
    if message.created_at:
        drawing.tail(row, scene.clock(message.created_at), "Time")


def draw_user(message: Message, lead: Lead, scene: Scene) -> Drawing:
    drawing = begin(message, lead, scene)
    drawing.body(message.text, markdown=True, live=False)
    for attachment in message.attachments or ():
        draw_attachment(drawing, attachment, scene)
    hint = f": {scene.look.keys['resend']} sends it again" if "resend" in scene.look.keys else ""
    match message.status:
        case "unknown":
            _status(drawing, "unknown", f"sent, but the outcome is not known{hint}", "Warning", scene)
        case "interrupted":
            _status(drawing, "cancelled", f"interrupted{hint}", "Warning", scene)
        case "failed":
            _status(drawing, "failed", f"not answered{hint}", "Error", scene)
    return drawing


def draw_attachment(drawing: Drawing, attachment: dict[str, Any], scene: Scene) -> None:
    """One line: the file, and the lines of it (counted from 1) where only a part was attached."""
    path = str(attachment.get("path", ""))
    label, line = scene.place(path), None
    if attachment.get("range"):
        first = attachment["range"]["start"]["line"] + 1
        end = attachment["range"]["end"]
        last = max(first, end["line"] + (1 if end["character"] > 0 else 0))
        label, line = f"{label}:{first}-{last}" if last > first else f"{label}:{first}", first
    elif attachment.get("name"):
        label = str(attachment["name"])
    row = drawing.line(one_line(label), group="Attachment")
    drawing.sign(row, scene.look.icon("attachment"), "Attachment")
    drawing.places.append(Place(row, path, line))


def _status(drawing: Drawing, icon: str, text: str, group: str, scene: Scene) -> None:
    row = drawing.line(text, group=group)
    drawing.sign(row, scene.look.icon(icon), group)


def draw_agent(message: Message, lead: Lead, scene: Scene) -> Drawing:
    drawing = begin(message, lead, scene)
    live = message.status == LIVE
    drawing.body(message.text, markdown=True, live=live)
    if message.status == "interrupted":
        _status(drawing, "cancelled", "interrupted", "Warning", scene)
    elif message.status == "failed":
        _status(drawing, "failed", "failed", "Error", scene)
    return drawing


def draw_thought(message: Message, lead: Lead, scene: Scene) -> Drawing:
    drawing = begin(message, lead, scene)
    row = drawing.line("Thought", group="ThoughtTitle")
    drawing.sign(row, scene.look.icon("thought"), "ThoughtTitle")
    live = message.status == LIVE
    drawing.body(message.text, markdown=False, live=live, fill="Thought")
    if not live:
        if lead.ends_at and lead.ends_at > message.created_at > 0:
            drawing.tail(row, duration(lead.ends_at - message.created_at), "Time")
        if len(drawing.lines) - 1 > row:
            drawing.fold = Fold(row, len(drawing.lines) - 1, scene.look.fold_thoughts)
    return drawing


def duration(milliseconds: int) -> str:
    """As people read it: 0.4 s, 12 s, 3 min 05 s."""
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.1f} s"
    minutes, seconds = divmod(milliseconds // 1000, 60)
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"


_STEP = {"completed": ("done", "Done"), "in_progress": ("running", "Running"), "pending": ("pending", "Pending")}


def draw_plan(message: Message, lead: Lead, scene: Scene) -> Drawing:
    """One block that is drawn anew when the plan changes."""
    drawing = begin(message, lead, scene)
    entries = message.plan or []
    done = sum(1 for entry in entries if entry.get("status") == "completed")
    row = drawing.line("Plan", group="PlanTitle")
    drawing.sign(row, scene.look.icon("plan"), "PlanTitle")
    drawing.tail(row, f"{done}/{len(entries)}", "Time")
    for entry in entries:
        icon, group = _STEP.get(str(entry.get("status")), _STEP["pending"])
        text = one_line(str(entry.get("content", "")), 2000)
        row = drawing.line(text, group="PlanDone" if group == "Done" else None)
        drawing.sign(row, scene.look.icon(icon), group)
    return drawing


def draw_notice(message: Message, lead: Lead, scene: Scene) -> Drawing:
    drawing = begin(message, lead, scene)
    return note(drawing, lines_of(message.text.strip("\n")), "Notice", scene)


def note(drawing: Drawing, lines: Sequence[str], group: str, scene: Scene) -> Drawing:
    """Lines that speak for Agentik, not for the agent."""
    for index, line in enumerate(lines):
        row = drawing.line(line, group=group)
        if index == 0:
            drawing.sign(row, scene.look.icon("notice"), group)
    return drawing
