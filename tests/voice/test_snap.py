"""Identifiers restored by their sound."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.voice.snap import SoundIndex, sound_of, words_of
from tests.voice.speech import OTHER_NAMES, SENTENCES

NAMES = [
    "parse_config",
    "PendingQueue",
    "HTTPServer",
    "ctx_len",
    "utf8_decode",
    "file.path",
    *OTHER_NAMES,
]


@pytest.fixture(scope="module")
def index(voice_extra: None) -> SoundIndex:
    return SoundIndex(NAMES)


@pytest.mark.parametrize(
    ("heard", "written"),
    [
        ("Rename parse config to something else.", "Rename parse_config to something else."),
        ("Rename pars konfig, please.", "Rename parse_config, please."),
        ("Why does the pending cue grow?", "Why does the PendingQueue grow?"),
        ("Start the HTTP server.", "Start the HTTPServer."),
        ("Print context length here.", "Print ctx_len here."),
        ("Call UTF-8 decode twice.", "Call utf8_decode twice."),
        ("Show file dot path.", "Show file.path."),
        ("parse_config stays", "parse_config stays"),
        ("Fix parse config's result", "Fix parse_config's result"),
    ],
)
def test_words_that_sound_like_a_name_are_written_as_it(index: SoundIndex, heard: str, written: str) -> None:
    assert index.snap(heard) == written


@pytest.mark.parametrize(
    "text",
    [
        "The buffer is empty.",
        "Parse. Config is another matter.",
        "It is what it is, and nothing more.",
        "The server does not answer.",
        "Convert it to JSON and do not save as text.",
        "",
        "...",
    ],
)
def test_words_that_only_resemble_a_name_stay(index: SoundIndex, text: str) -> None:
    assert index.snap(text) == text


def test_sentences_without_their_names_in_view_stay_as_they_are(index: SoundIndex) -> None:
    """None of a hundred other names is put where another thing was said."""
    for sentence in SENTENCES:
        assert index.snap(sentence.spoken) == sentence.spoken


def test_spoken_names_are_all_restored_when_heard_well(voice_extra: None) -> None:
    index = SoundIndex([name for sentence in SENTENCES for name in sentence.identifiers] + OTHER_NAMES)
    for sentence in SENTENCES:
        assert index.snap(sentence.spoken) == sentence.written


def test_nearest_names_come_first_and_few(index: SoundIndex) -> None:
    assert index.nearest("rename pass config", limit=3)[0] == "parse_config"
    assert len(index.nearest("parse config and pending queue and buffer size", limit=2)) == 2
    assert SoundIndex().nearest("anything") == []


@pytest.mark.parametrize(
    ("name", "spoken"),
    [
        ("parseJSONFile.py", ["parse", "json", "file", "dot", "py"]),
        ("HTTPServer", ["http", "server"]),
        ("utf8_decode", ["utf", "8", "decode"]),
        ("_private-name", ["private", "name"]),
    ],
)
def test_a_name_is_spoken_as_its_words(name: str, spoken: list[str]) -> None:
    assert words_of(name) == spoken


def test_spellings_of_one_sound_meet() -> None:
    assert sound_of(["phase", "cue"]) == sound_of(["faze", "kue"])
    assert sound_of(["queue"]) == sound_of(["qu"]).replace("w", "u")


@given(st.text(max_size=80), st.lists(st.from_regex(r"\A[a-z]{1,8}_[a-z]{1,8}\Z"), max_size=20))
def test_snap_writes_only_given_names_and_keeps_all_else(text: str, names: list[str]) -> None:
    pytest.importorskip("rapidfuzz")
    snapped = SoundIndex(names).snap(text)
    pattern = "|".join(map(re.escape, names)) or r"(?!)"
    rest = [part for part in re.split(pattern, snapped) if part]
    position = 0
    for part in rest:
        position = text.index(part, position) + len(part)


@given(st.lists(st.text(max_size=70), max_size=30))
def test_any_list_of_names_is_taken(names: list[str]) -> None:
    SoundIndex(names)


def test_a_comma_in_the_middle_of_a_name_is_crossed_only_by_its_very_sound() -> None:
    """A small model hears commas where a voice takes a breath."""
    index = SoundIndex(["next_page", "parse_config"])
    assert index.snap("The method next, page returns a list.") == "The method next_page returns a list."
    assert index.snap("We parse, configure and run.") == "We parse, configure and run."
    assert index.snap("This is next. Page two follows.") == "This is next. Page two follows."
