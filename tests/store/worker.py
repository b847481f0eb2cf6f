"""A process with a store of its own, for tests of two: `python -m tests.store.worker HOME ROLE ...`.

Roles: `write NAME COUNT` (durable writes, with reads between), `send NAME COUNT` (to a session of another process),
`drain COUNT` (owns it and takes every message), `own` (takes the session and waits). What it did it says as JSON lines.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from agentik_server.domain import saves
from agentik_server.domain.pending import Draft, QueueLimits
from agentik_server.domain.saves import Owner
from tests.store.running import Running

LIMITS = QueueLimits(max_items=100_000)


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


async def _write(running: Running, name: str, count: int) -> None:
    """Each write is awaited, so each is a commit of its own; each goes beside a read of the other's rows."""
    await running.session(name)
    for number in range(count):
        write = running.do(saves.PostMail(name, {"number": number}, 1))
        outcome, page = await asyncio.gather(write, running.read(saves.ReadSessions()))
        assert isinstance(outcome, saves.Done), outcome
        assert isinstance(page, saves.SessionList), page
    _say(wrote=count)


async def _send(running: Running, name: str, count: int) -> None:
    for number in range(count):
        draft = Draft(f"{name}-{number}", f"text {number}")
        outcome = await running.do(saves.Admit("s", None, draft, LIMITS, False, False, "", 0, 1))
        assert isinstance(outcome, saves.Admitted), outcome
    _say(sent=count)


async def _take(running: Running) -> saves.Taken:
    taken = await running.do(saves.TakeSession("s", running.opened.server_id, False, 1))
    assert isinstance(taken, saves.Taken), taken
    return taken


async def _drain(running: Running, count: int) -> None:
    """Claims when another process committed, as the server does."""
    taken = await _take(running)
    assert taken.owner is not None
    owner, seq, delivered = taken.owner, taken.next_seq, list[str]()
    news = asyncio.Event()
    running.store.watch(news.set)
    _say(owns=True)
    while len(delivered) < count:
        claimed = await running.do(saves.Claim("s", owner, f"t{seq}", seq, True, 1))
        assert isinstance(claimed, saves.Claimed), claimed
        if not claimed.messages:
            await news.wait()
            news.clear()
            continue
        delivered += [message.message_id for message in claimed.messages]
        await running.do(saves.Journal("s", owner, f"t{seq}"))
        await running.do(saves.EndTurn("s", owner, f"t{seq}", "end_turn", "complete", (), None, 1))
        seq += len(claimed.messages)
    _say(delivered=delivered)


async def _own(running: Running) -> None:
    taken = await _take(running)
    assert isinstance(taken.owner, Owner)
    _say(server_id=taken.owner.server_id, generation=taken.owner.generation)
    await asyncio.to_thread(sys.stdin.read)


async def _main(home: str, role: str, *arguments: str) -> None:
    running = await Running.open(Path(home))
    try:
        match role:
            case "write":
                await _write(running, arguments[0], int(arguments[1]))
            case "send":
                await _send(running, arguments[0], int(arguments[1]))
            case "drain":
                await _drain(running, int(arguments[0]))
            case "own":
                await _own(running)
    finally:
        await running.close()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
