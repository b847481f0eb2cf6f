"""The rules of a run, one by one: real application and SQL, scripted agent, no time passes by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from agentik_server.domain.happenings import (
    AskWithdrawn,
    PermissionAsked,
    PromptNotWritten,
    Remark,
    StartFailed,
    TextArrived,
    ToolCallChanged,
)
from agentik_server.domain.message import PermissionOption, ToolChange
from agentik_server.domain.pending import QueueLimits
from agentik_server.domain.policy import SessionPolicy
from agentik_server.store.reads import fetch
from tests.domain.world import Answered, World


def send(world: World, session_id: str, text: str, **more: object) -> Mapping[str, Any]:
    """Send and wait for the answer."""
    answered = world.finish(world.ask("sendMessage", sessionId=session_id, messageId=text, text=text, **more))
    assert answered.value is not None, (answered.reason, answered.message)
    return answered.value


def refused(answered: Answered) -> str:
    assert answered.reason is not None, answered.value
    return answered.reason


def names(world: World) -> list[str]:
    return [name for name, _ in world.editor.news if name not in {"sessionChanged", "connectionChanged"}]


def opened(world: World, session_id: str, **more: object) -> Mapping[str, Any]:
    answered = world.finish(world.ask("openSession", sessionId=session_id, **more))
    assert answered.value is not None
    return answered.value


def message(world: World, session_id: str, message_id: str) -> Mapping[str, Any]:
    return next(m for m in opened(world, session_id)["messages"] if m["messageId"] == message_id)


# ------------------------------------------------------------------------------------------- sending


def test_free_session_takes_the_message_at_once(world: World, session_id: str) -> None:
    """# B1 B2: free: received, in the chat, never in the pending list; then the prompt."""
    assert send(world, session_id, "one")["disposition"] == "started"
    world.disk()
    assert names(world) == ["messageReceived", "turnStarted"]
    assert world.order == ["one"]
    assert opened(world, session_id)["pending"] == []


def test_busy_session_queues_and_drains_in_order(world: World, session_id: str) -> None:
    """# B2 B8 B17 B21: busy: queued; after each turn the head is received, one a turn."""
    send(world, session_id, "one")
    assert send(world, session_id, "two")["disposition"] == "queued"
    assert send(world, session_id, "three")["disposition"] == "queued"
    world.disk()
    queued = world.editor.of("messageQueued")
    assert [(q["messageId"], q["position"], q["display"]) for q in queued] == [("two", 0, "two"), ("three", 1, "three")]
    for expected in (["one"], ["one", "two"], ["one", "two", "three"]):
        assert world.order == expected
        world.links[session_id].answer()
        world.disk()
    assert opened(world, session_id)["session"]["state"] == "idle"


def test_nothing_overtakes_between_answer_and_drain(world: World, session_id: str) -> None:
    """# B8 B22: a message sent while the end of a turn is saved goes behind the ones that wait."""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    world.links[session_id].answer()
    late = world.ask("sendMessage", sessionId=session_id, messageId="three", text="three")
    world.disk()
    assert late.value == {"messageId": "three", "disposition": "queued"}
    assert world.order == ["one", "two"]


def test_message_queued_while_the_last_turn_ends_is_delivered_without_a_tick(world: World, session_id: str) -> None:
    """# B22: no lost wake-up."""
    send(world, session_id, "one")
    world.disk()
    world.links[session_id].answer()
    world.ask("sendMessage", sessionId=session_id, messageId="two", text="two")
    world.disk()
    assert world.order == ["one", "two"]


def test_two_sends_in_one_instant_start_one_turn(world: World, session_id: str) -> None:
    """# B2 B3: the check-and-set is atomic."""
    first = world.ask("sendMessage", sessionId=session_id, messageId="a", text="a")
    second = world.ask("sendMessage", sessionId=session_id, messageId="b", text="b")
    world.disk()
    assert (first.value or {})["disposition"] == "started"
    assert (second.value or {})["disposition"] == "queued"
    assert world.order == ["a"]


def test_same_id_again_changes_nothing(world: World, session_id: str) -> None:
    """# B4: idempotent by id, over the whole database, also after a restart."""
    send(world, session_id, "one")
    send(world, session_id, "two")
    assert send(world, session_id, "one")["disposition"] == "started"
    assert send(world, session_id, "two")["disposition"] == "queued"
    world.finish(world.ask("removePending", sessionId=session_id, messageId="two"))
    assert send(world, session_id, "two")["disposition"] == "removed"
    world.die()
    opened(world, session_id)
    assert send(world, session_id, "one")["disposition"] == "started"
    assert world.order == ["one"]


def test_same_id_with_another_text_is_refused(world: World, session_id: str) -> None:
    """# B4"""
    send(world, session_id, "one")
    answered = world.ask("sendMessage", sessionId=session_id, messageId="one", text="changed")
    assert refused(world.finish(answered)) == "duplicateId"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a\0b", "invalidText"),
        (" \n\t", "emptyText"),
        ("", "emptyText"),
        ("x" * 11, "textTooLong"),
        ("\ud800", "invalidText"),
    ],
)
def test_a_text_that_cannot_be_sent_is_refused_and_changes_nothing(text: str, reason: str) -> None:
    """# B10"""
    world = World(SessionPolicy(limits=QueueLimits(max_text_bytes=10)))
    session_id = world.new_session()
    answered = world.ask("sendMessage", sessionId=session_id, messageId="m", text=text)
    assert refused(answered) == reason
    assert opened(world, session_id)["messages"] == []


def test_the_first_message_is_started_even_if_the_agent_is_down(world: World) -> None:
    """# B9: the connection plays no part; what comes meanwhile is queued."""
    session_id = world.new_session()
    assert send(world, session_id, "one")["disposition"] == "started"
    assert send(world, session_id, "two")["disposition"] == "queued"
    assert world.order == []
    world.links[session_id].become_ready()
    world.disk()
    assert world.order == ["one"]


def test_nothing_is_written_to_the_agent_before_it_is_journaled(world: World, session_id: str) -> None:
    """# B5 B6: response, messageReceived and prompt each follow their commit."""
    answered = world.ask("sendMessage", sessionId=session_id, messageId="one", text="one")
    assert answered.value is None
    assert names(world) == []
    world.store.commit()
    assert answered.value is not None
    assert names(world) == ["messageReceived"]
    assert world.order == []
    world.disk()
    assert world.order == ["one"]


def test_without_a_queue_a_busy_session_refuses() -> None:
    """# B8"""
    world = World(SessionPolicy(limits=QueueLimits(enabled=False)))
    session_id = world.new_session()
    send(world, session_id, "one")
    answered = world.ask("sendMessage", sessionId=session_id, messageId="two", text="two")
    assert refused(world.finish(answered)) == "sessionBusy"


def test_everything_that_waits_goes_as_one_turn_when_so_set() -> None:
    """# B17: `queue.drain = "all"`: one messageReceived each, one prompt."""
    world = World(SessionPolicy(drain_all=True))
    session_id = world.new_session()
    world.links[session_id].become_ready()
    for text in ("one", "two", "three"):
        send(world, session_id, text)
    world.disk()
    world.links[session_id].answer()
    world.disk()
    assert world.order == ["one", "two", "three"]
    assert len(world.editor.of("turnStarted")) == 2
    assert [p["messageId"] for p in world.editor.of("messageReceived")] == ["one", "two", "three"]


# ------------------------------------------------------------------------------------------- draining


def test_the_tick_does_nothing_where_nothing_waits(world: World, session_id: str) -> None:
    """# B23: no write, no prompt."""
    world.app.tick()
    assert not world.store.queue
    assert not world.store.reads
    assert names(world) == []


def test_the_tick_does_nothing_while_busy(world: World, session_id: str) -> None:
    """# B23"""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    before = len(world.editor.news)
    world.app.tick()
    assert not world.store.queue
    assert len(world.editor.news) == before


def test_a_closed_chat_drains_all_the_same(world: World, session_id: str) -> None:
    """# B19"""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.finish(world.ask("closeSession", sessionId=session_id))
    world.links[session_id].answer()
    world.disk()
    assert world.order == ["one", "two"]


def test_a_turn_that_ends_at_once_frees_the_session(world: World, session_id: str) -> None:
    """# B27"""
    for text in ("one", "two"):
        assert send(world, session_id, text)["disposition"] == "started"
        world.disk()
        world.links[session_id].answer()
        world.disk()
    assert world.order == ["one", "two"]


def test_editing_holds_the_head(world: World, session_id: str) -> None:
    """# B16: held while edited; released by the editor, or by itself after 60 s."""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.finish(world.ask("holdPending", sessionId=session_id, hold=True))
    world.disk()
    world.links[session_id].answer()
    world.disk()
    assert world.order == ["one"]
    assert (session_id, "hold") in world.timers.armed
    world.fire((session_id, "hold"))
    world.disk()
    assert world.order == ["one", "two"]


# -------------------------------------------------------------------------------------------- pausing


def test_pause_by_the_user_keeps_new_messages_waiting(world: World, session_id: str) -> None:
    """# B28 B30"""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.finish(world.ask("pauseQueue", sessionId=session_id))
    world.links[session_id].answer()
    world.disk()
    assert send(world, session_id, "three")["disposition"] == "queued"
    world.disk()
    assert world.order == ["one"]
    shown = opened(world, session_id)
    assert shown["session"]["paused"]
    assert shown["session"]["pauseReason"] == "user"
    world.finish(world.ask("resumeQueue", sessionId=session_id))
    world.disk()
    assert world.order == ["one", "two"]


def test_an_empty_idle_queue_is_never_paused(world: World, session_id: str) -> None:
    """# B28"""
    world.finish(world.ask("pauseQueue", sessionId=session_id))
    assert not opened(world, session_id)["session"]["paused"]
    assert send(world, session_id, "one")["disposition"] == "started"


def test_a_send_lifts_a_pause_that_came_by_itself(world: World, session_id: str) -> None:
    """# B29 B30: after a cancel the queue is paused; the new message goes to the tail, the head starts."""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    world.ask("cancelTurn", sessionId=session_id)
    world.links[session_id].answer("cancelled")
    world.disk()
    assert opened(world, session_id)["session"]["pauseReason"] == "cancel"
    send(world, session_id, "three")
    world.disk()
    assert world.order == ["one", "two"]
    assert [item["messageId"] for item in opened(world, session_id)["pending"]] == ["three"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(("refusal", None), "refusal"), ((None, "HTTP 500"), "error")],
)
def test_what_pauses_the_queue(world: World, session_id: str, answer: tuple[Any, Any], reason: str) -> None:
    """# B29"""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    world.links[session_id].answer(*answer)
    world.disk()
    assert opened(world, session_id)["session"]["pauseReason"] == reason
    assert world.order == ["one"]


def test_a_restored_queue_is_paused(world: World, session_id: str) -> None:
    """# B20 B31"""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    world.die()
    shown = opened(world, session_id)
    assert shown["session"]["pauseReason"] == "restore"
    assert [item["text"] for item in shown["pending"]] == ["two"]
    assert message(world, session_id, "one")["status"] == "unknown"  # B43
    assert any("restored" in str(p["text"]) for p in world.editor.of("notice"))


# --------------------------------------------------------------------------------------------- cancel


def test_cancel_is_one_notification_and_no_error(world: World, session_id: str) -> None:
    """# B32 B33: whatever the agent answers, the turn ends as cancelled; nothing is prompted before."""
    send(world, session_id, "one")
    world.disk()
    for _ in range(2):
        assert world.finish(world.ask("cancelTurn", sessionId=session_id)).value == {"cancelled": True}
    assert opened(world, session_id)["session"]["state"] == "cancelling"
    assert send(world, session_id, "two")["disposition"] == "queued"
    world.disk()
    assert world.order == ["one"]
    world.links[session_id].answer(None, "internal error")
    world.disk()
    (ended,) = world.editor.of("turnEnded")
    assert ended["stopReason"] == "cancelled"
    assert "error" not in ended


@pytest.mark.parametrize(
    ("wish", "order"),
    [
        (None, ["one"]),
        (("sendMessage", {"messageId": "three", "text": "three"}), ["one", "two"]),
        (("resumeQueue", {}), ["one", "two"]),
        (("sendPendingNow", {"messageId": "two"}), ["one", "two"]),
        (("sendMessage", {"messageId": "two", "text": "two"}), ["one"]),
        (("sendMessage", {"messageId": "two", "text": "another"}), ["one"]),
        (("pauseQueue", {}), ["one"]),
    ],
)
def test_what_is_wished_after_a_cancel_counts_before_its_end(
    world: World, session_id: str, wish: tuple[str, dict[str, Any]] | None, order: list[str]
) -> None:
    """# B30 B32: a send or a resume lifts the pause of a cancel, however slow the agent is; a repetition does not."""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    world.finish(world.ask("cancelTurn", sessionId=session_id))
    if wish is not None:
        world.finish(world.ask(wish[0], sessionId=session_id, **wish[1]))
    world.links[session_id].answer("cancelled")
    world.disk()
    assert world.order == order
    assert opened(world, session_id)["session"]["paused"] == (order == ["one"])


def test_cancel_when_idle_says_so(world: World, session_id: str) -> None:
    """# B34"""
    assert world.finish(world.ask("cancelTurn", sessionId=session_id)).value == {"cancelled": False}


def test_cancel_while_the_agent_starts_is_latched(world: World) -> None:
    """# B34: the prompt is never written; the message stays, interrupted, and can be sent again."""
    session_id = world.new_session()
    send(world, session_id, "one")
    assert world.finish(world.ask("cancelTurn", sessionId=session_id)).value == {"cancelled": True}
    world.links[session_id].become_ready()
    world.disk()
    assert world.order == []
    assert [e["stopReason"] for e in world.editor.of("turnEnded")] == ["cancelled"]
    assert message(world, session_id, "one")["status"] == "interrupted"
    answered = world.finish(world.ask("resendMessage", sessionId=session_id, messageId="one"))
    assert answered.value == {"messageId": "one", "disposition": "started"}
    world.disk()
    assert world.order == ["one"]


def test_cancel_before_the_message_is_on_disk_is_latched(world: World, session_id: str) -> None:
    """# B34"""
    world.ask("sendMessage", sessionId=session_id, messageId="one", text="one")
    assert world.ask("cancelTurn", sessionId=session_id).value == {"cancelled": True}
    world.disk()
    assert world.order == []
    assert message(world, session_id, "one")["status"] == "interrupted"


def test_a_cancel_that_is_not_answered_kills_the_agent(world: World, session_id: str) -> None:
    """# B32: after the grace the group is killed, the turn ends as cancelled, and the agent comes back."""
    send(world, session_id, "one")
    world.disk()
    world.ask("cancelTurn", sessionId=session_id)
    world.fire((session_id, "grace"))
    world.disk()
    assert [e["stopReason"] for e in world.editor.of("turnEnded")] == ["cancelled"]
    assert world.links[session_id].state == "starting"


def test_cancel_answers_what_the_agent_asked(world: World, session_id: str) -> None:
    """# B32 B48"""
    send(world, session_id, "one")
    world.disk()
    world.links[session_id].ask()
    world.links[session_id].ask()
    assert opened(world, session_id)["session"]["state"] == "waiting"
    world.ask("cancelTurn", sessionId=session_id)
    assert world.links[session_id].permissions == []
    world.disk()
    assert [p["outcome"] for p in world.editor.of("permissionResolved")] == ["cancelled", "cancelled"]
    tools = [m for m in opened(world, session_id)["messages"] if m["kind"] == "tool"]
    assert {t["tool"]["status"] for t in tools} == {"cancelled"}


def test_steering_puts_the_message_first_and_pauses_nothing(world: World, session_id: str) -> None:
    """`now`: the running turn is cancelled, this message is next, the rest follows in order."""
    for text in ("one", "two", "three"):
        send(world, session_id, text)
    assert send(world, session_id, "urgent", now=True)["disposition"] == "queued"
    world.disk()
    assert world.links[session_id].cancelled
    for _ in range(4):
        world.links[session_id].answer("cancelled" if world.links[session_id].cancelled else "end_turn")
        world.disk()
    assert world.order == ["one", "urgent", "two", "three"]


def test_steering_while_the_agent_starts_loses_nothing(world: World) -> None:
    """What was not written yet waits behind the urgent message."""
    session_id = world.new_session()
    send(world, session_id, "one")
    send(world, session_id, "urgent", now=True)
    world.settle(session_id)
    assert world.order == ["urgent", "one"]


def test_send_pending_now(world: World, session_id: str) -> None:
    """agentik/sendPendingNow: this item next, the rest unpaused, also out of a pause."""
    for text in ("one", "two", "three"):
        send(world, session_id, text)
    world.finish(world.ask("pauseQueue", sessionId=session_id))
    world.finish(world.ask("sendPendingNow", sessionId=session_id, messageId="three"))
    world.settle(session_id)
    assert world.order == ["one", "three", "two"]


# --------------------------------------------------------------------------------------------- agents


def test_a_failed_start_is_tried_once_more_and_then_reported(world: World) -> None:
    """# B39 B26: the message waits at the head, under its id; the queue is paused with the reason."""
    session_id = world.new_session()
    link = world.links[session_id]
    link.exit()  # the start in the background: silent
    world.disk()
    assert names(world) == []
    send(world, session_id, "one")
    link.exit()
    world.disk()
    world.fire((session_id, "retry"))
    link.exit()
    world.disk()
    shown = opened(world, session_id)
    assert shown["session"]["pauseReason"] == "start"
    assert [item["messageId"] for item in shown["pending"]] == ["one"]
    assert shown["messages"] == []
    assert [p["text"] for p in world.editor.of("notice")] == ["the agent died at start"]
    gone = [p["message"] for p in world.editor.of("messageUpdated")]
    assert [m["messageId"] for m in gone if m.get("deleted")] == ["one"]  # B25


def test_a_start_without_login_is_not_repeated(world: World) -> None:
    """# B29: the reason is shown, the message waits."""
    session_id = world.new_session()
    link = world.links[session_id]
    send(world, session_id, "one")
    link.state = "down"
    link.tell(StartFailed("authRequired", "log in first", [{"id": "key", "name": "API key"}]))
    world.disk()
    shown = opened(world, session_id)
    assert shown["session"]["pauseReason"] == "auth"
    assert shown["session"]["authMethods"] == [{"id": "key", "name": "API key"}]


def test_an_agent_that_dies_ends_the_turn_with_an_unknown_outcome(world: World, session_id: str) -> None:
    """# B42 B43 B36: never sent again by itself; the partial answer stays, interrupted."""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    world.links[session_id].tell(TextArrived("agent", "partly"))
    world.links[session_id].exit()
    world.disk()
    (ended,) = world.editor.of("turnEnded")
    assert ended["stopReason"] == "crashed"
    assert message(world, session_id, "one")["status"] == "unknown"
    answer = next(m for m in opened(world, session_id)["messages"] if m["kind"] == "agent")
    assert (answer["text"], answer["status"]) == ("partly", "interrupted")
    assert opened(world, session_id)["session"]["pauseReason"] == "crash"
    assert world.order == ["one"]


def test_an_exit_while_idle_is_no_error(world: World, session_id: str) -> None:
    """# B44: the next send starts the agent again."""
    world.links[session_id].exit()
    world.disk()
    assert names(world) == []
    assert send(world, session_id, "one")["disposition"] == "started"
    world.links[session_id].become_ready()
    world.disk()
    assert world.order == ["one"]


def test_a_prompt_that_was_not_written_goes_back_to_the_head(world: World, session_id: str) -> None:
    """# B26"""
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.disk()
    link = world.links[session_id]
    turn_id, link.turn_id = link.turn_id, None
    link.tell(PromptNotWritten(str(turn_id), "the pipe is gone"))
    world.disk()
    shown = opened(world, session_id)
    assert [item["messageId"] for item in shown["pending"]] == ["one", "two"]
    assert shown["session"]["pauseReason"] == "error"
    assert [e["stopReason"] for e in world.editor.of("turnEnded")] == ["error"]


def test_silence_of_the_agent_ends_the_turn_as_timeout(world: World, session_id: str) -> None:
    """# B41: cancel first; time in which a person is asked does not count."""
    send(world, session_id, "one")
    world.disk()
    link = world.links[session_id]
    link.ask()
    world.fire((session_id, "prompt"))
    assert not link.cancelled
    world.finish(world.ask("answerPermission", sessionId=session_id, permissionId=link.permissions[0], optionId="yes"))
    world.time += 200_000
    link.tell(TextArrived("agent", "alive"))
    world.timers.armed[session_id, "prompt"] -= 200
    world.fire((session_id, "prompt"))
    assert not link.cancelled
    world.fire((session_id, "prompt"))
    assert link.cancelled
    link.answer("end_turn")
    world.disk()
    assert [e["stopReason"] for e in world.editor.of("turnEnded")] == ["timeout"]


def test_an_idle_agent_is_stopped_and_comes_back(world: World, session_id: str) -> None:
    """`timeouts.idleAgent`"""
    send(world, session_id, "one")
    world.disk()
    world.links[session_id].answer()
    world.disk()
    world.fire((session_id, "idle"))
    assert world.links[session_id].state == "down"
    send(world, session_id, "two")
    assert world.links[session_id].state == "starting"


def test_only_offered_options_are_sent_and_the_first_answer_wins(world: World, session_id: str) -> None:
    """# B48"""
    send(world, session_id, "one")
    world.disk()
    world.links[session_id].ask()
    permission_id = world.links[session_id].permissions[0]
    wrong = world.ask("answerPermission", sessionId=session_id, permissionId=permission_id, optionId="maybe")
    assert refused(wrong) == "unknownOption"
    first = world.ask("answerPermission", sessionId=session_id, permissionId=permission_id, optionId="yes")
    second = world.ask("answerPermission", sessionId=session_id, permissionId=permission_id, optionId="yes")
    assert first.value == {}
    assert refused(second) == "unknownPermission"


def test_a_withdrawn_request_closes(world: World, session_id: str) -> None:
    """# B48: the agent sent $/cancel_request."""
    send(world, session_id, "one")
    world.disk()
    world.links[session_id].ask()
    world.links[session_id].tell(AskWithdrawn(world.links[session_id].permissions[0]))
    assert [p["outcome"] for p in world.editor.of("permissionResolved")] == ["withdrawn"]


def test_settings_answer_for_a_kind_of_tool() -> None:
    """`permissions.tools.KIND`: with the once-option that was offered, else a person is asked."""
    world = World(SessionPolicy(tools={"read": "allow", "execute": "deny"}))
    session_id = world.new_session()
    world.links[session_id].become_ready()
    send(world, session_id, "one")
    world.disk()
    answers: list[tuple[str, str | None]] = []
    world.links[session_id].answer_permission = lambda p, o: answers.append((p, o))  # type: ignore[method-assign]
    yes = PermissionOption("y", "Yes", "allow_once")
    no = PermissionOption("n", "No", "reject_once")
    for permission_id, kind, options in (
        ("1", "read", (yes, no)),
        ("2", "execute", (yes, no)),
        ("3", "execute", (yes,)),
    ):
        tool = ToolChange(permission_id, title=kind, tool_kind=kind)
        world.links[session_id].tell(PermissionAsked(permission_id, tool, options))
    assert answers == [("1", "y"), ("2", "n")]
    assert [p["permission"]["permissionId"] for p in world.editor.of("permissionRequested")] == ["3"]


# ----------------------------------------------------------------------------------------- transcript


def test_chunks_are_shown_at_once_and_saved_some_times_a_second(world: World, session_id: str) -> None:
    """Law 7: streamingToken does not wait for the disk; one save carries many chunks."""
    send(world, session_id, "one")
    world.disk()
    for index in range(100):
        world.links[session_id].tell(TextArrived("agent", f"{index} "))
    tokens = world.editor.of("streamingToken")
    assert len(tokens) == 100
    assert tokens[-1]["offset"] == len("".join(f"{i} " for i in range(99)))
    assert not world.store.queue
    world.fire((session_id, "save"))
    assert len(world.store.queue) == 1


def test_late_chunks_belong_to_the_turn_that_ended(world: World, session_id: str) -> None:
    """# B37: by the agent's id, else to what came last before the next prompt."""
    send(world, session_id, "one")
    world.disk()
    link = world.links[session_id]
    link.tell(TextArrived("agent", "answer", "id1"))
    link.answer()
    world.disk()
    link.tell(TextArrived("agent", " and more", "id1"))
    world.fire((session_id, "save"))
    world.disk()
    answers = [m for m in opened(world, session_id)["messages"] if m["kind"] == "agent"]
    assert [m["text"] for m in answers] == ["answer and more"]
    assert answers[0]["status"] == "complete"


def test_tool_calls_are_one_message_from_three_sources(world: World, session_id: str) -> None:
    """AGENTS.md 5.1: permission first, then an update, then the call; closed when the turn ends (5.2)."""
    send(world, session_id, "one")
    world.disk()
    link = world.links[session_id]
    options = (PermissionOption("yes", "Yes", "allow_once"),)
    link.tell(PermissionAsked("p", ToolChange("t", title="edit a file", tool_kind="edit"), options))
    link.tell(ToolCallChanged(ToolChange("t", status="in_progress")))
    link.tell(ToolCallChanged(ToolChange("t", output="done")))
    link.tell(Remark("by the way"))
    world.finish(world.ask("answerPermission", sessionId=session_id, permissionId="p", optionId="yes"))
    link.answer()
    world.disk()
    tools = [m["tool"] for m in opened(world, session_id)["messages"] if m["kind"] == "tool"]
    assert [(t["title"], t["toolKind"], t["status"], t["output"]) for t in tools] == [
        ("edit a file", "edit", "completed", "done")
    ]


def test_the_open_answer_is_in_the_answer_to_open_session(world: World, session_id: str) -> None:
    """# B55: what streams now is in the page, newer than the disk."""
    send(world, session_id, "one")
    world.disk()
    world.links[session_id].tell(TextArrived("agent", "not saved yet"))
    answer = next(m for m in opened(world, session_id)["messages"] if m["kind"] == "agent")
    assert (answer["text"], answer["status"]) == ("not saved yet", "streaming")


# ------------------------------------------------------------------------------------------- two editors


def test_a_takeover_tells_what_the_dead_owner_had_committed_last(world: World, session_id: str) -> None:
    """# B35 B59: also what nobody had looked at yet, each once, and the turn that was open ends."""
    other = World(beside=world)
    opened(other, session_id)
    send(world, session_id, "one")
    link = world.links[session_id]
    link.tell(TextArrived("agent", "an answer"))
    world.disk()
    link.answer()
    send(world, session_id, "two")
    world.disk()
    world.die()
    assert names(other) == []
    other.app.tick()
    other.disk()
    received = [news["messageId"] for news in other.editor.of("messageReceived")]
    assert received == ["one", "two"]
    assert "an answer" in [m["text"] for m in opened(other, session_id)["messages"]]
    shown = {news["message"]["text"] for news in other.editor.of("messageUpdated")}  # type: ignore[index]
    assert "an answer" in shown
    started = [news["turnId"] for news in other.editor.of("turnStarted")]
    ended = [(news["turnId"], news["stopReason"]) for news in other.editor.of("turnEnded")]
    assert ended == [(started[0], "end_turn"), (started[1], "crashed")]
    assert other.editor.of("sessionChanged")[-1]["session"]["owned"]  # type: ignore[index]


def test_what_another_editor_commits_during_a_takeover_is_seen(world: World, session_id: str) -> None:
    """# B22 B59: else the queue would stand still until the next commit of somebody else."""
    other = World(beside=world)
    opened(other, session_id)
    send(world, session_id, "one")
    send(world, session_id, "two")
    world.die()
    other.app.tick()
    other.store.commit()  # the session is taken, and its editor hears the last of the dead owner
    opened(world, session_id)
    assert world.finish(world.ask("resumeQueue", sessionId=session_id)).value == {}
    other.app.foreign_commit()
    other.disk()
    other.links[session_id].become_ready()
    other.disk()
    assert other.order == ["two"], "one is unknown"


def test_what_the_owner_commits_while_another_editor_opens_the_session_is_seen(world: World, session_id: str) -> None:
    """# B55 B59: between the page that is read and the moment from which news are told."""
    other = World(beside=world)
    answered = other.ask("openSession", sessionId=session_id)
    other.store.commit()
    read, done = other.store.reads.popleft()
    page = fetch(other.db, read)
    send(world, session_id, "one")
    other.app.foreign_commit()
    done(page)
    assert answered.value is not None
    assert answered.value["messages"] == []
    other.disk()
    assert [news["messageId"] for news in other.editor.of("messageReceived")] == ["one"]


# --------------------------------------------------------------------------------------------- the end


def test_what_is_committed_while_the_server_ends_is_answered_as_done(world: World, session_id: str) -> None:
    """# B5 B61: a message that will be there after the restart is not said to be refused."""
    answered = world.ask("sendMessage", sessionId=session_id, messageId="one", text="one")
    world.app.close()
    world.disk()
    world.app.closed()
    assert answered.value == {"messageId": "one", "disposition": "started"}
    assert world.order == [], "nothing new begins"
    world.die()
    assert [item["messageId"] for item in opened(world, session_id)["pending"]] == ["one"]


def test_what_was_not_committed_when_the_server_ended_is_refused(world: World, session_id: str) -> None:
    """# B1 B61"""
    answered = world.ask("sendMessage", sessionId=session_id, messageId="one", text="one")
    world.app.close()
    late = world.ask("sendMessage", sessionId=session_id, messageId="two", text="two")
    world.store.queue.clear()
    world.app.closed()
    assert refused(answered) == refused(late) == "storeFailed"


@pytest.mark.parametrize("how", ["idle", "restart"])
def test_a_send_while_the_agent_ends_waits_for_the_next_one(world: World, session_id: str, how: str) -> None:
    """# B44: nothing is prompted into an agent that was told to go, and nothing is paused by that."""
    send(world, session_id, "one")
    world.disk()
    link = world.links[session_id]
    link.answer()
    world.disk()
    link.lingers = True
    if how == "idle":
        world.fire((session_id, "idle"))
    else:
        world.finish(world.ask("restartAgent", sessionId=session_id))
    assert send(world, session_id, "two")["disposition"] == "started"
    world.disk()
    assert world.order == ["one"]
    link.exit(wanted=True)
    world.settle(session_id)
    assert world.order == ["one", "two"]
    assert not opened(world, session_id)["session"]["paused"]
    assert not world.editor.of("notice")
    link.exit()
    world.disk()
    assert link.state == "down", "it comes back with the next send, not by itself"
