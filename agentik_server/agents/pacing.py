"""How many happenings of one agent may be told: a burst at once, then so many a second. Pure; time comes in."""

from __future__ import annotations

BURST = 200
PER_SECOND = 2000.0


class Pace:
    """A bucket of `BURST` that fills with `PER_SECOND`."""

    def __init__(self, now: float) -> None:
        self._left = float(BURST)
        self._at = now

    def spend(self, count: int, now: float) -> float:
        """`count` were told at `now` (seconds): how long to wait before the next, 0.0 = not at all."""
        self._left = min(float(BURST), self._left + (now - self._at) * PER_SECOND) - count
        self._at = now
        return max(0.0, -self._left / PER_SECOND)
