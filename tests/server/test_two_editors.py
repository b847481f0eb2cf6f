"""Two servers on one database: one owner a session, both see everything, a dead owner is replaced (B59)."""

from __future__ import annotations

from pathlib import Path

from tests.server.harness import Talk, server, until


async def pair(owner: Talk, other: Talk) -> None:
    """`other` opens the session of `owner`."""
    await owner.new_session()
    await owner.connected()
    page = await other.open(owner.session_id)
    assert not page["session"]["owned"]


async def test_the_other_editor_sees_transcript_streaming_and_queue(home: Path) -> None:
    """# B59: the same notifications, from what the owner commits."""
    async with server(home) as owner, server(home) as other:
        await pair(owner, other)
        await owner.send("#say partly \n#hang", "one")
        await owner.send("two", "two")
        await other.client.wait_for("messageReceived", lambda p: p["messageId"] == "one")
        await other.client.wait_for("streamingToken", lambda p: p["text"].startswith("partly"))
        await other.client.wait_for("messageQueued", lambda p: p["messageId"] == "two")
        await other.client.wait_for("turnStarted")
        await owner.call("cancelTurn")
        await other.client.wait_for("turnEnded", lambda p: p["stopReason"] == "cancelled")
        await other.client.wait_for("pendingChanged", lambda p: p.get("pauseReason") == "cancel")
        mine, theirs = await owner.open(), await other.open()
        assert [m["text"] for m in mine["messages"]] == [m["text"] for m in theirs["messages"]]
        assert mine["pending"] == theirs["pending"]


async def test_the_other_editor_sends_edits_cancels_and_answers(home: Path) -> None:
    """# B59"""
    async with server(home) as owner, server(home) as other:
        await pair(owner, other)
        assert await other.send("#permission p1\n#hang", "one") == ("one", "queued")
        asked = await other.client.wait_for("permissionRequested")
        permission_id = asked["permission"]["permissionId"]
        assert await other.refusal("answerPermission", permissionId=permission_id, optionId="x") == "unknownOption"
        await other.call("answerPermission", permissionId=permission_id, optionId="yes")
        await owner.client.wait_for("permissionResolved", lambda p: p["outcome"] == "yes")
        await other.client.wait_for("permissionResolved")
        await other.send("two", "two")
        await other.send("three", "three")
        await other.call("editPending", messageId="two", text="#say edited")
        await other.call("removePending", messageId="three")
        assert await other.call("cancelTurn") == {"cancelled": True}
        await owner.client.wait_for("turnEnded", lambda p: p["stopReason"] == "cancelled")
        await other.client.wait_for("pendingChanged", lambda p: p["paused"])
        await other.call("resumeQueue")
        await other.client.wait_for("turnEnded", lambda p: p["stopReason"] == "end_turn")
        assert owner.prompts() == ["#permission p1\n#hang", "#say edited"]


async def test_the_other_editor_steers(home: Path) -> None:
    """# B59: `now` and sendPendingNow cancel the owner's turn, and the message goes next."""
    async with server(home) as owner, server(home) as other:
        await pair(owner, other)
        await owner.send("#hang", "one")
        await other.client.wait_for("turnStarted")
        await owner.send("#hang\n#say two", "two")
        await other.send("#hang\n#say three", "three", now=True)
        await owner.client.wait_for("turnStarted", lambda p: p["messageId"] == "three")
        await other.call("sendPendingNow", messageId="two")
        await owner.client.wait_for("turnStarted", lambda p: p["messageId"] == "two")
        await until(lambda: owner.prompts() == ["#hang", "#hang\n#say three", "#hang\n#say two"])


async def test_a_steer_that_is_refused_cancels_nothing(home: Path) -> None:
    """# B4 B14: a refused call changes nothing, nor does a message that is sent again."""
    async with server(home, {"queue": {"maxItems": 1}}) as owner, server(home, {"queue": {"maxItems": 1}}) as other:
        await pair(owner, other)
        await other.send("#hang", "one", now=True)
        await other.client.wait_for("turnStarted")
        assert await other.refusal("sendPendingNow", messageId="one") == "alreadyDelivered"
        assert await other.send("#hang", "one", now=True) == ("one", "queued")
        await owner.send("two", "two")
        assert await other.refusal("sendMessage", messageId="three", text="three", now=True) == "queueFull"
        mark = owner.client.mark()
        await other.call("removePending", messageId="two")
        await owner.client.wait_for("pendingChanged", lambda p: not p["pending"], since=mark)
        await owner.call("renameSession", title="written after any mail was taken")
        page = await owner.open()
        assert page["session"]["state"] == "busy"
        assert owner.ends() == []


async def test_a_dead_owner_is_replaced(home: Path) -> None:
    """# B59 B60: by an editor that has the session open; the open turn is interrupted, never sent again."""
    async with server(home) as other, server(home) as owner:
        await pair(owner, other)
        await owner.send("#say partly\n#hang", "one")
        await owner.send("#say two", "two")
        await other.client.wait_for("streamingToken")
        owner.client.kill()
        await owner.client.wait_exit()
        changed = await other.client.wait_for("sessionChanged", lambda p: p["session"]["owned"])
        assert changed["session"]["sessionId"] == other.session_id
        await other.client.wait_for("messageUpdated", lambda p: p["message"]["status"] == "interrupted")
        await other.client.wait_for("messageUpdated", lambda p: p["message"]["status"] == "unknown")
        page = await other.open()
        assert page["session"]["pauseReason"] == "restore"
        assert [(m["kind"], m["status"]) for m in page["messages"]] == [("user", "unknown"), ("agent", "interrupted")]
        await other.call("resumeQueue")
        await other.client.wait_for("turnEnded", lambda p: p["stopReason"] == "end_turn")
        assert other.prompts() == ["#say partly\n#hang", "#say two"]


async def test_an_owner_that_ends_in_order_is_replaced(home: Path) -> None:
    """# B59"""
    async with server(home) as other, server(home) as owner:
        await pair(owner, other)
        await owner.client.shutdown()
        await other.client.wait_for("sessionChanged", lambda p: p["session"]["owned"])
        assert await other.send("#say mine now") != ("", "queued")
        await other.client.wait_for("turnEnded")


async def test_many_messages_from_two_editors_once_each(home: Path) -> None:
    """# B24: each is delivered exactly once, in the order of the queue."""
    count = 60
    async with server(home) as owner, server(home) as other:
        await pair(owner, other)
        for index in range(count):
            await owner.send(f"owner {index}")
            await other.send(f"other {index}")
        await until(lambda: len(owner.prompts()) >= 2 * count, limit_s=60)
        prompts = owner.prompts()
        assert sorted(prompts) == sorted([f"owner {i}" for i in range(count)] + [f"other {i}" for i in range(count)])
        assert [p for p in prompts if p.startswith("owner")] == [f"owner {i}" for i in range(count)]
        assert [p for p in prompts if p.startswith("other")] == [f"other {i}" for i in range(count)]
