"""What the machine gives without our server: a bare interpreter, a pipe, a disk. The others are compared with these."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.bench.table import Row, show, spread

AGENT = Path(__file__).with_name("stamping_agent.py")
_ECHO = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line); sys.stdout.buffer.flush()"


def timed(action: Callable[[], object], count: int) -> list[float]:
    """Seconds of each of `count` calls."""
    found = []
    for _ in range(count):
        begun = time.perf_counter()
        action()
        found.append(time.perf_counter() - begun)
    return found


def starts(count: int = 5) -> list[float]:
    """A bare interpreter from spawn to its end."""
    return timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), count)


def echoes(count: int = 300, size: int = 100) -> list[float]:
    """A line of `size` bytes there and back through a process that does nothing else."""
    with subprocess.Popen([sys.executable, "-c", _ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        out, back = process.stdin, process.stdout

        def echo() -> None:
            out.write(b"x" * size + b"\n")
            out.flush()
            back.readline()

        echo()
        found = timed(echo, count)
        out.close()
    return found


def syncs(folder: Path, count: int = 100, size: int = 4096) -> list[float]:
    """An append of one page and its fsync."""
    with (folder / "synced").open("wb", buffering=0) as file:

        def sync() -> None:
            file.write(b"x" * size)
            os.fsync(file.fileno())

        return timed(sync, count)


def flood(updates: int) -> float:
    """Updates a second of the agent of the benches, read by a process that only counts bytes."""
    begun = time.perf_counter()
    with subprocess.Popen([sys.executable, str(AGENT), "--bare", f"#burst {updates}"], stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        os.read(agent.stdout.fileno(), 65536)
        begun = time.perf_counter()
        while os.read(agent.stdout.fileno(), 65536):
            pass
    return updates / (time.perf_counter() - begun)


def run() -> None:
    """Measures and prints."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            spread("an interpreter starts and ends", starts()),
            spread("a line of 100 bytes, there and back", echoes()),
            spread("4 KiB appended and synced to this disk", syncs(Path(folder))),
            Row("a flood of updates, counted as bytes", f"{flood(300_000):,.0f} updates/s"),
        ]
    show("the bare machine", rows)
