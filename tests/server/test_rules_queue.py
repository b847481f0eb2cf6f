"""BEHAVIOUR.md, "The pending queue", "Draining" and "Pausing" (B11 to B31), as an editor sees them."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.server.harness import Chat, Talk, agents, server, until

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_queue")]

MIB = 1 << 20


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    settings = agents(
        plain={},
        broken={"exit_at": "initialize", "code": 4, "stderr": "no licence"},
        locked={"new_error": [-32000, "log in first"], "init": {"authMethods": [{"id": "key", "name": "Key"}]}},
    )
    async with server(tmp_path_factory.mktemp("queue"), settings) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(talk: Talk) -> Chat:
    return await Chat.begin(talk)


async def fill(chat: Chat, *texts: str) -> list[str]:
    """A running turn and waiting messages; returns the ids of these."""
    await chat.busy()
    return [(await chat.send(text))[0] for text in texts]


async def release(chat: Chat) -> None:
    """The running turn ends, and the queue goes on."""
    await chat.call("cancelTurn")
    await chat.call("resumeQueue")


async def waiting(chat: Chat) -> list[str]:
    return [item["text"] for item in (await chat.open())["pending"]]


# ------------------------------------------------------------------------------------- the pending queue


async def test_the_limits_of_one_message_are_bytes_and_files(chat: Chat) -> None:
    """# B11: 1 MiB of text in UTF-8 and 50 files are taken, one more of either is refused, also while free."""
    assert await chat.refusal("sendMessage", messageId="x", text="ä" * (MIB // 2) + "x") == "textTooLong"
    files = [{"path": str(chat.folder / f"{n}.txt"), "text": str(n)} for n in range(51)]
    assert await chat.refusal("sendMessage", messageId="x", text="x", attachments=files) == "tooManyFiles"
    await chat.busy()
    await chat.send("ä" * (MIB // 2), attachments=files[:50])
    (item,) = (await chat.open())["pending"]
    assert len(item["text"].encode()) == MIB
    assert [Path(path).read_text() for path in item["files"]] == [str(n) for n in range(50)]
    assert await chat.refusal("editPending", messageId=item["messageId"], text="x" * (MIB + 1)) == "textTooLong"
    edit = {"messageId": item["messageId"], "text": "x", "attachments": files}
    assert await chat.refusal("editPending", **edit) == "tooManyFiles"
    assert (await chat.open())["pending"] == [item]
    await chat.call("clearPending")


async def test_the_limits_of_the_queue(chat: Chat) -> None:
    """# B11: 100 items; what is refused changes nothing, not even a steer, and there is room again afterwards."""
    await chat.busy()
    ids = [(await chat.send(str(number)))[0] for number in range(100)]
    assert await chat.refusal("sendMessage", messageId="no", text="y") == "queueFull"
    assert await chat.refusal("sendMessage", messageId="no", text="y", now=True) == "queueFull"
    page = await chat.open()
    assert [item["text"] for item in page["pending"]] == [str(number) for number in range(100)]
    assert page["session"]["state"] == "busy"
    await chat.call("removePending", messageId=ids[0])
    assert (await chat.send("y"))[1] == "queued"
    await chat.call("clearPending")


async def test_items_have_id_place_time_and_files(chat: Chat) -> None:
    """# B12 B20 PROTOCOL.md, PendingItem: sent in one instant, they keep the order of sending."""
    note = {"path": str(chat.folder / "a b.txt"), "text": "snapshot"}
    await chat.busy()
    for number in range(5):
        await chat.send(f"text {number}", f"{chat.session_id} {number}", attachments=[note] if number == 1 else None)
    items = (await chat.open())["pending"]
    assert [item["position"] for item in items] == [0, 1, 2, 3, 4]
    assert [item["text"] for item in items] == [f"text {number}" for number in range(5)]
    assert {item["state"] for item in items} == {"pending"}
    assert {item["sessionId"] for item in items} == {chat.session_id}
    assert all(abs(item["createdAt"] - items[0]["createdAt"]) < 60_000 for item in items)
    assert [len(item["files"]) for item in items] == [0, 1, 0, 0, 0]
    assert Path(items[1]["files"][0]).read_text() == "snapshot"
    assert items[1]["attachments"][0]["path"] == note["path"]
    shown = chat.of("pendingChanged")[-1]
    assert shown["pending"] == items
    assert shown["paused"] is False
    await chat.call("clearPending")


async def test_an_edit_keeps_or_replaces_the_files(chat: Chat) -> None:
    """# B13: without `attachments` they stay; with them they are new; id and place stay; the agent gets the last."""
    notes = [{"path": str(chat.folder / f"{name}.txt"), "text": name} for name in ("old", "new")]
    await chat.busy()
    await chat.send("first")
    message_id, _ = await chat.send("text", attachments=notes[:1])
    await chat.send("last")
    await chat.call("editPending", messageId=message_id, text="text 2")
    item = (await chat.open())["pending"][1]
    assert (item["messageId"], item["text"], Path(item["files"][0]).read_text()) == (message_id, "text 2", "old")
    await chat.call("editPending", messageId=message_id, text="text 3", attachments=notes[1:])
    edited = (await chat.open())["pending"][1]
    assert Path(edited["files"][0]).read_text() == "new"
    assert not Path(item["files"][0]).exists()
    await chat.call("editPending", messageId=message_id, text="text 4", attachments=[])
    assert (await chat.open())["pending"][1]["files"] == []
    assert await chat.refusal("editPending", messageId=message_id, text="\0") == "invalidText"
    assert await waiting(chat) == ["first", "text 4", "last"]
    await release(chat)
    await chat.ended(4)
    assert chat.prompts()[1:] == ["first", "text 4", "last"]


async def test_moves_are_clamped_at_both_ends(chat: Chat) -> None:
    """# B15: and stable; a message of another session is unknown here."""
    ids = await fill(chat, "a", "b", "c")
    await chat.call("movePending", messageId=ids[2], position=-7)
    assert await waiting(chat) == ["c", "a", "b"]
    await chat.call("movePending", messageId=ids[2], position=0)
    assert await waiting(chat) == ["c", "a", "b"]
    await chat.call("movePending", messageId=ids[2], position=10**15)
    assert await waiting(chat) == ["a", "b", "c"]
    other = await Chat.begin(Talk(chat.client, chat.home))
    for method, more in (("movePending", {"position": 0}), ("removePending", {}), ("sendPendingNow", {})):
        assert await other.refusal(method, messageId=ids[0], **more) == "unknownMessage"
    assert await waiting(chat) == ["a", "b", "c"]
    await chat.call("clearPending")


async def test_what_was_removed_is_unknown(chat: Chat) -> None:
    """# B14: removed twice, edited after the removal; the rest is untouched."""
    ids = await fill(chat, "a", "b")
    await chat.call("removePending", messageId=ids[0])
    for method, more in (("removePending", {}), ("editPending", {"text": "x"}), ("movePending", {"position": 0})):
        assert await chat.refusal(method, messageId=ids[0], **more) == "unknownMessage"
    assert await waiting(chat) == ["b"]
    await release(chat)
    await chat.ended(2)
    assert chat.prompts()[1:] == ["b"]


async def test_the_head_is_held_while_it_is_edited(chat: Chat) -> None:
    """# B16: the end of a turn takes nothing, the list is edited, the release drains at once."""
    ids = await fill(chat, "a", "b")
    await chat.call("holdPending", hold=True)
    await release(chat)
    await chat.ended()
    await chat.wait("sessionChanged", lambda p: p["session"]["state"] == "idle" and p["session"]["pendingCount"] == 2)
    edits = [
        {"op": "edit", "messageId": ids[0], "text": " "},
        {"op": "move", "messageId": ids[1], "position": 0},
        {"op": "edit", "messageId": ids[1], "text": "b2"},
        {"op": "remove", "messageId": "nobody"},
    ]
    results = (await chat.call("applyPendingEdits", edits=edits))["results"]
    assert [(r["messageId"], r["applied"], r.get("reason")) for r in results] == [
        (ids[0], False, "emptyText"),
        (ids[1], True, None),
        (ids[1], True, None),
        ("nobody", False, "unknownMessage"),
    ]
    assert await waiting(chat) == ["b2", "a"]
    assert (await chat.send("c"))[1] == "queued"
    assert len(chat.prompts()) == 1
    await chat.call("holdPending", hold=False)
    await chat.ended(4)
    assert chat.prompts()[1:] == ["b2", "a", "c"]


async def test_drain_all_is_one_prompt_of_separate_blocks(talk: Talk) -> None:
    """# B17: one messageReceived each, one turn; `now` and the settings' default apart."""
    home = talk.home / "all"
    async with server(home, {**agents(plain={}), "queue": {"drain": "all"}}) as eager:
        chat = await Chat.begin(eager)
        note = {"path": str(chat.folder / "n.txt"), "text": "attached"}
        await chat.busy()
        ids = [
            (await chat.send(text, attachments=[note] if text == "two" else None))[0]
            for text in ("one", "two", "three")
        ]
        await release(chat)
        await chat.ended(2)
        prompt = chat.received_by_agent()[1]["prompt"]
        assert [block["text"] for block in prompt if block["type"] == "text"] == ["one", "two", "three"]
        kinds = [block["type"] for block in prompt]
        assert kinds.index("text") < kinds.index("resource") < len(kinds) - 1
        assert [p["messageId"] for p in chat.of("messageReceived")][1:] == ids
        assert [p["messageId"] for p in chat.of("turnStarted")][1:] == [ids[0]]
        page = await chat.open()
        turns = {m["turnId"] for m in page["messages"] if m["messageId"] in ids}
        assert turns == {chat.ends()[1]["turnId"]}
        assert [m["seq"] for m in page["messages"]] == sorted({m["seq"] for m in page["messages"]})


def found_in(folder: Path, secret: str) -> list[str]:
    """The files below the folder that hold the secret."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "work" not in path.parts]
    return [str(path) for path in paths if secret.encode() in path.read_bytes()]


@pytest.mark.parametrize("how", ["clearPending", "removePending", "deleteSession"])
async def test_what_is_cleared_or_deleted_is_nowhere_on_the_disk(chat: Chat, how: str) -> None:
    """# B18: text and attachments; nothing of it is sent later."""
    secret = f"secret of {how} {chat.session_id[:8]}"
    file = chat.folder / "secret.txt"
    file.write_text(f"file with the {secret}")
    await chat.busy(f"#hang\n#say {secret} too" if how == "deleteSession" else "#hang")
    message_id, _ = await chat.send(secret, attachments=[{"path": str(file)}])
    assert len(found_in(chat.home, secret)) >= 2
    mark = chat.client.mark()
    await chat.call(how, **({"messageId": message_id} if how == "removePending" else {}))
    await until(lambda: not found_in(chat.home, secret))
    if how == "deleteSession":
        await chat.wait("sessionDeleted", since=mark)
        assert await chat.refusal("openSession") == "unknownSession"
        assert await chat.refusal("sendMessage", messageId="x", text="x") == "unknownSession"
        assert await chat.refusal("deleteSession") == "unknownSession"
        listed = await chat.client.request("agentik/listSessions", {"cwd": str(chat.folder)})
        assert listed["sessions"] == []
    else:
        await chat.wait("pendingChanged", lambda p: p["pending"] == [], since=mark)
        await release(chat)
        await chat.ended()
        await chat.do("#say fine")
    assert not any(secret == prompt for prompt in chat.prompts())


async def test_the_queue_drains_when_the_chat_is_closed(chat: Chat) -> None:
    """# B19"""
    await chat.send("#sleep 100\n#say one")
    await chat.send("#say two")
    await chat.send("#say three")
    mark = chat.client.mark()
    await chat.call("closeSession")
    await chat.at_rest(mark)
    assert len(chat.prompts()) == 3
    assert set(chat.names(mark)) <= {"sessionChanged", "turnStarted", "messageReceived", "streamingToken"}
    page = await chat.open()
    assert [m["text"] for m in page["messages"] if m["kind"] == "agent"] == ["one", "two", "three"]


async def test_queue_and_pause_survive_a_restart(talk: Talk) -> None:
    """# B20 B28 B31: items as they were, a pause of the user stays the user's; the notice says that nothing is sent."""
    home = talk.home / "restart"
    async with server(home, agents(plain={})) as first:
        chat = await Chat.begin(first)
        await chat.busy()
        for text in ("one", "two"):
            await chat.send(text, attachments=[{"path": str(chat.folder / "n"), "text": f"file of {text}"}])
        await chat.call("pauseQueue")
        await chat.wait("pendingChanged", lambda p: p.get("pauseReason") == "user")
        before = (await chat.open())["pending"]
    async with server(home, agents(plain={})) as second:
        again = Chat(second.client, home, chat.folder)
        page = await again.open(chat.session_id)
        assert page["pending"] == before
        assert [Path(item["files"][0]).read_text() for item in before] == ["file of one", "file of two"]
        assert (page["session"]["paused"], page["session"]["pauseReason"]) == (True, "user")
        assert page["session"]["pendingCount"] == 2
        await again.call("resumeQueue")
        await again.ended(2)
        assert again.prompts()[1:] == ["one", "two"]


async def test_a_restored_queue_is_told_by_a_notice_or_runs_by_itself(talk: Talk) -> None:
    """# B31: `queue.onRestore`."""
    home = talk.home / "restored"
    async with server(home, agents(plain={})) as first:
        chats = [await Chat.begin(first) for _ in range(2)]
        for chat in chats:
            await fill(chat, "one", "two")
    async with server(home, agents(plain={})) as second:
        again = Chat(second.client, home, chats[0].folder)
        page = await again.open(chats[0].session_id)
        assert (page["session"]["paused"], page["session"]["pauseReason"]) == (True, "restore")
        await again.wait("notice", lambda p: "paused" in p["text"] and "\n" not in p["text"])
        await again.connected()
        assert len(again.prompts()) == 1
        assert (await again.send("three"))[1] == "queued"  # B30: by itself paused, so a send lifts it
        await again.ended(3)
        assert again.prompts()[1:] == ["one", "two", "three"]
    async with server(home, {**agents(plain={}), "queue": {"onRestore": "run"}, "syncInterval": 0.2}) as third:
        again = Chat(third.client, home, chats[1].folder)
        await again.open(chats[1].session_id)
        await again.ended(2)
        assert again.prompts()[1:] == ["one", "two"]


# ---------------------------------------------------------------------------------------------- draining


async def test_turns_of_an_instant_free_the_session(chat: Chat) -> None:
    """# B21 B22 B27: forty of them, sent as fast as they can be; all are delivered in order and nothing hangs."""
    futures = [
        chat.client.send_request(
            "agentik/sendMessage",
            {"sessionId": chat.session_id, "messageId": f"{chat.session_id}.{n}", "text": f"#end end_turn\n{n}"},
        )
        for n in range(40)
    ]
    answers = [await chat.client.answer_of(future) for future in futures]
    assert answers[0]["disposition"] == "started"
    await chat.ended(40)
    assert chat.prompts() == [f"#end end_turn\n{n}" for n in range(40)]
    await chat.wait("pendingChanged", lambda p: p["pending"] == [])
    page = await chat.open()
    assert (page["session"]["state"], page["pending"]) == ("idle", [])
    queued, received = chat.of("messageQueued"), chat.of("messageReceived")
    assert [p["messageId"] for p in received] == [f"{chat.session_id}.{n}" for n in range(40)]
    newest = {p["messageId"]: p["revision"] for p in received}
    assert all(newest[p["messageId"]] > p["revision"] for p in queued)  # B25


async def test_a_tick_without_pending_messages_does_nothing(talk: Talk) -> None:
    """# B23: no prompt, no turn, no word and no write, in an owner and in a second editor."""
    home = talk.home / "ticks"
    settings = {**agents(plain={}, silent={"no_init": True}), "syncInterval": 0.1, "timeouts": {"startup": 0.7}}
    async with server(home, settings) as owner, server(home, settings) as second:
        chat = await Chat.begin(owner)
        other = await chat.at(second)
        await chat.do("#say x")
        await chat.busy()  # a busy session, too
        await other.wait("turnStarted", lambda _: len(other.of("turnStarted")) == 2)
        await other.wait(
            "sessionChanged", lambda p: p["session"]["state"] == "busy" and p["session"]["title"] == "#say x"
        )
        with contextlib.closing(sqlite3.connect(home / "agentik.db")) as db:

            def version() -> int:
                return int(db.execute("PRAGMA data_version").fetchone()[0])

            async def ticks() -> None:
                """Seven of them: a start of an agent that does not answer takes so long, and writes nothing."""
                await owner.client.request("agentik/checkAgent", {"agentId": "silent"})

            await ticks()
            before, marks = version(), (owner.client.mark(), second.client.mark())
            await ticks()
            assert version() == before
            assert not owner.client.notifications[marks[0] :]
            assert not second.client.notifications[marks[1] :]
        assert len(chat.prompts()) == 2


async def test_a_message_that_could_not_be_sent_waits_again(talk: Talk) -> None:
    """# B25 B26 B39: received, taken back with a tombstone, queued with a higher revision, paused with the reason."""
    chat = await Chat.begin(talk, ready=False, agentId="broken")
    message_id, _ = await chat.send("hello")
    back = await chat.wait("messageQueued", lambda p: p["messageId"] == message_id)
    paused = await chat.wait("pendingChanged", lambda p: p["paused"])
    received = chat.of("messageReceived")[0]
    gone = await chat.wait("messageUpdated", lambda p: p["message"].get("deleted") is True)
    assert gone["message"]["messageId"] == message_id
    assert received["revision"] < gone["revision"] <= back["revision"]
    assert back["position"] == 0
    assert (paused["pauseReason"], [item["messageId"] for item in paused["pending"]]) == ("start", [message_id])
    assert "no licence" in paused["pauseDetail"]
    assert not chat.of("turnStarted")
    page = await chat.open()
    assert page["messages"] == []
    assert (page["session"]["paused"], page["session"]["pauseReason"]) == (True, "start")
    after = await chat.open(after=received["revision"])
    assert [(m["messageId"], m.get("deleted")) for m in after["messages"]] == [(message_id, True)]
    await chat.call("removePending", messageId=message_id)
    assert not (await chat.open())["session"]["paused"]  # B28


async def test_a_prompt_that_cannot_be_made_is_not_sent(chat: Chat) -> None:
    """# B26 B35: its kept file is gone: back to the head, paused, one end for the start that was told."""
    file = {"path": str(chat.folder / "n.txt"), "text": f"of {chat.session_id}"}
    await chat.busy()
    first, _ = await chat.send("one", attachments=[file])
    second, _ = await chat.send("two")
    (stored,) = (await chat.open())["pending"][0]["files"]
    shutil.rmtree(Path(stored).parent)
    await release(chat)
    paused = await chat.wait("pendingChanged", lambda p: p.get("pauseReason") == "error")
    assert [item["messageId"] for item in paused["pending"]] == [first, second]
    assert "n.txt" in paused["pauseDetail"]
    assert len(chat.prompts()) == 1
    assert len(chat.of("turnStarted")) == len(chat.of("turnEnded"))
    await chat.call("removePending", messageId=first)
    await chat.call("resumeQueue")
    await until(lambda: chat.prompts()[1:] == ["two"])


# ----------------------------------------------------------------------------------------------- pausing


async def test_an_empty_idle_queue_is_never_paused(chat: Chat) -> None:
    """# B28: pausing it does nothing; a pause ends with the turn when nothing waits."""
    mark = chat.client.mark()
    assert await chat.call("pauseQueue") == {}
    assert (await chat.open())["session"]["paused"] is False
    assert not [p for p in chat.of("pendingChanged", mark) if p["paused"]]
    await chat.send("#sleep 150\n#say x")
    await chat.call("pauseQueue")
    await chat.wait("pendingChanged", lambda p: p["paused"] and p["pauseReason"] == "user", since=mark)
    assert (await chat.open())["session"]["paused"] is True
    await chat.ended()
    await chat.wait("pendingChanged", lambda p: not p["paused"], since=chat.client.mark() - 5)
    session = (await chat.open())["session"]
    assert (session["paused"], session.get("pauseReason")) == (False, None)
    await chat.do("#say y")


async def test_a_pause_by_the_user_holds_over_the_end_of_the_turn(chat: Chat) -> None:
    """# B28 B30: nothing is drained, sends join, and the view says why; removing the last item ends it."""
    await chat.send("#sleep 100\n#say x")
    first, _ = await chat.send("#say one")
    await chat.call("pauseQueue")
    await chat.ended()
    assert (await chat.send("#say two"))[1] == "queued"
    shown = chat.of("pendingChanged")[-1]
    assert (shown["paused"], shown["pauseReason"], len(shown["pending"])) == (True, "user", 2)
    listed = await chat.client.request("agentik/listSessions", {"cwd": str(chat.folder)})
    assert [(s["paused"], s["pauseReason"], s["pendingCount"]) for s in listed["sessions"]] == [(True, "user", 2)]
    await chat.call("removePending", messageId=first)
    assert (await chat.open())["session"]["paused"] is True
    await chat.call("clearPending")
    assert (await chat.open())["session"]["paused"] is False
    await chat.do("#say three")
    assert len(chat.prompts()) == 2


ENDS = {
    "#error -32603 it broke": ("error", "error"),
    '#error 500 {"error": {"message": "overloaded"}}': ("error", "error"),
    "#exit 5": ("crashed", "crash"),
    "#crash": ("crashed", "crash"),
    "#end refusal": ("refusal", "refusal"),
    "#end end_turn": ("end_turn", None),
    "#end max_tokens": ("max_tokens", None),
    "#end max_turn_requests": ("max_turn_requests", None),
    "#end something_new": ("other", None),
    "#result {}": ("other", None),
}


@pytest.mark.parametrize("how", ENDS)
async def test_the_queue_pauses_by_itself_with_a_reason(chat: Chat, how: str) -> None:
    """# B29 B30 PROTOCOL.md, turnEnded: not on a normal end; the next send goes to the tail and the head starts."""
    stop_reason, pause_reason = ENDS[how]
    await chat.send(f"#sleep 60\n{how}")
    await chat.send("#say head")
    ended = await chat.ended()
    assert ended["stopReason"] == stop_reason
    if stop_reason == "other":
        assert ended["detail"]
    if pause_reason is None:
        await chat.ended(2)
        return
    paused = await chat.wait("pendingChanged", lambda p: p["paused"])
    assert paused["pauseReason"] == pause_reason
    session = (await chat.open())["session"]
    assert (session["paused"], session["pauseReason"]) == (True, pause_reason)
    if stop_reason != "refusal":
        assert ended["error"]
        assert "\n" not in ended["error"]
    assert (await chat.send("#say tail"))[1] == "queued"
    await chat.ended(3)
    assert chat.prompts()[1:] == ["#say head", "#say tail"]
    assert not (await chat.open())["session"]["paused"]


async def test_a_login_that_is_wanted_pauses_and_logging_in_goes_on(talk: Talk) -> None:
    """# B29 and agentik/authenticate: the message waits at the head until it can be sent."""
    chat = await Chat.begin(talk, ready=False, agentId="locked")
    message_id, _ = await chat.send("#say in")
    paused = await chat.wait("pendingChanged", lambda p: p["paused"])
    assert (paused["pauseReason"], [i["messageId"] for i in paused["pending"]]) == ("auth", [message_id])
    session = (await chat.open())["session"]
    assert [method["id"] for method in session["authMethods"]] == ["key"]
    assert await chat.call("authenticate", methodId="key") == {}
    assert chat.received_by_agent("authenticate") == [{"methodId": "key"}]
    assert (await chat.ended())["stopReason"] == "end_turn"
    assert await chat.said() == "in"
    assert not (await chat.open())["session"].get("authMethods")


async def test_a_timeout_pauses(talk: Talk) -> None:
    """# B29 B33 B41: `timeout`, with what waits kept."""
    home = talk.home / "slow"
    async with server(home, {**agents(plain={}), "timeouts": {"prompt": 0.4, "cancelGrace": 0.3}}) as hasty:
        chats = [await Chat.begin(hasty) for _ in range(2)]
        for chat, text in zip(chats, ("#hang", "#ignore_cancel\n#hang"), strict=True):
            await chat.send(text)
            await chat.send("#say later")
        for chat in chats:
            ended = await chat.ended()
            assert ended["stopReason"] == "timeout"
            paused = await chat.wait("pendingChanged", lambda p: p["paused"])
            assert paused["pauseReason"] == "timeout"
            assert len(chat.received_by_agent("session/cancel")) == 1
            await chat.call("resumeQueue")
            assert (await chat.ended(2))["stopReason"] == "end_turn"
