"""Spoken commands."""

from __future__ import annotations

import pytest

from agentik_server.voice.commands import PHRASES, SCORED, Command, command_in, likely_command


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("New line.", "newline"),
        ("newline", "newline"),
        ("Scratch that!", "scratch"),
        ("Delete that.", "scratch"),
        ("Send it.", "send"),
        ("Send the message", "send"),
        ("Add a new line.", None),
        ("Send it to the server", None),
        ("and do that", None),
        ("", None),
    ],
)
def test_only_the_whole_utterance_is_a_command(text: str, command: Command | None) -> None:
    assert command_in(text) == command


def test_the_likeliest_phrase_is_the_command_when_it_costs_little() -> None:
    likelihoods = {"new line": -8.0, "scratch that": -7.5, "send it": -3.1}
    assert likely_command(likelihoods, text_likelihood=-1.0) == "send"


def test_a_phrase_that_costs_much_against_the_text_is_no_command() -> None:
    assert likely_command({"new line": -3.5, "send it": -6.0}, text_likelihood=-0.4) is None


def test_a_phrase_that_is_unlikely_in_itself_is_no_command() -> None:
    assert likely_command({"new line": -4.0}, text_likelihood=-3.0) is None


def test_every_scored_phrase_is_a_command() -> None:
    assert {PHRASES[phrase] for phrase in SCORED} == {"newline", "scratch", "send"}
