"""Devices of any rate, and what is said when they refuse. PortAudio's answers are played; test_live has real ones."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentik_server.voice import microphone as module
from agentik_server.voice.audio import FRAME_BYTES, SAMPLE_RATE, loudness
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.microphone import SoundDeviceMicrophone, list_microphones


class PortAudioError(Exception):
    """As sounddevice's: text, error number, host's own information."""


class FakeStream:
    def __init__(self, sound_system: FakeSoundDevice, **options: Any) -> None:
        self.options = options
        self.closed = False
        self._system = sound_system

    def start(self) -> None:
        if self._system.start_refusal:
            raise self._system.start_refusal

    def abort(self, ignore_errors: bool) -> None:
        assert ignore_errors

    def close(self, ignore_errors: bool) -> None:
        assert ignore_errors
        if not self.closed:
            self.closed = True
            self.options["finished_callback"]()

    def give(self, block: bytes, *, overflow: bool = False) -> None:
        self.options["callback"](block, len(block) // 2, None, SimpleNamespace(input_overflow=overflow))


class FakeSoundDevice:
    """As much of sounddevice as the microphone uses."""

    PortAudioError = PortAudioError

    def __init__(self, *, rate: int = SAMPLE_RATE, inputs: tuple[str, ...] = ("Built-in", "Headset")) -> None:
        self.rate = rate
        self.inputs = list(inputs)
        self._seen = list(inputs)
        self.rescans = 0
        self.streams: list[FakeStream] = []
        self.start_refusal: Exception | None = None
        self.check_refusal: Exception | None = None

    def _terminate(self) -> None: ...

    def _initialize(self) -> None:
        self.rescans += 1
        self._seen = list(self.inputs)

    def query_hostapis(self) -> list[dict[str, Any]]:
        return [{"name": "ALSA"}]

    def query_devices(self, device: int | str | None = None, kind: str | None = None) -> Any:
        devices = [
            {"index": i, "name": name, "hostapi": 0, "max_input_channels": 2, "default_samplerate": float(self.rate)}
            for i, name in enumerate(self._seen)
        ]
        if kind is None and device is None:
            return [*devices, {"index": 9, "name": "Speaker", "hostapi": 0, "max_input_channels": 0}]
        if not devices:
            raise PortAudioError("Error querying device -1")
        if device is None:
            return devices[0]
        found = [d for d in devices if device in (d["index"], d["name"]) or str(device) in f"{d['name']}, ALSA"]
        if len(found) != 1:
            raise ValueError("Multiple input devices found" if found else f"No input device matching {device!r}")
        return found[0]

    def check_input_settings(self, *, samplerate: int, **_: Any) -> None:
        if self.check_refusal:
            raise self.check_refusal
        if samplerate != self.rate:
            raise PortAudioError("Invalid sample rate", -9997)

    def RawInputStream(self, **options: Any) -> FakeStream:  # noqa: N802 -- sounddevice's name
        self.streams.append(FakeStream(self, **options))
        return self.streams[-1]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[FakeSoundDevice], FakeSoundDevice]:
    def put(fake: FakeSoundDevice) -> FakeSoundDevice:
        monkeypatch.setattr(module, "load_sounddevice", lambda: fake)
        return fake

    return put


Install = Callable[[FakeSoundDevice], FakeSoundDevice]


def tone(rate: int, seconds: float) -> bytes:
    import array

    return array.array("h", (round(9000 * math.sin(2763.0 * i / rate)) for i in range(int(rate * seconds)))).tobytes()


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 44_100, 48_000])
def test_any_rate_comes_out_as_frames_of_20_ms_at_16_khz(install: Install, voice_extra: None, rate: int) -> None:
    fake = install(FakeSoundDevice(rate=rate))
    frames: list[bytes] = []
    microphone = SoundDeviceMicrophone()
    microphone.open("", frames.append, lambda _: None)
    (stream,) = fake.streams
    assert stream.options["samplerate"] == rate
    sound = tone(rate, 2)
    for start in range(0, len(sound), 1234):
        stream.give(sound[start : start + 1234])
    microphone.close()
    assert {len(frame) for frame in frames} == {FRAME_BYTES}
    assert 95 <= len(frames) <= 100
    assert loudness(frames[50]) == pytest.approx(9000 / 32768 / math.sqrt(2), rel=0.1)


def test_overflows_are_counted(install: Install) -> None:
    fake = install(FakeSoundDevice())
    microphone = SoundDeviceMicrophone()
    microphone.open("", lambda _: None, lambda _: None)
    fake.streams[0].give(bytes(640), overflow=True)
    fake.streams[0].give(bytes(640))
    assert microphone.overflows == 1
    microphone.close()


def test_a_stream_that_ends_by_itself_is_a_lost_device_and_one_that_is_closed_is_not(install: Install) -> None:
    fake = install(FakeSoundDevice())
    lost: list[str] = []
    microphone = SoundDeviceMicrophone()
    microphone.open("", lambda _: None, lost.append)
    fake.streams[0].options["finished_callback"]()
    assert lost == [module.UNPLUGGED]
    microphone.close()
    microphone.close()
    assert len(lost) == 1
    assert fake.streams[0].closed


def test_new_devices_are_seen_without_a_restart(install: Install) -> None:
    fake = install(FakeSoundDevice(inputs=()))
    assert list_microphones(rescan=True) == []
    fake.inputs = ["USB"]
    found = list_microphones(rescan=True)
    assert [(m.device, m.name, m.is_default) for m in found] == [("USB, ALSA", "USB", True)]
    assert fake.rescans == 2
    list_microphones(rescan=False)
    assert fake.rescans == 2


def test_a_device_plugged_in_since_is_opened_without_a_restart(install: Install) -> None:
    fake = install(FakeSoundDevice(inputs=()))
    fake.inputs = ["USB"]
    microphone = SoundDeviceMicrophone()
    microphone.open("USB", lambda _: None, lambda _: None)
    assert len(fake.streams) == 1
    microphone.close()


def test_devices_of_one_name_are_told_apart_by_number(install: Install) -> None:
    install(FakeSoundDevice(inputs=("USB", "USB", "Built-in")))
    assert [m.device for m in list_microphones(rescan=True)] == ["0", "1", "Built-in, ALSA"]


def refusal(fake: FakeSoundDevice, device: str = "") -> str:
    microphone = SoundDeviceMicrophone()
    with pytest.raises(VoiceRefused) as refused:
        microphone.open(device, lambda _: None, lambda _: None)
    assert refused.value.reason == "microphoneUnavailable"
    assert "\n" not in refused.value.message
    assert all(stream.closed for stream in fake.streams)
    return refused.value.message


def test_no_device_at_all(install: Install) -> None:
    assert "no microphone" in refusal(install(FakeSoundDevice(inputs=())))


def test_an_unknown_device_is_answered_with_the_known_ones(install: Install) -> None:
    message = refusal(install(FakeSoundDevice()), "Webcam")
    assert all(part in message for part in ('"Webcam"', "dictation.device", '"Built-in"', '"Headset"'))


def test_a_name_that_fits_several_devices(install: Install) -> None:
    assert "several" in refusal(install(FakeSoundDevice(inputs=("USB 1", "USB 2"))), "USB")


def test_a_device_that_another_program_holds(install: Install) -> None:
    fake = install(FakeSoundDevice())
    fake.start_refusal = PortAudioError("Error starting stream: Device unavailable", -9985)
    assert "held by another program" in refusal(fake)


def test_a_device_that_the_system_does_not_allow(install: Install) -> None:
    fake = install(FakeSoundDevice())
    fake.check_refusal = PortAudioError("Unanticipated host error", -9999, (8, -13, "Permission denied"))
    assert "does not allow" in refusal(fake)


def test_any_other_refusal_keeps_its_reason(install: Install) -> None:
    fake = install(FakeSoundDevice())
    fake.start_refusal = PortAudioError("Internal PortAudio error", -9986)
    assert "Internal PortAudio error" in refusal(fake)


OPEN = """
import sys
if sys.argv[1] == "no portaudio":
    import ctypes.util
    ctypes.util.find_library = lambda name: None
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.microphone import SoundDeviceMicrophone
try:
    SoundDeviceMicrophone().open("", print, print)
except VoiceRefused as refused:
    sys.stdout.write(f"{refused.reason}: {refused.message}")
"""


@pytest.mark.usefixtures("voice_extra")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere PortAudio comes with the wheel")
@pytest.mark.parametrize(("case", "says"), [("no portaudio", "PortAudio is missing"), ("no device", "no microphone")])
def test_a_machine_without_sound_says_what_is_missing(tmp_path: Path, case: str, says: str) -> None:
    """The real library, in a process of its own."""
    nothing = tmp_path / "alsa.conf"
    nothing.write_text("pcm.!default { type hw card 31 }\nctl.!default { type hw card 31 }\n")
    done = subprocess.run(
        [sys.executable, "-c", OPEN, case],
        env={**os.environ, "ALSA_CONFIG_PATH": str(nothing)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout.startswith("microphoneUnavailable: "), done
    assert says in done.stdout
