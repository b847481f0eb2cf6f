"""Start, shutdown and end: once each, whatever the application does, and never for ever (B61)."""

from __future__ import annotations

import asyncio

import pytest

from agentik_server.editor.lifecycle import Lifecycle, Phase
from agentik_server.editor.outbox import Outbox
from agentik_server.editor.replies import Replies
from agentik_server.ports import InitializeOptions, Reply


class SlowApp:
    """Starts and closes when the test says so."""

    def __init__(self) -> None:
        self.may_start = asyncio.Event()
        self.may_close = asyncio.Event()
        self.closed = 0

    async def start(self, options: InitializeOptions) -> str:
        await self.may_start.wait()
        return "db"

    async def close(self) -> None:
        self.closed += 1
        await self.may_close.wait()

    def request(self, method: str, params: object, reply: Reply) -> None:
        raise AssertionError(method)


class Stage:
    """A lifecycle with everything around it; `events` tells what happened."""

    def __init__(self, close_s: float = 10.0) -> None:
        self.events: list[str] = []
        self.app = SlowApp()
        self.replies = Replies(Outbox(lambda data: self.events.append(data.decode().partition('"id":')[2])))
        self.life = Lifecycle(self.app, self.replies, lambda: self.events.append("before the end"), close_s)

    async def started(self) -> None:
        answered = asyncio.Event()
        self.app.may_start.set()
        self.life.initialize(1, InitializeOptions(), lambda _: answered.set())
        await asyncio.wait_for(answered.wait(), 10)


async def test_the_end_waits_for_shutdown_and_closes_once() -> None:
    """`exit` right after `shutdown`: the answer to shutdown still goes."""
    stage = Stage()
    await stage.started()
    assert stage.life.phase is Phase.READY
    stage.app.may_close.set()
    stage.life.shut_down(lambda: stage.events.append("answered"))
    await stage.life.wind_up()
    assert stage.events == ["before the end", "answered"]
    assert stage.app.closed == 1


async def test_the_end_before_the_start_closes_nothing() -> None:
    """An editor that left before initialize."""
    stage = Stage()
    await stage.life.wind_up()
    assert stage.app.closed == 0


async def test_the_end_during_the_start_waits_for_it_and_closes() -> None:
    """What is half open is never left behind."""
    stage = Stage()
    stage.life.initialize(1, InitializeOptions(), stage.events.append)
    end = asyncio.create_task(stage.life.wind_up())
    stage.app.may_start.set()
    stage.app.may_close.set()
    await end
    assert stage.events == ["db", "before the end"]
    assert stage.app.closed == 1
    assert stage.life.phase is Phase.ENDING


@pytest.mark.parametrize("starts", [True, False])
async def test_an_application_that_hangs_is_left(starts: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A start or a close that does not end costs its time and is logged."""
    stage = Stage(close_s=0.01)
    if starts:
        await stage.started()
    else:
        stage.life.initialize(1, InitializeOptions(), stage.events.append)
    await asyncio.wait_for(stage.life.wind_up(), 10)
    assert stage.app.closed == 1
    assert "did not end within 0.01 s" in caplog.text


async def test_a_close_that_raises_is_logged_and_the_end_goes_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bug at the end must not keep the process."""
    stage = Stage()
    await stage.started()
    monkeypatch.delattr(stage.app, "may_close")  # the bug
    await asyncio.wait_for(stage.life.wind_up(), 10)
    assert stage.events == ["before the end"]
    assert "the application did not end in order" in caplog.text
