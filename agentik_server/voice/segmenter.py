"""Cuts the stream of frames into utterances, frame by frame. Pure: no device, no clock, no thread.

Speech begins when most of a short window is voiced, pauses and ends after stretches of silence (hysteresis). Must not
lose sound: the frames before the beginning are kept as a lead, and a segment that grows too long is cut at its quietest
place and goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from agentik_server.voice.audio import FRAME_MS, SAMPLE_RATE, frames_in, from_decibels

LOUDNESS_GATE_DB = -50.0


@dataclass(frozen=True, slots=True)
class Timing:
    """When speech begins, pauses and ends, in milliseconds of sound."""

    window_ms: int = 120
    voiced_share: float = 0.75
    """Speech begins when this share of the window is voiced."""
    lead_ms: int = 300
    """Sound kept from before the window."""
    pause_ms: int = 160
    end_ms: int = 400
    least_voiced_ms: int = 200
    """A segment with less voice is a click, not speech."""
    longest_ms: int = 28_000
    """The decoder's window is 30 s."""
    cut_within_ms: int = 3_000
    """A segment that is too long is cut at the quietest frame of its last part, of this length."""


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """Somebody speaks."""


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """A short silence: the utterance may be over."""


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """It was not over."""


@dataclass(frozen=True, slots=True)
class SpeechEnded:
    """The utterance is over; `sound` is all of it. `cut`: it was too long, and speech goes on in the next segment."""

    sound: bytes
    cut: bool = False


@dataclass(frozen=True, slots=True)
class SpeechDropped:
    """What began was too short to be speech."""


SegmentEvent = SpeechBegan | SpeechPaused | SpeechResumed | SpeechEnded | SpeechDropped


class VoiceDetector:
    """Whether a frame holds a voice: webrtcvad behind a gate of loudness (it takes faint hum for speech)."""

    def __init__(self, mode: int = 2) -> None:
        import webrtcvad

        self._vad = webrtcvad.Vad(mode)
        self._gate = from_decibels(LOUDNESS_GATE_DB)

    def __call__(self, frame: bytes, loud: float) -> bool:
        return loud > self._gate and bool(self._vad.is_speech(frame, SAMPLE_RATE))


IsVoiced = Callable[[bytes, float], bool]


class Segmenter:
    """`feed` it every frame in order; it answers with what happened."""

    def __init__(self, is_voiced: IsVoiced, timing: Timing | None = None) -> None:
        self._is_voiced = is_voiced
        self._timing = timing or Timing()
        self._window: deque[bool] = deque(maxlen=frames_in(self._timing.window_ms))
        self._lead: deque[tuple[bytes, float]] = deque(maxlen=frames_in(self._timing.lead_ms + self._timing.window_ms))
        self._frames: list[bytes] = []
        self._loudness: list[float] = []
        self._voiced = 0
        self._silent = 0
        self._speaking = False

    @property
    def window_frames(self) -> int:
        """So many frames after its beginning, speech is noticed."""
        return frames_in(self._timing.window_ms)

    @property
    def speaking(self) -> bool:
        return self._speaking

    @property
    def silent_ms(self) -> int:
        """How long it has been silent within the running segment."""
        return self._silent * FRAME_MS

    def so_far(self) -> bytes:
        """The sound of the running segment."""
        return b"".join(self._frames)

    def feed(self, frame: bytes, loud: float) -> tuple[SegmentEvent, ...]:
        """One frame of 20 ms and its loudness."""
        voiced = self._is_voiced(frame, loud)
        if self._speaking:
            return self._go_on(frame, loud, voiced)
        return self._wait(frame, loud, voiced)

    def take(self) -> bytes:
        """Ends the running segment now. Its sound, or nothing when too little of it was voice."""
        quiet = max(0, self._silent - frames_in(self._timing.pause_ms))
        sound = b"".join(self._frames[: len(self._frames) - quiet])
        enough = self._voiced >= frames_in(self._timing.least_voiced_ms)
        self._speaking = False
        self._begin_segment([], [], 0)
        self._window.clear()
        self._lead.clear()
        return sound if enough else b""

    def _wait(self, frame: bytes, loud: float, voiced: bool) -> tuple[SegmentEvent, ...]:
        self._lead.append((frame, loud))
        self._window.append(voiced)
        full = len(self._window) == self._window.maxlen
        if not full or sum(self._window) < self._timing.voiced_share * len(self._window):
            return ()
        self._speaking = True
        self._begin_segment([f for f, _ in self._lead], [loud for _, loud in self._lead], sum(self._window))
        return (SpeechBegan(),)

    def _go_on(self, frame: bytes, loud: float, voiced: bool) -> tuple[SegmentEvent, ...]:
        self._frames.append(frame)
        self._loudness.append(loud)
        pause = frames_in(self._timing.pause_ms)
        if voiced:
            resumed = self._silent >= pause
            self._voiced += 1
            self._silent = 0
            return (*((SpeechResumed(),) if resumed else ()), *self._cut_if_long())
        self._silent += 1
        if self._silent >= max(pause, frames_in(self._timing.end_ms)):
            paused = (SpeechPaused(),) if self._silent == pause else ()
            sound = self.take()
            return (*paused, SpeechEnded(sound) if sound else SpeechDropped())
        return (SpeechPaused(),) if self._silent == pause else self._cut_if_long()

    def _cut_if_long(self) -> tuple[SegmentEvent, ...]:
        if len(self._frames) < frames_in(self._timing.longest_ms):
            return ()
        first = max(1, len(self._frames) - frames_in(self._timing.cut_within_ms))
        at = min(range(first, len(self._frames)), key=self._loudness.__getitem__)
        sound = b"".join(self._frames[:at])
        self._begin_segment(self._frames[at:], self._loudness[at:], len(self._frames) - at)
        return (SpeechEnded(sound, cut=True),)

    def _begin_segment(self, frames: list[bytes], loudness: list[float], voiced: int) -> None:
        self._frames, self._loudness, self._voiced, self._silent = frames, loudness, voiced, 0
