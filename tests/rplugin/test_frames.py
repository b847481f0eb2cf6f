"""One frame at a time: back-pressure from the editor."""

from __future__ import annotations

import asyncio
from typing import Any

from agentik.frames import Frame, Frames


class SlowEditor:
    """Acknowledges a frame when the test says so."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.frames: list[Frame] = []
        self.answers: asyncio.Queue[asyncio.Future[Any]] = asyncio.Queue()

    def lua(self, _code: str, *args: Any) -> asyncio.Future[Any]:
        self.frames.append(args[0])
        answer: asyncio.Future[Any] = self.loop.create_future()
        self.answers.put_nowait(answer)
        return answer

    async def acknowledge(self, value: Any = None) -> None:
        (await self.answers.get()).set_result(value)


class Source:
    """Numbers to be shown."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.answers: list[Any] = []

    def take(self) -> Frame | None:
        numbers, self.numbers = self.numbers, []
        return {"numbers": numbers} if numbers else None


async def test_while_a_frame_is_on_its_way_all_that_happens_is_one_more_frame() -> None:
    editor, source = SlowEditor(), Source()
    frames = Frames(editor, source.take, source.answers.append, print)
    for number in range(100):
        source.numbers.append(number)
        frames.want()
        if number == 0:
            first = await editor.answers.get()
    assert editor.frames == [{"numbers": [0]}]
    drawn = asyncio.ensure_future(frames.drawn())
    first.set_result(["s"])
    await editor.acknowledge()
    await drawn
    assert editor.frames[1] == {"numbers": list(range(1, 100))}
    assert source.answers == [["s"], None]


async def test_a_frame_that_fails_does_not_stop_the_next() -> None:
    editor, source, lines = SlowEditor(), Source(), []
    frames = Frames(editor, source.take, source.answers.append, lines.append)
    source.numbers.append(1)
    frames.want()
    (await editor.answers.get()).set_exception(RuntimeError("no such buffer"))
    source.numbers.append(2)
    frames.want()
    await editor.acknowledge()
    await frames.drawn()
    assert lines == ["frame: no such buffer"]
    assert frames.count == 2


async def test_who_waits_for_a_frame_is_not_kept_by_a_stream_that_never_rests() -> None:
    """Older messages are loaded while an answer streams."""
    editor, source = SlowEditor(), Source()
    frames = Frames(editor, source.take, source.answers.append, print)
    source.numbers.append(1)
    frames.want()
    drawn = asyncio.ensure_future(frames.drawn())
    for number in range(2, 5):
        answer = await editor.answers.get()
        source.numbers.append(number)
        frames.want()
        answer.set_result(None)
    await drawn
    assert editor.frames[0] == {"numbers": [1]}
