"""What `:checkhealth` says about dictation."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from agentik_server.voice import DictationSettings, VoiceRefused, check, health
from agentik_server.voice.microphone import MicrophoneName

SETTINGS = DictationSettings()


@pytest.fixture
def two_microphones(monkeypatch: pytest.MonkeyPatch, voice_extra: None) -> None:
    found = [MicrophoneName("Built-in, ALSA", "Built-in", True), MicrophoneName("USB, ALSA", "USB", False)]
    monkeypatch.setattr(health, "list_microphones", lambda *, rescan: found)


@pytest.mark.usefixtures("two_microphones")
def test_a_whole_installation_is_all_ok() -> None:
    findings = check(SETTINGS)
    assert {level for level, _ in findings} == {"ok"}
    text = "\n".join(text for _, text in findings)
    assert all(part in text for part in ("PortAudio", "Built-in (default)", "USB", "tiny.en"))


@pytest.mark.usefixtures("two_microphones")
def test_a_chosen_device_that_is_not_there_is_an_error() -> None:
    assert ("error", '"Webcam" (dictation.device) is no microphone of this machine') in check(
        replace(SETTINGS, device="Webcam")
    )
    assert all(level == "ok" for level, _ in check(replace(SETTINGS, device="usb")))


@pytest.mark.usefixtures("two_microphones")
def test_a_missing_model_is_an_error() -> None:
    assert any(level == "error" and "/nowhere" in text for level, text in check(replace(SETTINGS, model="/nowhere")))


@pytest.mark.usefixtures("voice_extra")
def test_missing_portaudio_is_an_error_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*, rescan: bool) -> list[MicrophoneName]:
        raise VoiceRefused("microphoneUnavailable", "PortAudio is missing: install it")

    monkeypatch.setattr(health, "list_microphones", refuse)
    assert ("error", "PortAudio is missing: install it") in check(SETTINGS)


def test_importing_dictation_loads_no_sound_library() -> None:
    """A server without the extra starts all the same, and one with it as fast."""
    code = (
        "import sys, agentik_server.voice;"
        "heavy = {'numpy', 'sounddevice', 'webrtcvad', 'faster_whisper', 'ctranslate2', 'soxr', 'rapidfuzz'};"
        "sys.exit(', '.join(heavy & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
