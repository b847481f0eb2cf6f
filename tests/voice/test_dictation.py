"""The state machine of a dictation: frames and texts in, effects out; no sound, no thread, no time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentik_server.voice.audio import FRAME_BYTES, FRAME_MS, SILENCE, loudness
from agentik_server.voice.dictation import DEAF, Dictation, Rules, Stage
from agentik_server.voice.effects import (
    CloseMicrophone,
    Decode,
    Effect,
    Guess,
    ShowFinal,
    ShowLevel,
    ShowPartial,
    ShowState,
)
from agentik_server.voice.segmenter import Segmenter, SpeechEnded, Timing

VOICE = bytes([1, 1]) * (FRAME_BYTES // 2)
ROOM = bytes([1, 0]) * (FRAME_BYTES // 2)


def new_segmenter() -> Segmenter:
    return Segmenter(lambda frame, _loud: frame == VOICE, Timing(longest_ms=4000, cut_within_ms=1000))


def new_dictation(**rules: int) -> Dictation:
    return Dictation(new_segmenter(), Rules(**rules))


def hear(dictation: Dictation, pattern: str) -> list[Effect]:
    """Frames written as "#" (voice) and "." (room)."""
    return [effect for mark in pattern for effect in dictation.hear(VOICE if mark == "#" else ROOM)]


def decodes(effects: list[Effect], *, final: bool) -> list[Decode]:
    return [effect for effect in effects if isinstance(effect, Decode) and effect.final is final]


def states(effects: list[Effect]) -> list[str]:
    return [effect.state for effect in effects if isinstance(effect, ShowState)]


def without_levels(effects: list[Effect]) -> list[Effect]:
    return [effect for effect in effects if not isinstance(effect, ShowLevel)]


def test_the_first_frame_shows_that_it_listens() -> None:
    assert without_levels(hear(new_dictation(), ".")) == [ShowState("listening")]


def test_an_utterance_is_decoded_at_the_pause_and_final_at_its_end() -> None:
    """The trick: when the silence is long enough the text is there already."""
    dictation = new_dictation(partial_ms=0)
    effects = hear(dictation, "." * 30 + "#" * 50 + "." * 8)
    (decode,) = decodes(effects, final=True)
    assert without_levels(dictation.decoded(decode.job, Guess("Hello."))) == [ShowPartial("Hello.", "")]
    effects = without_levels(hear(dictation, "." * 12))
    assert effects == [ShowFinal("Hello."), ShowState("listening")]
    assert dictation.text == "Hello."


def test_a_text_that_comes_later_than_the_end_is_waited_for() -> None:
    dictation = new_dictation(partial_ms=0)
    effects = hear(dictation, "#" * 50 + "." * 20)
    (decode,) = decodes(effects, final=True)
    assert states(effects) == ["listening", "speech", "transcribing"]
    assert dictation.decoded(decode.job, Guess("Hello.")) == [ShowFinal("Hello."), ShowState("listening")]


def test_after_a_resumed_pause_the_whole_is_decoded_anew() -> None:
    dictation = new_dictation(partial_ms=0)
    first, second = decodes(hear(dictation, "#" * 50 + "." * 10 + "#" * 30 + "." * 20), final=True)
    assert len(second.sound) > len(first.sound)
    assert dictation.decoded(first.job, Guess("Half.")) == []
    assert dictation.decoded(second.job, Guess("Half and whole."))[0] == ShowFinal("Half and whole.")


def test_partials_come_in_the_rhythm_of_the_setting_one_at_a_time() -> None:
    dictation = new_dictation(partial_ms=500)
    (first,) = decodes(hear(dictation, "#" * 60), final=False)
    assert dictation.decoded(first.job, Guess("Hel")) == [ShowPartial("Hel", "")]
    (second,) = decodes(hear(dictation, "#" * 60), final=False)
    assert dictation.decoded(second.job, Guess("Hel lo")) == [ShowPartial("Hel lo", "Hel")]


def test_on_a_slow_machine_partials_leave_half_of_the_time_free() -> None:
    dictation = new_dictation(partial_ms=100)
    (first,) = decodes(hear(dictation, "#" * 20), final=False)
    dictation.decoded(first.job, Guess("Hel", took_ms=1000))
    assert decodes(hear(dictation, "#" * 49), final=False) == []
    assert len(decodes(hear(dictation, "#" * 2), final=False)) == 1


def test_a_partial_of_an_utterance_that_is_over_is_not_shown() -> None:
    dictation = new_dictation(partial_ms=500)
    effects = hear(dictation, "#" * 30 + "." * 25 + "#" * 10)
    (partial,) = decodes(effects, final=False)
    assert dictation.decoded(partial.job, Guess("late")) == []


def test_an_utterance_that_was_no_speech_takes_its_partial_away() -> None:
    dictation = new_dictation(partial_ms=500)
    effects = hear(dictation, "#" * 40)
    (partial,) = decodes(effects, final=False)
    dictation.decoded(partial.job, Guess("you"))
    (final,) = decodes(hear(dictation, "." * 20), final=True)
    assert dictation.decoded(final.job, Guess("")) == [ShowPartial(""), ShowState("listening")]
    assert dictation.text == ""


def test_finals_come_in_the_order_in_which_they_were_said() -> None:
    dictation = new_dictation(partial_ms=0)
    first, second = decodes(hear(dictation, ("#" * 30 + "." * 20) * 2), final=True)
    assert dictation.decoded(second.job, Guess("Two.")) == []
    finals = dictation.decoded(first.job, Guess("One."))
    assert finals == [ShowFinal("One."), ShowFinal("Two."), ShowState("listening")]
    assert dictation.text == "One. Two."


def test_stopping_in_the_middle_of_a_sentence_decodes_what_was_said() -> None:
    dictation = new_dictation(partial_ms=0)
    hear(dictation, "#" * 50)
    assert dictation.in_mid_word
    effects = dictation.stop()
    (decode,) = decodes(effects, final=True)
    assert effects == [CloseMicrophone(), decode, ShowState("transcribing")]
    assert dictation.decoded(decode.job, Guess("Half.")) == [ShowFinal("Half."), ShowState("stopped")]
    assert dictation.stage is Stage.STOPPED


def test_stopping_in_a_pause_needs_no_second_decoding() -> None:
    dictation = new_dictation(partial_ms=0)
    (decode,) = decodes(hear(dictation, "#" * 50 + "." * 10), final=True)
    dictation.decoded(decode.job, Guess("All."))
    assert not dictation.in_mid_word
    assert dictation.stop() == [CloseMicrophone(), ShowFinal("All."), ShowState("stopped")]


def test_stopping_in_silence_ends_at_once() -> None:
    dictation = new_dictation()
    hear(dictation, "." * 20)
    assert dictation.stop() == [CloseMicrophone(), ShowState("stopped")]


def test_cancelling_forgets_what_is_not_final() -> None:
    dictation = new_dictation(partial_ms=500)
    (partial,) = decodes(hear(dictation, "#" * 40), final=False)
    dictation.decoded(partial.job, Guess("Hel"))
    assert dictation.cancel() == [CloseMicrophone(), ShowPartial(""), ShowState("stopped")]
    assert dictation.cancel() == dictation.stop() == hear(dictation, "#") == []


def test_a_lost_microphone_keeps_what_was_said_and_says_why_it_failed() -> None:
    dictation = new_dictation(partial_ms=0)
    hear(dictation, "#" * 50)
    (decode,) = decodes(dictation.lose_microphone("unplugged"), final=True)
    effects = dictation.decoded(decode.job, Guess("Half."))
    assert effects == [ShowFinal("Half."), ShowState("failed", "unplugged")]
    assert dictation.text == "Half."


def test_a_failed_recognizer_keeps_the_texts_that_are_known() -> None:
    dictation = new_dictation(partial_ms=0)
    _, second = decodes(hear(dictation, ("#" * 30 + "." * 20) * 2), final=True)
    dictation.decoded(second.job, Guess("Two."))
    assert dictation.fail("broken") == [ShowFinal("Two."), CloseMicrophone(), ShowState("failed", "broken")]
    assert dictation.text == "Two."


def test_the_longest_dictation_ends_by_itself_and_keeps_its_text() -> None:
    dictation = new_dictation(partial_ms=0, max_seconds=2)
    effects = hear(dictation, "#" * 150)
    assert CloseMicrophone() in effects
    (decode,) = decodes(effects, final=True)
    final, end = dictation.decoded(decode.job, Guess("Long."))
    assert final == ShowFinal("Long.")
    assert isinstance(end, ShowState)
    assert end.state == "stopped"
    assert "2 s" in end.detail


def test_a_microphone_of_digital_silence_is_told_once() -> None:
    """A muted device, or a system that does not allow the use of it, opens all the same and gives zeros."""
    dictation = new_dictation()
    effects = [effect for _ in range(500) for effect in dictation.hear(SILENCE)]
    assert [e for e in effects if isinstance(e, ShowState)] == [ShowState("listening"), ShowState("listening", DEAF)]


def test_levels_come_at_most_ten_times_a_second() -> None:
    effects = hear(new_dictation(), "#" * (1000 // FRAME_MS * 3))
    levels = [effect.level for effect in effects if isinstance(effect, ShowLevel)]
    assert 20 <= len(levels) <= 30
    assert all(0 < level <= 1 for level in levels)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ([Guess("One."), Guess("", "newline"), Guess("Two.")], "One.\nTwo."),
        ([Guess("One."), Guess("Two."), Guess("", "scratch")], "One."),
        ([Guess("", "scratch"), Guess("One.")], "One."),
        ([Guess("One."), Guess("", "send")], "One."),
    ],
)
def test_commands_come_out_as_finals_without_text(said: list[Guess], text: str) -> None:
    dictation = new_dictation(partial_ms=0)
    for guess in said:
        (decode,) = decodes(hear(dictation, "#" * 30 + "." * 20), final=True)
        assert ShowFinal(guess.text, guess.command) in dictation.decoded(decode.job, guess)
    assert dictation.text == text


# Any order of events, as a real evening might bring it.

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("hear"), st.integers(1, 60), st.booleans()),
        st.tuples(st.just("decoded"), st.integers(0, 5), st.booleans()),
    ),
    max_size=60,
)
ENDS: dict[str, Callable[[Dictation], list[Effect]]] = {
    "stop": Dictation.stop,
    "cancel": Dictation.cancel,
    "lose": lambda dictation: dictation.lose_microphone("gone"),
    "fail": lambda dictation: dictation.fail("broken"),
}


@settings(max_examples=60, deadline=None)
@given(ACTIONS, st.sampled_from(sorted(ENDS)), st.permutations(range(6)))
def test_in_any_order_it_ends_once_and_loses_and_doubles_no_text(
    actions: list[tuple[str, int, bool]], end: str, order: list[int]
) -> None:
    dictation = new_dictation(partial_ms=200)
    effects: list[Effect] = []
    open_jobs: list[Decode] = []
    guesses: dict[int, str] = {}

    def tell(more: list[Effect]) -> None:
        effects.extend(more)
        open_jobs.extend(effect for effect in more if isinstance(effect, Decode))

    def answer(position: int, speech: bool = True) -> None:
        decode = open_jobs.pop(position % len(open_jobs))
        guesses[decode.job] = f"text{decode.job}" if speech else ""
        tell(dictation.decoded(decode.job, Guess(guesses[decode.job])))

    for action, number, flag in actions:
        if action == "hear":
            tell(hear(dictation, ("#" if flag else ".") * number))
        elif open_jobs:
            answer(number, flag)
    tell(ENDS[end](dictation))
    while open_jobs:
        answer(order[len(open_jobs) % 6])

    assert dictation.stage is Stage.STOPPED
    assert effects.count(CloseMicrophone()) == 1
    ends = [effect for effect in effects if isinstance(effect, ShowState) and effect.state in {"stopped", "failed"}]
    assert len(ends) == 1
    assert effects[-1] == ends[0]
    assert ends[0].state == ("failed" if end in {"lose", "fail"} else "stopped")
    finals = [effect.text for effect in effects if isinstance(effect, ShowFinal)]
    assert dictation.text == " ".join(finals)
    assert all(finals)
    numbers = [int(text.removeprefix("text")) for text in finals]
    assert numbers == sorted(set(numbers))
    assert hear(dictation, "#" * 50) == []


@settings(max_examples=40, deadline=None)
@given(ACTIONS)
def test_every_utterance_that_ended_is_final_once_its_text_is_known(actions: list[tuple[str, int, bool]]) -> None:
    """With a recognizer that answers at once: as many finals as utterances."""
    dictation = new_dictation(partial_ms=200)
    finals = 0

    def tell(effects: list[Effect]) -> None:
        nonlocal finals
        for effect in effects:
            finals += isinstance(effect, ShowFinal)
            if isinstance(effect, Decode):
                tell(dictation.decoded(effect.job, Guess("said")))

    pattern = "".join(("#" if flag else ".") * number for action, number, flag in actions if action == "hear")
    for mark in pattern + "." * 30:
        tell(dictation.hear(VOICE if mark == "#" else ROOM))
    assert finals == utterances(pattern + "." * 30)
    tell(dictation.stop())
    assert dictation.stage is Stage.STOPPED


def utterances(pattern: str) -> int:
    def frame(mark: str) -> tuple[bytes, float]:
        sound = VOICE if mark == "#" else ROOM
        return sound, loudness(sound)

    segmenter = new_segmenter()
    events = [event for mark in pattern for event in segmenter.feed(*frame(mark))]
    return sum(isinstance(event, SpeechEnded) for event in events)
