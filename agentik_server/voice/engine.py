"""The recognizer's life: loaded on first use, shared by dictations, unloaded when idle; its work in its own threads.

Must not block the event loop, and must not know microphones or editors.
"""

from __future__ import annotations

import asyncio
import logging
import time
import wave
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from agentik_server.voice import models
from agentik_server.voice.audio import SAMPLE_RATE, seconds_in
from agentik_server.voice.commands import SCORED, command_in, likely_command
from agentik_server.voice.effects import Guess
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.progress import EmitProgress, Progress
from agentik_server.voice.recognizer import WORKERS, Encoded, Recognizer
from agentik_server.voice.settings import DictationSettings
from agentik_server.voice.snap import SoundIndex
from agentik_server.voice.threads import recognizer_threads
from agentik_server.voice.transcript import Decoded, cut_repeats, is_invented

T = TypeVar("T")
_log = logging.getLogger(__name__)

_SHORT_S = 2.0
"""A command is shorter than this."""


class SpeechEngine:
    """Turns sounds into text. One per server; its methods belong to the event loop."""

    def __init__(self, settings: DictationSettings, emit_progress: EmitProgress) -> None:
        self._settings = settings
        self._emit_progress = emit_progress
        self._threads = recognizer_threads(WORKERS)
        self._loading: asyncio.Task[Recognizer] | None = None
        self._idle: asyncio.TimerHandle | None = None

    @property
    def loaded(self) -> bool:
        loading = self._loading
        return loading is not None and loading.done() and not loading.cancelled() and loading.exception() is None

    async def check(self, language: str) -> None:
        """Raises `VoiceRefused("speechModelMissing")` for all that shows without loading and without a network."""
        source = await self._in_thread(partial(models.find, self._settings.model))
        if source.name.endswith(".en") and language not in {"", "en"}:
            raise VoiceRefused(
                "speechModelMissing",
                f'the speech model {source.name} knows only English: set dictation.model to "base" for "{language}"',
            )

    async def load(self, language: str) -> None:
        """Loads the model if it is not. Raises `VoiceRefused("speechModelMissing")`; the next call tries anew."""
        (await self._recognizer()).check_language(language)

    async def _recognizer(self) -> Recognizer:
        self._keep()
        if self._loading is None or (self._loading.done() and not self.loaded):
            self._loading = asyncio.create_task(self._load(), name="load the speech model")
        return await asyncio.shield(self._loading)

    async def transcribe(self, sound: bytes, index: SoundIndex, *, final: bool, language: str) -> Guess:
        """The text of a sound, "" when it was no speech. Waits for the model."""
        recognizer = await self._recognizer()
        return await self._in_thread(partial(self._transcribe, recognizer, sound, index, final, language))

    def rest(self) -> None:
        """Nobody dictates any more: unload when that lasts."""
        self._keep()
        self._idle = asyncio.get_running_loop().call_later(self._settings.idle_seconds, self._unload)

    async def close(self) -> None:
        self._keep()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
            self._unload()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _load(self) -> Recognizer:
        progress = Progress(self._emit_progress, "Dictation: loading the speech model")
        loop = asyncio.get_running_loop()

        def report(message: str, percentage: int | None) -> None:
            # Raises once the loop is closed, which ends a download that nobody waits for any more.
            loop.call_soon_threadsafe(progress.report, message, percentage)

        began = time.monotonic()
        try:
            found = await self._in_thread(lambda: models.obtain(models.find(self._settings.model), report))
            # Side by side: neither takes longer than the other.
            recognizer, _ = await asyncio.gather(
                self._in_thread(partial(Recognizer, found.folder)), self._in_thread(partial(models.verify, found))
            )
        except VoiceRefused as refused:
            progress.end(refused.message)
            raise
        _log.info("speech model %s loaded in %.1f s", found.name, time.monotonic() - began)
        progress.end(f"speech model {found.name} loaded")
        return recognizer

    def _keep(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _unload(self) -> None:
        if self.loaded and self._loading is not None:
            self._loading.result().unload()
            _log.info("speech model unloaded")
        self._loading = None

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)

    # In the threads.

    def _transcribe(self, recognizer: Recognizer, sound: bytes, index: SoundIndex, final: bool, language: str) -> Guess:
        began = time.perf_counter()
        if final and self._settings.debug_audio_folder:
            self._save(sound, self._settings.debug_audio_folder)
        guess = Guess("")
        if recognizer.hears_speech(sound):
            encoded = recognizer.encode(sound)
            write = partial(recognizer.write, encoded, language=language)
            if final and self._settings.commands and encoded.seconds < _SHORT_S and language in {"", "en"}:
                guess = self._command(recognizer, encoded, _cleaned(write(beam=self._settings.beam), short=True))
            if guess.command is None:
                guess = Guess(self._text(recognizer, write, index, final))
        took_ms = 1000 * (time.perf_counter() - began)
        _log.debug("%.1f s of sound in %.0f ms: %r", seconds_in(sound), took_ms, guess)
        return replace(guess, took_ms=took_ms)

    def _command(self, recognizer: Recognizer, encoded: Encoded, decoded: Decoded) -> Guess:
        """The command the sound is, if it is one. A command said alone comes out truer without the style's example."""
        said = command_in(decoded.text)
        if said is None:
            likelihoods = {phrase: recognizer.likelihood(encoded, phrase, language="en") for phrase in SCORED}
            said = likely_command(likelihoods, decoded.log_probability)
        return Guess("", said)

    def _text(self, recognizer: Recognizer, write: Callable[..., Decoded], index: SoundIndex, final: bool) -> str:
        style, beam = self._settings.style, self._settings.beam if final else 1
        decoded = _cleaned(write(beam=beam, prompt=style))
        if is_invented(decoded, style):
            return ""
        # Hotwords chosen by what was heard help a model that can bear them; a tiny one they derail.
        # The style comes last, else the model goes on in the style of a list.
        hotwords = index.nearest(decoded.text) if final and not recognizer.is_tiny else []
        if hotwords:
            again = _cleaned(write(beam=beam, prompt=f"{', '.join(hotwords)}. {style}"))
            decoded = decoded if is_invented(again) else again
        return index.snap(decoded.text)

    def _save(self, sound: bytes, folder: Path) -> None:
        """Writes an utterance where the debug setting says."""
        folder.mkdir(parents=True, exist_ok=True)
        with wave.open(str(folder / f"{time.time_ns()}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(SAMPLE_RATE)
            file.writeframes(sound)


def _cleaned(decoded: Decoded, *, short: bool = False) -> Decoded:
    return replace(decoded, text=cut_repeats(decoded.text, short=short))
