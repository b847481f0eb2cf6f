"""Spoken commands: an utterance that is nothing but a command. Pure.

Must not fire in the middle of a sentence: the utterance has to be the phrase word for word, or the decoder has to find
the phrase nearly as likely as the text it would write itself. (Three words without context are what a small model hears
worst: "send it" comes out as "and it". Asked how likely "send it" would be, it knows better.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Command = Literal["newline", "scratch", "send"]

PHRASES: dict[str, Command] = {
    "new line": "newline",
    "newline": "newline",
    "next line": "newline",
    "scratch that": "scratch",
    "delete that": "scratch",
    "send it": "send",
    "send message": "send",
    "send the message": "send",
}
SCORED = ("new line", "scratch that", "send it")
"""The phrases whose likelihood is asked for."""

# Nats per token. Measured on six voices: commands cost at most 2.5 against the decoder's own text (tiny.en); of 34
# other short sayings only "new lines" costs less than 2.7.
_MOST_COST = 2.5
_LEAST_LIKELIHOOD = -3.6


def command_in(text: str) -> Command | None:
    """The command the whole text is, word for word."""
    return PHRASES.get(" ".join(re.findall(r"\w+", text.lower())))


def likely_command(likelihoods: Mapping[str, float], text_likelihood: float) -> Command | None:
    """The command that was most likely said, if any.

    `likelihoods`: average log probability per token of each phrase; `text_likelihood`: of the decoder's own text.
    """
    phrase = max(likelihoods, key=likelihoods.__getitem__)
    likelihood = likelihoods[phrase]
    if likelihood < _LEAST_LIKELIHOOD or text_likelihood - likelihood > _MOST_COST:
        return None
    return PHRASES[phrase]
