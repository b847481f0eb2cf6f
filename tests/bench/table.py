"""Rows of a benchmark as text: what, how long, against what it is compared, and what was promised."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`bare`: the same without our server, in the same unit. `goal`: what the issues promise, in words."""

    what: str
    value: str
    bare: float | None = None
    measured: float | None = None
    goal: str = ""


def spread(what: str, seconds: Sequence[float], *, bare: Sequence[float] | None = None, goal: str = "") -> Row:
    """Median, 95th percentile and worst of times, in milliseconds."""
    p50, p95, worst = (1000 * value for value in (percentile(seconds, 50), percentile(seconds, 95), max(seconds)))
    text = f"p50 {p50:8.3f}  p95 {p95:8.3f}  max {worst:8.3f} ms"
    return Row(what, text, 1000 * statistics.median(bare) if bare else None, p50, goal)


def percentile(values: Sequence[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part / 100))]


def show(title: str, rows: Sequence[Row]) -> None:
    print(title)
    for row in rows:
        against = ""
        if row.bare is not None and row.measured is not None:
            against = f"bare {row.bare:.3g}, ratio {row.measured / row.bare:.2f}"
        print(f"  {row.what:46} {row.value:44} {against:32} {row.goal}".rstrip(), flush=True)
