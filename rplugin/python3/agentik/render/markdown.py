"""Markdown of an answer, line by line as the lines are finished: marks only, the text stays as the agent wrote it.

Not a CommonMark parser: what helps reading and costs microseconds a line. Must not look at more than one line at a
time, but for the fence that is open.
"""

from __future__ import annotations

import re

from agentik.render.marks import Marks
from agentik.render.text import bytes_before, size

LONGEST = 4000
"""Characters of a line that is looked at for inline marks: bounds the time of the regular expressions."""

_FENCE = re.compile(r" {0,12}(`{3,}|~{3,})[ \t]*([\w+#.-]*)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_RULE = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$")
_QUOTE = re.compile(r" {0,3}(?:>[ \t]?)+")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?=[ \t])(?:[ \t]+\[[ xX]\](?=[ \t]))?")
_INLINE = re.compile(
    r"(?=[`*_~\[h])(?:"  # one look at each character instead of one for each kind of mark
    r"(?P<code>(?<!`)(?P<ticks>`{1,3})(?!`).{1,400}?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<strong>\*\*(?=\S)[^*\n]{1,400}?(?<=\S)\*\*|(?<!\w)__(?=\S)[^_\n]{1,400}?(?<=\S)__(?!\w))"
    r"|(?P<emphasis>(?<![\w*])\*(?=[^\s*])[^*\n]{1,400}?(?<=[^\s*])\*(?![\w*])"
    r"|(?<!\w)_(?=[^\s_])[^_\n]{1,400}?(?<=[^\s_])_(?!\w))"
    r"|(?P<struck>~~(?=\S)[^~\n]{1,400}?(?<=\S)~~)"
    r"|(?P<link>\[[^\]\n]{1,400}\]\([^()\s]{1,800}\))"
    r"|(?P<url>\bhttps?://[^\s<>\"'`)\]]{0,800}[^\s<>\"'`)\].,;:!?])"
    r")"
)
_GROUPS = {
    "code": "Code",
    "strong": "Strong",
    "emphasis": "Emphasis",
    "struck": "Struck",
    "link": "Link",
    "url": "Link",
}
_MARKUP = {"code": 0, "strong": 2, "emphasis": 1, "struck": 2}


class Markdown:
    """Feed it finished lines in order; it remembers only whether a fence is open."""

    def __init__(self) -> None:
        self._fence: str | None = None
        self._language = ""
        self._opened = 0

    def line(self, row: int, text: str, marks: Marks) -> None:
        """Adds the marks of one line."""
        fence = _FENCE.match(text)
        if self._fence is not None:
            self._inside(row, text, fence, marks)
        elif fence and "`" not in text[fence.end() :]:
            self._fence, self._language, self._opened = fence[1], fence[2], row
            _whole(row, text, "Fence", marks)
        elif _HEADING.match(text):
            _whole(row, text, "Heading", marks)
        elif _RULE.match(text):
            _whole(row, text, "Fence", marks)
        else:
            self._prose(row, text, marks)

    def _inside(self, row: int, text: str, fence: re.Match[str] | None, marks: Marks) -> None:
        opened = self._fence or ""
        if fence and fence[1][0] == opened[0] and len(fence[1]) >= len(opened) and not text[fence.end(1) :].strip():
            _whole(row, text, "Fence", marks)
            if row - 1 > self._opened:
                marks.codes.append((self._opened + 1, row - 1, self._language))
            self._fence = None
            return
        marks.fills.append((row, "CodeBlock"))

    def _prose(self, row: int, text: str, marks: Marks) -> None:
        start = 0
        if quote := _QUOTE.match(text):
            _whole(row, text, "Quote", marks)
            start = quote.end()
        elif text.lstrip().startswith("|"):
            marks.spans += [(row, bytes_before(text, at), bytes_before(text, at) + 1, "Fence") for at in _bars(text)]
        if item := _ITEM.match(text, start):
            marks.spans.append((row, bytes_before(text, start), bytes_before(text, item.end()), "ListMark"))
            start = item.end()
        if any(character in text for character in "`*_~[:"):
            self._inline(row, text[:LONGEST], start, marks)

    def _inline(self, row: int, text: str, start: int, marks: Marks) -> None:
        for found in _INLINE.finditer(text, start):
            name = found.lastgroup if found.lastgroup != "ticks" else "code"
            name = name or "code"
            first, last = bytes_before(text, found.start()), bytes_before(text, found.end())
            marks.spans.append((row, first, last, _GROUPS[name]))
            width = len(found["ticks"]) if found["ticks"] else _MARKUP.get(name, 0)
            if name == "link":
                text_end = bytes_before(text, found.start() + found[0].index("]("))
                marks.spans.append((row, first, first + 1, "Markup"))
                marks.spans.append((row, text_end, last, "Markup"))
            elif width:
                marks.spans.append((row, first, first + width, "Markup"))
                marks.spans.append((row, last - width, last, "Markup"))


def _whole(row: int, text: str, group: str, marks: Marks) -> None:
    if text:
        marks.spans.append((row, 0, size(text), group))


def _bars(text: str) -> list[int]:
    return [at for at, character in enumerate(text[:LONGEST]) if character == "|"]
