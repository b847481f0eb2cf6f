"""The recognizer with the real bundled model, on speech and noise made here."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentik_server.voice import models
from agentik_server.voice.audio import loudness
from agentik_server.voice.commands import PHRASES, SCORED, likely_command
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.recognizer import Recognizer
from agentik_server.voice.segmenter import Segmenter, SpeechEnded, VoiceDetector
from agentik_server.voice.settings import DEFAULT_STYLE
from agentik_server.voice.transcript import cut_repeats, is_invented
from tests.voice.scoring import word_errors
from tests.voice.speech import frames_of, noises, say, silence, with_noise

pytestmark = pytest.mark.usefixtures("speaker")

SAID = "Write a unit test for the parser and run it again."


@pytest.fixture(scope="module")
def folder(voice_extra: None) -> Path:
    found = models.find("")
    assert isinstance(found, models.Found)
    return found.folder


@pytest.fixture(scope="module")
def recognizer(folder: Path) -> Recognizer:
    return Recognizer(folder)


def segments(sound: bytes) -> list[bytes]:
    segmenter = Segmenter(VoiceDetector())
    events = [event for frame in frames_of(sound + silence(1)) for event in segmenter.feed(frame, loudness(frame))]
    return [event.sound for event in events if isinstance(event, SpeechEnded)]


def test_a_sentence_is_written_as_it_was_said(recognizer: Recognizer) -> None:
    decoded = recognizer.write(recognizer.encode(say(SAID)), beam=2, prompt=DEFAULT_STYLE)
    errors, _ = word_errors(SAID, decoded.text)
    assert errors <= 1, decoded
    assert not is_invented(decoded, DEFAULT_STYLE)


def test_speech_in_noise_is_not_dropped(recognizer: Recognizer) -> None:
    """10 dB of white noise under it."""
    sound = with_noise(silence(0.3) + say(SAID) + silence(0.3), 10)
    assert recognizer.hears_speech(sound)
    decoded = recognizer.write(recognizer.encode(sound), beam=2, prompt=DEFAULT_STYLE)
    assert not is_invented(decoded, DEFAULT_STYLE), decoded


@pytest.mark.parametrize("name", sorted(noises(0.1)))
def test_noise_yields_no_text(recognizer: Recognizer, name: str) -> None:
    """By two independent opinions: the second detector hears no speech, and the text is known to be made up."""
    for sound in segments(noises(10)[name]):
        assert not recognizer.hears_speech(sound)
        decoded = recognizer.write(recognizer.encode(sound), beam=2, prompt=DEFAULT_STYLE)
        assert is_invented(decoded, DEFAULT_STYLE), decoded


def test_a_long_sound_fits_the_window(recognizer: Recognizer) -> None:
    sound = (say(SAID) * 12)[: 2 * 16_000 * 28]
    text = recognizer.write(recognizer.encode(sound)).text
    assert text.lower().count("unit test") >= 5, text


def test_two_sounds_may_be_decoded_side_by_side(recognizer: Recognizer) -> None:
    sounds = [say(SAID), say("The function returns an empty list.")]
    alone = [recognizer.write(recognizer.encode(sound)).text for sound in sounds]
    with ThreadPoolExecutor(2) as threads:
        together = list(threads.map(lambda sound: recognizer.write(recognizer.encode(sound)).text, sounds * 3))
    assert together == alone * 3


@pytest.mark.parametrize("phrase", SCORED)
def test_a_command_is_heard_by_its_likelihood(recognizer: Recognizer, phrase: str) -> None:
    (sound,) = segments(silence(0.5) + say(f"{phrase}."))
    encoded = recognizer.encode(sound)
    likelihoods = {candidate: recognizer.likelihood(encoded, candidate) for candidate in SCORED}
    text = recognizer.write(encoded, beam=2)
    assert likely_command(likelihoods, text.log_probability) == PHRASES[phrase], (text, likelihoods)


@pytest.mark.parametrize("saying", ["run it", "fix that", "add a line", "test it", "thank you", "end it", "next time"])
def test_another_short_saying_is_no_command(recognizer: Recognizer, saying: str) -> None:
    (sound,) = segments(silence(0.5) + say(f"{saying}."))
    encoded = recognizer.encode(sound)
    likelihoods = {candidate: recognizer.likelihood(encoded, candidate) for candidate in SCORED}
    text = recognizer.write(encoded, beam=2)
    assert likely_command(likelihoods, text.log_probability) is None, (text, likelihoods)


def test_the_bundled_model_knows_what_it_is(recognizer: Recognizer) -> None:
    assert recognizer.english_only
    assert recognizer.is_tiny
    recognizer.check_language("")
    recognizer.check_language("en")
    with pytest.raises(VoiceRefused, match="English only"):
        recognizer.check_language("de")


def broken_copy(folder: Path, target: Path, weights: bytes) -> Path:
    target.mkdir()
    for file in folder.iterdir():
        if file.name != "model.bin":
            shutil.copy(file, target)
    (target / "model.bin").write_bytes(weights)
    return target


@pytest.mark.parametrize("kind", ["truncated", "foreign", "empty"])
def test_a_broken_model_is_refused_with_its_folder(folder: Path, tmp_path: Path, kind: str) -> None:
    with (folder / "model.bin").open("rb") as file:
        beginning = file.read(1_000_000)
    weights = {"truncated": beginning, "foreign": b"PK\x03\x04" * 1000, "empty": b""}[kind]
    broken = broken_copy(folder, tmp_path / "model", weights)
    with pytest.raises(VoiceRefused) as refused:
        Recognizer(broken)
    assert refused.value.reason == "speechModelMissing"
    assert str(broken) in refused.value.message
    assert "\n" not in refused.value.message


def test_cut_repeats_holds_on_what_the_decoder_loops(recognizer: Recognizer) -> None:
    """A fitted window can loop; what is shown is one copy."""
    (sound,) = segments(silence(0.5) + say("next line.", "en-gb"))
    text = recognizer.write(recognizer.encode(sound), beam=2).text
    assert len(cut_repeats(text, short=True).split()) <= 3, text
