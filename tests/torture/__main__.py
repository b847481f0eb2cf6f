"""`python -m tests.torture [--messages N] [--seed S] [--seconds S]`: bounded, prints what it did, and its seed.

Exit code 1 and the folder of the run, when anything was lost, doubled, out of order, untrue or left alive.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from agentik_server.store.opening import FILE, connect
from tests.torture.chaos import Chaos
from tests.torture.nursery import Nursery
from tests.torture.points import Points

SHARE_OF_CHAOS = 0.6  # of the time


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--messages", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="for everything; what is not done then is not done"
    )
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="agentik-torture-"))
    problems = asyncio.run(_run(home, options.messages, options.seed, options.seconds))
    for problem in problems[:100]:
        print(f"WRONG: {problem}")
    if problems:
        print(f"{len(problems)} wrong. Everything is in {home}; again with: --seed {options.seed}")
        return 1
    shutil.rmtree(home)
    print("nothing lost, nothing doubled, order kept, no orphans, every reply true, integrity ok")
    return 0


async def _run(home: Path, messages: int, seed: int, seconds: float) -> list[str]:
    print(f"torture with --seed {seed}: {messages} messages, two editors, two servers, one database", flush=True)
    chaos = Chaos(home / "chaos", seed, messages, seconds * SHARE_OF_CHAOS)
    print(f"settings of the queue: {chaos.queue_settings}", flush=True)
    begun = time.monotonic()
    async with Nursery() as nursery:
        await chaos.run(nursery)
        problems = chaos.book.problems + integrity(home / "chaos")
        print_counts(f"random points, {len(chaos.book.sent)} messages", chaos.book.counts, begun)
        print("a death after each writing statement of the send path", flush=True)
        begun = time.monotonic()
        points = Points(home / "points", range(1, sys.maxsize), seconds * (1 - SHARE_OF_CHAOS))
        await points.run(nursery)
        problems += points.book.problems + integrity(home / "points")
        print_counts(f"{points.points} points" + ("" if points.complete else ", not all: no time left"),
                     points.book.counts, begun)  # fmt: skip
    return problems


def integrity(home: Path) -> list[str]:
    """What SQLite finds wrong with the database."""
    with closing(connect(home / FILE)) as db:
        found = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
        foreign = [f"a row of {row[0]} without its {row[2]}" for row in db.execute("PRAGMA foreign_key_check")]
        db.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")  # raises when it is not whole
    return [f"integrity_check: {line}" for line in found if line != "ok"] + foreign


def print_counts(title: str, counts: Counter[str], begun: float) -> None:
    print(f"{title}, {time.monotonic() - begun:.0f} s", flush=True)
    for what, count in sorted(counts.items()):
        print(f"  {what:34}{count:>7}")


if __name__ == "__main__":
    sys.exit(main())
