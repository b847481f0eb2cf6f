"""The life of the application as the editor's client sees it: initialize, shutdown, the end; once each, in order.

Owns the tasks in which the application starts and closes. Knows no frames and no LSP types.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Any, Final

from agentik_server.editor.codec import MessageId
from agentik_server.editor.replies import Replies
from agentik_server.ports import Application, InitializeOptions, StartupError
from agentik_server.protocol.errors import INTERNAL_ERROR, REFUSED

logger = logging.getLogger(__name__)

CLOSE_S: Final = 8.0  # for the application to start, and to save and stop, when the end has come


class Phase(Enum):
    """NEW also after a start that failed: the client may try again."""

    NEW = auto()
    STARTING = auto()
    READY = auto()
    ENDING = auto()


class BadOption(Exception):  # noqa: N818 -- what it is
    """A field of initialize's params that cannot be used."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


class Lifecycle:
    """`before_end` is called when the application has closed, before what is open is answered."""

    def __init__(
        self, application: Application, replies: Replies, before_end: Callable[[], None], close_s: float = CLOSE_S
    ) -> None:
        self.phase = Phase.NEW
        self._application = application
        self._replies = replies
        self._before_end = before_end
        self._close_s = close_s
        self._was_started = False
        self._starting: asyncio.Task[None] | None = None
        self._shutting_down: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def initialize(self, number: MessageId, options: InitializeOptions, answer: Callable[[str], None]) -> None:
        """Start the application; `answer` gets the database's id. Only in the phase NEW."""
        self.phase = Phase.STARTING
        self._was_started = True
        self._starting = asyncio.create_task(self._start(number, options, answer))

    def shut_down(self, answer: Callable[[], None]) -> None:
        """Close the application, answer what is open, then `answer`. Only in the phase READY."""
        self.phase = Phase.ENDING
        self._shutting_down = asyncio.create_task(self._shut_down(answer))

    async def wind_up(self) -> None:
        """The orderly end, whatever went before it."""
        self.phase = Phase.ENDING
        if self._starting is not None:
            await asyncio.wait([self._starting], timeout=self._close_s)
            self._starting.cancel()
        await self._close_once()
        if self._shutting_down is not None:
            await self._shutting_down

    async def _start(self, number: MessageId, options: InitializeOptions, answer: Callable[[str], None]) -> None:
        try:
            database_id = await self._application.start(options)
        except StartupError as error:
            self._failed(number, REFUSED, str(error), error.reason)
        except Exception:
            logger.exception("the application did not start")
            self._failed(number, INTERNAL_ERROR, "the server did not start; its log says more", "startFailed")
        else:
            if self.phase is Phase.STARTING:
                self.phase = Phase.READY
            answer(database_id)

    def _failed(self, number: MessageId, code: int, line: str, reason: str) -> None:
        sys.stderr.write(f"agentik-server: {line}\n")
        sys.stderr.flush()
        if self.phase is Phase.STARTING:
            self.phase = Phase.NEW
        self._replies.send_error(number, code, line, {"reason": reason, "retry": False})

    async def _shut_down(self, answer: Callable[[], None]) -> None:
        await self._close_once()
        answer()

    async def _close_once(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await self._closing

    async def _close(self) -> None:
        try:
            if self._was_started:
                async with asyncio.timeout(self._close_s):
                    await self._application.close()
        except TimeoutError:
            logger.exception("the application did not end within %s s", self._close_s)
        except Exception:
            logger.exception("the application did not end in order")
        self._before_end()
        self._replies.end_all("the server is shutting down")


def options_of(params: Mapping[str, Any]) -> InitializeOptions:
    """Raises BadOption."""
    options = params.get("initializationOptions")
    if options is None:
        options = {}
    if not isinstance(options, dict):
        raise BadOption("initializationOptions", "must be an object")
    home, settings = options.get("home"), options.get("settings")
    if home is not None and (not isinstance(home, str) or not home or "\0" in home):
        raise BadOption("initializationOptions.home", "must be a path")
    if settings is not None and not isinstance(settings, dict):
        raise BadOption("initializationOptions.settings", "must be an object")
    return InitializeOptions(home=home, settings=settings or {})
