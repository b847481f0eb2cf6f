"""Full-text search: words, prefixes, "phrases"; no input can fail."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentik_server.domain import saves
from agentik_server.domain.saves import Match
from agentik_server.store.reads import fetch
from agentik_server.store.search import fts_expression
from tests.store.desk import Desk

TEXTS = {
    "m1": "The quick brown fox jumps over the lazy dog",
    "m2": "A brown dog is quick to learn foo_bar(baz)",
    "m3": "Über die Straße, l'été, и привет мир",
    "m4": "foxes are quicker",
}


@pytest.fixture
def texts(desk: Desk) -> Desk:
    for message_id, text in TEXTS.items():
        desk.save(desk.message(message_id, text))
    return desk


def _search(desk: Desk, query: str, session_id: str | None = None, limit: int = 50) -> list[Match]:
    page = fetch(desk.db, saves.SearchMessages(query, session_id, limit))
    assert isinstance(page, saves.Matches), page
    return list(page.matches)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("quick brown", ["m2", "m1"]),
        ('"quick brown"', ["m1"]),
        ('dog "brown fox"', ["m1"]),
        ("quick", ["m4", "m2", "m1"]),
        ("quick ", ["m4", "m2", "m1"]),
        ('"quick"', ["m2", "m1"]),
        ("quic* dog", ["m2", "m1"]),
        ("fox", ["m4", "m1"]),
        ("FOX the", ["m1"]),
        ("foo_bar", ["m2"]),
        ("foo_bar(baz)", ["m2"]),
        ("strasse", []),
        ("straße", ["m3"]),
        ("ÜBER", ["m3"]),
        ("ete", ["m3"]),
        ("ПРИВ", ["m3"]),
        ("п", ["m3"]),
        ("a", ["m2"]),
        ("nothing like it", []),
    ],
)
def test_words_prefixes_and_phrases(texts: Desk, query: str, found: list[str]) -> None:
    assert [match.message_id for match in _search(texts, query)] == found


@pytest.mark.parametrize("query", ["", "  ", '"', '""', "***", "- + ( )", "\0", "\ud800", "^", ":", "{text}"])
def test_what_holds_no_word_finds_nothing_and_fails_nothing(texts: Desk, query: str) -> None:
    assert _search(texts, query) == []


@pytest.mark.parametrize(
    "query",
    ["quick AND brown", "NEAR(quick brown)", "text : quick", "quick NOT dog", "-quick", '"quick', "quick' OR 1=1 --"],
)
def test_query_syntax_is_only_text(texts: Desk, query: str) -> None:
    _search(texts, query)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.sampled_from("ab\"*:^-+(){}'\\ \0\n.éΩ中🙂AND OR NOT"), max_size=30) | st.text(max_size=30))
def test_no_input_fails(texts: Desk, query: str) -> None:
    _search(texts, query)


def test_a_match_names_its_session_and_shows_the_place(texts: Desk) -> None:
    texts.save(texts.message("long", "start " + "filler " * 300 + "here is\n the needle in it " + "filler " * 300))
    (match,) = _search(texts, "needle")
    assert (match.session_id, match.message_id) == ("s", "long")
    assert "the needle in it" in match.snippet
    assert "\n" not in match.snippet
    assert len(match.snippet) < 200


def test_one_session_only_or_all_and_the_newest_first(texts: Desk) -> None:
    texts.session("t")
    texts.save(texts.message("other", "fox", session_id="t"), session_id="t")
    assert [match.message_id for match in _search(texts, "fox")] == ["other", "m4", "m1"]
    assert [match.message_id for match in _search(texts, "fox", "s")] == ["m4", "m1"]
    assert [match.message_id for match in _search(texts, "fox", limit=2)] == ["other", "m4"]
    unknown = fetch(texts.db, saves.SearchMessages("fox", "no such session"))
    assert isinstance(unknown, saves.Denied)
    assert unknown.reason == "unknownSession"
    assert _search(texts, "s1") == []  # the session's own token is no word of a text


def test_the_last_word_begins_a_word_but_one_latin_letter_is_a_word() -> None:
    assert fts_expression("one tw") == '{text} : ("one" AND "tw"*)'
    assert fts_expression("one t") == '{text} : ("one" AND "t")'
    assert fts_expression('one "two') == '{text} : ("one" AND "two"*)'
