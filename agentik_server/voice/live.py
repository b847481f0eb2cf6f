"""One dictation carried out: the microphone feeds the state machine, its effects go to the engine and the editor.

Everything that happens comes through one inbox and is told to the machine in order. Must not decide anything itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial

from agentik_server.voice.dictation import Dictation, Stage
from agentik_server.voice.effects import (
    CloseMicrophone,
    Decode,
    Effect,
    ShowFinal,
    ShowLevel,
    ShowPartial,
    ShowState,
)
from agentik_server.voice.engine import SpeechEngine
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.microphone import UNPLUGGED, Microphone
from agentik_server.voice.snap import SoundIndex
from agentik_server.voice.threads import CallThread

_log = logging.getLogger(__name__)

Emit = Callable[[str, dict[str, object]], None]
"""`(notification, params)`; the notification's name of PROTOCOL.md without its prefix."""

TAIL_S = 0.1
"""Who stops in the middle of a word is heard so much longer: the device's own delay, and a key that came up early."""
_SILENT_DEVICE_S = 1.0
_WATCH_EVERY_S = 0.5
_LEVEL_EVERY_S = 0.1


class LiveDictation:
    """From an opened microphone to the end. `run` owns every task of it."""

    def __init__(
        self,
        dictation_id: str,
        machine: Dictation,
        microphone: Microphone,
        *,
        sound_system: CallThread,
        engine: SpeechEngine,
        language: str,
        emit: Emit,
    ) -> None:
        self.dictation_id = dictation_id
        self._machine = machine
        self._microphone = microphone
        self._sound_system = sound_system
        self._engine = engine
        self._language = language
        self._emit = emit
        # Bounded by the longest dictation: 50 frames of 640 bytes a second, however long the loop may be away.
        self._inbox: asyncio.Queue[Callable[[], list[Effect]]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._level_at = 0.0

    @property
    def text(self) -> str:
        return self._machine.text

    async def open(self, device: str) -> None:
        """Opens the microphone. Raises `VoiceRefused("microphoneUnavailable")`."""
        await self._sound_system.call(partial(self._microphone.open, device, self._deliver, self._lost))

    async def close_microphone(self) -> None:
        await self._sound_system.call(self._microphone.close)

    def close_microphone_later(self) -> None:
        """For an opening that nobody waits for any more: whenever it is done, the microphone is closed again."""
        self._sound_system.post(self._microphone.close)

    async def run(self, index: SoundIndex) -> None:
        """Until the machine has stopped. `index`: the names in view. The microphone is closed whatever happens."""
        if not self._engine.loaded:
            self._show(ShowState("loading"))
        try:
            async with asyncio.TaskGroup() as tasks:
                helpers = [tasks.create_task(self._load()), tasks.create_task(self._watch())]
                while self._machine.stage is not Stage.STOPPED:
                    for effect in (await self._inbox.get())():
                        helpers += self._carry_out(effect, index, tasks)
                for helper in helpers:
                    helper.cancel()
        finally:
            await self.close_microphone()

    async def stop(self) -> None:
        if self._machine.in_mid_word:
            await asyncio.sleep(TAIL_S)
        self._inbox.put_nowait(self._machine.stop)

    def cancel(self) -> None:
        self._inbox.put_nowait(self._machine.cancel)

    def _carry_out(self, effect: Effect, index: SoundIndex, tasks: asyncio.TaskGroup) -> list[asyncio.Task[None]]:
        match effect:
            case Decode():
                return [tasks.create_task(self._decode(effect, index))]
            case CloseMicrophone():
                tasks.create_task(self.close_microphone())
            case ShowLevel(level=level):
                self._show_level(level)
            case ShowState() | ShowPartial() | ShowFinal():
                self._show(effect)
        return []

    async def _decode(self, decode: Decode, index: SoundIndex) -> None:
        try:
            guess = await self._engine.transcribe(decode.sound, index, final=decode.final, language=self._language)
        except (VoiceRefused, RuntimeError, ValueError) as failure:
            self._fail(failure)
        else:
            self._inbox.put_nowait(partial(self._machine.decoded, decode.job, guess))

    async def _load(self) -> None:
        try:
            await self._engine.load(self._language)
        except VoiceRefused as refused:
            self._fail(refused)

    def _fail(self, failure: Exception) -> None:
        detail = failure.message if isinstance(failure, VoiceRefused) else f"the speech model failed: {failure}"
        _log.warning("dictation %s: %s", self.dictation_id, detail)
        self._inbox.put_nowait(partial(self._machine.fail, detail))

    # The microphone.

    def _deliver(self, frame: bytes) -> None:
        self._from_thread(partial(self._machine.hear, frame))

    def _lost(self, detail: str) -> None:
        self._from_thread(partial(self._machine.lose_microphone, detail))

    def _from_thread(self, happening: Callable[[], list[Effect]]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._inbox.put_nowait, happening)

    async def _watch(self) -> None:
        """Some systems say nothing when a device goes: it just calls back no more.

        Looks twice before it believes that: after a stall of the whole process the device's thread comes a bit later.
        """
        before = 0.0
        while self._machine.stage is Stage.LISTENING:
            await asyncio.sleep(_WATCH_EVERY_S)
            heard_at = self._microphone.heard_at
            if heard_at == before and time.monotonic() - heard_at > _SILENT_DEVICE_S:
                self._inbox.put_nowait(partial(self._machine.lose_microphone, UNPLUGGED))
                return
            before = heard_at

    # The editor.

    def _show_level(self, level: float) -> None:
        now = self._loop.time()
        if now - self._level_at >= _LEVEL_EVERY_S:
            self._level_at = now
            self._tell("dictationLevel", level=level)

    def _show(self, effect: ShowState | ShowPartial | ShowFinal) -> None:
        match effect:
            case ShowState(state=state, detail=detail):
                self._tell("dictationState", state=state, **({"detail": detail} if detail else {}))
            case ShowPartial(text=text, stable=stable):
                self._tell("dictationPartial", text=text, stable=stable)
            case ShowFinal(text=text, command=command):
                self._tell("dictationFinal", text=text, **({"command": command} if command else {}))

    def _tell(self, notification: str, **params: object) -> None:
        self._emit(notification, {"dictationId": self.dictation_id, **params})
