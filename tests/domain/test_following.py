"""A session of another process: what its pages tell, once each."""

from __future__ import annotations

from agentik_server.domain import news
from agentik_server.domain.following import Follower
from agentik_server.domain.pending import QueueView
from agentik_server.domain.saves import SessionFacts, SessionPage, TurnFacts

FACTS = SessionFacts("s", "demo", "/", "", 1, 1)


def page(*turns: TurnFacts) -> SessionPage:
    return SessionPage(FACTS, (), more=False, queue=QueueView(), asks=(), revision=1, turns=turns)


def turn(name: str, stop_reason: str | None = None, *, written: bool = True) -> TurnFacts:
    """A turn; its number is by its name, "a" was the first."""
    return TurnFacts(name, f"message of {name}", written, stop_reason, number=ord(name))


def told(follower: Follower, *turns: TurnFacts) -> list[tuple[str, str]]:
    """(started | ended, turn)."""
    kinds = {news.TurnStarted: "started", news.TurnEnded: "ended"}
    return [(kinds[type(item)], item.turn_id) for item in follower.seen(page(*turns))]  # type: ignore[union-attr, index]


def test_each_start_and_each_end_is_told_once() -> None:
    """# B35 B59"""
    follower = Follower(page())
    assert told(follower, turn("a", written=False)) == []
    assert told(follower, turn("a")) == [("started", "a")]
    assert told(follower, turn("a")) == []
    assert told(follower, turn("a", "end_turn")) == [("ended", "a")]
    assert told(follower, turn("a", "end_turn")) == []


def test_turns_between_two_looks_are_all_told() -> None:
    """# B35 B59: fast turns are not swallowed."""
    follower = Follower(page(turn("a")))
    now = told(follower, turn("a", "end_turn"), turn("b", "error"), turn("c"))
    assert now == [("ended", "a"), ("started", "b"), ("ended", "b"), ("started", "c")]


def test_a_turn_that_is_put_back_brings_no_older_one_up_again() -> None:
    """# B26 B35: its row is gone, and the turn before it is the newest."""
    follower = Follower(page(turn("a", "end_turn")))
    assert told(follower, turn("a", "end_turn"), turn("b", written=False)) == []
    assert told(follower, turn("a", "end_turn")) == []


def test_an_old_turn_that_comes_into_the_page_again_is_no_news() -> None:
    """# B26 B35: a page has so many of the newest turns; when one of them is put back, one more is listed."""
    follower = Follower(page(turn("b", "end_turn"), turn("c", "end_turn")))
    assert told(follower, turn("c", "end_turn"), turn("d")) == [("started", "d")]
    assert told(follower, turn("a", "end_turn"), turn("b", "end_turn"), turn("c", "end_turn")) == [("ended", "d")]


def test_a_turn_that_had_started_and_was_put_back_ends() -> None:
    """# B26 B35"""
    follower = Follower(page())
    assert told(follower, turn("a", "end_turn"), turn("b")) == [("started", "a"), ("ended", "a"), ("started", "b")]
    assert told(follower, turn("a", "end_turn")) == [("ended", "b")]
    assert told(follower, turn("a", "end_turn")) == []
