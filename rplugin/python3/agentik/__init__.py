"""The remote plugin: what Lua may call, one line each. Loaded by pynvim in the plugin's own environment.

Exports nothing under a foreign host (`:UpdateRemotePlugins`): lua/agentik/host.lua sets a mark that only our own has.
"""

from __future__ import annotations

import os

if os.environ.pop("AGENTIK_HOST", None):
    import functools
    import sys
    from collections.abc import Callable
    from typing import Any, TypeVar, cast

    import pynvim
    from pynvim.plugin.decorators import rpc_export

    from agentik.bridge import Bridge
    from agentik.front import Front

    Method = TypeVar("Method", bound=Callable[..., Any])

    def _export(name: str, *, sync: bool = False) -> Callable[[Method], Method]:
        return cast(Callable[[Method], Method], rpc_export(name, sync=sync))

    def _later(method: Method) -> Method:
        """Runs on the loop, in order. An error goes to the log: pynvim would raise a prompt that stops Neovim."""

        @functools.wraps(method)
        def call_soon(self: Agentik, *arguments: Any) -> None:
            self.loop.call_soon(method, self, *arguments)

        return cast(Method, call_soon)

    def _report(line: str) -> None:
        """One line for the log, which Lua keeps of our stderr."""
        sys.stderr.write(" ".join(line.split()) + "\n")

    @pynvim.plugin
    class Agentik:
        """Its methods are notifications of Lua, but for `status`; answers go with the frames."""

        def __init__(self, nvim: Any) -> None:
            self.loop = nvim.loop
            self._front = Front(Bridge(nvim), _report)
            self.loop.set_exception_handler(
                lambda _, context: _report(f"{context.get('message')}: {context.get('exception')!r}")
            )

        @_export("agentik.start")
        @_later
        def start(self, options: dict[str, Any]) -> None:
            self._front.start(options)

        @_export("agentik.call")
        @_later
        def call(self, number: int, method: str, params: Any) -> None:
            self._front.call(number, method, params)

        @_export("agentik.send")
        @_later
        def send(self, number: int, params: dict[str, Any]) -> None:
            self._front.send(number, params)

        @_export("agentik.watch")
        @_later
        def watch(self, number: int, session_id: str) -> None:
            self._front.watch(number, session_id)

        @_export("agentik.unwatch")
        @_later
        def unwatch(self, session_id: str) -> None:
            self._front.unwatch(session_id)

        @_export("agentik.redraw")
        @_later
        def redraw(self, session_id: str) -> None:
            self._front.redraw(session_id)

        @_export("agentik.older")
        @_later
        def older(self, session_id: str) -> None:
            self._front.older(session_id)

        @_export("agentik.find")
        @_later
        def find(self, number: int, session_id: str, block: int, offset: int) -> None:
            self._front.find(number, session_id, block, offset)

        @_export("agentik.changes")
        @_later
        def changes(self, number: int, session_id: str) -> None:
            self._front.changes(number, session_id)

        @_export("agentik.reach")
        @_later
        def reach(self, number: int, session_id: str, message_id: str) -> None:
            self._front.reach(number, session_id, message_id)

        @_export("agentik.quit")
        @_later
        def quit(self) -> None:
            self._front.quit(sys.exit)

        @_export("agentik.status", sync=True)
        def status(self) -> dict[str, Any]:
            return self._front.status()
