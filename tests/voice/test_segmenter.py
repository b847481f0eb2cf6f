"""The segmenter, frame by frame: what counts as speech is said by the test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.voice.audio import FRAME_BYTES, FRAME_MS, loudness
from agentik_server.voice.segmenter import (
    Segmenter,
    SegmentEvent,
    SpeechBegan,
    SpeechDropped,
    SpeechEnded,
    SpeechPaused,
    SpeechResumed,
    Timing,
    VoiceDetector,
)
from tests.voice.speech import frames_of, noises, say, silence


def numbered(number: int, voiced: bool) -> bytes:
    """A frame that says its number, and whether the test calls it voiced."""
    return number.to_bytes(4, "little") + bytes([voiced]) + bytes(FRAME_BYTES - 5)


def numbers(sound: bytes) -> list[int]:
    return [int.from_bytes(frame[:4], "little") for frame in frames_of(sound)]


def says_so(frame: bytes, _loud: float) -> bool:
    return bool(frame[4])


def run_numbered(pattern: str, timing: Timing | None = None) -> list[tuple[int, SegmentEvent]]:
    """Events with their frames' numbers, for frames written as "#" (voice) and "." (none)."""
    segmenter = Segmenter(says_so, timing)
    return [
        (number, event)
        for number, mark in enumerate(pattern)
        for event in segmenter.feed(numbered(number, mark == "#"), 0.1 if mark == "#" else 0.0)
    ]


def run(pattern: str, timing: Timing | None = None) -> list[SegmentEvent]:
    return [event for _, event in run_numbered(pattern, timing)]


def kinds(events: list[SegmentEvent]) -> list[type]:
    return [type(event) for event in events]


def test_an_utterance_begins_pauses_and_ends() -> None:
    events = run("." * 30 + "#" * 50 + "." * 25)
    assert kinds(events) == [SpeechBegan, SpeechPaused, SpeechEnded]


def test_the_lead_before_the_voice_is_kept_and_the_silence_after_it_cut_to_the_pause() -> None:
    end = run("." * 30 + "#" * 50 + "." * 25)[-1]
    assert isinstance(end, SpeechEnded)
    assert numbers(end.sound) == list(range(30 + 5 - 21, 80 + 8))


def test_a_pause_within_an_utterance_is_no_end() -> None:
    events = run("." * 30 + "#" * 20 + "." * 12 + "#" * 20 + "." * 25)
    assert kinds(events) == [SpeechBegan, SpeechPaused, SpeechResumed, SpeechPaused, SpeechEnded]


def test_single_voiced_frames_do_not_begin_speech() -> None:
    assert run(("#" + "." * 5) * 40) == []


def test_a_click_is_dropped() -> None:
    assert kinds(run("." * 30 + "#" * 6 + "." * 25)) == [SpeechBegan, SpeechPaused, SpeechDropped]


@pytest.mark.parametrize(("end_ms", "frames"), [(400, 19), (800, 39), (100, 8)])
def test_the_setting_says_how_much_silence_ends_an_utterance(end_ms: int, frames: int) -> None:
    """But never less than the pause at which it is decoded."""
    timing = Timing(end_ms=end_ms)
    assert kinds(run("#" * 50 + "." * (frames - 1), timing))[-1] is not SpeechEnded
    assert kinds(run("#" * 50 + "." * frames, timing))[-2:] == [SpeechPaused, SpeechEnded]


def test_a_segment_that_is_too_long_is_cut_at_its_quietest_frame_and_goes_on() -> None:
    timing = Timing(longest_ms=100 * FRAME_MS, cut_within_ms=40 * FRAME_MS)
    events = run("#" * 80 + "." + "#" * 60 + "." * 20, timing)
    assert kinds(events) == [SpeechBegan, SpeechEnded, SpeechPaused, SpeechEnded]
    first, second = (event for event in events if isinstance(event, SpeechEnded))
    assert first.cut
    assert numbers(first.sound) == list(range(80))
    assert numbers(second.sound)[0] == 80


def test_taking_the_running_segment_ends_it() -> None:
    segmenter = Segmenter(says_so)
    for number in range(40):
        segmenter.feed(numbered(number, True), 0.1)
    assert numbers(segmenter.take()) == list(range(40))
    assert not segmenter.speaking
    assert segmenter.take() == b""


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=40), st.integers(30, 200))
def test_no_frame_is_heard_twice_and_none_inside_a_segment_is_lost(runs: list[tuple[bool, int]], longest: int) -> None:
    pattern = "".join(("#" if voiced else ".") * length for voiced, length in runs)
    timing = Timing(longest_ms=longest * FRAME_MS, cut_within_ms=20 * FRAME_MS)
    last = -1
    cut = False
    for number, event in run_numbered(pattern + "." * 30, timing):
        match event:
            case SpeechEnded(sound=sound):
                heard = numbers(sound)
                assert heard == list(range(heard[0], heard[-1] + 1))
                assert heard[0] == last + 1 if cut else heard[0] > last
                assert len(heard) <= longest
                last, cut = heard[-1], event.cut
            case SpeechDropped():
                assert not cut or "#" not in pattern[last + 1 : number + 1]
                cut = False


@given(st.lists(st.booleans(), max_size=300))
def test_every_beginning_has_one_end(voiced: list[bool]) -> None:
    pattern = "".join("#" if v else "." for v in voiced) + "." * 30
    speaking = False
    for event in run(pattern):
        match event:
            case SpeechBegan():
                assert not speaking
                speaking = True
            case SpeechEnded() | SpeechDropped():
                assert speaking
                speaking = False
            case SpeechPaused() | SpeechResumed():
                assert speaking
    assert not speaking


def heard_segments(sound: bytes) -> int:
    segmenter = Segmenter(VoiceDetector())
    events = [event for frame in frames_of(sound + silence(1)) for event in segmenter.feed(frame, loudness(frame))]
    return sum(isinstance(event, SpeechEnded) for event in events)


@pytest.mark.usefixtures("speaker")
def test_a_spoken_sentence_is_one_segment_and_two_with_a_break_are_two() -> None:
    sentence = say("Write a unit test for the parser.")
    assert heard_segments(silence(0.5) + sentence) == 1
    assert heard_segments(sentence + silence(0.6) + sentence) == 2


@pytest.mark.usefixtures("voice_extra")
@pytest.mark.parametrize("name", ["silence", "room noise", "key clicks"])
def test_what_is_faint_or_short_is_no_speech(name: str) -> None:
    assert heard_segments(noises(5)[name]) == 0
