"""What the machine gives without our server: a bare interpreter, a pipe, a disk. The others are compared with these."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
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


def commits(folder: Path, count: int = 200) -> list[float]:
    """One row and its durable commit, by plain sqlite3 as we use it."""
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE t (x)")

        def commit() -> None:
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO t VALUES ('a message of the usual length')")
            db.execute("COMMIT")

        return timed(commit, count)


def flood(updates: int, *, decode: bool) -> float:
    """Updates a second of the agent of the benches, read by a loop that only counts bytes, or decodes each line."""
    command = [sys.executable, str(AGENT), "--bare", f"#burst {updates}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as agent:
        assert agent.stdout is not None
        agent.stdout.readline()  # it has begun
        begun = time.perf_counter()
        if decode:
            for line in agent.stdout:
                json.loads(line)
        else:
            while os.read(agent.stdout.fileno(), 65536):
                pass
    return updates / (time.perf_counter() - begun)


def run() -> None:
    """Measures and prints."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            spread("an interpreter starts and ends", starts()),
            spread("a line of 100 bytes, there and back", echoes()),
            spread("one row, durably committed by plain sqlite3", commits(Path(folder))),
            Row("a flood of updates, counted as bytes", f"{flood(300_000, decode=False):,.0f} updates/s"),
            Row("a flood of updates, each line decoded", f"{flood(300_000, decode=True):,.0f} updates/s"),
        ]
    show("the bare machine", rows)
