"""What every test of the agents' side promises: it leaves no process, no descriptor and no task behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from .waiting import eventually_sync


def children() -> set[int]:
    """Our child processes, zombies too (Linux; elsewhere nothing is checked)."""
    found: set[int] = set()
    if not sys.platform.startswith("linux"):
        return found
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children") as file:
                found.update(int(pid) for pid in file.read().split())
        except FileNotFoundError:
            continue
    return found


def descriptors() -> set[str]:
    """What our descriptors are open on, but for the loop's own."""
    found: set[str] = set()
    if not sys.platform.startswith("linux"):
        return found
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:
            continue
        found.add(f"{fd} {target}")
    return found


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Every child that a test started has ended and was reaped when the test is over."""
    before = children()
    yield
    eventually_sync(lambda: children() <= before, "a child process is left")


@pytest.fixture(autouse=True)
async def no_task_or_descriptor_is_left() -> AsyncIterator[None]:
    """Every task and descriptor that a test made on the loop is gone when the test is over."""
    before = descriptors()
    yield
    me = asyncio.current_task()
    left = [task for task in asyncio.all_tasks() if task is not me and not task.done()]
    assert not left, f"tasks are left: {left}"
    if descriptors() - before:
        gc.collect()  # only then: it costs 0.1 s
    new = descriptors() - before
    assert not new, f"descriptors are left: {new}"
