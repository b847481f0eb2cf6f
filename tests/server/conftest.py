"""A server on a folder of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.server.harness import Talk, server


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
async def talk(home: Path) -> AsyncIterator[Talk]:
    """A server, one new session, its agent connected."""
    async with server(home) as talk:
        await talk.new_session()
        await talk.connected()
        yield talk
