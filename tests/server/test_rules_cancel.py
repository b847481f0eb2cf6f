"""BEHAVIOUR.md, "Cancel and interrupted answers" (B32 to B37), as an editor sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.server.harness import Chat, Talk, agents, server, until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_cancel")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    settings = agents(plain={}, keeps={"resume": True}, silent={"no_init": True})
    more = {"queue": {"onCancel": "continue"}, "timeouts": {"cancelGrace": 0.4}}
    async with server(tmp_path_factory.mktemp("cancel"), {**settings, **more}) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(talk: Talk) -> Chat:
    return await Chat.begin(talk)


def tool_states(chat: Chat, since: int = 0) -> dict[str, str]:
    """Tool call id → the last status that was told."""
    tools = [p["message"]["tool"] for p in chat.of("messageUpdated", since) if p["message"].get("tool")]
    return {tool["toolCallId"]: tool["status"] for tool in tools}


async def test_a_cancel_in_all_its_parts(chat: Chat) -> None:
    """# B32: one session/cancel, permissions answered, tools cancelled at once, `cancelling`, then the next prompt."""
    await chat.send(
        "#ignore_cancel\n#tool t-done read completed\n#tool t-open execute in_progress\n#say partly\n#requests 2\n"
        "#wait_cancel\n#sleep 200\n#say  and a farewell"
    )
    await chat.wait("permissionRequested", lambda _: len(chat.of("permissionRequested")) == 2)
    assert (await chat.send("#say next"))[1] == "queued"
    mark = chat.client.mark()
    assert await chat.call("cancelTurn") == {"cancelled": True}
    assert (await chat.open())["session"]["state"] == "cancelling"
    resolved = chat.of("permissionResolved", mark)
    assert sorted(p["permissionId"] for p in resolved) == sorted(
        p["permission"]["permissionId"] for p in chat.of("permissionRequested")
    )
    assert {p["outcome"] for p in resolved} == {"cancelled"}
    await chat.wait(
        "messageUpdated", lambda p: (p["message"].get("tool") or {}).get("status") == "cancelled", since=mark
    )
    assert tool_states(chat, mark)["t-open"] == "cancelled"
    assert not chat.ends()
    assert (await chat.send("#say and next"))[1] == "queued"
    assert await chat.call("cancelTurn") == {"cancelled": True}
    assert len(chat.prompts()) == 1
    ended = await chat.ended()
    assert (ended["stopReason"], ended.get("error")) == ("cancelled", None)
    await chat.ended(3)
    assert chat.prompts()[1:] == ["#say next", "#say and next"]
    assert len(chat.received_by_agent("session/cancel")) == 1
    page = await chat.open()
    assert "permissions: cancelled cancelled" in await chat.said()
    tools = {m["tool"]["toolCallId"]: m["tool"]["status"] for m in page["messages"] if m["kind"] == "tool"}
    assert (tools["t-done"], tools["t-open"]) == ("completed", "cancelled")
    first = chat.ends()[0]["turnId"]
    answers = [m for m in page["messages"] if m["kind"] == "agent" and m["turnId"] == first]
    assert "partly" in answers[0]["text"]
    assert answers[-1]["text"].endswith("and a farewell")
    assert answers[-1]["status"] == "interrupted"


async def test_the_queue_pauses_on_a_cancel_by_default(talk: Talk) -> None:
    """# B29 B32: what waits is kept; a send-now is no such cancel."""
    home = talk.home / "default"
    async with server(home, agents(plain={})) as plain:
        chat = await Chat.begin(plain)
        await chat.busy()
        first, _ = await chat.send("#hang\n#say one")
        second, _ = await chat.send("#say two")
        await chat.call("sendPendingNow", messageId=second)
        await chat.ended(2)
        await until(lambda: chat.prompts() == ["#hang", "#say two", "#hang\n#say one"])
        assert not [p for p in chat.of("pendingChanged") if p["paused"]]
        third, _ = await chat.send("#say three")
        await chat.call("cancelTurn")
        await chat.ended(3)
        paused = await chat.wait("pendingChanged", lambda p: p["paused"])
        assert (paused["pauseReason"], [i["messageId"] for i in paused["pending"]]) == ("cancel", [third])
        assert len(chat.prompts()) == 3
        assert first not in [i["messageId"] for i in paused["pending"]]


AFTER_CANCEL = [
    "#end end_turn",
    "#end refusal",
    "#end max_tokens",
    "#end nonsense",
    "#error -32800 request cancelled",
    "#error -32603 'NoneType' object has no attribute",
    "#error -32000 log in",
    "#result {}",
    "#result null",
    "#exit 1",
    "#crash",
    "#no_answer",
]


@pytest.mark.parametrize("answer", AFTER_CANCEL)
async def test_cancelled_is_never_an_error(chat: Chat, answer: str) -> None:
    """# B33 B35: whatever the agent answers after the user's cancel, or not; the first cause wins; one end."""
    mark = chat.client.mark()
    message_id, _ = await chat.send(f"#say partly\n#wait_cancel\n{answer}")
    await chat.wait("streamingToken")
    await chat.call("cancelTurn")
    ended = await chat.ended()
    assert (ended["stopReason"], ended.get("error")) == ("cancelled", None)
    assert not [p for p in chat.of("notice", mark) if p["level"] == "error"]
    page = await chat.open()
    assert [(m["kind"], m["status"]) for m in page["messages"]] == [("user", "interrupted"), ("agent", "interrupted")]
    assert not page["session"]["paused"]
    await chat.do("#say goes on")
    assert [p["turnId"] for p in chat.ends()] == [p["turnId"] for p in chat.of("turnStarted")]
    answer_again = await chat.call("resendMessage", messageId=message_id)
    assert answer_again == {"messageId": message_id, "disposition": "started"}
    await chat.call("cancelTurn")
    await chat.ended(3)


async def test_an_agent_that_does_not_hear_is_killed_and_its_session_resumed(talk: Talk) -> None:
    """# B32: after the grace the group is killed; the same session goes on without a new message."""
    chat = await Chat.begin(talk, agentId="keeps")
    before = (await chat.open())["session"]["agentSessionId"]
    mark = chat.client.mark()
    await chat.send("#ignore_cancel\n#fork\n#hang")
    await chat.wait("streamingToken")
    child = int((await chat.said()).split()[1])
    await chat.call("cancelTurn")
    assert (await chat.ended())["stopReason"] == "cancelled"
    await chat.wait("connectionChanged", lambda p: p["connection"] == "disconnected", since=mark)
    await chat.wait("connectionChanged", lambda p: p["connection"] == "has_session", since=chat.client.mark() - 1)
    await until(lambda: len(chat.received_by_agent("session/resume")) == 1)
    assert (await chat.open())["session"]["agentSessionId"] == before
    await until(lambda: not is_alive(child))
    assert (await chat.do("#say back"))["stopReason"] == "end_turn"
    assert not [m for m in (await chat.open())["messages"] if m["kind"] == "notice"]


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_cancel_while_the_agent_starts(talk: Talk) -> None:
    """# B34: the prompt is never written, the end is told, the message stays and can be sent again."""
    chat = await Chat.begin(talk, ready=False, agentId="silent")
    message_id, disposition = await chat.send("#say one")
    assert disposition == "started"
    assert await chat.call("cancelTurn") == {"cancelled": True}
    ended = await chat.ended()
    assert (ended["stopReason"], ended.get("error")) == ("cancelled", None)
    page = await chat.open()
    assert [(m["messageId"], m["status"]) for m in page["messages"]] == [(message_id, "interrupted")]
    assert (page["pending"], page["session"]["state"]) == ([], "idle")
    assert not chat.of("turnStarted")
    assert await chat.call("cancelTurn") == {"cancelled": False}
    again = await chat.call("resendMessage", messageId=message_id)
    assert again == {"messageId": message_id, "disposition": "started"}
    assert await chat.call("cancelTurn") == {"cancelled": True}
    await chat.ended(2)


async def test_a_cancel_right_behind_the_send(chat: Chat) -> None:
    """# B34 B35: whatever it meets, each turn ends once, as cancelled."""
    for number in range(10):
        text = f"#hang\n#say {number}"
        sent = chat.client.send_request(
            "agentik/sendMessage",
            {"sessionId": chat.session_id, "messageId": f"{chat.session_id}{number}", "text": text},
        )
        cancelled = chat.client.send_request("agentik/cancelTurn", {"sessionId": chat.session_id})
        assert (await chat.client.answer_of(sent))["disposition"] == "started"
        assert await chat.client.answer_of(cancelled) == {"cancelled": True}
        assert (await chat.ended(number + 1))["stopReason"] == "cancelled"
        await chat.at_rest(chat.client.mark() - 3)
    turns = [p["turnId"] for p in chat.ends()]
    assert len(turns) == len(set(turns)) == 10


async def test_a_cancel_when_idle_sends_nothing(chat: Chat) -> None:
    """# B34"""
    await chat.do("#say x")
    mark = chat.client.mark()
    assert await chat.call("cancelTurn") == {"cancelled": False}
    assert (await chat.open())["session"]["state"] == "idle"
    assert chat.received_by_agent("session/cancel") == []
    assert not chat.names(mark)


@pytest.mark.parametrize(
    "steps",
    ["#raw {answer}\n#crash", "#raw {answer}\n#raw {answer}\n#no_answer", "#end end_turn", "#exit 0", "#close_stdout"],
)
@pytest.mark.parametrize("cancel", [False, True])
async def test_one_end_a_turn_in_every_order(chat: Chat, steps: str, cancel: bool) -> None:
    """# B35: of answer, second answer, crash and cancel."""
    answer = '{"jsonrpc": "2.0", "id": $REQUEST, "result": {"stopReason": "end_turn"}}'
    text = steps.replace("{answer}", answer)
    await chat.send(f"#say x\n#wait_cancel\n{text}" if cancel else f"#say x\n{text}")
    if cancel:
        await chat.wait("streamingToken")
        await chat.call("cancelTurn")
    ended = await chat.ended()
    assert ended["stopReason"] in ({"cancelled"} if cancel else {"end_turn", "crashed"})
    await chat.do("#say and on")
    assert [p["turnId"] for p in chat.ends()] == [p["turnId"] for p in chat.of("turnStarted")]


async def test_late_chunks_belong_to_the_turn_that_has_ended(chat: Chat) -> None:
    """# B37: without ids everything that comes before the next prompt is written; told and saved as that turn's."""
    await chat.send("#late  and late\n#say answer")
    ended = await chat.ended()
    late = await chat.wait("streamingToken", lambda p: p["text"].endswith("and late"))
    assert late["turnId"] == ended["turnId"]
    assert late["offset"] + len(late["text"]) == len("answer and late")
    await chat.wait("messageUpdated", lambda p: p["message"]["text"] == "answer and late")
    await chat.do("#say second")
    page = await chat.open()
    assert [m["text"] for m in page["messages"] if m["kind"] == "agent"] == ["answer and late", "second"]
    assert {m["status"] for m in page["messages"]} == {"complete"}


async def test_after_a_cancel_what_is_late_is_waited_for(chat: Chat) -> None:
    """# B37: chunks on their way are not taken for the next answer; that prompt waits for a short quiet."""
    await chat.send("#say one\n#wait_cancel\n#later 25  late\n#later 50  later\n#end cancelled")
    await chat.wait("streamingToken")
    await chat.send("#say two")
    await chat.call("cancelTurn")
    await chat.ended(2)
    page = await chat.open()
    assert [m["text"] for m in page["messages"] if m["kind"] == "agent"] == ["one late later", "two"]
    first, second = (p["turnId"] for p in chat.ends())
    assert {p["turnId"] for p in chat.of("streamingToken") if "late" in p["text"]} == {first}
    assert [m["turnId"] for m in page["messages"] if m["kind"] == "agent"] == [first, second]


async def test_late_chunks_are_told_by_the_agents_message_id(chat: Chat) -> None:
    """# B37: also when the next turn is running already."""
    await chat.do("#id first\n#say one")
    await chat.do("#id second\n#say two\n#id first\n#say  and late\n#id second\n#say  and more")
    page = await chat.open()
    assert [m["text"] for m in page["messages"] if m["kind"] == "agent"] == ["one and late", "two and more"]
    first, second = (p["turnId"] for p in chat.ends())
    assert [m["turnId"] for m in page["messages"] if m["kind"] == "agent"] == [first, second]
    assert {m["status"] for m in page["messages"]} == {"complete"}


async def test_a_partial_answer_is_there_after_a_restart(talk: Talk) -> None:
    """# B36: marked, in order, in every way of reading; a new answer goes behind it."""
    home = talk.home / "partial"
    async with server(home, agents(plain={})) as first:
        chat = await Chat.begin(first)
        await chat.send("#think hm\n#say partly\n#hang")
        await chat.wait("streamingToken", lambda p: p["kind"] == "agent")
        await chat.call("cancelTurn")
        await chat.ended()
        await chat.do("#say whole")
    async with server(home, agents(plain={})) as second:
        again = Chat(second.client, home, chat.folder)
        page = await again.open(chat.session_id)
        shown = [(m["kind"], m["text"], m["status"]) for m in page["messages"]]
        assert shown == [
            ("user", "#think hm\n#say partly\n#hang", "interrupted"),
            ("thought", "hm", "complete"),
            ("agent", "partly", "interrupted"),
            ("user", "#say whole", "complete"),
            ("agent", "whole", "complete"),
        ]
        assert (await again.call("listMessages"))["messages"] == page["messages"]
        assert (await again.open(after=page["revision"]))["messages"] == []
