"""Awaitable requests to Neovim, on public pynvim API only.

A synchronous API call inside an asyncio task executes and then raises (pynvim#342), one from another thread raises, and
waiting for it on the loop deadlocks. So each request runs in a greenlet of its own, whose parent is the loop, and
resolves a future. Must not know what the requests mean.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import greenlet


class Nvim(Protocol):
    """The two things of pynvim's `Nvim` that we use."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop: ...

    def request(self, name: str, *args: Any, **kwargs: Any) -> Any: ...


class Bridge:
    """Turns Neovim's API into futures of the host's loop."""

    def __init__(self, nvim: Nvim) -> None:
        self._nvim = nvim
        self.loop = nvim.loop

    def request(self, method: str, *args: Any) -> asyncio.Future[Any]:
        """Call `method`; the future holds its result or pynvim's error. Sent before this returns."""
        future: asyncio.Future[Any] = self.loop.create_future()

        def run() -> None:
            try:
                result = self._nvim.request(method, *args)
            except Exception as error:  # noqa: BLE001 - it belongs to whoever awaits the future
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)

        greenlet.greenlet(run).switch()
        return future

    def lua(self, code: str, *args: Any) -> asyncio.Future[Any]:
        """Run a chunk of Lua and hand back what it returns."""
        return self.request("nvim_exec_lua", code, list(args))
