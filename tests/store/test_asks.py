"""Asks and mail: what the process that does not own a session sees and says."""

from __future__ import annotations

from agentik_server.domain import saves
from agentik_server.domain.message import Permission, Question, ToolCall
from tests.store.desk import ME, Desk, denied


def _permission(ask_id: str) -> Permission:
    return Permission(ask_id, "s", ToolCall("c"), (), 1)


def test_the_first_outcome_closes_an_ask_and_stays(desk: Desk) -> None:  # B48
    desk.done(saves.SaveAsk("s", ME, _permission("p")))
    desk.done(saves.CloseAsk("s", ME, "p", "yes"))
    desk.done(saves.CloseAsk("s", ME, "p", "cancelled"))
    desk.done(saves.CloseAsk("s", ME, "never asked", "yes"))
    assert desk.page().closed_asks == (("p", "yes"),)


def test_an_ask_with_a_known_id_is_asked_anew(desk: Desk) -> None:
    desk.done(saves.SaveAsk("s", ME, _permission("p")))
    desk.done(saves.CloseAsk("s", ME, "p", "yes"))
    question = Question("p", "s", "again?", 2)
    desk.done(saves.SaveAsk("s", ME, question))
    assert desk.page().asks == (question,)


def test_only_the_last_outcomes_are_kept(desk: Desk) -> None:
    for number in range(50):
        desk.done(saves.SaveAsk("s", ME, _permission(f"p{number}")))
        desk.done(saves.CloseAsk("s", ME, f"p{number}", "yes"))
    assert [ask_id for ask_id, _ in desk.page().closed_asks] == [f"p{number}" for number in range(30, 50)]


def test_mail_is_read_once_in_the_order_of_posting(desk: Desk) -> None:  # B59
    for number in range(3):
        desk.done(saves.PostMail("s", {"kind": "cancel", "number": number}, 1))
    assert desk.page().mail_waiting
    assert [mail["number"] for mail in desk.done(saves.TakeMail("s", ME)).mail] == [0, 1, 2]
    assert not desk.page().mail_waiting
    before = desk.dump()
    assert desk.done(saves.TakeMail("s", ME)).mail == ()
    assert desk.dump() == before


def test_mail_to_nowhere_is_refused(desk: Desk) -> None:
    assert denied(desk.do(saves.PostMail("nowhere", {"kind": "cancel"}, 1))) == "unknownSession"
