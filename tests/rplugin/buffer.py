"""A buffer as Neovim keeps it, that takes patches: lines with the marks that stand on them."""

from __future__ import annotations

from typing import Any


class Buffer:
    """An empty buffer has one empty line, as Neovim's."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, list[Any]]] = [("", [])]
        self.blocks: dict[int, dict[str, Any]] = {}

    @property
    def lines(self) -> list[str]:
        return [text for text, _ in self.rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def view(self) -> list[tuple[str, list[Any]]]:
        """Lines and their marks, in an order that can be compared."""
        return [(text, sorted(marks, key=repr)) for text, marks in self.rows]

    def apply(self, patches: list[dict[str, Any]]) -> None:
        for patch in patches:
            self._one(patch)

    def _one(self, patch: dict[str, Any]) -> None:
        if "text" in patch:
            first, *rest = patch["text"]
            text, marks = self.rows[patch["row"]]
            self.rows[patch["row"]] = (text + first, marks)
            self.rows[patch["row"] + 1 : patch["row"] + 1] = [(line, []) for line in rest]
        elif "lines" in patch:
            assert patch["row"] + patch["del"] <= len(self.rows)
            self.rows[patch["row"] : patch["row"] + patch["del"]] = [(line, []) for line in patch["lines"]]
            if not self.rows:
                self.rows = [("", [])]
        for row in range(*patch.get("clear", (0, 0))):
            self.rows[row][1].clear()
        for name in ("spans", "fills", "signs"):
            for row, *mark in patch.get(name, ()):
                self.rows[row][1].append((name, *mark))
        for first, last, language in patch.get("codes", ()):
            self.rows[first][1].append(("code", last - first, language))
        if patch.get("gone"):
            self.blocks.pop(patch["block"], None)
        elif "meta" in patch:
            self.blocks[patch["block"]] = patch["meta"]
