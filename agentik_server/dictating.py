"""The dictation requests of the protocol on top of the voice adapter. Wiring, like `program`: no rule of its own.

Each request runs in a task of its own, which ends in exactly one answer. Sound libraries are imported on first use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentik_server.ports import Editor, Progress, Progresses, Reply

if TYPE_CHECKING:
    from agentik_server.voice.service import DictationService
    from agentik_server.voice.settings import DictationSettings

log = logging.getLogger(__name__)


class Dictating:
    """`request(method, params, reply)` for the methods of `methods`."""

    def __init__(self, editor: Editor, settings: DictationSettings, progresses: Progresses) -> None:
        self._editor = editor
        self._settings = settings
        self._progresses = progresses
        self._progress: dict[str, Progress] = {}
        self._service: DictationService | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._table: dict[str, Callable[[DictationService, Mapping[str, Any]], Awaitable[Mapping[str, object]]]] = {
            "startDictation": _start,
            "stopDictation": _stop,
            "cancelDictation": _cancel,
            "listMicrophones": _list_microphones,
        }

    @property
    def methods(self) -> frozenset[str]:
        return frozenset(self._table)

    def request(self, method: str, params: Mapping[str, object], reply: Reply) -> None:
        task = asyncio.create_task(self._answer(method, params, reply), name=method)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._service is not None:
            await self._service.close()

    async def _answer(self, method: str, params: Mapping[str, object], reply: Reply) -> None:
        from agentik_server.voice.errors import VoiceRefused

        try:
            reply.result(await self._table[method](self._voice(), params))
        except VoiceRefused as refused:
            reply.refuse(refused.reason, refused.message)
        except asyncio.CancelledError:
            reply.refuse("microphoneUnavailable", "the server is ending")
            raise
        except Exception:  # a bug: the client must hear of it, and the log holds the traceback (law 6)
            log.exception("%s failed", method)
            reply.refuse("microphoneUnavailable", "internal error, see the log")

    def _voice(self) -> DictationService:
        if self._service is None:
            from agentik_server.voice.service import DictationService

            self._service = DictationService(self._notify, self._settings, emit_progress=self._show_progress)
        return self._service

    def _show_progress(self, token: str, value: Mapping[str, Any]) -> None:
        """The load of a model, as LSP work done progress values."""
        message, percentage = value.get("message"), value.get("percentage")
        if value.get("kind") == "begin":
            self._progress[token] = self._progresses.progress(str(value.get("title", "")))
        progress = self._progress.get(token)
        if progress is None:
            return
        if value.get("kind") == "end":
            del self._progress[token]
            progress.end(message)
        elif message is not None or percentage is not None:
            progress.report(message or "", percentage)

    def _notify(self, name: str, params: Mapping[str, object]) -> None:
        self._editor.notify(f"agentik/{name}", params)


async def _start(voice: DictationService, params: Mapping[str, Any]) -> Mapping[str, object]:
    dictation_id = await voice.start(params.get("language"), params.get("device"), params.get("hotwords") or ())
    return {"dictationId": dictation_id}


async def _stop(voice: DictationService, params: Mapping[str, Any]) -> Mapping[str, object]:
    return {"text": await voice.stop(params["dictationId"])}


async def _cancel(voice: DictationService, params: Mapping[str, Any]) -> Mapping[str, object]:
    await voice.cancel(params["dictationId"])
    return {}


async def _list_microphones(voice: DictationService, params: Mapping[str, Any]) -> Mapping[str, object]:
    del params
    microphones = await voice.list_microphones()
    return {"microphones": microphones}
