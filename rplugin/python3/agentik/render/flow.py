"""Text that arrives in pieces, as lines. Lines and marks equal those of the whole text at once.

Blank lines at the start are dropped and those at the end held back, so that blocks are set apart by the document alone.
Must not know where in a buffer it stands.
"""

from __future__ import annotations

from agentik.render.markdown import Markdown
from agentik.render.marks import Marks
from agentik.render.text import MAX_LINE_BYTES, chop, size, visible


class Flow:
    """The body of one message. `lines[-1]` is unfinished until `finish`; its marks come when it is finished."""

    def __init__(self, *, markdown: bool, fill: str | None = None) -> None:
        self.lines: list[str] = []
        self._fill = fill
        self._markdown = Markdown() if markdown else None
        self._marked = 0
        self._tail_bytes = 0
        self._held = ""

    def add(self, text: str) -> tuple[list[str], Marks]:
        """Takes a piece.

        Gives what to write after the last line so far (first element: the rest of that line), and the marks of the
        lines that are finished now.
        """
        before = len(self.lines)
        added = self._take(self._released(text))
        marks = Marks()
        if self._fill:
            marks.fills += [(row, self._fill) for row in range(before, len(self.lines))]
        self._mark(len(self.lines) - 1, marks)
        return added, marks

    def finish(self) -> Marks:
        """No more text comes: the marks of the last line."""
        marks = Marks()
        self._mark(len(self.lines), marks)
        return marks

    def _released(self, text: str) -> str:
        """What is certain to be text: newlines at the end wait for more, and so does a carriage return."""
        text = (self._held + text).replace("\r\n", "\n")
        if not self.lines:
            text = text.lstrip("\n")
        kept = text.rstrip("\r\n")
        self._held = text[len(kept) :]
        return visible(kept)

    def _take(self, text: str) -> list[str]:
        if not text:
            return []
        first, *rest = text.split("\n")
        if self.lines:
            pieces = chop(first, MAX_LINE_BYTES - self._tail_bytes)
            self.lines[-1] += pieces[0]
            self.lines += pieces[1:]
        else:
            pieces = chop(first)
            self.lines += pieces
        added = list(pieces)
        for line in rest:
            more = chop(line)
            self.lines += more
            added += more
        self._tail_bytes = self._tail_bytes + size(text) if len(added) == 1 else size(self.lines[-1])
        return added

    def _mark(self, end: int, marks: Marks) -> None:
        for row in range(self._marked, end):
            if self._markdown:
                self._markdown.line(row, self.lines[row], marks)
        self._marked = max(self._marked, end)
