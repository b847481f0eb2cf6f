"""When frames leave: the first at once, streaming text merged, everything else at once and in order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentik_server.editor.codec import BrokenFrame, FrameParser
from agentik_server.editor.outbox import Outbox
from agentik_server.editor.replies import Replies

Json = dict[str, Any]
LONG_S = 3600.0  # a gap that does not end during a test


class Pipe:
    """What was written, and an event for each write."""

    def __init__(self, gap_s: float = 0.004, limit: int = 10**9) -> None:
        self.writes: list[list[Json]] = []
        self.written = asyncio.Event()
        self.outbox = Outbox(self._write, gap_s=gap_s, limit=limit)
        self.offset = 0

    def _write(self, data: bytes) -> None:
        frames = FrameParser().feed(data)
        self.writes.append([json.loads(body) for body in frames if not isinstance(body, BrokenFrame)])
        self.written.set()

    async def next_write(self) -> list[Json]:
        await asyncio.wait_for(self.written.wait(), 10)
        self.written.clear()
        return self.writes[-1]

    def token(self, text: str) -> None:
        params = {"sessionId": "s", "turnId": "t", "messageId": "m", "kind": "agent", "seq": 1}
        self.outbox.notify("agentik/streamingToken", {**params, "offset": self.offset, "text": text})
        self.offset += len(text)


def texts(frames: list[Json]) -> list[str]:
    return [frame["params"].get("text", frame["method"]) for frame in frames]


async def test_the_first_change_goes_at_once_and_what_follows_is_merged() -> None:
    """One frame for all the text of a gap."""
    pipe = Pipe()
    pipe.token("a")
    assert texts(await pipe.next_write()) == ["a"]
    for letter in "bcdef":
        pipe.token(letter)
    assert texts(await pipe.next_write()) == ["bcdef"]
    assert len(pipe.writes) == 2


async def test_anything_else_goes_at_once_and_takes_the_text_before_it_along() -> None:
    """Order is kept: the text, then the end of its turn, in one write."""
    pipe = Pipe(gap_s=LONG_S)
    pipe.token("a")
    await pipe.next_write()
    pipe.token("b")
    pipe.token("c")
    pipe.outbox.notify("agentik/turnEnded", {"sessionId": "s", "turnId": "t", "stopReason": "end_turn"})
    assert texts(await pipe.next_write()) == ["bc", "agentik/turnEnded"]


async def test_each_state_is_told_while_the_pipe_takes_it() -> None:
    """B38: every step of the connection, though they come in one turn of the loop; one write for all."""
    pipe = Pipe()
    for step in ("connecting", "initializing", "connected"):
        pipe.outbox.notify("agentik/connectionChanged", {"sessionId": "s", "connection": step})
    assert [frame["params"]["connection"] for frame in await pipe.next_write()] == [
        "connecting",
        "initializing",
        "connected",
    ]


async def test_nothing_is_written_while_the_pipe_is_full() -> None:
    """Afterwards it all goes, merged."""
    pipe = Pipe()
    pipe.outbox.pipe_full()
    for number in range(1000):
        pipe.token(f"{number} ")
        pipe.outbox.notify("agentik/sessionChanged", {"session": {"sessionId": "s", "revision": number}})
    pipe.outbox.send({"jsonrpc": "2.0", "id": 1, "result": {}})
    await asyncio.wait([asyncio.create_task(pipe.written.wait())], timeout=0)
    assert pipe.writes == []
    pipe.outbox.pipe_has_room()
    first, second, third = await pipe.next_write()
    assert first["params"]["text"] == "".join(f"{number} " for number in range(1000))
    assert second["params"]["session"]["revision"] == 999
    assert third["id"] == 1


async def test_a_pipe_that_fills_up_while_it_is_written_stops_the_rest() -> None:
    """The rest waits in the backlog, where it can still be merged."""
    pipe = Pipe()
    write = pipe._write

    def fill(data: bytes) -> None:
        write(data)
        pipe.outbox.pipe_full()

    pipe.outbox._write = fill
    for number in range(100):
        pipe.outbox.send({"jsonrpc": "2.0", "id": number, "result": "x" * 10_000})
    await pipe.next_write()
    written = len(pipe.writes[0])
    assert 0 < written < 10
    pipe.outbox.close()
    assert [frame["id"] for write in pipe.writes for frame in write] == list(range(100))


async def test_closing_writes_what_waits_and_takes_nothing_more() -> None:
    """The last words are not lost."""
    pipe = Pipe(gap_s=LONG_S)
    pipe.outbox.pipe_full()
    pipe.token("a")
    pipe.outbox.close()
    pipe.token("b")
    pipe.outbox.send({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert [texts(write) for write in pipe.writes] == [["a"]]


async def test_a_client_that_reads_nothing_at_last_gets_no_long_answers() -> None:
    """Bounded also for what the client asked for."""
    pipe = Pipe(limit=100_000)
    pipe.outbox.pipe_full()
    replies = Replies(pipe.outbox)
    for number in range(1000):
        replies.open(number, "agentik/exportSession", read_only=True).result("x" * 10_000)
        assert pipe.outbox._backlog.size < 100_000 * 2 + 10_000 + 200 * number
    assert pipe.outbox.is_stuck
    pipe.outbox.pipe_has_room()
    frames = await pipe.next_write()
    assert [frame["id"] for write in pipe.writes for frame in write] == list(range(1000))  # each is answered
    assert frames[-1]["error"]["code"] == -32603


async def test_what_is_no_json_is_told_to_the_sender() -> None:
    """Nothing of it reaches the pipe."""
    pipe = Pipe()
    with pytest.raises(TypeError):
        pipe.outbox.send({"x": object()})
    pipe.outbox.send({"x": 1})
    assert await pipe.next_write() == [{"x": 1}]
