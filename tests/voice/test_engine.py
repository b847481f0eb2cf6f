"""The life of the recognizer: loaded on first use, shared, unloaded when idle, never in the way of the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
import wave
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentik_server.voice import models
from agentik_server.voice.engine import SpeechEngine
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.settings import DictationSettings
from agentik_server.voice.snap import SoundIndex
from tests.voice.recorder import Recorder
from tests.voice.speech import noises, say, silence

pytestmark = pytest.mark.usefixtures("speaker")

SAID = "The method next page should return an empty list."
NewEngine = Callable[..., SpeechEngine]


@pytest.fixture
async def new_engine() -> AsyncIterator[NewEngine]:
    engines: list[SpeechEngine] = []

    def make(recorder: Recorder | None = None, **settings: Any) -> SpeechEngine:
        engines.append(SpeechEngine(replace(DictationSettings(), **settings), (recorder or Recorder()).emit_progress))
        return engines[-1]

    yield make
    for engine in engines:
        await engine.close()


async def test_the_model_is_loaded_once_with_progress(new_engine: NewEngine) -> None:
    recorder = Recorder()
    engine = new_engine(recorder)
    assert not engine.loaded
    await asyncio.gather(engine.load(""), engine.load("en"))
    assert engine.loaded
    assert [value["kind"] for _, value in recorder.progress] == ["begin", "end"]
    assert len({token for token, _ in recorder.progress}) == 1


async def test_a_sound_becomes_text_with_the_names_in_view(new_engine: NewEngine) -> None:
    index = SoundIndex(["first_page", "next_page"])
    guess = await new_engine().transcribe(say(SAID), index, final=True, language="")
    assert "The method next_page" in guess.text
    assert guess.took_ms > 0


async def test_noise_becomes_no_text(new_engine: NewEngine) -> None:
    guess = await new_engine().transcribe(noises(4)["white noise"], SoundIndex(), final=True, language="")
    assert guess.text == ""


async def test_commands_are_heard_only_where_they_are_wanted(new_engine: NewEngine) -> None:
    sound = silence(0.3) + say("New line.") + silence(0.2)
    wanted = await new_engine(commands=True).transcribe(sound, SoundIndex(), final=True, language="")
    assert (wanted.text, wanted.command) == ("", "newline")
    unwanted = await new_engine().transcribe(sound, SoundIndex(), final=True, language="")
    assert unwanted.command is None
    assert "line" in unwanted.text.lower()


async def test_the_loop_goes_on_while_it_loads_and_decodes(new_engine: NewEngine) -> None:
    """Counts turns of the loop: work on the loop itself would leave a handful."""
    engine = new_engine()
    work = asyncio.ensure_future(engine.transcribe(say(SAID), SoundIndex(), final=True, language=""))
    turns = 0
    while not work.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 500


async def test_an_idle_model_is_unloaded_and_loaded_again_when_needed(new_engine: NewEngine) -> None:
    recorder = Recorder()
    engine = new_engine(recorder, idle_seconds=0)
    await engine.load("")
    engine.rest()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not engine.loaded
    guess = await engine.transcribe(say(SAID), SoundIndex(), final=True, language="")
    assert guess.text
    assert [value["kind"] for _, value in recorder.progress] == ["begin", "end"] * 2


async def test_a_model_in_use_is_not_unloaded(new_engine: NewEngine) -> None:
    engine = new_engine(idle_seconds=0)
    await engine.load("")
    engine.rest()
    await engine.load("")
    await asyncio.sleep(0)
    assert engine.loaded


async def test_a_failed_load_ends_its_progress_and_is_tried_anew(new_engine: NewEngine, tmp_path: Path) -> None:
    recorder = Recorder()
    engine = new_engine(recorder, model=str(tmp_path / "nowhere"))
    for _ in range(2):
        with pytest.raises(VoiceRefused, match="does not exist"):
            await engine.load("")
    assert [value["kind"] for _, value in recorder.progress] == ["begin", "end"] * 2


async def test_what_is_missing_is_known_before_anything_is_loaded(new_engine: NewEngine) -> None:
    with pytest.raises(VoiceRefused, match="does not exist"):
        await new_engine(model="/nowhere").check("")
    with pytest.raises(VoiceRefused, match="only English"):
        await new_engine().check("de")
    await new_engine().check("en")


async def test_sound_touches_the_disk_only_where_the_debug_setting_says(new_engine: NewEngine, tmp_path: Path) -> None:
    sound = say(SAID)
    await new_engine().transcribe(sound, SoundIndex(), final=True, language="")
    folder = tmp_path / "debug"
    await new_engine(debug_audio_folder=folder).transcribe(sound, SoundIndex(), final=True, language="")
    (file,) = folder.iterdir()
    with wave.open(str(file)) as saved:
        assert saved.readframes(saved.getnframes()) == sound


async def test_progress_of_a_download_is_reported_in_percent(
    new_engine: NewEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`obtain` runs in a thread; its reports arrive on the loop."""
    found = models.find("")
    assert isinstance(found, models.Found)
    threads: list[int] = []

    def obtain(_source: models.Source, report: models.Report) -> models.Found:
        threads.append(threading.get_ident())
        report("downloading", 40)
        report("downloading", 100)
        return found

    monkeypatch.setattr(models, "obtain", obtain)
    recorder = Recorder()
    await new_engine(recorder).load("")
    assert threads != [threading.get_ident()]
    reports = [value for _, value in recorder.progress if value["kind"] == "report"]
    assert reports[-1] == {"kind": "report", "message": "downloading", "percentage": 100}


async def test_decoding_takes_a_fraction_of_the_time_it_took_to_say(new_engine: NewEngine) -> None:
    """A guard against losing the fitted window, not a benchmark."""
    engine = new_engine()
    await engine.load("")
    sound = say(SAID)
    began = time.perf_counter()
    await engine.transcribe(sound, SoundIndex(), final=True, language="")
    assert time.perf_counter() - began < len(sound) / 32_000
