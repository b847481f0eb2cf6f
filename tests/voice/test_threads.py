"""The threads of dictation."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest

from agentik_server.voice.threads import CallThread, recognizer_threads


@pytest.mark.skipif(sys.platform != "linux", reason="niceness per thread is Linux's")
def test_the_recognizer_gives_way_to_others() -> None:
    """And so do the threads that its library starts from it."""

    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def of_a_child() -> int:
        found: list[int] = []
        child = threading.Thread(target=lambda: found.append(niceness()))
        child.start()
        child.join()
        return found[0]

    own = niceness()
    with recognizer_threads(1) as threads:
        assert threads.submit(niceness).result() > own
        assert threads.submit(of_a_child).result() > own
    assert niceness() == own


async def test_calls_run_in_order_in_one_thread_and_their_failures_come_back() -> None:
    calls = CallThread("test")
    names: list[str] = []

    def fail() -> None:
        raise ValueError("no")

    results = await asyncio.gather(
        calls.call(lambda: names.append(threading.current_thread().name)),
        calls.call(fail),
        calls.call(lambda: names.append("second")),
        return_exceptions=True,
    )
    calls.end()
    assert names == ["test", "second"]
    assert isinstance(results[1], ValueError)


async def test_a_call_that_hangs_does_not_hang_who_waits_with_a_limit() -> None:
    calls = CallThread("test")
    release = threading.Event()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(calls.call(release.wait), 0.01)
    release.set()
    calls.end()
