"""The one sound format inside dictation, and loudness. Pure; standard library only.

Sound is mono, signed 16-bit little-endian, 16 kHz, cut into frames of 20 ms. Must not know any device or file.
"""

from __future__ import annotations

import array
import math
import sys
from operator import mul

SAMPLE_RATE = 16_000
FRAME_MS = 20
FRAME_SAMPLES = SAMPLE_RATE * FRAME_MS // 1000
FRAME_BYTES = 2 * FRAME_SAMPLES
SILENCE = bytes(FRAME_BYTES)

_FULL_SCALE = 32_768
_QUIETEST_SHOWN_DB = -60.0


def frames_in(milliseconds: float) -> int:
    """How many frames make up that time, at least one."""
    return max(1, round(milliseconds / FRAME_MS))


def seconds_in(sound: bytes) -> float:
    return len(sound) / (2 * SAMPLE_RATE)


def loudness(frame: bytes) -> float:
    """Root mean square of the samples, 0 (digital silence) to 1 (full scale)."""
    samples = array.array("h", frame)
    if sys.byteorder == "big":
        samples.byteswap()
    if not samples:
        return 0.0
    return math.sqrt(sum(map(mul, samples, samples)) / len(samples)) / _FULL_SCALE


def from_decibels(decibels: float) -> float:
    """Loudness 0..1 of a level in dB below full scale."""
    return float(10 ** (decibels / 20))


def meter_level(loud: float) -> float:
    """Where a level meter stands, 0..1: linear in dB from -60 dB to full scale."""
    if loud <= 0:
        return 0.0
    return min(1.0, max(0.0, 1 - 20 * math.log10(loud) / _QUIETEST_SHOWN_DB))
