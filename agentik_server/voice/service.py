"""Dictation as the rest of the server sees it: start, stop, cancel, list; notifications go out through `emit`.

One dictation at a time. Must not block the event loop and must not import sound libraries before they are needed: a
server without the extra `voice` runs all the same.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from collections.abc import Callable, Sequence
from uuid import uuid4

from agentik_server.voice import health
from agentik_server.voice.dictation import Dictation, Rules
from agentik_server.voice.engine import SpeechEngine
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.live import Emit, LiveDictation
from agentik_server.voice.microphone import Microphone, SoundDeviceMicrophone, list_microphones
from agentik_server.voice.models import INSTALL
from agentik_server.voice.progress import EmitProgress
from agentik_server.voice.segmenter import Segmenter, Timing, VoiceDetector
from agentik_server.voice.settings import DictationSettings
from agentik_server.voice.snap import SoundIndex
from agentik_server.voice.threads import CallThread

_log = logging.getLogger(__name__)

_SOUND_SYSTEM_ANSWERS_WITHIN_S = 5.0


def _no_progress(_token: str, _value: dict[str, object]) -> None:
    """For a caller that shows no progress."""


class DictationService:
    """All of dictation. Its methods belong to one event loop."""

    def __init__(
        self,
        emit: Emit,
        settings: DictationSettings,
        *,
        emit_progress: EmitProgress = _no_progress,
        microphone: Callable[[], Microphone] = SoundDeviceMicrophone,
    ) -> None:
        """`emit`: see `Emit`. `emit_progress`: the load of a model. `microphone`: makes one per dictation."""
        self._emit = emit
        self._settings = settings
        self._new_microphone = microphone
        self._engine = SpeechEngine(settings, emit_progress)
        self._sound_system = CallThread("agentik-microphone")
        self._live: LiveDictation | None = None
        self._running: asyncio.Task[None] | None = None
        self._starting = False

    async def start(
        self, language: str | None = None, device: str | int | None = None, hotwords: Sequence[str] = ()
    ) -> str:
        """Opens the microphone and listens; the model is loaded meanwhile. Returns the id of the dictation.

        `language`, `device`: None or "" means as in the settings; a device is what `list_microphones` calls `device`,
        a part of its name, or PortAudio's number. `hotwords`: identifiers in view, the most relevant first; what is
        said is written as one of them where it sounds so. The first notifications may come before this returns.
        Raises `VoiceRefused`: `dictationBusy`, `microphoneUnavailable`, `speechModelMissing`.
        """
        if self._starting or self._running is not None:
            raise VoiceRefused("dictationBusy", "a dictation is running already: stop or cancel it first")
        self._starting = True
        try:
            _require_extra()
            live = self._new_live(language or self._settings.language)
            chosen = self._settings.device if device in {None, ""} else str(device)
            await self._open(live, chosen, language or self._settings.language)
        finally:
            self._starting = False
        self._live = live
        self._running = asyncio.create_task(self._run(live, hotwords), name=f"dictation {live.dictation_id}")
        return live.dictation_id

    async def stop(self, dictation_id: str) -> str:
        """Ends it after the last words, and returns everything that was said.

        Also the text of a dictation that ended by itself; "" when another one was started since.
        """
        live = self._live
        if live is None or live.dictation_id != dictation_id:
            return ""
        if self._running is not None:
            await live.stop()
            await asyncio.wait([self._running])
        return live.text

    async def cancel(self, dictation_id: str) -> None:
        """Ends it at once; what was not final yet is forgotten."""
        if self._live is not None and self._live.dictation_id == dictation_id and self._running is not None:
            self._live.cancel()
            await asyncio.wait([self._running])

    async def list_microphones(self) -> list[dict[str, object]]:
        """`{device, name, isDefault}` of every microphone. Raises `VoiceRefused("microphoneUnavailable")`."""
        _require_extra()
        # A rescan would end the stream of a running dictation.
        rescan = not self._starting and self._running is None
        microphones = await self._sound_system.call(lambda: list_microphones(rescan=rescan))
        return [{"device": m.device, "name": m.name, "isDefault": m.is_default} for m in microphones]

    async def check(self) -> list[health.Finding]:
        """What `:checkhealth` says about dictation: `(level, text)`, level "ok", "info", "warn" or "error"."""
        rescan = not self._starting and self._running is None
        return await self._sound_system.call(lambda: health.check(self._settings, rescan=rescan))

    async def close(self) -> None:
        """Cancels a running dictation and gives everything back."""
        if self._live is not None:
            await self.cancel(self._live.dictation_id)
        await self._engine.close()
        self._sound_system.end()

    def _new_live(self, language: str) -> LiveDictation:
        settings = self._settings
        segmenter = Segmenter(VoiceDetector(), Timing(end_ms=settings.end_of_speech_ms))
        rules = Rules(settings.partial_ms, settings.max_seconds)
        return LiveDictation(
            uuid4().hex,
            Dictation(segmenter, rules),
            self._new_microphone(),
            sound_system=self._sound_system,
            engine=self._engine,
            language=language,
            emit=self._emit,
        )

    async def _open(self, live: LiveDictation, device: str, language: str) -> None:
        """The microphone first, the look for the model beside it: no word is lost. A failure closes it again."""
        opening = asyncio.create_task(self._open_microphone(live, device))
        try:
            await self._engine.check(language)
            await opening
        except BaseException:  # also a cancelled start
            await asyncio.wait([opening])
            if opening.cancelled():
                live.close_microphone_later()
            elif opening.exception() is None:
                await live.close_microphone()
            raise

    async def _open_microphone(self, live: LiveDictation, device: str) -> None:
        try:
            async with asyncio.timeout(_SOUND_SYSTEM_ANSWERS_WITHIN_S):
                await live.open(device)
        except TimeoutError:
            live.close_microphone_later()
            self._sound_system.end()
            self._sound_system = CallThread("agentik-microphone")  # the old one may hang for ever
            raise VoiceRefused("microphoneUnavailable", "the sound system does not answer") from None

    async def _run(self, live: LiveDictation, hotwords: Sequence[str]) -> None:
        try:
            await live.run(await asyncio.to_thread(SoundIndex, hotwords))
        except Exception:  # noqa: BLE001 -- the one place where a defect of dictation ends: the server lives on
            _log.exception("dictation %s broke", live.dictation_id)
            failed = {"state": "failed", "detail": "dictation broke (see the server's log); the text so far is kept"}
            self._emit("dictationState", {"dictationId": live.dictation_id, **failed})
        finally:
            self._running = None
            self._engine.rest()


def _require_extra() -> None:
    """Raises `VoiceRefused` when the extra `voice` is not installed; imports nothing."""
    for module, reason in health.MODULES.items():
        if importlib.util.find_spec(module) is None:
            raise VoiceRefused(reason, f"dictation is not installed ({module} is missing): {INSTALL}")
