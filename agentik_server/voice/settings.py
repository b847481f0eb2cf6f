"""The settings `dictation.*`, as plain values. Must not read files or know the settings file's format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_STYLE = "Fix the bug in the function, add a unit test, refactor the class and update the config file."
"""Tells the model what the talk is about. Holds no identifier: a small model would write it where it was not said."""


@dataclass(frozen=True, slots=True)
class DictationSettings:
    """Everything a person may set about dictation; the defaults are those that measured best (VOICE.md)."""

    model: str = ""
    """Name ("base", "small.en", ...) or folder of a CTranslate2 Whisper model. "": the one that came with the extra."""
    language: str = ""
    """Language code such as "en". "": English for an English-only model, else what the model hears."""
    device: str = ""
    """Name of the microphone, or a part of it. "": the system's default."""
    style: str = DEFAULT_STYLE
    """A sentence in the style of what will be said; "" for none."""
    end_of_speech_ms: int = 400
    """So much silence ends an utterance."""
    partial_ms: int = 500
    """A running guess is made this often; 0: none."""
    beam: int = 2
    """Beam of the final text, 1..5; more is slower and hardly better."""
    commands: bool = False
    """Whether "new line", "scratch that", "send it", said alone, are commands."""
    max_seconds: int = 300
    """The longest dictation."""
    idle_seconds: int = 300
    """The model is unloaded when nobody dictated for so long."""
    debug_audio_folder: Path | None = None
    """Only for hunting bugs: every utterance is saved there as a WAV file. None: sound never touches the disk."""
