"""A microphone that hears a given sound, in real time or all at once: the fake of the port `Microphone`."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import chain, repeat

from agentik_server.voice.audio import FRAME_MS, SILENCE
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.microphone import Deliver, Lost
from tests.voice.speech import frames_of


class WavMicrophone:
    """Delivers the sound, and then silence until it is closed (`then="silence"`), or no sign of life (`"nothing"`), or
    the news that it is gone (`"lost"`).

    Not `paced`, it delivers the sound at once and no silence after it: for what has no latency to measure.
    """

    def __init__(
        self, sound: bytes = b"", *, paced: bool = False, then: str = "silence", refusal: VoiceRefused | None = None
    ) -> None:
        self._frames = frames_of(sound)
        self._paced = paced
        self._then = then
        self._refusal = refusal
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self.delivered = threading.Event()
        """Set when all of the sound was delivered."""
        self.is_open = False
        self.opened_device: str | None = None
        self.heard_at = time.monotonic()

    def open(self, device: str, deliver: Deliver, lost: Lost) -> None:
        if self._refusal:
            raise self._refusal
        self.opened_device = device
        self.is_open = True
        self._thread = threading.Thread(target=self._run, args=(deliver, lost), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._thread:
            self._thread.join()
        self.is_open = False

    def _run(self, deliver: Deliver, lost: Lost) -> None:
        due = time.monotonic()
        for frame in chain(self._frames, self._after()):
            due += FRAME_MS / 1000 if self._paced else 0
            if self._closed.wait(max(0.0, due - time.monotonic())):
                return
            self.heard_at = time.monotonic()
            deliver(frame)
        if self._then == "lost":
            lost("the microphone was unplugged")
        elif self._then == "silence":
            self._stay_alive()

    def _after(self) -> Iterator[bytes]:
        self.delivered.set()
        if self._paced and self._then == "silence":
            yield from repeat(SILENCE)

    def _stay_alive(self) -> None:
        """A device that is there but was not asked for more sound: no watch may take it for unplugged."""
        while not self._closed.wait(0.1):
            self.heard_at = time.monotonic()
