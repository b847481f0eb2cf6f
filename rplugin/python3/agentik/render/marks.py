"""What is drawn beside the text of some lines: a value that renderers fill and the document moves to its place.

Rows are relative to the owner's first line, columns are bytes. Names of highlight groups are without the prefix
`Agentik`. Must not know how marks are put into a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Marks:
    """All marks of a run of lines."""

    spans: list[tuple[int, int, int, str]] = field(default_factory=list)
    """(row, column, end column, group)"""
    fills: list[tuple[int, str]] = field(default_factory=list)
    """(row, group of the whole line to the window's edge)"""
    signs: list[tuple[int, str, str]] = field(default_factory=list)
    """(row, text, group) in the sign column, where no text of an agent can ever stand"""
    codes: list[tuple[int, int, str]] = field(default_factory=list)
    """(first row, last row, language) of finished code blocks, to be coloured by the editor"""

    def extend(self, other: Marks, rows: int) -> None:
        """Takes the marks of lines that stand `rows` below."""
        self.spans += [(row + rows, column, end, group) for row, column, end, group in other.spans]
        self.fills += [(row + rows, group) for row, group in other.fills]
        self.signs += [(row + rows, text, group) for row, text, group in other.signs]
        self.codes += [(first + rows, last + rows, language) for first, last, language in other.codes]

    def within(self, first: int, end: int) -> Marks:
        """Those of the rows `first` to `end` (exclusive), for lines that were changed."""
        return Marks(
            spans=[mark for mark in self.spans if first <= mark[0] < end],
            fills=[mark for mark in self.fills if first <= mark[0] < end],
            signs=[mark for mark in self.signs if first <= mark[0] < end],
            codes=[mark for mark in self.codes if first <= mark[0] < end],
        )

    def by_row(self) -> dict[int, list[tuple[object, ...]]]:
        """What each row bears, to be compared."""
        rows: dict[int, list[tuple[object, ...]]] = {}
        for name in ("spans", "fills", "signs"):
            for row, *mark in getattr(self, name):
                rows.setdefault(row, []).append((name, *mark))
        for first, last, language in self.codes:
            rows.setdefault(first, []).append(("code", last - first, language))
        return rows

    def wire(self, rows: int) -> dict[str, list[object]]:
        """As it goes to Lua: absolute rows, empty lists left out."""
        moved = Marks()
        moved.extend(self, rows)
        parts: dict[str, list[object]] = {
            "spans": [list(mark) for mark in moved.spans],
            "fills": [list(mark) for mark in moved.fills],
            "signs": [list(mark) for mark in moved.signs],
            "codes": [list(mark) for mark in moved.codes],
        }
        return {name: marks for name, marks in parts.items() if marks}
