"""Spoken commands: an utterance that is nothing but a command. Pure.

Must not fire in the middle of a sentence: the whole utterance has to be the phrase, or sound very much like it, and the
decoder has to be sure of it.
"""

from __future__ import annotations

import re
from typing import Literal

from agentik_server.voice.snap import sound_of

Command = Literal["newline", "scratch", "send"]

_PHRASES: dict[str, Command] = {
    "new line": "newline",
    "newline": "newline",
    "next line": "newline",
    "scratch that": "scratch",
    "scratch this": "scratch",
    "delete that": "scratch",
    "send it": "send",
    "send message": "send",
    "send the message": "send",
}
_LEAST_LOG_PROBABILITY = -0.7
_LEAST_SIMILARITY = 0.8


def command_in(text: str, log_probability: float) -> Command | None:
    """The command the utterance is, or None. `log_probability`: the decoder's average, as in `transcript.Decoded`."""
    words = re.findall(r"[a-z0-9']+", text.lower())
    phrase = " ".join(words)
    if phrase in _PHRASES:
        return _PHRASES[phrase]
    if not 1 <= len(words) <= 3 or log_probability < _LEAST_LOG_PROBABILITY:
        return None
    return _sounding_like(words)


def _sounding_like(words: list[str]) -> Command | None:
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein

    sounds = {sound_of(phrase.split()): command for phrase, command in _PHRASES.items()}
    nearest = process.extractOne(
        sound_of(words), list(sounds), scorer=Levenshtein.normalized_similarity, score_cutoff=_LEAST_SIMILARITY
    )
    return sounds[nearest[0]] if nearest else None
