"""A picker of the tests: what vim.ui.select was asked to show, and the answer to it."""

from __future__ import annotations

from typing import Any

from tests.e2e.kit import Editor

PICKER = """
Picker = { asked = {} }
vim.ui.select = function(items, options, done)
  table.insert(Picker.asked, { items = items, options = options, done = done })
end
vim.ui.input = function(options, done)
  table.insert(Picker.asked, { options = options, done = done })
end
"""
SHOWN = """
local asked = Picker.asked[1]
if not asked then return vim.NIL end
return {
  prompt = asked.options.prompt,
  kind = asked.options.kind,
  lines = vim.tbl_map(asked.options.format_item or tostring, asked.items or {}),
}
"""


class Picker:
    """Takes the place of vim.ui.select and vim.ui.input; one question after the other."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor
        editor.lua(PICKER)

    def wait(self) -> dict[str, Any]:
        """The open question: prompt, kind, lines."""
        self._editor.until("a question", lambda: self._editor.lua(SHOWN) is not None)
        shown: dict[str, Any] = self._editor.lua(SHOWN)
        return shown

    def lines(self) -> list[str]:
        return list(self.wait()["lines"])

    def choose(self, text: str) -> None:
        """Answers with the first line that has the text in it."""
        lines = self.lines()
        index = next((i for i, line in enumerate(lines, 1) if text in line), None)
        assert index is not None, f"{text!r} is none of {lines}"
        self._editor.lua(
            "local a, index = table.remove(Picker.asked, 1), ...; "
            "vim.schedule(function() a.done(a.items[index], index) end)",
            index,
        )

    def answer(self, text: str | None) -> None:
        """Answers vim.ui.input, or refuses to answer."""
        self.wait()
        self._editor.lua(
            "local a, text = table.remove(Picker.asked, 1), ...; if text == vim.NIL then text = nil end; "
            "vim.schedule(function() a.done(text) end)",
            text,
        )

    def preview(self, index: int) -> str:
        """What the picker would show beside the line, when it has come."""
        self.wait()
        self._editor.lua("local a = Picker.asked[1]; Shown = a.options.preview_item(a.items[...]).buf", index)

        def text() -> str:
            return "\n".join(self._editor.lua("return vim.api.nvim_buf_get_lines(Shown, 0, -1, true)"))

        self._editor.until("the preview", lambda: text() != "")
        return text()
