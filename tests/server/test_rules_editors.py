"""BEHAVIOUR.md, "Two editors, restarts" (B59 to B62), and the last sentence of PROTOCOL.md's notifications."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.server.harness import Chat, Talk, agents, server, until
from tests.stdio_client import Params, RpcError, ServerGone

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_editors")]

MODES = {"modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}}


def settings() -> Params:
    return {**agents(plain={"new": MODES}, broken={"exit_at": "initialize", "code": 4}), "syncInterval": 0.5}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def owner(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    async with server(tmp_path_factory.mktemp("editors"), settings()) as talk:
        yield talk


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def second(owner: Talk) -> AsyncIterator[Talk]:
    async with server(owner.home, settings()) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(owner: Talk) -> Chat:
    return await Chat.begin(owner)


@pytest_asyncio.fixture(loop_scope="module")
async def other(chat: Chat, second: Talk) -> Chat:
    """The same session in the second editor."""
    return await chat.at(second)


async def both_have(chat: Chat, other: Chat, method: str, count: int = 1) -> tuple[list[Params], list[Params]]:
    for side in (chat, other):
        await side.wait(method, lambda _, side=side: len(side.of(method)) >= count)  # type: ignore[misc]
    return chat.of(method), other.of(method)


# --------------------------------------------------------------------------------- the same notifications


async def test_every_turn_is_told_in_its_order(chat: Chat, other: Chat) -> None:
    """# B35 B59: received, started, its texts, its messages, ended: also for turns of an instant, none twice."""
    for number in range(8):
        await chat.send(f"#think {number}?\n#tool t{number} read completed\n#say answer {number}")
    await chat.send("#end of_its_own")
    await chat.ended(9)
    await other.ended(9)
    assert other.ends() == chat.ends()
    assert other.ends()[-1]["detail"] == "of_its_own"
    for method in ("messageReceived", "turnStarted"):
        mine, theirs = await both_have(chat, other, method, 9)
        assert [p["messageId"] for p in theirs] == [p["messageId"] for p in mine]
    for turn in (p["turnId"] for p in other.ends()[:-1]):
        names = [
            (note.method.removeprefix("agentik/"), (note.params.get("message") or note.params).get("kind"))
            for note in other.client.notifications
            if turn in (note.params.get("turnId"), (note.params.get("message") or {}).get("turnId"))
        ]
        assert names[:2] == [("messageReceived", "user"), ("turnStarted", None)]
        assert names[-1] == ("turnEnded", None)
        assert ("messageUpdated", "tool") in names
        for kind in ("thought", "agent"):
            assert names.index(("streamingToken", kind)) < names.index(("messageUpdated", kind))
    texts: dict[str, str] = {}
    for token in other.of("streamingToken"):
        assert token["offset"] == len(texts.get(token["messageId"], ""))
        texts[token["messageId"]] = texts.get(token["messageId"], "") + token["text"]
    page = await other.open()
    assert texts == {m["messageId"]: m["text"] for m in page["messages"] if m["kind"] in {"agent", "thought"}}
    assert page["messages"] == (await chat.open())["messages"]


async def test_a_long_answer_grows_there_too(chat: Chat, other: Chat) -> None:
    """# B59: from what is saved of it, before it ends."""
    await chat.send("#stream 40 20")
    await other.wait("streamingToken", lambda p: p["offset"] > 0)
    assert not chat.ends()
    await other.ended()
    text = "".join(p["text"] for p in other.of("streamingToken"))
    assert text == "".join(f"tick {n} " for n in range(40))


async def test_questions_and_permissions_open_and_close_there(chat: Chat, other: Chat) -> None:
    """# B48 B59: with the outcome that was chosen; the first answer wins."""
    await chat.send("#permission p1 do this\n#ask who?\n#permission p2\n#ask what?")
    asked = (await other.wait("permissionRequested"))["permission"]
    assert asked == (await chat.wait("permissionRequested"))["permission"]
    assert (await other.open())["permissions"] == [asked]
    await other.wait("sessionChanged", lambda p: p["session"]["state"] == "waiting")
    await chat.call("answerPermission", permissionId=asked["permissionId"], optionId="no")
    assert (await other.wait("permissionResolved"))["outcome"] == "no"
    late = {"permissionId": asked["permissionId"], "optionId": "yes"}
    assert await other.refusal("answerPermission", **late) == "unknownPermission"
    question = (await other.wait("questionAsked"))["question"]
    assert question == (await chat.wait("questionAsked"))["question"]
    await other.call("answerQuestion", questionId=question["questionId"], action="accept", content={"name": "x"})
    for side in (chat, other):
        assert (await side.wait("questionResolved"))["outcome"] == "accept"
    await both_have(chat, other, "permissionRequested", 2)
    await other.call(
        "answerPermission",
        permissionId=other.of("permissionRequested")[1]["permission"]["permissionId"],
        optionId="yes",
    )
    await both_have(chat, other, "questionAsked", 2)
    await other.call("cancelTurn")
    mine, theirs = await both_have(chat, other, "questionResolved", 2)
    assert [p["outcome"] for p in theirs] == [p["outcome"] for p in mine]
    mine, theirs = await both_have(chat, other, "permissionResolved", 2)
    assert theirs == mine
    assert (await other.ended())["stopReason"] == "cancelled"


async def test_queue_and_pause_are_told_there(chat: Chat, other: Chat) -> None:
    """# B25 B29 B59: with reason and detail, a crash with its words."""
    await chat.busy("#wait_cancel\n#stderr the last words\n#exit 9")
    first, _ = await chat.send("#say one")
    second, disposition = await other.send("#say two")
    assert disposition == "queued"
    for side in (chat, other):
        queued = await side.wait("messageQueued", lambda p: p["messageId"] == second)
        assert (queued["position"], queued["display"]) == (1, "#say two")
    await other.call("movePending", messageId=second, position=0)
    await chat.wait("pendingChanged", lambda p: [i["messageId"] for i in p["pending"]] == [second, first])
    await other.call("editPending", messageId=first, text="#say edited")
    await chat.wait("pendingChanged", lambda p: p["pending"] and p["pending"][-1]["text"] == "#say edited")
    await other.call("pauseQueue")
    for side in (chat, other):
        assert (await side.wait("pendingChanged", lambda p: p["paused"]))["pauseReason"] == "user"
    await chat.call("resumeQueue")
    os.kill(await agent_pid(chat), signal.SIGKILL)
    for side in (chat, other):
        assert (await side.ended())["stopReason"] == "crashed"
        paused = await side.wait("pendingChanged", lambda p: p.get("pauseReason") == "crash")
        assert paused["pauseDetail"] == side.ends()[0]["error"] != ""
    assert other.of("pendingChanged")[-1] == chat.of("pendingChanged")[-1]
    await other.call("resumeQueue")
    await both_have(chat, other, "turnEnded", 3)
    assert chat.prompts()[1:] == ["#say two", "#say edited"]


async def agent_pid(chat: Chat) -> int:
    status = await chat.client.request("agentik/status", {})
    (pids,) = [agent["pids"] for agent in status["agents"] if agent["sessionId"] == chat.session_id]
    return int(pids[1])


async def test_changes_of_the_session_are_told_there(chat: Chat, other: Chat) -> None:
    """# B59: title, modes, commands, usage, state and connection; a title that either gives holds for both."""
    await chat.do("#mode b\n#commands plan\n#usage 1 2\n#say x")
    changed = await other.wait(
        "sessionChanged", lambda p: p["session"].get("usage") is not None and p["session"]["state"] == "idle"
    )
    session = changed["session"]
    assert (session["modeId"], session["owned"]) == ("b", False)
    assert [command["name"] for command in session["commands"]] == ["plan"]
    assert {p["session"]["state"] for p in other.of("sessionChanged")} >= {"idle"}
    await chat.call("renameSession", title="by the owner")
    await other.wait("sessionChanged", lambda p: p["session"]["title"] == "by the owner")
    await other.call("renameSession", title="by the other")
    for side in (chat, other):
        await side.wait("sessionChanged", lambda p: p["session"]["title"] == "by the other")
    await chat.do("#title by the agent")
    for side in (chat, other):
        assert (await side.open())["session"]["title"] == "by the other"
        listed = await side.client.request("agentik/listSessions", {"cwd": str(side.folder)})
        assert [(s["title"], s["owned"]) for s in listed["sessions"]] == [("by the other", side is chat)]
    mark = other.client.mark()
    os.kill(await agent_pid(chat), signal.SIGKILL)
    await other.wait("connectionChanged", lambda p: p["connection"] == "disconnected", since=mark)


async def test_notices_are_told_there(chat: Chat, other: Chat, owner: Talk, second: Talk) -> None:
    """# B59: what the person should read: a context that was reset, an agent that does not start."""
    await chat.do("#say x")
    mark = chat.client.mark()
    os.kill(await agent_pid(chat), signal.SIGKILL)
    await chat.wait("connectionChanged", lambda p: p["connection"] == "disconnected", since=mark)
    await chat.do("#say y")
    mine, theirs = await both_have(chat, other, "notice")
    assert theirs == mine
    dead = await Chat.begin(owner, ready=False, agentId="broken")
    there = await dead.at(second)
    await dead.send("hello")
    mine, theirs = await both_have(dead, there, "notice")
    assert theirs == mine
    assert theirs[0]["level"] == "error"


async def test_a_deleted_session_is_gone_there(chat: Chat, other: Chat) -> None:
    """# B18 B35 B59: also in the middle of a turn, which ends, once; only its owner may delete it."""
    await chat.send("#permission p\n#hang")
    await both_have(chat, other, "permissionRequested")
    assert await other.refusal("deleteSession") == "notOwner"
    assert await other.refusal("setMode", modeId="b") == "notOwner"
    agent = await agent_pid(chat)
    await chat.call("deleteSession")
    for side in (chat, other):
        await side.wait("sessionDeleted")
    assert [p["stopReason"] for p in chat.ends()] == ["cancelled"]
    assert len(chat.of("permissionResolved")) == 1
    assert chat.names()[-1] == "sessionDeleted"
    await until(lambda: not is_alive(agent))
    assert [p["stopReason"] for p in other.ends()] == ["cancelled"]
    assert len(other.of("permissionResolved")) == 1
    assert await other.refusal("openSession") == "unknownSession"


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ------------------------------------------------------------------------------------- the other may act


async def test_an_editor_that_has_not_opened_the_session_may_act(chat: Chat, second: Talk) -> None:
    """# B1 B59: cancel, answer and send do not depend on what it shows."""
    stranger = Chat(second.client, second.home, chat.folder)
    stranger.session_id = chat.session_id
    assert await stranger.call("cancelTurn") == {"cancelled": False}
    await chat.send("#permission p")
    asked = (await chat.wait("permissionRequested"))["permission"]
    while not (await stranger.open())["permissions"]:  # told before it is committed
        pass
    await stranger.call("closeSession")
    bad = {"permissionId": asked["permissionId"], "optionId": "bad"}
    assert await stranger.refusal("answerPermission", **bad) == "unknownOption"
    await stranger.call("answerPermission", permissionId=asked["permissionId"], optionId="yes")
    assert (await chat.wait("permissionResolved"))["outcome"] == "yes"
    await chat.ended()
    message_id, disposition = await stranger.send("#hang\n#say from afar")
    assert disposition == "queued"
    await chat.wait("messageReceived", lambda p: p["messageId"] == message_id)
    await stranger.wait("messageReceived", lambda p: p["messageId"] == message_id)
    await until(lambda: len(chat.prompts()) == 2)
    assert await stranger.call("cancelTurn") == {"cancelled": True}
    assert (await chat.ended(2))["stopReason"] == "cancelled"
    assert not stranger.of("streamingToken")


async def test_the_other_editor_holds_the_head(chat: Chat, other: Chat) -> None:
    """# B16 B59: what it edits is not taken by the owner meanwhile."""
    await chat.busy()
    first, _ = await chat.send("#say one")
    await other.call("holdPending", hold=True)
    await chat.wait("pendingChanged", lambda p: p.get("heldUntil"))
    await chat.call("cancelTurn")
    await chat.call("resumeQueue")
    await chat.ended()
    edits = [{"op": "edit", "messageId": first, "text": "#say edited"}]
    assert (await other.call("applyPendingEdits", edits=edits))["results"] == [{"messageId": first, "applied": True}]
    assert len(chat.prompts()) == 1
    await other.call("holdPending", hold=False)
    await chat.ended(2)
    assert chat.prompts()[1] == "#say edited"


async def test_the_other_editor_restarts_the_agent(chat: Chat, other: Chat) -> None:
    """# B59"""
    before = await agent_pid(chat)
    mark = chat.client.mark()
    assert await other.call("restartAgent") == {}
    await chat.wait("connectionChanged", lambda p: p["connection"] == "has_session", since=mark)
    assert await agent_pid(chat) != before


async def test_a_dead_owner_is_replaced_with_all_its_ends(second: Talk) -> None:
    """# B35 B59 B60: the open turn ends as crashed, its permission closes, the queue waits paused, and goes on here."""
    async with server(second.home, settings()) as mortal:
        chat = await Chat.begin(mortal)
        other = await chat.at(second)
        await chat.send("#say partly\n#tool t edit in_progress\n#permission p")
        await chat.send("#say later")
        await other.wait("streamingToken")
        await other.wait("permissionRequested")
        await other.wait("turnStarted")
        await other.wait("messageQueued")
        agent = await agent_pid(chat)
        killed = time.monotonic()
        mortal.client.kill()
        await mortal.client.wait_exit()
    await other.wait("sessionChanged", lambda p: p["session"]["owned"])
    assert time.monotonic() - killed < 5  # 2.5 s on a machine that is not busy
    assert [p["stopReason"] for p in other.ends()] == ["crashed"]
    assert [p["turnId"] for p in other.ends()] == [p["turnId"] for p in other.of("turnStarted")]
    assert len(other.of("permissionResolved")) == 1
    assert other.of("pendingChanged")[-1]["pauseReason"] == "restore"
    await until(lambda: not is_alive(agent))
    page = await other.open()
    assert page["permissions"] == []
    assert [(m["kind"], m["text"]) for m in page["messages"]][1] == ("agent", "partly")
    assert page["messages"][0]["status"] == "unknown"
    assert "streaming" not in {m["status"] for m in page["messages"]}
    assert all(m["tool"]["status"] == "failed" for m in page["messages"] if m["kind"] == "tool")
    await other.call("resumeQueue")
    await other.ended(2)
    assert other.prompts()[-1] == "#say later"


# --------------------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize("how", ["EOF", "SIGTERM", "SIGHUP", "exit", "shutdown"])
async def test_an_end_during_a_turn_is_quick_and_loses_nothing(owner: Talk, how: str) -> None:
    """# B60 B61: with an agent that hears nothing; open requests are answered; on return it is as after a crash."""
    home = owner.home / f"end {how}"
    async with server(home, settings()) as talk:
        chat = await Chat.begin(talk)
        await chat.busy("#ignore_cancel\n#say partly\n#hang")
        waiting, _ = await chat.send("#say later")
        agent = await agent_pid(chat)
        check = talk.client.send_request("agentik/checkAgent", {"agentId": "plain"})
        begun = time.monotonic()
        match how:
            case "EOF":
                talk.client.close_stdin()
            case "exit":
                talk.client.notify("exit")
            case "shutdown":
                await talk.client.request("shutdown")
                assert check.done()  # answered before
                with pytest.raises(RpcError) as refused:
                    await talk.client.request("agentik/status", {})
                assert refused.value.code == -32600
                talk.client.notify("exit")
            case _:
                os.kill(talk.client.pid, getattr(signal, how))
        code = await talk.client.wait_exit()
        assert time.monotonic() - begun < 5  # B61: the plugin waits 2 s
        assert code == (1 if how == "exit" else 0)
        assert check.done()
        assert not isinstance(check.exception(), ServerGone)
        await until(lambda: not is_alive(agent))
    if how not in {"EOF", "shutdown"}:
        return
    async with server(home, settings()) as talk:
        again = Chat(talk.client, home, chat.folder)
        page = await again.open(chat.session_id)
        assert [(m["text"], m["status"]) for m in page["messages"]] == [
            ("#ignore_cancel\n#say partly\n#hang", "unknown"),
            ("partly", "interrupted"),
        ]
        assert [item["messageId"] for item in page["pending"]] == [waiting]
        assert (page["session"]["state"], page["session"]["pauseReason"]) == ("idle", "restore")
        assert not [p for p in again.of("notice") if p["level"] == "error"]
        assert len(again.prompts()) == 1


async def test_messages_of_a_killed_server_are_there_once(owner: Talk) -> None:
    """# B5 B6 B60: killed while the agent starts: what was acknowledged waits again, at the head, in order."""
    home = owner.home / "killed"
    async with server(home, agents(silent={"no_init": True}, plain={})) as talk:
        chat = await Chat.begin(talk, ready=False)
        ids = [(await chat.send(f"#say {number}"))[0] for number in range(3)]
        talk.client.kill()
        await talk.client.wait_exit()
    async with server(home, agents(silent={}, plain={})) as talk:
        again = Chat(talk.client, home, chat.folder)
        page = await again.open(chat.session_id)
        assert [item["messageId"] for item in page["pending"]] == ids
        assert page["messages"] == []
        assert page["session"]["pauseReason"] == "restore"
        await again.call("resumeQueue")
        await again.ended(3)
        assert again.prompts() == ["#say 0", "#say 1", "#say 2"]


async def test_two_servers_write_at_once(chat: Chat, other: Chat) -> None:
    """# B24 B62: sends, edits and removals from both, each answered truly; none is lost, none comes twice."""
    await chat.busy()
    sent = {}
    for number in range(15):
        for side in (chat, other):
            name = f"{side.client.pid}.{number}.{chat.session_id[:6]}"
            sent[name] = side.client.send_request(
                "agentik/sendMessage", {"sessionId": chat.session_id, "messageId": name, "text": name}
            )
    for future in sent.values():
        assert (await chat.client.answer_of(future))["disposition"] == "queued"
    removed = list(sent)[::5]
    await asyncio.gather(
        *(side.call("removePending", messageId=name) for name, side in zip(removed, (chat, other) * 3, strict=True))
    )
    await other.call("cancelTurn")
    await other.call("resumeQueue")
    await chat.ended()
    await other.call("resumeQueue")
    await chat.ended(1 + len(sent) - len(removed))
    assert sorted(chat.prompts()[1:]) == sorted(set(sent) - set(removed))
    await other.ended(1 + len(sent) - len(removed))
    assert (await other.open())["messages"] == (await chat.open())["messages"]
