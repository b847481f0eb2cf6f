"""Waiting for events in tests: a deadline is only a guard."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

LIMIT_S = 15.0


async def eventually(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Until `condition` holds; for what has no event of its own (the process table, files)."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not in {limit_s} s: {what}"
        await asyncio.sleep(0.005)


def eventually_sync(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not in {limit_s} s: {what}"
        time.sleep(0.005)


def group_members(group: int) -> set[int]:
    """The living (not zombie) processes of a process group."""
    members = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            members.add(int(entry.name))
    return members


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"
