"""What a dictation told the editor, in order; tests wait for the next thing it tells."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Params = dict[str, object]


@dataclass
class Recorder:
    """Give `emit` and `emit_progress` to the service."""

    told: list[tuple[str, Params]] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    """`time.monotonic()` of each."""
    progress: list[tuple[str, Params]] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def emit(self, notification: str, params: Params) -> None:
        self.told.append((notification, params))
        self.times.append(time.monotonic())
        self._news.set()

    def emit_progress(self, token: str, value: Params) -> None:
        self.progress.append((token, value))
        self._news.set()

    @property
    def states(self) -> list[object]:
        return [params["state"] for name, params in self.told if name == "dictationState"]

    @property
    def finals(self) -> list[object]:
        return [params["text"] for name, params in self.told if name == "dictationFinal"]

    @property
    def partials(self) -> list[object]:
        return [params["text"] for name, params in self.told if name == "dictationPartial"]

    def count(self, notification: str) -> int:
        return sum(name == notification for name, _ in self.told)

    def state(self, wanted: str) -> Params:
        """The params of the last `dictationState` with that state."""
        return [p for name, p in self.told if name == "dictationState" and p["state"] == wanted][-1]

    async def until(self, condition: Callable[[Recorder], object], within_s: float = 20) -> None:
        """Waits for news until the condition holds; fails with everything told so far."""
        try:
            async with asyncio.timeout(within_s):
                while not condition(self):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            told = "\n".join(f"{name} {params}" for name, params in self.told if name != "dictationLevel")
            raise AssertionError(f"did not happen within {within_s} s; told so far:\n{told}") from None

    async def until_state(self, state: str, within_s: float = 20) -> None:
        await self.until(lambda told: state in told.states, within_s)
