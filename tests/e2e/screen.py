"""What a person would see: Neovim's own redraw events put together into lines of text and their highlight groups."""

from __future__ import annotations

from typing import Any


class Screen:
    """A model of `ext_linegrid` with one grid."""

    def __init__(self, width: int, height: int) -> None:
        self._resize(width, height)
        self.cursor = (0, 0)
        self.flushes = 0
        self.attributes: dict[int, dict[str, Any]] = {0: {}}

    def _resize(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._cells = [[(" ", 0)] * width for _ in range(height)]

    def redraw(self, events: list[list[Any]]) -> None:
        for name, *calls in events:
            handler = getattr(self, f"_on_{name}", None)
            if handler:
                for arguments in calls:
                    handler(*arguments)

    def _on_grid_resize(self, _grid: int, width: int, height: int) -> None:
        self._resize(width, height)

    def _on_grid_clear(self, _grid: int) -> None:
        self._resize(self.width, self.height)

    def _on_hl_attr_define(self, number: int, rgb: dict[str, Any], *_: Any) -> None:
        self.attributes[number] = rgb

    def _on_grid_cursor_goto(self, _grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _on_flush(self, *_: Any) -> None:
        self.flushes += 1

    def _on_grid_line(self, _grid: int, row: int, column: int, cells: list[list[Any]], *_: Any) -> None:
        attribute = 0
        for text, *rest in cells:
            attribute = rest[0] if rest else attribute
            for _repeat in range(rest[1] if len(rest) > 1 else 1):
                if column < self.width:
                    self._cells[row][column] = (text, attribute)
                column += 1

    def _on_grid_scroll(
        self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, _columns: int
    ) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self._cells[row][left:right] = self._cells[row + rows][left:right]

    @property
    def lines(self) -> list[str]:
        """The text of each line, blanks at its end cut off."""
        return ["".join(text for text, _ in row).rstrip() for row in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def attribute_at(self, row: int, column: int) -> dict[str, Any]:
        """Colours and style of a cell."""
        return self.attributes.get(self._cells[row][column][1], {})
