"""A desk with one session that we own; a running store with one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.store.desk import Desk
from tests.store.running import Running


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    desk.session()
    yield desk
    # Whatever a test did: the full-text index is exactly what the messages say.
    desk.db.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
    desk.db.close()


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    running = await Running.open(tmp_path / "home")
    await running.session(cwd=str(tmp_path))
    yield running
    await running.close()
