"""One-shot timers of the event loop behind the port `Timers`. Must not know what they are for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class LoopTimers:
    """The monotonic clock is used: after a suspend each timer fires once."""

    def __init__(self) -> None:
        self._fired: Callable[[tuple[str, ...]], None] | None = None
        self._armed: dict[tuple[str, ...], asyncio.TimerHandle] = {}

    def listen(self, fired: Callable[[tuple[str, ...]], None]) -> None:
        """`fired(name)` is called on the loop."""
        self._fired = fired

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
        if self._fired is not None:
            self._fired(name)
