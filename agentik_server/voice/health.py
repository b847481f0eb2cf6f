"""What `:checkhealth agentik` says about dictation: the extra, PortAudio, the microphones, the model.

Must not open the microphone, load a model or use the network.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Literal

from agentik_server.voice import models
from agentik_server.voice.errors import Reason, VoiceRefused
from agentik_server.voice.microphone import list_microphones
from agentik_server.voice.settings import DictationSettings

Level = Literal["ok", "info", "warn", "error"]
Finding = tuple[Level, str]

MODULES: dict[str, Reason] = {
    "sounddevice": "microphoneUnavailable",
    "soxr": "microphoneUnavailable",
    "webrtcvad": "microphoneUnavailable",
    "numpy": "speechModelMissing",
    "faster_whisper": "speechModelMissing",
    "rapidfuzz": "speechModelMissing",
}
"""What the extra `voice` brings, with the reason to refuse without it."""


def check(settings: DictationSettings, *, rescan: bool = True) -> list[Finding]:
    """Findings in the order to be shown. Blocking, up to 2 s. `rescan`: look for new devices; ends an open stream."""
    missing = [module for module in MODULES if importlib.util.find_spec(module) is None]
    if missing:
        return [("warn", f"dictation is not installed ({', '.join(missing)} missing): {models.INSTALL}")]
    return [("ok", "the extra `voice` is installed"), *_microphones(settings, rescan), *_model(settings)]


def _microphones(settings: DictationSettings, rescan: bool) -> Iterator[Finding]:
    try:
        microphones = list_microphones(rescan=rescan)
    except VoiceRefused as refused:
        yield "error", refused.message
        return
    yield "ok", "PortAudio works"
    if not microphones:
        yield "warn", "there is no microphone"
    for microphone in microphones:
        yield "ok", f"microphone: {microphone.name}{' (default)' if microphone.is_default else ''}"
    wanted = settings.device.lower()
    if wanted and not any(
        wanted in (m.device.lower(), *[m.name.lower()]) or wanted in m.device.lower() for m in microphones
    ):
        yield "error", f'"{settings.device}" (dictation.device) is no microphone of this machine'


def _model(settings: DictationSettings) -> Iterator[Finding]:
    try:
        source = models.find(settings.model)
        if isinstance(source, models.Found):
            models.verify(source)
    except VoiceRefused as refused:
        yield "error", refused.message
        return
    match source:
        case models.Found(name=name, folder=folder):
            yield "ok", f"speech model: {name} in {folder}"
        case models.Halves(name=name):
            yield "ok", f"speech model: {name}, put together from its packages on first use"
        case models.Remote(name=name, repository=repository):
            yield "info", f"speech model: {name} is downloaded from {repository} on first use"
