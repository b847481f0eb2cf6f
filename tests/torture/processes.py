"""The processes that servers of the torture started, found by a variable in their environment (Linux: /proc)."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

TAG = "AGENTIK_TORTURE_SERVER"


@dataclass(frozen=True)
class Process:
    pid: int
    command: str

    @property
    def is_agent(self) -> bool:
        return "scripted.py" in self.command and not self.is_guard

    @property
    def is_guard(self) -> bool:
        return "guard.py" in self.command


def started_by(tag: str) -> list[Process]:
    """Living processes whose environment holds the tag, or a tag that begins with it."""
    wanted = f"{TAG}={tag}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            environment = (folder / "environ").read_bytes()
            if any(entry.startswith(wanted) for entry in environment.split(b"\0")):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found.append(Process(int(folder.name), command))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # gone, or not ours
    return [process for process in found if process.command]  # a zombie has no command


async def orphans(tag: str, limit_s: float = 5.0) -> list[Process]:
    """What is left of a dead server's processes after so long (B60)."""
    deadline = time.monotonic() + limit_s
    while (left := started_by(tag)) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    return left


def kill(pid: int, signal: int) -> bool:
    """Whether it was there."""
    try:
        os.kill(pid, signal)
    except ProcessLookupError:
        return False
    return True
