"""What the decoder wrote, judged and cleaned. Pure.

A decoder always writes something. Here is decided what of it was said: texts it made up for noise are dropped, loops
are cut to their first copy. Must not lose real speech: the limits leave a margin to the utterances measured.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

# (no-speech above, log probability below) that no real speech has. Measured: whole utterances no-speech below 0.12, log
# probability above -1.5; short or noisy ones below 0.35 and above -1.1. Noise: no-speech above 0.38.
_IMPLAUSIBLE = ((0.6, -0.5), (0.15, -1.3), (-1.0, -2.0))
_MOST_COMPRESSION = 2.4
_PARROTED_WORDS, _PARROTED_SILENT = 4, 0.3


@dataclass(frozen=True, slots=True)
class Decoded:
    """The raw result of one decoding."""

    text: str
    log_probability: float
    """Average per token."""
    no_speech: float
    """The decoder's own probability that nobody spoke, 0..1."""


def is_invented(decoded: Decoded, prompt: str = "") -> bool:
    """Whether the text is not what somebody said: made up for noise, a broken model's "!!!!", or the prompt parroted.

    Loops are expected to be cut already.
    """
    if not any(character.isalnum() for character in decoded.text):
        return True
    implausible = any(decoded.no_speech > high and decoded.log_probability < low for high, low in _IMPLAUSIBLE)
    return implausible or _compression(decoded.text) > _MOST_COMPRESSION or _is_parroted(decoded, prompt)


def _compression(text: str) -> float:
    """Bytes of the text by its compressed bytes: what says little compresses well."""
    content = text.encode()
    return len(content) / len(zlib.compress(content))


def _is_parroted(decoded: Decoded, prompt: str) -> bool:
    """In noise the larger models recite the prompt, and are not ashamed of it."""
    said, given = (re.findall(r"\w+", text.lower())[:_PARROTED_WORDS] for text in (decoded.text, prompt))
    return len(said) == _PARROTED_WORDS and said == given and decoded.no_speech > _PARROTED_SILENT


def cut_repeats(text: str, *, short: bool = False) -> str:
    """A looped text ("A b c. A b c. A b") cut to its first copy.

    A unit of three or more words needs two copies (the last may be unfinished), a shorter one three full copies. In a
    `short` clip (under two seconds) two copies of two words are enough: nobody says a command twice in that time.
    """
    spans = [match.span() for match in re.finditer(r"\S+", text)]
    words = [_bare(text[start:end]) for start, end in spans]
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
