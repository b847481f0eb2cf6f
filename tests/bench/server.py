"""The server from outside, over its pipes: start, requests, the queue, a flood, long sessions, takeover.

Real server, real agent process, real disk; against the bare machine (pipe.py) where that says something: an interpreter
that starts and ends, a line there and back, one durable commit by plain sqlite3, a reader that decodes each line.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench import histories, pipe
from tests.bench.table import Row, show, spread
from tests.server.harness import ROOT, Talk
from tests.stdio_client import Note, Params, StdioClient

FLOOD = 400_000
CROWD = 40  # messages that wait at most while sends are measured
FLOODS = {"50,000 updates/s": "#pace 50000 60", "all that the pipe takes": "#burst 100000000"}
SIZES = (1_000, 10_000, 100_000)


def run() -> None:
    """Measures and prints."""
    with tempfile.TemporaryDirectory(prefix="agentik-bench-") as folder:
        asyncio.run(_run(Path(folder)))


async def _run(folder: Path) -> None:
    show("start", await start(folder / "start"))
    show("requests, one after the other", await requests(folder / "requests"))
    show("the queue of a session with a long history", await long_queue(folder / "queue"))
    show("floods", await floods(folder / "floods"))
    show("long sessions", await long_sessions(folder / "long"))
    show("a second editor at a server of its own", await two_editors(folder / "two"))


# --------------------------------------------------------------------------------------------------- means


@asynccontextmanager
async def server(home: Path, env: dict[str, str] | None = None, **settings: Any) -> AsyncIterator[Talk]:
    (home / "work").mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(pipe.AGENT), "--log", str(home / "agent.log"), "--state", str(home / "agent.state")]
    agents = {"scripted": {"command": command}}
    merged = {"defaultAgent": "scripted", "agents": agents, "retentionDays": 0, **settings}
    server = [sys.executable, "-m", "agentik_server"]
    async with StdioClient(server, cwd=ROOT, env=env, log=home / "agentik.log", limit_s=60, check=False) as client:
        await client.initialize(home, merged)
        yield Talk(client, home)


async def timed(action: Awaitable[object]) -> float:
    begun = time.perf_counter()
    await action
    return time.perf_counter() - begun


async def several(count: int, action: Callable[[], Awaitable[object]]) -> list[float]:
    return [await timed(action()) for _ in range(count)]


async def busy(talk: Talk, command: str = "#hang") -> None:
    """A turn that lasts until it is cancelled."""
    await talk.send(command)
    await talk.client.wait_for("turnStarted", lambda p: p["sessionId"] == talk.session_id)


def memory(talk: Talk, field: str = "VmRSS") -> float:
    """Megabytes of the server process; VmHWM: at most so far."""
    status = Path(f"/proc/{talk.client.pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(found.group(1)) / 1024 if found else float("nan")


# --------------------------------------------------------------------------------------------- what is measured


async def start(home: Path) -> list[Row]:
    async def begin(where: Path, env: dict[str, str]) -> tuple[float, float]:
        begun = time.perf_counter()
        async with server(where, env) as talk:
            took = time.perf_counter() - begun
            return took, memory(talk)

    bare = pipe.starts()
    cold, _ = await begin(home, {"PYTHONPYCACHEPREFIX": str(home / "no pyc"), "PYTHONDONTWRITEBYTECODE": "1"})
    warm = [await begin(home, {}) for _ in range(5)]
    return [
        spread("spawn to initialize answered, nothing compiled", [cold]),
        spread("spawn to initialize answered", [took for took, _ in warm], bare=bare, goal="goal: <= 500 ms"),
        Row("memory then", f"{max(size for _, size in warm):.0f} MB", goal="goal: <= 60 MB"),
    ]


async def requests(home: Path) -> list[Row]:
    async with server(home) as talk:
        await talk.new_session()
        await talk.connected()
        rows = [spread("a request that asks nobody", await several(500, lambda: talk.call("closeSession")),
                       bare=pipe.echoes())]  # fmt: skip
        await talk.open()
        commits = pipe.commits(home)
        alone = []
        for number in range(1, 101):
            alone.append(await timed(talk.send("#say ok")))
            await talk.ended(number)
        rows.append(spread("sendMessage to a free session, durable", alone, bare=commits, goal="goal: p95 <= 10 ms"))
        await busy(talk)
        queued = await sends(talk, 200)
        rows.append(spread("sendMessage to a busy session, durable", queued, bare=commits, goal="goal: p95 <= 10 ms"))
        await talk.call("clearPending")
        await talk.call("cancelTurn")
        await talk.ended(101)
        ages: list[float] = []
        talk.client.heard = lambda note: ages.extend(token_ages(note))
        await busy(talk, "#stamps 1000000 200")
        stream = await sends(talk, 200, pause_s=0.01)
        talk.client.heard = None
        rows.append(spread("  while 200 tokens/s stream", stream, bare=commits, goal="goal: p95 <= 10 ms"))
        await talk.call("clearPending")
        rows.append(spread("  token from agent to client meanwhile", ages, goal="goal: p50 <= 2, p95 <= 8 ms"))
        rows.append(spread("100 messages at once, all acknowledged", await hundreds(talk), goal="goal: <= 100 ms"))
    return rows


async def sends(talk: Talk, count: int, pause_s: float = 0.0) -> list[float]:
    times = []
    for number in range(count):
        times.append(await timed(talk.send("a message of the usual length, and no more than that")))
        if number % CROWD == CROWD - 1:
            await talk.call("clearPending")
        await asyncio.sleep(pause_s)
    return times


async def hundreds(talk: Talk) -> list[float]:
    times = []
    for _ in range(5):
        times.append(await timed(asyncio.gather(*(talk.send("a message of the usual length") for _ in range(100)))))
        await talk.call("clearPending")
    return times


def token_ages(note: Note) -> list[float]:
    """How old the tokens in it are, now that our client has them; in seconds."""
    now = time.monotonic_ns()
    stamps = re.findall(r"@(\d+);", note.params["text"]) if note.method == "agentik/streamingToken" else ()
    return [(now - int(stamp)) / 1e9 for stamp in stamps]


async def long_queue(home: Path) -> list[Row]:
    """Each edit in a session of 10,000 messages; in place of the bare machine: in one of 10."""
    await asyncio.to_thread(
        histories.write,
        home,
        home / "work",
        {"long": histories.talk("long", 10_000), "short": histories.talk("short", 10)},
    )
    times: dict[tuple[str, str], list[float]] = {}
    async with server(home) as talk:
        for session_id in ("short", "long"):
            await talk.open(session_id)
            await busy(talk)
            for method in EDITS:
                times[session_id, method] = await edits(talk, method)
    return [spread(method, times["long", method], bare=times["short", method]) for method in EDITS]


EDITS: dict[str, Params] = {
    "sendMessage": {},
    "editPending": {"text": "another text"},
    "movePending": {"position": 0},
    "pauseQueue": {},
    "resumeQueue": {},
    "removePending": {},
}


async def edits(talk: Talk, method: str) -> list[float]:
    if method == "sendMessage":
        return await sends(talk, 2 * CROWD)
    waiting = [(await talk.send("a message of the usual length"))[0] for _ in range(CROWD)]
    params = [{**EDITS[method], **({} if method.endswith("Queue") else {"messageId": name})} for name in waiting]
    times = [await timed(talk.call(method, **given)) for given in params]
    await talk.call("clearPending")
    return times


async def floods(home: Path) -> list[Row]:
    rows = []
    async with server(home) as talk:
        await talk.new_session()
        await talk.connected()
        begun = time.perf_counter()
        await talk.send(f"#burst {FLOOD}")
        await talk.ended()
        rate = FLOOD / (time.perf_counter() - begun)
        bare = pipe.flood(FLOOD, decode=True)
        rows.append(Row("tokens/s from agent to client", f"{rate:,.0f}", bare, rate, "goal: >= 100,000 tokens/s"))
        rows.append(Row("memory of the server, at most", f"{memory(talk, 'VmHWM'):.0f} MB", goal="goal: <= 150 MB"))
        for what, command in FLOODS.items():
            for reads in (True, False):
                name = f"cancel heard in a flood, {what}" + ("" if reads else ", client deaf")
                rows.append(spread(name, [await heard(talk, command, reads=reads) for _ in range(5)],
                                   goal="goal: <= 100 ms"))  # fmt: skip
        rows.append(Row("memory of the server, at most", f"{memory(talk, 'VmHWM'):.0f} MB", goal="goal: <= 150 MB"))
    return rows


async def heard(talk: Talk, command: str, *, reads: bool) -> float:
    """From the client's cancelTurn until the agent has read session/cancel."""
    note = talk.home / "heard"
    note.unlink(missing_ok=True)
    count = len(talk.ends())
    await talk.send(f"#hears {note}\n{command}")
    await talk.client.wait_for("streamingToken", since=talk.client.mark())
    if not reads:
        talk.client.stop_reading()
    await asyncio.sleep(0.7)  # the flood is at its height
    begun = time.monotonic_ns()
    answer = talk.client.send_request("agentik/cancelTurn", {"sessionId": talk.session_id})
    while not (note.exists() and note.read_text()):
        await asyncio.sleep(0.002)
    talk.client.resume_reading()
    await answer
    await talk.ended(count + 1)
    talk.client.notifications.clear()
    return (int(note.read_text()) - begun) / 1e9


async def long_sessions(home: Path) -> list[Row]:
    sessions = {f"of {size:,} messages": histories.talk(f"of {size:,} messages", size) for size in SIZES}
    await asyncio.to_thread(histories.write, home, home / "work", sessions)
    rows = []
    async with server(home) as talk:
        for session_id in sessions:
            first = await timed(talk.open(session_id))
            again = await several(20, talk.open)
            rows.append(spread(f"openSession {session_id}, the first time", [first]))
            rows.append(spread("  and again", again))
            older = partial(talk.call, "listMessages", before=(await talk.open())["messages"][0]["seq"])
            rows.append(spread("  listMessages, 100 older", await several(20, older)))
        rows.append(Row("memory of the server, at most", f"{memory(talk, 'VmHWM'):.0f} MB"))
    return rows


async def two_editors(home: Path) -> list[Row]:
    """How late it sees the stream, and when it owns the session after its owner's end."""
    ages: list[float] = []
    async with server(home) as owner, server(home) as other:
        await owner.new_session()
        await other.open(owner.session_id)
        other.client.heard = lambda note: ages.extend(token_ages(note))
        await owner.send("#stamps 600 200")
        await other.ended()
    return [spread("a token is so old there, 200 tokens/s", ages, goal="goal: <= 1000 ms"), *await takeovers(home)]


async def takeovers(home: Path) -> list[Row]:
    times: dict[str, list[float]] = {"after kill -9": [], "after shutdown": []}
    async with server(home) as other:
        for how, found in times.items():
            for _ in range(3):
                async with server(home) as owner:
                    await owner.new_session()
                    await other.open(owner.session_id)
                    mark = other.client.mark()
                    begun = time.perf_counter()
                    if how == "after kill -9":
                        owner.client.kill()
                    else:
                        await owner.client.shutdown()
                    await other.client.wait_for("sessionChanged", lambda p: p["session"]["owned"], since=mark)
                    found.append(time.perf_counter() - begun)
    return [spread(f"takeover {how}", found, goal="goal: <= 2500 ms") for how, found in times.items()]
