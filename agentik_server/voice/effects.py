"""What a dictation wants of the world, and what it gets back. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from agentik_server.voice.commands import Command

Shown = Literal["loading", "listening", "speech", "transcribing", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class Guess:
    """What the recognizer made of a sound: cleaned text ("" when it was no speech), or the command that it is."""

    text: str
    command: Command | None = None
    took_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class ShowState:
    state: Shown
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ShowLevel:
    level: float


@dataclass(frozen=True, slots=True)
class ShowPartial:
    """The running guess; `stable`: its beginning that will hardly change. "" takes the guess away."""

    text: str
    stable: str = ""


@dataclass(frozen=True, slots=True)
class ShowFinal:
    text: str
    command: Command | None = None


@dataclass(frozen=True, slots=True)
class Decode:
    """Decode the sound and bring the result to `decoded(job, ...)`. `final`: with care, else quickly."""

    job: int
    sound: bytes
    final: bool


@dataclass(frozen=True, slots=True)
class CloseMicrophone:
    pass


Effect = ShowState | ShowLevel | ShowPartial | ShowFinal | Decode | CloseMicrophone
