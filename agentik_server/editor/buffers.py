"""ports.OpenBuffers over the wire: files that are open in the editor (B50).

A client that does not know the requests is asked once and then left alone.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from agentik_server.ports import BufferState
from agentik_server.protocol.errors import METHOD_NOT_FOUND

logger = logging.getLogger(__name__)

ANSWER_S: Final = 2.0
READ: Final = "agentik/readBuffer"
WRITE: Final = "agentik/writeBuffer"

_Wanted = TypeVar("_Wanted")


class EditorRefused(Exception):  # noqa: N818 -- an answer, not a fault
    """The editor answered a request with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


Ask = Callable[[str, Mapping[str, Any], float], Awaitable[Any]]
"""(method, params, seconds) → the result. Raises EditorRefused, or TimeoutError (also when the editor is gone)."""


class EditorBuffers:
    """Raises TimeoutError when there is no answer that can be used, with the reason as its text."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._unknown: set[str] = set()

    async def read(self, path: str) -> BufferState | None:
        answer = await self._answer(READ, {"path": path})
        if answer is None:
            return None
        loaded, modified = _field(answer, "loaded", bool), _field(answer, "modified", bool)
        text = answer.get("text")
        if text is not None or modified:
            text = _field(answer, "text", str)
        return BufferState(loaded, modified, text)

    async def write(self, path: str, text: str) -> tuple[bool, str | None] | None:
        answer = await self._answer(WRITE, {"path": path, "text": text})
        if answer is None:
            return None
        reason = answer.get("reason")
        return _field(answer, "applied", bool), None if reason is None else str(reason)

    async def _answer(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if method in self._unknown:
            return None
        try:
            answer = await self._ask(method, params, ANSWER_S)
        except EditorRefused as refused:
            if refused.code == METHOD_NOT_FOUND:
                self._unknown.add(method)
                return None
            raise TimeoutError(f"the editor answered: {refused}") from refused
        if not isinstance(answer, dict):
            raise TimeoutError(f"the editor's answer to {method} cannot be used")
        return answer


def _field(answer: Mapping[str, Any], name: str, kind: type[_Wanted]) -> _Wanted:
    value = answer.get(name)
    if not isinstance(value, kind):
        raise TimeoutError(f"the editor's answer cannot be used: no {name}")
    return value
