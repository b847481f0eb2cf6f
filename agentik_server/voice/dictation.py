"""One dictation as a state machine: frames and decoded texts in, effects out.

Must not do I/O, wait, or look at a clock: time is counted in frames heard. The caller carries out the effects in order
and brings back what each `Decode` gave.

    listening -> speech -> pause -> (speech again | utterance over) -> listening ... -> final -> stopped

The trick that makes it fast: at the pause the utterance is decoded as if it were over; when it is, that text is final.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from agentik_server.voice.audio import FRAME_MS, SILENCE, frames_in, loudness, meter_level
from agentik_server.voice.effects import (
    CloseMicrophone,
    Decode,
    Effect,
    Guess,
    ShowFinal,
    ShowLevel,
    Shown,
    ShowPartial,
    ShowState,
)
from agentik_server.voice.segmenter import (
    Segmenter,
    SegmentEvent,
    SpeechBegan,
    SpeechDropped,
    SpeechEnded,
    SpeechPaused,
    SpeechResumed,
)
from agentik_server.voice.transcript import agreed_prefix

_LEVEL_EVERY_MS = 100
_DEAF_AFTER_MS = 3_000
# A partial costs a decoding: none is begun while the voice has just gone, the pause will bring a better one.
_NO_PARTIAL_AFTER_SILENCE_MS = 60
DEAF = "the microphone gives only digital silence: is it muted, or is this program not allowed to use it?"


class Stage(StrEnum):
    LISTENING = "listening"
    """The microphone is open."""
    FINAL = "final"
    """It is closed; the last texts are being decoded."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say to this machine."""

    partial_ms: int = 500
    max_seconds: int = 300


class Dictation:
    """From the first frame to `stopped` or `failed`. Every method answers with effects; after the end, with none."""

    def __init__(self, segmenter: Segmenter, rules: Rules) -> None:
        self._segmenter = segmenter
        self._rules = rules
        self._stage = Stage.LISTENING
        self._end = ShowState("stopped")
        self._shown: Shown | None = None
        self._utterances: list[str] = []
        self._frames = 0
        self._loudest = 0.0
        self._deaf = True
        self._last_job = 0
        self._segment = 0
        self._segments: dict[int, int] = {}  # job in flight -> segment it decodes
        self._partial: int | None = None  # job in flight
        self._partial_due = 0  # frame number
        self._partial_text = ""
        self._partial_shown = False
        self._at_pause: int | None = None  # job that decodes the segment as if it were over
        self._awaited: deque[int] = deque()  # jobs of utterances that are over, in the order they were said
        self._guesses: dict[int, Guess] = {}

    @property
    def stage(self) -> Stage:
        return self._stage

    @property
    def text(self) -> str:
        """Everything said so far that is final, as one text."""
        return "".join(
            said if index == 0 or said == "\n" or self._utterances[index - 1] == "\n" else f" {said}"
            for index, said in enumerate(self._utterances)
        )

    @property
    def in_mid_word(self) -> bool:
        """Whether a voice was heard just now: who stops here may still be heard by the machine a moment later."""
        return self._segmenter.speaking and self._at_pause is None

    def hear(self, frame: bytes) -> list[Effect]:
        """One frame of 20 ms from the microphone."""
        if self._stage is not Stage.LISTENING:
            return []
        effects: list[Effect] = [] if self._frames else self._show("listening")
        self._frames += 1
        loud = loudness(frame)
        effects += self._measure(frame, loud)
        for event in self._segmenter.feed(frame, loud):
            effects += self._segment_event(event)
        effects += self._maybe_partial()
        if self._frames >= self._rules.max_seconds * 1000 // FRAME_MS:
            limit = (
                f"stopped: a dictation ends after {self._rules.max_seconds} s (dictation.maxSeconds); the text is kept"
            )
            effects += self._close(ShowState("stopped", limit))
        return effects

    def decoded(self, job: int, guess: Guess) -> list[Effect]:
        """The result of `Decode` with that job; results may come in any order."""
        if self._stage is Stage.STOPPED:
            return []
        segment = self._segments.pop(job)
        if job == self._partial:
            self._partial = None
            # On a slow machine partials take half of a decoder's time, not more.
            self._partial_due = max(self._partial_due, self._frames + frames_in(guess.took_ms))
        if job in self._awaited or job == self._at_pause:
            self._guesses[job] = guess
        newest = segment == self._segment and self._segmenter.speaking and self._at_pause in (None, job)
        partial = self._show_partial(guess.text) if newest and guess.text else []
        return [*partial, *self._release()]

    def stop(self) -> list[Effect]:
        """The person is done: the running utterance is decoded, then it ends."""
        return self._close(ShowState("stopped")) if self._stage is Stage.LISTENING else []

    def lose_microphone(self, detail: str) -> list[Effect]:
        """The device is gone: what was said until then is still decoded."""
        return self._close(ShowState("failed", detail)) if self._stage is Stage.LISTENING else []

    def fail(self, detail: str) -> list[Effect]:
        """The recognizer cannot go on. What is known of the text stays; nothing more is decoded."""
        known = [self._guesses.pop(job) for job in self._awaited if job in self._guesses]
        finals = [effect for guess in known for effect in self._final(guess)]
        return [*finals, *self._abandon(ShowState("failed", detail))]

    def cancel(self) -> list[Effect]:
        """The person wants nothing of it."""
        return self._abandon(ShowState("stopped"))

    # The stream of frames.

    def _measure(self, frame: bytes, loud: float) -> list[Effect]:
        effects: list[Effect] = []
        self._loudest = max(self._loudest, loud)
        if self._frames % frames_in(_LEVEL_EVERY_MS) == 0:
            effects.append(ShowLevel(round(meter_level(self._loudest), 3)))
            self._loudest = 0.0
        if self._deaf and frame != SILENCE:
            self._deaf = False
        if self._deaf and self._frames == frames_in(_DEAF_AFTER_MS):
            effects.append(ShowState("listening", DEAF))
        return effects

    def _segment_event(self, event: SegmentEvent) -> list[Effect]:
        match event:
            case SpeechBegan():
                self._begin_segment()
                return self._show("speech")
            case SpeechPaused():
                decode = self._decode(self._segmenter.so_far(), final=True)
                self._at_pause = decode.job
                return [decode]
            case SpeechResumed():
                self._forget_pause()
                return []
            case SpeechEnded(sound=sound, cut=cut):
                effects = self._await_utterance(sound)
                self._begin_segment()
                return [*effects, *self._release(), *(self._show("speech") if cut else [])]
            case SpeechDropped():
                self._begin_segment()
                return [*self._clear_partial(), *self._release()]

    def _begin_segment(self) -> None:
        self._segment += 1
        self._forget_pause()
        self._partial_text = ""
        # The voice began a window earlier than it was noticed.
        self._partial_due = self._frames + frames_in(self._rules.partial_ms) - self._segmenter.window_frames

    def _forget_pause(self) -> None:
        if self._at_pause is not None and self._at_pause not in self._awaited:
            self._guesses.pop(self._at_pause, None)
        self._at_pause = None

    def _await_utterance(self, sound: bytes) -> list[Effect]:
        """The utterance is over: its text is the one decoded at the pause, else it is decoded now."""
        if self._at_pause is not None:
            self._awaited.append(self._at_pause)
            return []
        decode = self._decode(sound, final=True)
        self._awaited.append(decode.job)
        return [decode]

    def _decode(self, sound: bytes, *, final: bool) -> Decode:
        self._last_job += 1
        self._segments[self._last_job] = self._segment
        return Decode(self._last_job, sound, final)

    def _maybe_partial(self) -> list[Effect]:
        wanted = self._rules.partial_ms > 0 and self._segmenter.speaking and self._partial is None
        quiet = self._at_pause is not None or self._segmenter.silent_ms >= _NO_PARTIAL_AFTER_SILENCE_MS
        if not wanted or quiet or self._frames < self._partial_due:
            return []
        decode = self._decode(self._segmenter.so_far(), final=False)
        self._partial = decode.job
        self._partial_due = self._frames + frames_in(self._rules.partial_ms)
        return [decode]

    # Texts.

    def _release(self) -> list[Effect]:
        """Final texts in the order they were said, as far as they are known; then how things stand."""
        effects: list[Effect] = []
        while self._awaited and self._awaited[0] in self._guesses:
            effects += self._final(self._guesses.pop(self._awaited.popleft()))
        if self._stage is Stage.FINAL and not self._awaited:
            self._stage = Stage.STOPPED
            return [*effects, *self._clear_partial(), self._end]
        if self._awaited and not self._segmenter.speaking:
            return effects + self._show("transcribing")
        if self._stage is Stage.LISTENING and not self._segmenter.speaking and self._frames:
            return effects + self._show("listening")
        return effects

    def _final(self, guess: Guess) -> list[Effect]:
        if not guess.text and guess.command is None:
            return self._clear_partial()
        self._partial_shown = False
        match guess.command:
            case None:
                self._utterances.append(guess.text)
                return [ShowFinal(guess.text)]
            case "newline":
                self._utterances.append("\n")
            case "scratch":
                del self._utterances[-1:]
            case "send":
                pass  # the editor sends what it has
        return [ShowFinal("", guess.command)]

    def _show_partial(self, text: str) -> list[Effect]:
        partial = ShowPartial(text, agreed_prefix(self._partial_text, text))
        self._partial_text = text
        self._partial_shown = True
        return [partial]

    def _clear_partial(self) -> list[Effect]:
        shown, self._partial_shown = self._partial_shown, False
        return [ShowPartial("")] if shown else []

    # The end.

    def _close(self, end: ShowState) -> list[Effect]:
        """No more sound: what is left is decoded, then comes `end`."""
        effects: list[Effect] = [CloseMicrophone()]
        self._end = end
        self._stage = Stage.FINAL
        if self._segmenter.speaking:
            sound = self._segmenter.take()
            effects += self._await_utterance(sound) if sound else []
            self._forget_pause()
        return effects + self._release()

    def _abandon(self, end: ShowState) -> list[Effect]:
        if self._stage is Stage.STOPPED:
            return []
        microphone: list[Effect] = [CloseMicrophone()] if self._stage is Stage.LISTENING else []
        self._stage = Stage.STOPPED
        return [*microphone, *self._clear_partial(), end]

    def _show(self, state: Shown) -> list[Effect]:
        if state == self._shown:
            return []
        self._shown = state
        return [ShowState(state)]
