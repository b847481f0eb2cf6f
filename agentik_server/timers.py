"""One-shot timers of the event loop behind the port `Timers`. Must not know what they are for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LoopTimers:
    """`fired(name)` is called on the loop. The monotonic clock is used: a suspended machine fires each timer once."""

    def __init__(self, fired: Callable[[tuple[str, ...]], None]) -> None:
        self._fired = fired
        self._armed: dict[tuple[str, ...], asyncio.TimerHandle] = {}

    def set(self, name: tuple[str, ...], seconds: float) -> None:
        self.cancel(name)
        self._armed[name] = asyncio.get_running_loop().call_later(seconds, self._fire, name)

    def cancel(self, name: tuple[str, ...]) -> None:
        handle = self._armed.pop(name, None)
        if handle is not None:
            handle.cancel()

    def close(self) -> None:
        for name in list(self._armed):
            self.cancel(name)

    def _fire(self, name: tuple[str, ...]) -> None:
        self._armed.pop(name, None)
        self._fired(name)
