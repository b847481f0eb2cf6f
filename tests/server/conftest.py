"""A server on a folder of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest

from tests.server.harness import RUNNING, Talk, server


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failing test at a server that is shared shows what that server said."""
    report = yield
    if report.when == "call" and report.failed:
        report.sections.extend((f"server {client.pid}", client.report()[-20_000:]) for client in RUNNING)
    return report


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
