"""Torture in some seconds: a fixed seed, and some of the points of death (`make torture` has all of them)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torture.__main__ import integrity
from tests.torture.chaos import Chaos
from tests.torture.nursery import Nursery
from tests.torture.points import Points


@pytest.mark.timeout(90)
async def test_random_points(tmp_path: Path) -> None:
    """# B2 B4 B5 B14 B24 B26 B35 B43 B47 B59 B60: whatever dies whenever, every message is there once."""
    chaos = Chaos(tmp_path / "home", seed=20, messages=100, seconds=10)
    async with Nursery() as nursery:
        await chaos.run(nursery)
    assert chaos.book.problems + integrity(chaos.home) == []
    assert chaos.book.counts["servers died"] > 2


@pytest.mark.timeout(90)
async def test_death_after_statements_of_the_send_path(tmp_path: Path) -> None:
    """# B4 B5 B6 B26 B43"""
    points = Points(tmp_path / "home", range(3, 400, 57))
    async with Nursery() as nursery:
        await points.run(nursery)
    assert points.book.problems + integrity(points.home) == []
    assert points.points > 5
