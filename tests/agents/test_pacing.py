"""The pace of happenings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentik_server.agents.pacing import BURST, PER_SECOND, Pace


def test_a_burst_goes_at_once_and_more_has_to_wait() -> None:
    pace = Pace(0.0)
    assert pace.spend(BURST, 0.0) == 0.0
    assert pace.spend(100, 0.0) == 100 / PER_SECOND


def test_after_a_rest_a_burst_may_go_again() -> None:
    pace = Pace(0.0)
    pace.spend(BURST, 0.0)
    assert pace.spend(BURST, 60.0) == 0.0


@given(st.lists(st.integers(0, 500), max_size=50))
def test_who_waits_as_told_never_exceeds_the_rate(counts: list[int]) -> None:
    pace, now = Pace(0.0), 0.0
    for number, count in enumerate(counts):
        now += pace.spend(count, now)
        assert sum(counts[: number + 1]) <= BURST + now * PER_SECOND + 1e-6
