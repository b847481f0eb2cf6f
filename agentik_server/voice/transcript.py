"""What the decoder wrote, judged and cleaned. Pure.

A decoder always writes something. Here is decided what of it was said: texts it made up for noise are dropped, loops
are cut to their first copy. Must not lose real speech: the limits leave a margin to every utterance measured.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decoded:
    """The raw result of one decoding."""

    text: str
    log_probability: float
    """Average per token; real speech measured above -1.1."""
    no_speech: float
    """The decoder's own probability that nobody spoke, 0..1."""
    compression: float = 1.0
    """Bytes of the text by its compressed bytes; a loop compresses well."""


def is_invented(decoded: Decoded) -> bool:
    """Whether the text is not what somebody said: noise, a loop without end, or a broken model's exclamation marks."""
    if not any(character.isalnum() for character in decoded.text):
        return True
    unsure = decoded.log_probability < _LEAST_LOG_PROBABILITY
    silent = decoded.no_speech > 0.6 and decoded.log_probability < -0.5
    return unsure or silent or decoded.compression > 2.4


_LEAST_LOG_PROBABILITY = -1.2


def cut_repeats(text: str, *, short: bool = False) -> str:
    """A looped text ("A b c. A b c. A b") cut to its first copy.

    A unit of three or more words needs two copies (the last may be unfinished), a shorter one three full copies. In a
    `short` clip (under two seconds) two copies of two words are enough: nobody says a command twice in that time.
    """
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    words = [re.sub(r"\W+", "", text[start:end].lower()) for start, end in spans]
    for unit in range(1, len(words)):
        rest = len(words) - unit
        needed = 3 if unit >= 3 else 2 * unit
        if short and unit == rest >= 2:
            needed = unit
        if rest >= needed and all(words[i] == words[i - unit] for i in range(unit, len(words))):
            return text[: spans[unit - 1][1]]
    return text


def agreed_prefix(previous: str, text: str) -> str:
    """The words at the beginning of `text` that the previous guess had too: they will hardly change any more."""
    agreed = 0
    old, new = previous.split(), text.split()
    for a, b in zip(old, new, strict=False):
        if _bare(a) != _bare(b):
            break
        agreed += 1
    return " ".join(new[:agreed])


def _bare(word: str) -> str:
    return re.sub(r"\W+", "", word.lower())
