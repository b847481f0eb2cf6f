"""Agents' values made fit for the rest of the server: texts that every encoder takes, JSON that every editor decodes.

Pure. Nothing of an agent's JSON reaches a happening but through here (AGENTS.md section 2.1: lone surrogates).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

MAX_DEPTH = 48  # levels of JSON that are passed on; agents were not seen with more than 10
_INT_MIN, _INT_MAX = -(1 << 63), (1 << 63) - 1  # what msgpack and Lua can hold


def clean_text(text: str) -> str:
    """`text` without lone surrogates (U+FFFD for them; halves side by side are joined) and with NUL made visible."""
    if "\0" in text:
        text = text.replace("\0", "\u2400")
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_json(value: object, depth: int = MAX_DEPTH) -> object:
    """A copy of decoded JSON that can be encoded again anywhere: clean texts, numbers in range, limited depth."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if _INT_MIN <= value <= _INT_MAX else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return {clean_text(str(key)): clean_json(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_json(item, depth - 1) for item in value]
    return clean_text(str(value))


def as_dict(value: object) -> Mapping[str, object]:
    """`value` if it is an object, else an empty one: a wrong field is an absent field."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def as_text(value: object) -> str | None:
    """A text, clean; None for anything else."""
    return clean_text(value) if isinstance(value, str) else None


def as_int(value: object) -> int | None:
    """An integer in range; agents send 3.0 for 3."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if _INT_MIN <= value <= _INT_MAX else None


def one_line(text: str, limit: int = 500) -> str:
    """For messages that must fit one line of an editor."""
    line = " ".join(clean_text(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


class SurrogateJoiner:
    """Joins a character whose two halves came in two chunks of one text; a half that stays alone becomes U+FFFD."""

    __slots__ = ("_high",)

    def __init__(self) -> None:
        self._high = ""

    def feed(self, text: str) -> str:
        """The clean text so far; a high half at its end is kept back for the next chunk."""
        if not self._high and text.isascii() and "\0" not in text:
            return text
        text = self._high + text
        self._high = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._high = text[-1]
            text = text[:-1]
        return clean_text(text)

    def end(self) -> str:
        """The text is over: what was kept back."""
        text, self._high = self._high, ""
        return "\ufffd" if text else ""
