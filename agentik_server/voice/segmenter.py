"""Cuts the stream of frames into utterances, frame by frame. Pure: no device, no clock, no thread.

Speech begins when most of a short window is voiced, pauses and ends after stretches of silence (hysteresis). Must not
lose sound: the frames before the beginning are kept as a lead, and a segment that grows too long is cut at its quietest
place and goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile

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


@dataclass(frozen=True, slots=True)
class _Frame:
    sound: bytes
    loud: float
    voiced: bool


class Segmenter:
    """`feed` it every frame in order; it answers with what happened."""

    def __init__(self, is_voiced: IsVoiced, timing: Timing | None = None) -> None:
        self._is_voiced = is_voiced
        self._timing = timing = timing or Timing()
        self._pause_frames = frames_in(timing.pause_ms)
        # One frame less: the last voiced one is mostly voiced at its beginning only, the rest of it is silence already.
        self._end_frames = max(self._pause_frames, frames_in(timing.end_ms) - 1)
        self._window: deque[bool] = deque(maxlen=frames_in(timing.window_ms))
        self._lead: deque[_Frame] = deque(maxlen=frames_in(timing.lead_ms + timing.window_ms))
        self._segment: list[_Frame] = []
        self._silent = 0
        self._speaking = False
        self._continues = False

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
        return _sound(self._segment)

    def feed(self, frame: bytes, loud: float) -> tuple[SegmentEvent, ...]:
        """One frame of 20 ms and its loudness."""
        heard = _Frame(frame, loud, self._is_voiced(frame, loud))
        return self._go_on(heard) if self._speaking else self._wait(heard)

    def take(self) -> bytes:
        """Ends the running segment now. Its sound, or nothing when too little of it was voice."""
        quiet = max(0, self._silent - self._pause_frames)
        sound = _sound(self._segment[: len(self._segment) - quiet])
        # What goes on after a cut may be the rest of a word.
        least = 1 if self._continues else frames_in(self._timing.least_voiced_ms)
        enough = sum(frame.voiced for frame in self._segment) >= least
        self._begin_segment([], continues=False)
        self._speaking = False
        self._window.clear()
        self._lead.clear()
        return sound if enough else b""

    def _wait(self, frame: _Frame) -> tuple[SegmentEvent, ...]:
        self._lead.append(frame)
        self._window.append(frame.voiced)
        full = len(self._window) == self._window.maxlen
        if not full or sum(self._window) < self._timing.voiced_share * len(self._window):
            return ()
        self._speaking = True
        self._begin_segment(list(self._lead), continues=False)
        return (SpeechBegan(),)

    def _go_on(self, frame: _Frame) -> tuple[SegmentEvent, ...]:
        self._segment.append(frame)
        if frame.voiced:
            resumed = (SpeechResumed(),) if self._silent >= self._pause_frames else ()
            self._silent = 0
            return (*resumed, *self._cut_if_long())
        self._silent += 1
        paused = (SpeechPaused(),) if self._silent == self._pause_frames else ()
        if self._silent < self._end_frames:
            return paused or self._cut_if_long()
        sound = self.take()
        return (*paused, SpeechEnded(sound) if sound else SpeechDropped())

    def _cut_if_long(self) -> tuple[SegmentEvent, ...]:
        length = len(self._segment)
        if length < frames_in(self._timing.longest_ms):
            return ()
        first = max(1, length - frames_in(self._timing.cut_within_ms))
        at = min(range(first, length), key=lambda index: self._segment[index].loud)
        sound = _sound(self._segment[:at])
        self._begin_segment(self._segment[at:], continues=True)
        return (SpeechEnded(sound, cut=True),)

    def _begin_segment(self, frames: list[_Frame], *, continues: bool) -> None:
        self._segment = frames
        self._continues = continues
        self._silent = sum(1 for _ in takewhile(lambda frame: not frame.voiced, reversed(frames)))


def _sound(frames: list[_Frame]) -> bytes:
    return b"".join(frame.sound for frame in frames)
