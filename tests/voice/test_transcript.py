"""Texts that nobody said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.voice.settings import DEFAULT_STYLE
from agentik_server.voice.transcript import Decoded, agreed_prefix, cut_repeats, is_invented


@pytest.mark.parametrize(
    "decoded",
    [
        Decoded("", -0.1, 0.0),
        Decoded("...", -0.1, 0.0),
        Decoded("!!!!", -0.1, 0.0),
        Decoded("I don't know.", -1.63, 0.87),
        Decoded("you", -0.9, 0.95),
        Decoded("no no no no no no no no no no no no no no no no no no", -0.3, 0.1),
        Decoded("Fix the bug in the function, refactor", -0.35, 0.8),
        Decoded("Fix the bug in the function, add a unit", -0.55, 0.38),
    ],
)
def test_what_nobody_said_is_dropped(decoded: Decoded) -> None:
    """Measured on noise, tones, broken models; the last two recite the prompt."""
    assert is_invented(decoded, DEFAULT_STYLE)


@pytest.mark.parametrize(
    "decoded",
    [
        Decoded("Rename parse config to load config.", -0.3, 0.05),
        Decoded("Yes.", -1.05, 0.3),
        Decoded("The function reframe returns often when them offer an empty.", -1.09, 0.37),
        Decoded("Fix the bug in the function, please.", -0.3, 0.02),
        Decoded("Someer, an information iremters a thing.", -1.45, 0.01),
    ],
)
def test_what_was_said_is_kept(decoded: Decoded) -> None:
    assert not is_invented(decoded, DEFAULT_STYLE)


@pytest.mark.parametrize(
    ("looped", "once"),
    [
        ("Fix the bug now. Fix the bug now. Fix the", "Fix the bug now."),
        ("A. A. A b", "A. A. A b"),
        ("A. A. A. A", "A."),
        ("Next line Next line Next line Next", "Next line"),
        ("very very good", "very very good"),
        ("yes yes", "yes yes"),
        ("", ""),
    ],
)
def test_loops_are_cut_to_their_first_copy(looped: str, once: str) -> None:
    assert cut_repeats(looped) == once


def test_in_a_short_clip_two_copies_of_a_command_are_one() -> None:
    assert cut_repeats("New line. New line.", short=True) == "New line."
    assert cut_repeats("New line. New line.") == "New line. New line."
    assert cut_repeats("No, no.", short=True) == "No, no."


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_cutting_keeps_a_beginning_of_the_text(letters: list[str]) -> None:
    text = " ".join(letters)
    assert text.startswith(cut_repeats(text))
    assert cut_repeats(cut_repeats(text)) in (cut_repeats(text), *[text[:n] for n in range(len(text))])


def test_the_agreed_prefix_ignores_case_and_punctuation() -> None:
    assert agreed_prefix("Rename parse. Config", "rename Parse config to") == "rename Parse config"
    assert agreed_prefix("", "rename") == ""
