"""What the store costs on this disk: `python -m tests.bench.store` prints a table within a minute.

The first row is the yardstick: one durable commit of one row by plain sqlite3 in the same folder.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable
from itertools import accumulate
from pathlib import Path

from agentik_server.domain import saves
from agentik_server.domain.message import Message
from agentik_server.store import opening
from agentik_server.store.locks import ServerLock
from agentik_server.store.transactions import perform
from tests.store.running import Running

SIZES = (1_000, 10_000, 100_000)
GOALS = (
    "goals: sendMessage durable p95 <= 10 ms under a 200 tokens/s stream; 100 sends at once <= 100 ms; "
    "10,000 messages of history do not slow the queue; search over 100,000 messages <= 50 ms"
)


def run() -> None:
    """Measures and prints."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_run(Path(folder)))


async def _run(folder: Path) -> None:
    print(f"{'store, milliseconds':58}{'p50':>9}{'p95':>9}{'max':>9}")
    _row("yardstick: one row, one durable commit", _yardstick(folder / "bare.db"))
    running = await Running.open(folder / "home")
    await running.session()
    _row("sendMessage acknowledged (queued, durable), alone", await _sends(running, 300))
    async with asyncio.TaskGroup() as tasks:
        streaming = tasks.create_task(_stream(running))
        _row("  under a stream of 200 tokens/s, saved 4 times a second", await _sends(running, 300, 0.01))
        streaming.cancel()
    _row("100 sends of one loop turn, all acknowledged", [await _timed(_hundred(running, turn)) for turn in range(5)])
    await running.close()
    for size in SIZES:
        home = folder / str(size)
        await _fill(home, size)
        await _history(home, size)
    print(GOALS)


# ---------------------------------------------------------------------------------------- what is measured


def _yardstick(path: Path) -> list[float]:
    db = opening.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE t (x)")
    times = []
    for _ in range(300):
        start = time.perf_counter()
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO t VALUES ('a message')")
        db.execute("COMMIT")
        times.append(time.perf_counter() - start)
    db.close()
    return times


async def _sends(running: Running, count: int, pause_s: float = 0.0) -> list[float]:
    """One after another, with up to ten waiting. `pause_s`: between them, so that the stream goes on meanwhile."""
    times = []
    for number in range(count):
        write = running.admit(f"m{running.seq}", "a message of the usual length, not more")
        times.append(await _timed(running.do(write)))
        await asyncio.sleep(pause_s)
        if number % 10 == 9:
            await running.done(saves.ClearPending("s"))
    return times


async def _stream(running: Running) -> None:
    """An answer that grows by 50 tokens each time, as `SaveMessages` says it."""
    text = ""
    while True:
        text += "token " * 50
        message = Message("answer", "s", 1, "agent", text, "streaming", 1)
        await running.done(saves.SaveMessages("s", running.me, (message,), 1))
        await asyncio.sleep(0.25)


async def _hundred(running: Running, turn: int) -> None:
    await running.done(saves.ClearPending("s"))
    writes = [running.do(running.admit(f"h{turn}-{number}")) for number in range(100)]
    for outcome in await asyncio.gather(*writes):
        assert isinstance(outcome, saves.Admitted), outcome


async def _history(home: Path, size: int) -> None:
    """What a long history costs: opening, claiming, reading, searching, deleting."""
    opened = [await _timed(_open_and_close(home)) for _ in range(3)]
    _row(f"{size:,} messages: open and close the store", opened)
    lock = ServerLock(home)
    lock.acquire()
    lock.release(clean=False)  # as after a crash
    _row(f"{size:,} messages: open after a crash (every page checked)", [await _timed(_open_and_close(home))])
    running = await Running.open(home)
    running.me = saves.Owner(running.opened.server_id, 2)
    running.seq = size
    await running.do(saves.TakeSession("s", running.opened.server_id, True, 1))
    _row(f"{size:,} messages: send, claim, journal, end", [await _timed(_turn(running, n)) for n in range(50)])
    page = saves.ReadSession("s")
    _row(f"{size:,} messages: read the newest 200", [await _timed(running.read(page)) for _ in range(20)])
    nothing = saves.ReadSession("s", after=(await running.page()).revision)
    _row(f"{size:,} messages: read what is new (nothing)", [await _timed(running.read(nothing)) for _ in range(20)])
    _row(f"{size:,} messages: read all in pages of 100", [await _timed(_read_all(running))])
    for query in ("the", "th", "rareword", '"w1 w2"', "w5 w77", "w"):
        search = saves.SearchMessages(query)
        _row(f"{size:,} messages: search {query}", [await _timed(running.read(search)) for _ in range(5)])
    _row(f"{size:,} messages: delete the session", [await _timed(running.do(saves.DeleteSession("s", running.me)))])
    await running.close()


async def _open_and_close(home: Path) -> None:
    await (await Running.open(home)).close()


async def _turn(running: Running, number: int) -> None:
    await running.send(f"turn-{number}")
    await running.do(saves.Claim("s", running.me, f"t{number}", running.seq, False, 1))
    await running.done(saves.Journal("s", running.me, f"t{number}"))
    await running.done(saves.EndTurn("s", running.me, f"t{number}", "end_turn", "complete", (), None, 1))


async def _read_all(running: Running) -> None:
    after, more = 0, True
    while more:
        page = await running.read(saves.ReadMessages("s", after=after))
        assert isinstance(page, saves.MessagePage)
        after, more = page.messages[-1].seq, page.more


# ------------------------------------------------------------------------------------------------- means


async def _fill(home: Path, size: int) -> None:
    """`size` messages of about 400 characters in one session, their words as frequent as in a language."""
    running = await Running.open(home)
    await running.session()
    await running.close()
    chance = random.Random(4)
    words = ["the", *(f"w{number}" for number in range(20_000))]
    weights = list(accumulate(1 / (number + 1) for number in range(len(words))))
    db = opening.connect(home / opening.FILE)
    db.execute("PRAGMA synchronous = OFF")
    owner = saves.Owner(running.opened.server_id, 1)
    for start in range(0, size, 1000):
        messages = tuple(
            Message(
                f"m{number}", "s", number + 1, "agent", " ".join(chance.choices(words, cum_weights=weights, k=70))
                + (" rareword" if number % 997 == 0 else ""), "complete", number,
            )
            for number in range(start, start + 1000)
        )  # fmt: skip
        perform(db, saves.SaveMessages("s", owner, messages, 1))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


async def _timed(work: Awaitable[object]) -> float:
    start = time.perf_counter()
    await work
    return time.perf_counter() - start


def _row(name: str, seconds: list[float]) -> None:
    times = sorted(1000 * one for one in seconds)
    p95 = times[min(len(times) - 1, int(0.95 * len(times)))]
    print(f"{name:58}{times[len(times) // 2]:9.2f}{p95:9.2f}{times[-1]:9.2f}", flush=True)


if __name__ == "__main__":
    run()
