"""How good a transcript is: word error rate, identifiers, percentiles."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from agentik_server.voice.snap import words_of


def words(text: str) -> list[str]:
    """Words as they sound to the judge: case, punctuation and the spelling of identifiers do not count."""
    bare = re.sub(r"['’]", "", text)
    return re.findall(r"[a-z0-9]+", " ".join(word for token in bare.split() for word in words_of(token)))


def word_errors(wanted: str, got: str) -> tuple[int, int]:
    """(errors, words wanted): substitutions, insertions and deletions."""
    reference, hypothesis = words(wanted), words(got)
    row = list(range(len(hypothesis) + 1))
    for i, word in enumerate(reference, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(hypothesis, 1):
            diagonal, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, diagonal + (word != other))
    return row[-1], len(reference)


def word_error_rate(pairs: Iterable[tuple[str, str]]) -> float:
    """Of (wanted, got) pairs, 0..1 and above."""
    counts = [word_errors(wanted, got) for wanted, got in pairs]
    return sum(errors for errors, _ in counts) / max(1, sum(total for _, total in counts))


def percentile(values: Sequence[float], share: float) -> float:
    """The nearest-rank percentile; NaN of nothing."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
