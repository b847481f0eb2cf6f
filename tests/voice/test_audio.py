"""Frames and loudness."""

from __future__ import annotations

import array
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.voice.audio import FRAME_BYTES, SILENCE, frames_in, from_decibels, loudness, meter_level, seconds_in


def test_loudness_is_the_root_mean_square_of_full_scale() -> None:
    assert loudness(SILENCE) == 0
    assert loudness(array.array("h", [16384, -16384] * 160).tobytes()) == pytest.approx(0.5)
    assert loudness(b"") == 0


@given(st.binary(min_size=FRAME_BYTES, max_size=FRAME_BYTES))
def test_loudness_and_level_stay_between_nothing_and_full_scale(frame: bytes) -> None:
    assert 0 <= loudness(frame) <= 1
    assert 0 <= meter_level(loudness(frame)) <= 1


def test_meter_is_linear_in_decibels() -> None:
    assert [meter_level(from_decibels(db)) for db in (0, -30, -60, -90)] == pytest.approx([1, 0.5, 0, 0])
    assert meter_level(0) == 0


def test_times_are_whole_frames() -> None:
    assert [frames_in(ms) for ms in (0, 20, 160, 500)] == [1, 1, 8, 25]
    assert math.isclose(seconds_in(SILENCE * 50), 1.0)
