"""The whole service over a microphone that hears what the test says: everything but the device is real."""

from __future__ import annotations

import asyncio
import importlib.util
import shutil
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agentik_server.voice import DictationService, DictationSettings, VoiceRefused, models
from agentik_server.voice import service as service_module
from agentik_server.voice.microphone import Deliver, Lost
from tests.voice.recorder import Recorder
from tests.voice.scoring import word_errors
from tests.voice.speech import noises, say, silence
from tests.voice.wav_microphone import WavMicrophone

pytestmark = pytest.mark.usefixtures("speaker")

FIRST = "Write a unit test for the parser."
SECOND = "Then run all the tests again."
BOTH = silence(0.3) + say(FIRST) + silence(0.8) + say(SECOND) + silence(0.8)


@dataclass
class Desk:
    """A service, what it told, and the microphones it will be given."""

    recorder: Recorder = field(default_factory=Recorder)
    microphones: list[WavMicrophone] = field(default_factory=list)
    used: list[WavMicrophone] = field(default_factory=list)
    services: list[DictationService] = field(default_factory=list)

    def service(self, *microphones: WavMicrophone, **settings: Any) -> DictationService:
        self.microphones.extend(microphones)

        def next_microphone() -> WavMicrophone:
            self.used.append(self.microphones.pop(0) if self.microphones else WavMicrophone())
            return self.used[-1]

        self.services.append(
            DictationService(
                self.recorder.emit,
                replace(DictationSettings(), **settings),
                emit_progress=self.recorder.emit_progress,
                microphone=next_microphone,
            )
        )
        return self.services[-1]

    async def all_heard(self) -> None:
        """The microphone has delivered its sound; what is asked of the service now comes after it."""
        await asyncio.to_thread(self.used[-1].delivered.wait)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    yield desk
    for service in desk.services:
        await service.close()
    assert not any(microphone.is_open for microphone in desk.used)


def close_to(wanted: str, got: object) -> bool:
    return word_errors(wanted, str(got))[0] <= 1


async def test_two_sentences_become_two_finals_and_the_text_of_stop(desk: Desk) -> None:
    service = desk.service(WavMicrophone(BOTH))
    dictation = await service.start()
    await desk.recorder.until(lambda told: len(told.finals) == 2)
    text = await service.stop(dictation)
    first, second = desk.recorder.finals
    assert close_to(FIRST, first)
    assert close_to(SECOND, second)
    assert text == f"{first} {second}"
    assert desk.recorder.states[:2] == ["loading", "listening"]
    assert desk.recorder.states[-1] == "stopped"
    assert {params["dictationId"] for _, params in desk.recorder.told} == {dictation}
    assert desk.recorder.count("dictationLevel") >= 1


async def test_words_said_while_the_model_loads_are_not_lost(desk: Desk) -> None:
    """The microphone delivers at once; the model is loaded afterwards."""
    service = desk.service(WavMicrophone(say(FIRST) + silence(0.6)))
    dictation = await service.start()
    await desk.all_heard()
    assert desk.recorder.count("dictationFinal") == 0
    assert close_to(FIRST, await asyncio.wait_for(service.stop(dictation), 20))


async def test_stopping_in_the_middle_gives_what_was_said(desk: Desk) -> None:
    service = desk.service(WavMicrophone(say(FIRST)[:-3200]))
    dictation = await service.start()
    await desk.all_heard()
    assert "unit test" in (await service.stop(dictation)).lower()
    assert desk.recorder.states[-1] == "stopped"


async def test_names_in_view_are_written_as_in_the_buffer(desk: Desk) -> None:
    sound = silence(0.3) + say("Rename parse config to load settings.") + silence(0.8)
    service = desk.service(WavMicrophone(sound))
    dictation = await service.start(hotwords=["parse_config", "load_settings", "other_name"])
    await desk.recorder.until(lambda told: told.finals)
    assert "parse_config" in await service.stop(dictation)


async def test_cancelling_gives_no_text_and_closes_the_microphone(desk: Desk) -> None:
    service = desk.service(WavMicrophone(say(FIRST)))
    dictation = await service.start()
    await desk.recorder.until_state("speech")
    await service.cancel(dictation)
    assert desk.recorder.finals == []
    assert desk.recorder.states[-1] == "stopped"
    assert not desk.used[0].is_open
    assert await service.stop(dictation) == ""


async def test_one_dictation_at_a_time(desk: Desk) -> None:
    service = desk.service()
    dictation = await service.start()
    with pytest.raises(VoiceRefused) as refused:
        await service.start()
    assert refused.value.reason == "dictationBusy"
    await service.stop(dictation)
    await service.cancel(await service.start())


async def test_two_starts_at_once_are_one_dictation(desk: Desk) -> None:
    service = desk.service()
    results = await asyncio.gather(service.start(), service.start(), return_exceptions=True)
    refused = [result for result in results if isinstance(result, VoiceRefused)]
    assert [refusal.reason for refusal in refused] == ["dictationBusy"]
    assert len(desk.used) == 1


async def test_a_dictation_that_is_over_still_gives_its_text_until_the_next(desk: Desk) -> None:
    service = desk.service(WavMicrophone(say(FIRST) + silence(0.8), then="lost"))
    dictation = await service.start()
    await desk.recorder.until_state("failed")
    text = await service.stop(dictation)
    assert close_to(FIRST, text)
    assert await service.stop(dictation) == text
    await service.cancel(await service.start())
    assert await service.stop(dictation) == ""


async def test_an_unplugged_microphone_keeps_what_was_said_in_mid_sentence(desk: Desk) -> None:
    service = desk.service(WavMicrophone(say(FIRST), then="lost"))
    dictation = await service.start()
    await desk.recorder.until_state("failed")
    assert "unplugged" in str(desk.recorder.state("failed")["detail"])
    assert close_to(FIRST, await service.stop(dictation))
    assert not desk.used[0].is_open


async def test_a_microphone_that_falls_silent_without_a_word_is_noticed(desk: Desk) -> None:
    service = desk.service(WavMicrophone(say(FIRST), then="nothing"))
    await service.start()
    await desk.recorder.until_state("failed", within_s=10)
    assert "unplugged" in str(desk.recorder.state("failed")["detail"])


async def test_a_refused_microphone_starts_nothing(desk: Desk) -> None:
    refusal = VoiceRefused("microphoneUnavailable", "held by another program")
    service = desk.service(WavMicrophone(refusal=refusal))
    with pytest.raises(VoiceRefused, match="held by another"):
        await service.start()
    assert desk.recorder.told == []
    await service.cancel(await service.start())


async def test_a_missing_model_closes_the_microphone_again(desk: Desk) -> None:
    service = desk.service(WavMicrophone(), model="/nowhere/model")
    with pytest.raises(VoiceRefused) as refused:
        await service.start()
    assert refused.value.reason == "speechModelMissing"
    assert not desk.used[0].is_open
    assert desk.recorder.told == []


async def test_a_sound_system_that_hangs_is_refused_and_can_be_tried_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And when it wakes up at last, the microphone does not stay open."""
    release, closed = threading.Event(), threading.Event()

    class Hanging(WavMicrophone):
        def open(self, device: str, deliver: Deliver, lost: Lost) -> None:
            release.wait()
            super().open(device, deliver, lost)

        def close(self) -> None:
            super().close()
            closed.set()

    monkeypatch.setattr(service_module, "_SOUND_SYSTEM_ANSWERS_WITHIN_S", 0.05)
    service = desk.service(Hanging())
    with pytest.raises(VoiceRefused, match="does not answer"):
        await service.start()
    monkeypatch.undo()
    await service.cancel(await service.start())
    release.set()
    assert await asyncio.to_thread(closed.wait, 10)


async def test_a_broken_model_fails_the_dictation_with_one_clear_line(desk: Desk, tmp_path: Path) -> None:
    found = models.find("")
    assert isinstance(found, models.Found)
    broken = tmp_path / "model"
    shutil.copytree(found.folder, broken, ignore=shutil.ignore_patterns("model.bin"))
    (broken / "model.bin").write_bytes(b"nonsense")
    service = desk.service(WavMicrophone(say(FIRST)), model=str(broken))
    dictation = await service.start()
    await desk.recorder.until_state("failed")
    detail = str(desk.recorder.state("failed")["detail"])
    assert str(broken) in detail
    assert "\n" not in detail
    assert await service.stop(dictation) == ""
    assert desk.recorder.progress[-1][1]["kind"] == "end"


async def test_without_the_extra_it_says_how_to_install_it(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "faster_whisper" else find_spec(name))
    service = desk.service()
    with pytest.raises(VoiceRefused, match=":AgentikInstall voice") as refused:
        await service.start()
    assert refused.value.reason == "speechModelMissing"
    assert desk.used == []
    level, text = (await service.check())[0]
    assert level == "warn"
    assert ":AgentikInstall voice" in text


async def test_the_longest_dictation_ends_by_itself_and_keeps_its_text(desk: Desk) -> None:
    service = desk.service(WavMicrophone(say(FIRST) * 3), max_seconds=4)
    dictation = await service.start()
    await desk.recorder.until_state("stopped")
    assert "4 s" in str(desk.recorder.state("stopped")["detail"])
    assert "unit test" in (await service.stop(dictation)).lower()


async def test_spoken_commands_are_told_to_the_editor(desk: Desk) -> None:
    sound = silence(0.3) + say(FIRST) + silence(0.8) + say("New line.") + silence(0.8)
    service = desk.service(WavMicrophone(sound), commands=True)
    dictation = await service.start()
    await desk.recorder.until(lambda told: len(told.finals) == 2)
    commands = [params.get("command") for name, params in desk.recorder.told if name == "dictationFinal"]
    assert commands == [None, "newline"]
    assert (await service.stop(dictation)).endswith("\n")


async def test_noises_are_never_told_as_text(desk: Desk) -> None:
    """Ten kinds of it, ten seconds in all, in one dictation."""
    sound = b"".join(noise + silence(0.8) for noise in noises(2).values())
    service = desk.service(WavMicrophone(sound))
    dictation = await service.start()
    await desk.all_heard()
    assert await service.stop(dictation) == ""
    assert desk.recorder.finals == []


async def test_a_start_that_is_cancelled_leaves_no_open_microphone(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    service = desk.service(WavMicrophone(then="nothing"))
    never = asyncio.Event()

    async def check(_language: str) -> None:
        await never.wait()

    monkeypatch.setattr(service._engine, "check", check)
    starting = asyncio.create_task(service.start())
    while not (desk.used and desk.used[0].is_open):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not desk.used[0].is_open
    monkeypatch.undo()
    await service.cancel(await service.start())


async def test_settings_and_the_call_choose_the_device(desk: Desk) -> None:
    service = desk.service(device="Headset")
    await service.cancel(await service.start())
    await service.cancel(await service.start(device="Built-in"))
    await service.cancel(await service.start(device=0))
    assert [microphone.opened_device for microphone in desk.used] == ["Headset", "Built-in", "0"]


async def test_closing_the_service_ends_a_running_dictation(desk: Desk) -> None:
    service = desk.service(WavMicrophone(say(FIRST)))
    await service.start()
    await service.close()
    assert desk.recorder.states[-1] == "stopped"
    assert not desk.used[0].is_open
