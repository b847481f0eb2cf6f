"""Identifiers by their sound: "parse config" becomes `parse_config` when that name is in view. Pure.

Words of the text are joined in small groups and compared, as they sound, with the names in view. Must not invent: only
a name of the given list is ever written, only where the sounds are close, and never across the end of a clause; across
a comma, which a small model hears in mid-name ("the method next, page"), only where they are the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

MOST_NAMES = 2000
"""More names than this are not looked at: any spoken word would sound like one of them by chance."""

# Share of a name's sound that may differ. Measured on espeak voices: 0.2 restores 60 of 80 names; with many names in
# view only 0.17 keeps words from turning into a name that was not said.
_TOLERANCE, _TOLERANCE_AMONG_MANY, _MANY = 0.2, 0.17, 600
_RETRIEVAL_TOLERANCE = 0.4
# A group that begins or ends with a small word the name does not have ("buffer is" for `buffer_size`), or that begins
# with another sound, has to be closer by this much.
_DOUBT = 0.1
_SHORTEST_SOUND = 4

_WORD = re.compile(r"\w+(?:[.\-]\w+)*")
_CLAUSE_END = re.compile(r"[.;:?!]\s")
_NAME = re.compile(r"\w[\w.\-/]{2,63}")
_SMALL_WORDS = frozenset(
    "a an and are as at be but by do does did for from he i if in into is it its my no not of on or out she so than"  # noqa: SIM905 -- a word list reads better
    " that the then they this to up was we were when where why with you".split()
)
_DIGITS = {
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5",
    "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
}  # fmt: skip
# How short forms in names are said.
_SAID = {
    "arg": "argument", "args": "arguments", "attr": "attribute", "buf": "buffer", "cb": "callback", "cfg": "config",
    "cmd": "command", "conn": "connection", "ctx": "context", "db": "database", "del": "delete", "dest": "destination",
    "dir": "directory", "doc": "document", "env": "environment", "err": "error", "fn": "function", "func": "function",
    "idx": "index", "impl": "implementation", "len": "length", "lib": "library", "max": "maximum", "min": "minimum",
    "msg": "message", "num": "number", "obj": "object", "param": "parameter", "params": "parameters", "pkg": "package",
    "prev": "previous", "ptr": "pointer", "req": "request", "res": "result", "resp": "response", "ret": "return",
    "src": "source", "str": "string", "temp": "temporary", "tmp": "temp", "val": "value", "var": "variable",
}  # fmt: skip
# Spelling to sound: what English writes in several ways becomes one way.
_SOFT_C = re.compile("c(?=[eiy])")
_SPELLING = re.compile("ph|t?ch|ck|c|queue|qu?|z|x|dge?|igh|gh|^wr|^kn|wh|(?<=.)y|(?<=[^aeiou])e$")
_SOUNDS = {
    "ph": "f", "tch": "C", "ch": "C", "ck": "k", "c": "k", "queue": "ku", "qu": "kw", "q": "k", "z": "s", "x": "ks",
    "dg": "d", "dge": "d", "igh": "i", "gh": "g", "wr": "r", "kn": "n", "wh": "w", "y": "i", "e": "",
}  # fmt: skip
_DOUBLED = re.compile(r"(.)\1+")


def words_of(name: str) -> list[str]:
    """The words of a name as they are spoken: `parseJSONFile.py` is parse, json, file, dot, py."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    text = re.sub(r"([A-Z])([A-Z][a-z])", r"\1 \2", text)
    text = re.sub(r"([A-Za-z])(\d)", r"\1 \2", text)
    return re.sub(r"[_\-/]+", " ", text).replace(".", " dot ").lower().split()


def sound_of(words: Iterable[str]) -> str:
    """How the words sound, as one string without gaps: "phase cue" and `faze_q` meet."""
    return _DOUBLED.sub(r"\1", "".join(_sound_of_word(word) for word in words))


@lru_cache(maxsize=4096)
def _sound_of_word(word: str) -> str:
    hard = _SOFT_C.sub("s", _DIGITS.get(word, word))
    return _SPELLING.sub(lambda match: _SOUNDS[match.group()], hard)


@dataclass(frozen=True, slots=True)
class _Group:
    """A run of words in the text, from character `start` to `end`."""

    start: int
    end: int
    words: tuple[str, ...]
    comma: bool = False  # one stands between the words


@dataclass(frozen=True, slots=True)
class _Match:
    distance: float
    start: int
    end: int
    name: str


class SoundIndex:
    """The names in view, by sound. Built once per dictation; `snap` and `nearest` may be called from any thread."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        """`names`: identifiers, the most relevant first.

        Left out are names of one word, which have nothing to restore, and names like `is_empty`, `to_json`, `save_as`:
        two words that mostly are just two words ("the buffer is empty").
        """
        self._names: list[str] = []
        self._words: list[list[str]] = []
        self._sounds: list[str] = []
        known = dict.fromkeys(name for name in names if _NAME.fullmatch(name))
        for name in islice(known, MOST_NAMES):
            self._add(name)
        self._longest = max(map(len, self._words), default=0) + 1
        self._tolerance = _TOLERANCE if len(self._names) <= _MANY else _TOLERANCE_AMONG_MANY

    def _add(self, name: str) -> None:
        written = words_of(name)
        if len(written) < 2 or (len(written) == 2 and not _SMALL_WORDS.isdisjoint(written)):
            return
        said = [_SAID.get(word, word) for word in written]
        for words in (written, said) if said != written else (written,):
            self._names.append(name)
            self._words.append(words)
            self._sounds.append(sound_of(words))

    def snap(self, text: str) -> str:
        """The text with every group of words that sounds like a name in view written as that name."""
        taken: list[_Match] = []
        for match in sorted(self._matches(text, self._tolerance), key=lambda m: (m.distance, m.start - m.end)):
            if all(match.start >= other.end or match.end <= other.start for other in taken):
                taken.append(match)
        for match in sorted(taken, key=lambda m: -m.start):
            text = text[: match.start] + match.name + text[match.end :]
        return text

    def nearest(self, text: str, limit: int = 8) -> list[str]:
        """Names that may have been said, the nearest first, at most `limit`: hotwords for a second decoding."""
        matches = sorted(self._matches(text, _RETRIEVAL_TOLERANCE), key=lambda m: m.distance)
        return list(islice(dict.fromkeys(match.name for match in matches), limit))

    def _matches(self, text: str, tolerance: float) -> Iterator[_Match]:
        from rapidfuzz import process
        from rapidfuzz.distance import Levenshtein

        for group in _groups(text, self._longest) if self._names else ():
            sound = sound_of(group.words)
            if len(sound) < _SHORTEST_SOUND:
                continue
            near = process.extract(
                sound, self._sounds, scorer=Levenshtein.normalized_similarity, score_cutoff=1 - tolerance, limit=6
            )
            for _, similarity, index in near:
                distance = 1 - similarity + self._doubt(group, sound, index, similarity)
                if distance <= tolerance:
                    yield _Match(distance, group.start, group.end, self._names[index])

    def _doubt(self, group: _Group, sound: str, index: int, similarity: float) -> float:
        if similarity >= 1:
            return 0.0
        if group.comma:
            return 1.0
        words, name = group.words, self._words[index]
        reasons = (
            words[0] in _SMALL_WORDS and words[0] != name[0],
            words[-1] in _SMALL_WORDS and words[-1] != name[-1],
            sound[0] != self._sounds[index][0],
        )
        return _DOUBT * sum(reasons)


def _groups(text: str, longest: int) -> Iterator[_Group]:
    """Every run of up to `longest` words within one clause."""
    tokens = [(match.start(), match.end(), words_of(match.group())) for match in _WORD.finditer(text)]
    for first, (start, _, _) in enumerate(tokens):
        words: tuple[str, ...] = ()
        comma = False
        for index in range(first, min(first + longest, len(tokens))):
            begin, end, more = tokens[index]
            between = text[tokens[index - 1][1] : begin] if index > first else ""
            if _CLAUSE_END.search(between):
                break
            comma = comma or "," in between
            words += tuple(more)
            if words:
                yield _Group(start, end, words, comma)
