"""At most one frame on its way to Neovim: what happens meanwhile is gathered into the next.

Neovim acknowledges a frame when it has drawn it. So a blocked editor (waiting for a key, say) is never flooded, and a
fast stream costs it as many frames as it can take. Must not know what is in a frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

GAP_S = 0.004
"""Between the starts of two frames; the first change after a rest goes at once."""

Frame = dict[str, Any]


class Editor(Protocol):
    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def lua(self, code: str, *args: Any) -> asyncio.Future[Any]: ...


class Frames:
    """Asks `take` for the next frame when Neovim is ready for it; `acknowledged` hears what Neovim answered."""

    def __init__(
        self,
        editor: Editor,
        take: Callable[[], Frame | None],
        acknowledged: Callable[[Any], None],
        report: Callable[[str], None],
    ) -> None:
        self._editor = editor
        self._take = take
        self._acknowledged = acknowledged
        self._report = report
        self._busy = False
        self._wanted = False
        self._last_s = 0.0
        self._waiters: list[asyncio.Future[None]] = []
        self.count = 0

    def want(self) -> None:
        """There is something to show."""
        self._wanted = True
        if not self._busy:
            self._busy = True
            self._arm()

    async def drawn(self) -> None:
        """Returns when what is wanted now was drawn; if `take` leaves something for the next frame, not that."""
        if self._busy:
            waiter: asyncio.Future[None] = self._editor.loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def _arm(self) -> None:
        wait_s = self._last_s + GAP_S - self._editor.loop.time()
        if wait_s > 0:
            self._editor.loop.call_later(wait_s, self._send)
        else:
            self._editor.loop.call_soon(self._send)

    def _send(self) -> None:
        self._wanted = False
        self._last_s = self._editor.loop.time()
        frame = self._take()
        if frame is None:
            self._rest()
            return
        self.count += 1
        waiters, self._waiters = self._waiters, []
        answer = self._editor.lua("return require('agentik.host').frame(...)", frame)
        answer.add_done_callback(lambda done: self._answered(done, waiters))

    def _answered(self, answer: asyncio.Future[Any], waiters: list[asyncio.Future[None]]) -> None:
        error = answer.exception()
        if error is not None:
            self._report(f"frame: {error}")
        else:
            self._acknowledged(answer.result())
        _wake(waiters)
        if self._wanted:
            self._arm()
        else:
            self._rest()

    def _rest(self) -> None:
        self._busy = False
        waiters, self._waiters = self._waiters, []
        _wake(waiters)


def _wake(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
