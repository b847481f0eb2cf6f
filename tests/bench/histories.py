"""Long sessions for the benches and tests: written into the store of a home, as a server would have saved them.

Must not be used while a server runs on that home.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from agentik_server.domain import saves
from agentik_server.domain.message import Diff, Message, ToolCall
from agentik_server.store import opening
from agentik_server.store.transactions import perform
from tests.store.running import Running

AGENT = "scripted"
BEGUN = int(1000 * time.time()) - 100_000_000  # milliseconds: a day ago, so that nothing is too old to be kept
_TEXTS = 500  # so many different ones: they are made faster than all
_WORDS = ["the", *(f"word{number}" for number in range(2000))]
_WEIGHTS = list(accumulate(1 / (number + 1) for number in range(len(_WORDS))))


def talk(session_id: str, count: int) -> Iterator[Message]:
    """Question and answer in turn, about 400 characters each; every tenth answer has a block of code."""
    chance = random.Random(7)
    said = [" ".join(chance.choices(_WORDS, cum_weights=_WEIGHTS, k=30)) for _ in range(_TEXTS)]
    for number in range(count):
        text = f"number {number}: {said[number % _TEXTS]}\n\n- {said[(number * 7 + 1) % _TEXTS]}"
        if number % 20 == 1:
            text += "\n\n```python\ndef one(two):\n    return f'{two}'  # three\n```\n"
        kind = "user" if number % 2 == 0 else "agent"
        yield _message(session_id, number, kind, text=text)


def work(session_id: str, tools: int = 500, size: int = 5_000_000) -> Iterator[Message]:
    """About `size` bytes of answers and `tools` tool calls, half of them with output, half with a diff."""
    chance = random.Random(8)
    room = size // tools
    for number in range(tools):
        lines = [" ".join(chance.choices(_WORDS, cum_weights=_WEIGHTS, k=14)) for _ in range(room // 200)]
        text = "\n".join(lines)
        yield _message(session_id, 2 * number, "agent", text=f"answer {number}\n{text}")
        call = ToolCall(f"call{number}", f"does thing {number}", "edit", "completed")
        if number % 2:
            call = ToolCall(f"call{number}", f"runs {number}", "execute", "completed", output=text)
        else:
            changed = [line.upper() if row % 5 == 0 else line for row, line in enumerate(lines)]
            diff = Diff(f"/work/file{number}.py", "\n".join(changed), text)
            call = ToolCall(f"call{number}", f"edits {number}", "edit", "completed", diffs=(diff,))
        yield _message(session_id, 2 * number + 1, "tool", tool=call)


def _message(session_id: str, number: int, kind: str, *, text: str = "", tool: ToolCall | None = None) -> Message:
    turn = f"{session_id}-turn{number // 2}"
    return Message(
        f"{session_id}-{number}",
        session_id,
        number + 1,
        kind,  # type: ignore[arg-type]
        text,
        "complete",
        BEGUN + number,
        turn,
        tool=tool,
    )


def write(home: Path, cwd: Path, histories: dict[str, Iterator[Message]]) -> None:
    """Makes a session of each history, in the store of `home`; the last one is the newest."""
    asyncio.run(_write(home, cwd, histories))


async def _write(home: Path, cwd: Path, histories: dict[str, Iterator[Message]]) -> None:
    running = await Running.open(home)
    for number, session_id in enumerate(histories):
        now = BEGUN + number
        facts = saves.SessionFacts(session_id, AGENT, str(cwd), session_id, now, now, owner=running.me)
        await running.done(saves.CreateSession(facts))
    await running.close()
    db = opening.connect(home / opening.FILE)
    db.execute("PRAGMA synchronous = OFF")
    for session_id, messages in histories.items():
        rest = list(messages)
        for start in range(0, len(rest), 1000):
            piece = tuple(rest[start : start + 1000])
            perform(db, saves.SaveMessages(session_id, running.me, piece, BEGUN))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
