"""The microphone: frames of 16 kHz mono from any device, through sounddevice (PortAudio).

Must not decide anything about speech, must not touch asyncio, and must not keep sound. All methods block and are called
from one thread; `deliver` and `lost` are called from PortAudio's own thread.
"""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agentik_server.voice.audio import FRAME_BYTES, FRAME_MS, SAMPLE_RATE
from agentik_server.voice.errors import VoiceRefused

if TYPE_CHECKING:
    from types import ModuleType

_log = logging.getLogger(__name__)

Deliver = Callable[[bytes], None]
Lost = Callable[[str], None]

UNPLUGGED = "the microphone was unplugged or its sound system ended; the text so far is kept"
_NO_PORTAUDIO = (
    "PortAudio is missing: install it (Debian, Ubuntu: apt install libportaudio2; Fedora: dnf install portaudio)"
)
# PortAudio's error numbers.
_INVALID_RATE, _DEVICE_UNAVAILABLE = -9997, -9985
# On Linux the default device is the sound server's, which follows a headset by itself, and a scan of all devices takes
# up to half a second: of the first word. Elsewhere PortAudio's default stays what it was at the last scan.
_SCAN_BEFORE_OPENING = sys.platform != "linux"
# Low enough not to be felt, high enough that a busy machine loses nothing.
_LATENCY_S = 0.04


@dataclass(frozen=True, slots=True)
class MicrophoneName:
    """`device`: what to give to `open`; `name`: for people."""

    device: str
    name: str
    is_default: bool


class Microphone(Protocol):
    """The port: a device or, in tests, a file."""

    def open(self, device: str, deliver: Deliver, lost: Lost) -> None:
        """Begins to deliver frames of 20 ms in order, from another thread; `lost` is called once if the device goes.

        Raises `VoiceRefused("microphoneUnavailable")`.
        """

    def close(self) -> None:
        """No frame is delivered afterwards. May be called twice, and without `open`."""

    @property
    def heard_at(self) -> float:
        """`time.monotonic()` of the last sign of life of the device."""


def load_sounddevice() -> ModuleType:
    """The library. Raises `VoiceRefused` with what to install."""
    try:
        import sounddevice
    except OSError as missing:
        raise VoiceRefused("microphoneUnavailable", _NO_PORTAUDIO) from missing
    module: ModuleType = sounddevice
    return module


def list_microphones(*, rescan: bool) -> list[MicrophoneName]:
    """All devices with an input. `rescan`: look for those plugged in since; ends an open stream. Blocking."""
    sounddevice = load_sounddevice()
    if rescan:
        _rescan(sounddevice)
    systems = sounddevice.query_hostapis()
    default = _default_device(sounddevice)
    inputs = [device for device in sounddevice.query_devices() if device["max_input_channels"] > 0]
    titles = [f"{device['name']}, {systems[device['hostapi']]['name']}" for device in inputs]
    return [
        # A title that two devices share names neither; the number then does, until the next rescan.
        MicrophoneName(
            title if titles.count(title) == 1 else str(device["index"]), device["name"], device["index"] == default
        )
        for device, title in zip(inputs, titles, strict=True)
    ]


def _rescan(sounddevice: ModuleType) -> None:
    """PortAudio lists devices once per initialisation."""
    sounddevice._terminate()  # noqa: SLF001 -- there is no public way
    sounddevice._initialize()  # noqa: SLF001


def _default_device(sounddevice: ModuleType) -> int:
    try:
        return int(sounddevice.query_devices(kind="input")["index"])
    except (ValueError, sounddevice.PortAudioError):
        return -1


class SoundDeviceMicrophone:
    """A device of this machine."""

    def __init__(self) -> None:
        self.overflows = 0
        """How often sound was lost because nobody fetched it in time."""
        self._stream: Any = None
        self._closing = False
        self._heard_at = time.monotonic()

    @property
    def heard_at(self) -> float:
        return self._heard_at

    def open(self, device: str, deliver: Deliver, lost: Lost) -> None:
        sounddevice = load_sounddevice()
        if _SCAN_BEFORE_OPENING:
            _rescan(sounddevice)
        try:
            self._open(sounddevice, device, deliver, lost)
        except VoiceRefused as refused:
            # What is known of the devices may be old.
            _log.info("microphone: looking for devices anew (%s)", refused.message)
            _rescan(sounddevice)
            self._open(sounddevice, device, deliver, lost)

    def _open(self, sounddevice: ModuleType, device: str, deliver: Deliver, lost: Lost) -> None:
        chosen = _choose(sounddevice, device)
        try:
            rate = _rate_for(sounddevice, chosen)
            frames = _Frames(rate, deliver)
            self._stream = sounddevice.RawInputStream(
                samplerate=rate,
                blocksize=rate * FRAME_MS // 1000,
                channels=1,
                dtype="int16",
                device=chosen["index"],
                latency=_LATENCY_S,
                callback=lambda data, _count, _time, status: self._heard(frames, data, bool(status.input_overflow)),
                finished_callback=lambda: None if self._closing else lost(UNPLUGGED),
            )
            self._stream.start()
        except sounddevice.PortAudioError as failure:
            self._drop_stream()
            raise VoiceRefused("microphoneUnavailable", _cannot_open(chosen["name"], failure)) from failure
        self._heard_at = time.monotonic()
        _log.info("microphone %s open at %d Hz", chosen["name"], rate)

    def close(self) -> None:
        if self._stream is not None and self.overflows:
            _log.warning("microphone: sound was lost %d times (the machine was too busy)", self.overflows)
        self._drop_stream()

    def _drop_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            self._closing = True
            stream.abort(ignore_errors=True)
            stream.close(ignore_errors=True)
            self._closing = False

    def _heard(self, frames: _Frames, data: Any, overflow: bool) -> None:
        self._heard_at = time.monotonic()
        self.overflows += overflow
        frames.add(bytes(data))


class _Frames:
    """Blocks of any size and rate in, frames of 20 ms at 16 kHz out."""

    def __init__(self, rate: int, deliver: Deliver) -> None:
        self._deliver = deliver
        self._rest = bytearray()
        self._resampler: Any = None
        if rate != SAMPLE_RATE:
            import soxr

            self._resampler = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="int16", quality="HQ")

    def add(self, block: bytes) -> None:
        self._rest += self._resampled(block)
        whole = len(self._rest) // FRAME_BYTES * FRAME_BYTES
        for start in range(0, whole, FRAME_BYTES):
            self._deliver(bytes(self._rest[start : start + FRAME_BYTES]))
        del self._rest[:whole]

    def _resampled(self, block: bytes) -> bytes:
        if self._resampler is None:
            return block
        import numpy as np

        return bytes(self._resampler.resample_chunk(np.frombuffer(block, np.int16)).tobytes())


def _choose(sounddevice: ModuleType, device: str) -> Any:
    """PortAudio's description of the device with that title, number or part of a name; "": the default one."""
    wanted: str | int | None = int(device) if device.isdecimal() else device or None
    try:
        return sounddevice.query_devices(wanted, "input")
    except (ValueError, sounddevice.PortAudioError) as failure:
        names = [f'"{d["name"]}"' for d in sounddevice.query_devices() if d["max_input_channels"] > 0]
        if not names:
            message = f"there is no microphone{_permission_hint()}"
        else:
            several = str(failure).startswith("Multiple")
            problem = "fits several microphones" if several else "is no microphone of this machine"
            message = f'"{device}" (dictation.device) {problem}: there are {", ".join(names)}'
        raise VoiceRefused("microphoneUnavailable", message) from failure


def _rate_for(sounddevice: ModuleType, chosen: Any) -> int:
    try:
        sounddevice.check_input_settings(device=chosen["index"], channels=1, dtype="int16", samplerate=SAMPLE_RATE)
    except sounddevice.PortAudioError as refused:
        if _error_number(refused) != _INVALID_RATE:
            raise
        return int(chosen["default_samplerate"])
    return SAMPLE_RATE


def _error_number(failure: Exception) -> int:
    return failure.args[1] if len(failure.args) > 1 and isinstance(failure.args[1], int) else 0


def _cannot_open(name: str, failure: Exception) -> str:
    text = " ".join(str(part) for part in failure.args)
    if "denied" in text.lower() or "not permitted" in text.lower():
        return f"the system does not allow the use of the microphone {name}{_permission_hint()}"
    if _error_number(failure) == _DEVICE_UNAVAILABLE or "busy" in text.lower():
        return f"the microphone {name} is held by another program: close that, or choose another (dictation.device)"
    return f"the microphone {name} cannot be opened: {failure.args[0] if failure.args else failure}"


def _permission_hint() -> str:
    """What the person has to allow, where that is known."""
    if sys.platform == "darwin":
        return ": allow it for the terminal in System Settings, Privacy, Microphone"
    if sys.platform == "win32":
        return ": allow it in Settings, Privacy, Microphone"
    sound = Path("/dev/snd")
    if sound.is_dir() and not any(os.access(node, os.R_OK | os.W_OK) for node in sound.glob("pcm*c")):
        return " this user may use: join the group audio"
    return ""
