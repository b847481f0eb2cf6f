"""In real time over a virtual microphone: PortAudio, the device and the clock are real."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agentik_server.voice import DictationService, DictationSettings
from tests.voice.recorder import Recorder
from tests.voice.scoring import word_errors
from tests.voice.speech import SENTENCES, say, write_wav
from tests.voice.virtual_microphone import VirtualMicrophone, missing


async def test_a_microphone_pulled_out_fails_with_the_text_so_far(speaker: None, tmp_path: Path) -> None:
    """The tests after this one show that the same process hears the next device."""
    if reason := missing():
        pytest.skip(reason)
    recorder = Recorder()
    with VirtualMicrophone() as own, own.in_this_process():
        service = DictationService(recorder.emit, DictationSettings())
        dictation = await service.start()
        await recorder.until_state("listening")
        own.speak(write_wav(tmp_path / "said.wav", say("Please run the tests in the server folder again.")))
        await recorder.until(lambda told: "the test" in str(told.partials[-1:]))
        own.unplug()
        await recorder.until_state("failed", within_s=10)
        assert "unplugged" in str(recorder.state("failed")["detail"])
        assert "the test" in await service.stop(dictation)
        await service.close()


async def test_speech_becomes_text_while_it_is_spoken(virtual_microphone: VirtualMicrophone, tmp_path: Path) -> None:
    recorder = Recorder()
    service = DictationService(recorder.emit, DictationSettings())
    (microphone,) = await service.list_microphones()
    assert microphone["isDefault"] is True
    sentence = SENTENCES[2]
    dictation = await service.start(device=str(microphone["device"]), hotwords=sentence.identifiers)
    await recorder.until_state("listening")
    speaking = virtual_microphone.speak(write_wav(tmp_path / "said.wav", say(sentence.spoken)))
    await recorder.until(lambda told: told.partials)
    assert speaking.poll() is None, "no partial came while it was spoken"
    await recorder.until(lambda told: told.finals)
    text = await service.stop(dictation)
    errors, words = word_errors(sentence.written, text)
    assert errors <= words // 4, text
    assert sentence.identifiers[0] in text
    assert [state for state in recorder.states if state != "transcribing"] == [
        "loading", "listening", "speech", "listening", "stopped",
    ]  # fmt: skip
    levels = [params["level"] for name, params in recorder.told if name == "dictationLevel"]
    assert max(map(float, map(str, levels))) > 0.3
    await service.close()


async def test_stopping_at_the_last_word_loses_none(virtual_microphone: VirtualMicrophone, tmp_path: Path) -> None:
    """The key comes up as the last word ends: what the device still holds is heard."""
    recorder = Recorder()
    service = DictationService(recorder.emit, DictationSettings())
    dictation = await service.start()
    await recorder.until_state("listening")
    said = "Please run the tests in the server folder again."
    speaking = virtual_microphone.speak(write_wav(tmp_path / "said.wav", say(said)))
    await asyncio.to_thread(speaking.wait)
    assert (await service.stop(dictation)).lower().rstrip(".").endswith("again")
    await service.close()
