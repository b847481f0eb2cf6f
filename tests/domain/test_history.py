"""A replay of an agent against our own record (B54)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentik_server.domain.happenings import AgentReady, Controls, HistoryReplayed, Replayed
from agentik_server.domain.history import missing
from agentik_server.domain.message import Message, ToolChange
from tests.domain.test_session import opened, send
from tests.domain.world import World


def ours(*texts: str) -> list[Message]:
    return [
        Message(f"m{i}", "s", i, "agent" if text.startswith("=") else "user", text, "complete", 0)
        for i, text in enumerate(texts)
    ]


def replay(*texts: str) -> list[Replayed]:
    return [Replayed("agent" if text.startswith("=") else "user", text) for text in texts]


def test_a_replay_of_what_we_have_adds_nothing() -> None:
    """# B54"""
    assert missing(ours("a", "=1", "b", "=2"), replay("a", "=1", "b", "=2")) == []


def test_an_empty_record_takes_everything() -> None:
    """Importing a session that exists only at the agent."""
    assert missing([], replay("a", "=1", "b")) == replay("a", "=1", "b")


def test_what_was_said_elsewhere_is_added() -> None:
    """The session went on in a terminal."""
    assert missing(ours("a", "=1"), replay("a", "=1", "b", "=2")) == replay("b", "=2")


def test_the_same_words_again_are_told_apart_by_their_order() -> None:
    """ "continue" and "continue": only the new one is added."""
    assert missing(ours("a", "go on"), replay("a", "go on", "=1", "go on", "=2")) == replay("go on", "=2")


def test_another_conversation_adds_nothing() -> None:
    assert missing(ours("a", "=1"), replay("x", "=y")) == []


def test_what_an_agent_hid_in_the_name_of_the_user_is_left_out() -> None:
    """AGENTS.md section 4: kimi-code and gemini."""
    told = replay("<system-reminder>be nice</system-reminder>", "a", "=1", '[Function Response: read_file] {"x": 1}')
    assert missing([], told) == replay("a", "=1")
    assert missing(ours("a", "=1"), told) == []


def test_attachments_and_white_space_do_not_matter() -> None:
    """Agents paste attachments behind the text and fold white space."""
    assert missing(ours("fix\n  it", "=1"), replay("fix it\n<file>...</file>", "=1")) == []


def test_messages_that_never_reached_the_agent_do_not_matter() -> None:
    assert missing(ours("a", "=1", "never sent"), replay("a", "=1", "b")) == replay("b")


@given(st.lists(st.sampled_from(["a", "b", "c", "=1", "=2"]), max_size=12), st.integers(0, 12))
def test_ours_and_the_rest_make_the_replay(texts: list[str], cut: int) -> None:
    """For every history and every place where we stopped to listen: the turns are complete, none is doubled."""
    texts = ["first", *texts]
    cuts = [i for i, text in enumerate(texts) if not text.startswith("=")] + [len(texts)]
    place = cuts[min(cut, len(cuts) - 1)] or len(texts)
    assert texts[:place] + [entry.text for entry in missing(ours(*texts[:place]), replay(*texts))] == texts


def test_a_session_of_the_agent_is_imported_once(world: World, session_id: str) -> None:
    """# B54: replayed again after a restart it adds nothing."""
    entries = (
        *replay("hello", "=hi"),
        Replayed("tool", tool=ToolChange("t", title="read", tool_kind="read", status="in_progress")),
    )
    for _ in range(2):
        world.links[session_id].tell(HistoryReplayed(entries))
        world.disk()
    page = opened(world, session_id)
    assert [(m["kind"], m["text"], m["status"]) for m in page["messages"]] == [
        ("user", "hello", "complete"),
        ("agent", "=hi", "complete"),
        ("tool", "", "complete"),
    ]
    assert page["messages"][2]["tool"]["status"] == "completed"
    send(world, session_id, "next")
    world.disk()
    world.links[session_id].answer()
    world.disk()
    world.die()
    opened(world, session_id)
    world.links[session_id].become_ready()
    world.links[session_id].tell(AgentReady("agent-session", "loaded", context_reset=False, controls=Controls()))
    world.links[session_id].tell(HistoryReplayed((*entries, *replay("next"))))
    world.disk()
    assert len(opened(world, session_id)["messages"]) == 4


def test_a_fork_is_a_copy_that_goes_its_own_way(world: World, session_id: str) -> None:
    """agentik/forkSession: the transcript is copied, with ids of its own; the agent's fork is continued."""
    send(world, session_id, "one")
    world.disk()
    world.links[session_id].answer()
    world.disk()
    answered = world.finish(world.ask("forkSession", sessionId=session_id))
    assert answered.value is not None, answered.message
    fork = answered.value["session"]
    assert isinstance(fork, dict)
    assert fork["agentSessionId"] == "forked"
    copied, original = opened(world, fork["sessionId"])["messages"], opened(world, session_id)["messages"]
    assert [m["text"] for m in copied] == [m["text"] for m in original] == ["one"]
    assert copied[0]["messageId"] != original[0]["messageId"]
    assert world.links[fork["sessionId"]].launch.agent_session_id == "forked"
    send(world, fork["sessionId"], "two")
    world.settle(fork["sessionId"])
    assert len(opened(world, session_id)["messages"]) == 1


def test_sessions_of_the_agent_are_imported_once(world: World) -> None:
    """agentik/importSessions: those of the folder that we do not know; opened, they ask for their history."""
    world.at_agent = [
        {"sessionId": "a1", "cwd": "/work", "title": "elsewhere"},
        {"sessionId": "a2", "cwd": "/other"},
        {"nonsense": 1},
    ]
    first = world.finish(world.ask("importSessions", cwd="/work", agentId="scripted"))
    again = world.finish(world.ask("importSessions", cwd="/work", agentId="scripted"))
    assert first.value is not None
    assert again.value == {"sessions": []}
    (session,) = first.value["sessions"]  # type: ignore[misc, attr-defined]
    assert (session["title"], session["agentSessionId"]) == ("elsewhere", "a1")
    opened(world, session["sessionId"])
    assert world.links[session["sessionId"]].launch.want_history
