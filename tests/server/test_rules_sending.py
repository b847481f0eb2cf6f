"""BEHAVIOUR.md, "Sending" (B1 to B10), as an editor sees it: one server, a session of its own for each test."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.server.harness import Chat, Talk, agents, server
from tests.stdio_client import Params, RpcError

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_sending")]

SENDING = ("messageReceived", "messageQueued", "messageUpdated", "pendingChanged", "turnStarted", "turnEnded")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    settings = agents(plain={}, silent={"no_init": True}, broken={"exit_at": "start", "code": 3})
    async with server(tmp_path_factory.mktemp("sending"), settings) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(talk: Talk) -> Chat:
    return await Chat.begin(talk)


def about(chat: Chat, message_id: str) -> list[str]:
    """The notifications that name a message, in order."""
    return [
        note.method.removeprefix("agentik/")
        for note in chat.client.notifications
        if message_id in (note.params.get("messageId"), (note.params.get("message") or {}).get("messageId"))
    ]


async def test_a_refused_send_leaves_no_trace(chat: Chat) -> None:
    """# B1 B10: an error response, nothing else; the same id may be used again."""
    before = chat.client.mark()
    bad = {"": "emptyText", " \n\t": "emptyText", "a\0b": "invalidText", "\0": "invalidText", "\ud800x": "invalidText"}
    for text, reason in bad.items():
        frame = json.dumps(  # as ASCII: half a surrogate pair has no UTF-8
            {
                "jsonrpc": "2.0",
                "id": f"bad {text!r}",
                "method": "agentik/sendMessage",
                "params": {"sessionId": chat.session_id, "messageId": "m", "text": text},
            }
        ).encode()
        future: asyncio.Future[Params] = asyncio.get_running_loop().create_future()
        chat.client._open[f"bad {text!r}"] = ("agentik/sendMessage", future)
        chat.client.send_bytes(b"Content-Length: %d\r\n\r\n" % len(frame) + frame)
        with pytest.raises(RpcError) as refused:
            await chat.client.answer_of(future)
        assert (refused.value.code, refused.value.reason) == (4000, reason)
        assert refused.value.message
    page = await chat.open()
    assert (page["messages"], page["pending"]) == ([], [])
    assert not [name for name in chat.names(before) if name in SENDING]
    message_id = f"again {chat.session_id}"
    await chat.refusal("sendMessage", messageId=message_id, text=" ")
    assert await chat.send("fine now", message_id) == (message_id, "started")
    await chat.ended()


async def test_the_checks_come_in_the_order_of_the_rule(talk: Talk) -> None:
    """# B10: text valid, text not blank, sizes, queue room."""
    home = talk.home / "small"
    small = {"queue": {"maxItems": 1, "maxTextBytes": 5, "maxFiles": 1}}
    async with server(home, {**agents(plain={}), **small}) as tight:
        chat = await Chat.begin(tight)
        await chat.busy()
        await chat.send("one")
        files = [{"path": "/nowhere/a"}, {"path": "/nowhere/b"}]
        assert await chat.refusal("sendMessage", messageId="x", text="\0" * 9, attachments=files) == "invalidText"
        assert await chat.refusal("sendMessage", messageId="x", text=" " * 9) == "emptyText"
        assert await chat.refusal("sendMessage", messageId="x", text=" " * 9, attachments=files) == "textTooLong"
        assert await chat.refusal("sendMessage", messageId="x", text="long text") == "textTooLong"
        assert await chat.refusal("sendMessage", messageId="x", text="two", attachments=files) == "tooManyFiles"
        assert await chat.refusal("sendMessage", messageId="x", text="two") == "queueFull"
        assert [item["text"] for item in (await chat.open())["pending"]] == ["one"]


async def test_a_blank_text_goes_with_an_attachment(chat: Chat) -> None:
    """# B10"""
    note = {"path": str(chat.folder / "note.txt"), "text": "the content"}
    await chat.do("", attachments=[note])
    (prompt,) = chat.received_by_agent()
    assert "the content" in str(prompt["prompt"])
    (message,) = [m for m in (await chat.open())["messages"] if m["kind"] == "user"]
    assert message["text"] == ""


async def test_a_direct_message_never_waits(chat: Chat) -> None:
    """# B1 B2: the answer first, then messageReceived, turnStarted, the answer of the agent, turnEnded; no queue."""
    begin = chat.client.mark()
    message_id, disposition = await chat.send("#think hm\n#say hello")
    assert disposition == "started"
    await chat.ended()
    assert about(chat, message_id) == ["messageReceived", "turnStarted"]
    assert not chat.of("pendingChanged", begin)
    received = chat.of("messageReceived")[0]
    assert received["message"]["text"] == "#think hm\n#say hello"
    assert received["message"]["kind"] == "user"
    assert received["revision"] == received["message"]["revision"] > 0
    names = chat.names(begin)
    order = [names.index(name) for name in ("messageReceived", "turnStarted", "streamingToken", "turnEnded")]
    assert order == sorted(order)
    assert len({p["turnId"] for p in (*chat.of("turnStarted"), *chat.of("turnEnded"))}) == 1
    assert {p["kind"] for p in chat.of("streamingToken")} == {"thought", "agent"}


async def test_never_two_prompts_at_a_time(chat: Chat) -> None:
    """# B3: by sends, steers, cancels and resumes in any order; the agent refuses a second prompt."""
    steps = ["#sleep 5\n#say a", "#hang"]
    for number in range(12):
        await chat.send(steps[number % 2] + f"\n#say {number}", now=number % 3 == 2)
        if number % 4 == 3:
            await chat.call("cancelTurn")
        await chat.call("resumeQueue")
    while (await chat.open())["session"]["state"] != "idle" or (await chat.open())["pending"]:
        await chat.call("cancelTurn")
        await chat.call("resumeQueue")
    assert {p["stopReason"] for p in chat.of("turnEnded")} <= {"end_turn", "cancelled"}
    turns = [p["turnId"] for p in chat.of("turnEnded")]
    assert len(turns) == len(set(turns))


async def test_the_same_message_again_starts_nothing(chat: Chat, talk: Talk) -> None:
    """# B4: the first outcome, in any session, whatever is attached, also after an edit; `removed` once it is."""
    running = await chat.busy("#hang\n#say x")
    assert await chat.send("#hang\n#say x", running) == (running, "started")
    names = [f"{name} {chat.session_id}" for name in ("queued", "edited", "removed")]
    for name in names:
        assert await chat.send(name, name) == (name, "queued")
    mark = chat.client.mark()
    attached = [{"path": "/no/such/file"}]
    assert await chat.send(names[0], names[0], attachments=attached) == (names[0], "queued")
    await chat.call("editPending", messageId=names[1], text="new text")
    assert await chat.send(names[1], names[1]) == (names[1], "queued")
    assert await chat.refusal("sendMessage", messageId=names[1], text="new text") == "duplicateId"
    await chat.call("removePending", messageId=names[2])
    assert await chat.send(names[2], names[2]) == (names[2], "removed")
    assert not chat.of("messageQueued", mark)
    other = await Chat.begin(talk)
    assert await other.send(names[0], names[0]) == (names[0], "queued")
    assert await other.refusal("sendMessage", messageId=names[0], text="other text") == "duplicateId"
    assert (await other.open())["messages"] == []
    assert [item["text"] for item in (await chat.open())["pending"]] == [names[0], "new text"]
    await chat.call("clearPending")
    await chat.call("cancelTurn")
    await chat.ended()
    assert await chat.send("#hang\n#say x", running) == (running, "started")
    assert len(chat.prompts()) == 1


async def test_the_same_message_many_times_at_once(chat: Chat) -> None:
    """# B4: a client that repeats what it got no answer to."""
    message_id = str(uuid.uuid4())
    params = {"sessionId": chat.session_id, "messageId": message_id, "text": "#sleep 30\n#say once"}
    futures = [chat.client.send_request("agentik/sendMessage", params) for _ in range(10)]
    answers = [await chat.client.answer_of(future) for future in futures]
    assert answers == [{"messageId": message_id, "disposition": "started"}] * 10
    await chat.ended()
    assert about(chat, message_id).count("messageReceived") == 1
    assert len(chat.prompts()) == 1


async def test_an_answer_to_a_question_bypasses_the_queue(chat: Chat) -> None:
    """# B7: also while messages wait; the session is `waiting` meanwhile."""
    await chat.send("#ask your name?")
    asked = (await chat.wait("questionAsked"))["question"]
    assert asked["message"] == "your name?"
    assert asked["schema"]["properties"]["name"] == {"type": "string"}
    _, disposition = await chat.send("#say later")
    assert disposition == "queued"
    page = await chat.open()
    assert page["session"]["state"] == "waiting"
    assert [q["questionId"] for q in page["questions"]] == [asked["questionId"]]
    answer = {"questionId": asked["questionId"], "action": "accept", "content": {"name": "Ada"}}
    assert await chat.call("answerQuestion", **answer) == {}
    assert (await chat.wait("questionResolved"))["questionId"] == asked["questionId"]
    assert await chat.refusal("answerQuestion", **answer) == "unknownPermission"
    await chat.ended(2)
    said = await chat.said()
    assert '"action": "accept"' in said
    assert '"name": "Ada"' in said
    assert (await chat.open())["questions"] == []


async def test_a_new_message_never_overtakes_older_ones(chat: Chat) -> None:
    """# B8: the session is free, but something waits."""
    await chat.busy()
    await chat.send("#say one")
    await chat.call("pauseQueue")
    await chat.call("cancelTurn")
    await chat.ended()
    assert (await chat.open())["session"]["state"] == "idle"
    _, disposition = await chat.send("#say two")
    assert disposition == "queued"
    await chat.call("resumeQueue")
    await chat.ended(3)
    assert chat.prompts()[1:] == ["#say one", "#say two"]


async def test_with_the_queue_disabled_a_busy_session_refuses(talk: Talk) -> None:
    """# B2 B8: `sessionBusy`, and `notOwner` to a process that does not run the session; a free one takes it."""
    home = talk.home / "unqueued"
    settings = {**agents(plain={}), "queue": {"enabled": False}}
    async with server(home, settings) as owner, server(home, settings) as second:
        chat = await Chat.begin(owner)
        other = await chat.at(second)
        assert await other.refusal("sendMessage", messageId="x", text="free, but not yours") == "notOwner"
        await chat.busy()
        assert await chat.refusal("sendMessage", messageId="x", text="busy") == "sessionBusy"
        assert await chat.refusal("sendMessage", messageId="x", text="busy", now=True) == "sessionBusy"
        assert await other.refusal("sendMessage", messageId="x", text="busy") == "notOwner"
        await chat.call("cancelTurn")
        await chat.ended()
        assert (await chat.send("#say x", "x"))[1] == "started"
        await chat.ended(2)
        assert (await chat.open())["pending"] == []


async def test_the_first_message_starts_while_the_agent_starts(talk: Talk) -> None:
    """# B9: `started` although the agent is not there yet; what comes meanwhile is queued."""
    chat = await Chat.begin(talk, ready=False, agentId="silent")
    first, disposition = await chat.send("one")
    assert disposition == "started"
    await chat.wait("messageReceived", lambda p: p["messageId"] == first)
    assert (await chat.send("two"))[1] == "queued"
    page = await chat.open()
    assert page["session"]["state"] == "busy"
    assert page["session"]["connection"] in {"connecting", "initializing"}
    assert not chat.of("turnStarted")


async def test_a_start_in_the_background_is_tried_once_and_silent(talk: Talk) -> None:
    """# B9: only a message brings a second attempt and words."""
    chat = await Chat.begin(talk, ready=False, agentId="broken")
    await chat.wait("connectionChanged", lambda p: p["connection"] == "disconnected")
    await chat.open()
    assert {p.get("attempt", 1) for p in chat.of("connectionChanged")} == {1}
    assert not chat.of("notice")
    assert not (await chat.open())["session"]["paused"]
    message_id, disposition = await chat.send("now it matters")
    assert disposition == "started"
    notice = await chat.wait("notice", lambda p: p["level"] == "error")
    assert "3" in notice["text"]
    assert max(p.get("attempt", 1) for p in chat.of("connectionChanged")) == 2
    page = await chat.open()
    assert [item["messageId"] for item in page["pending"]] == [message_id]


async def test_a_send_to_a_closed_session_is_told_all_the_same(chat: Chat) -> None:
    """# B1 B19: its own messageReceived or messageQueued arrives; nothing else of a session that is not shown."""
    await chat.call("closeSession")
    mark = chat.client.mark()
    first, disposition = await chat.send("#hang\n#say unseen")
    assert disposition == "started"
    await chat.wait("messageReceived", lambda p: p["messageId"] == first)
    second, disposition = await chat.send("#say unseen too")
    assert disposition == "queued"
    await chat.wait("messageQueued", lambda p: p["messageId"] == second)
    await chat.call("cancelTurn")
    await chat.call("resumeQueue")
    await chat.wait("messageReceived", lambda p: p["messageId"] == second)
    await chat.at_rest(mark)
    assert set(chat.names(mark)) <= {"messageReceived", "messageQueued", "sessionChanged"}
    assert [m["text"] for m in (await chat.open())["messages"]][-1] == "unseen too"


async def test_odd_texts_reach_the_agent_byte_for_byte(chat: Chat) -> None:
    """# B10: line ends, blanks at both ends, a BOM, controls, characters beyond the BMP; also when queued."""
    texts = [
        "\r\nx\r",
        "  lead and trail \n\n",
        "\ufeffbom",
        "\x01\x1b\x7f\x85\u2028\u2029",
        "🏳\ufe0f\u200d🌈 e\u0301 \U0010ffff",
    ]
    texts += ['{"jsonrpc": "2.0", "method": "exit"}', "Content-Length: 3\r\n\r\n{}", "\\u0041 \\n %s"]
    await chat.busy()
    for text in texts:
        assert (await chat.send(text))[1] == "queued"
    assert [item["text"] for item in (await chat.open())["pending"]] == texts
    await chat.call("cancelTurn")
    await chat.call("resumeQueue")  # at once: what is asked last counts, however long the agent takes to end
    await chat.ended(1 + len(texts))
    assert chat.prompts()[1:] == texts
    assert [m["text"] for m in (await chat.open())["messages"] if m["kind"] == "user"][1:] == texts


async def test_commands_and_skills_go_as_text(chat: Chat) -> None:
    """PROTOCOL.md, sendMessage: `kind` is how it is shown; the agent gets the text."""
    for kind in ("command", "skill", "text"):
        await chat.do(f"/{kind} with words", kind=kind)
    assert chat.prompts() == ["/command with words", "/skill with words", "/text with words"]
    users = [m for m in (await chat.open())["messages"] if m["kind"] == "user"]
    assert [m.get("sendKind", "text") for m in users] == ["command", "skill", "text"]
    with pytest.raises(RpcError) as refused:
        await chat.send("x", kind="shout")
    assert refused.value.code == -32602
    assert "kind" in str(refused.value.data)
