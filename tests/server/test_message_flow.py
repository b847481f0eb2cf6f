"""The three scenarios of seed 000 and the flow charts of seed 003 over real stdio, with a real agent process."""

from __future__ import annotations

from pathlib import Path

from tests.server.harness import Talk, server, until


def order_of(talk: Talk, message_id: str) -> list[str]:
    """The notifications that concern a message, in order."""
    names = []
    for note in talk.client.notifications:
        about = note.params.get("messageId") or note.params.get("message", {}).get("messageId")
        if about == message_id:
            names.append(note.method.removeprefix("agentik/"))
    return names


async def test_scenario_1_the_session_is_free(talk: Talk) -> None:
    """# B1 B2: started; messageReceived, turnStarted, tokens, turnEnded; never queued."""
    message_id, disposition = await talk.send("#say hello")
    assert disposition == "started"
    assert (await talk.ended())["stopReason"] == "end_turn"
    assert order_of(talk, message_id) == ["messageReceived", "turnStarted"]
    assert "".join(p["text"] for p in talk.client.of("streamingToken")) == "hello"
    page = await talk.open()
    assert [(m["kind"], m["text"], m["status"]) for m in page["messages"]] == [
        ("user", "#say hello", "complete"),
        ("agent", "hello", "complete"),
    ]
    assert page["pending"] == []


async def test_scenario_2_the_session_is_busy(talk: Talk) -> None:
    """# B2 B8 B17 B21 B25: queued, shown in the pending list, received when its turn comes, in order."""
    first, _ = await talk.send("#wait_cancel\n#say first")
    await talk.client.wait_for("turnStarted")
    second, disposition = await talk.send("#say second")
    third, _ = await talk.send("#say third")
    assert disposition == "queued"
    queued = talk.client.of("messageQueued")
    assert [(q["messageId"], q["position"], q["display"]) for q in queued] == [
        (second, 0, "#say second"),
        (third, 1, "#say third"),
    ]
    assert [item["messageId"] for item in talk.client.of("pendingChanged")[-1]["pending"]] == [second, third]
    await talk.call("cancelTurn")
    await talk.ended()
    await talk.call("resumeQueue")
    await talk.ended(3)
    assert [p["messageId"] for p in talk.client.of("messageReceived")] == [first, second, third]
    assert order_of(talk, third) == ["messageQueued", "messageReceived", "turnStarted"]
    assert talk.prompts() == ["#wait_cancel\n#say first", "#say second", "#say third"]
    assert (await talk.open())["pending"] == []


async def test_scenario_3_the_sync_tick_takes_up_what_another_editor_left(home: Path) -> None:
    """# B23: a pending row written by another process starts a run without a new message."""
    async with server(home) as owner:
        await owner.new_session()
        async with server(home) as other:
            page = await other.open(owner.session_id)
            assert not page["session"]["owned"]
            message_id, disposition = await other.send("#say from the other")
            assert disposition == "queued"
            received = await owner.client.wait_for("messageReceived")
            assert received["messageId"] == message_id
            await other.client.wait_for("messageReceived", lambda p: p["messageId"] == message_id)
            await other.client.wait_for("turnEnded")
        assert owner.prompts() == ["#say from the other"]


async def test_a_queue_survives_kill_and_comes_back_paused(home: Path) -> None:
    """# B5 B20 B31 B43 B60: what was acknowledged is there; the open turn is unknown; nothing is sent by itself."""
    async with server(home) as talk:
        await talk.new_session()
        first, _ = await talk.send("#hang")
        await talk.client.wait_for("turnStarted")
        await until(lambda: talk.prompts() == ["#hang"])
        second, _ = await talk.send("#say second")
        talk.client.kill()
        await talk.client.wait_exit()
    async with server(home) as again:
        page = await again.open(talk.session_id)
        assert page["session"]["paused"]
        assert page["session"]["pauseReason"] == "restore"
        assert [item["messageId"] for item in page["pending"]] == [second]
        assert [(m["messageId"], m["status"]) for m in page["messages"]] == [(first, "unknown")]
        await again.call("resumeQueue")
        await again.ended()
        assert again.prompts() == ["#hang", "#say second"]


async def test_the_same_message_again_after_a_restart(home: Path) -> None:
    """# B4"""
    async with server(home) as talk:
        await talk.new_session()
        message_id, _ = await talk.send("#say one")
        await talk.ended()
    async with server(home) as again:
        await again.open(talk.session_id)
        assert await again.send("#say one", message_id) == (message_id, "started")
        assert await again.refusal("sendMessage", messageId=message_id, text="another") == "duplicateId"
        await again.send("#say two")
        await again.ended()
        assert again.prompts() == ["#say one", "#say two"]


async def test_the_agent_dies_at_start(home: Path) -> None:
    """# B39 B45: command, exit code and stderr in one notice; the message waits at the head."""
    scenario = {"exit_at": "initialize", "code": 7, "stderr": "no licence found\n"}
    async with server(home, scenario=scenario) as talk:
        await talk.new_session()
        message_id, disposition = await talk.send("hello")
        assert disposition == "started"
        notice = await talk.client.wait_for("notice", lambda p: p["level"] == "error")
        assert "\n" not in notice["text"]
        assert "no licence found" in notice["text"]
        assert "7" in notice["text"]
        page = await talk.open()
        assert page["session"]["pauseReason"] == "start"
        assert [item["messageId"] for item in page["pending"]] == [message_id]
        assert page["messages"] == []


async def test_an_unknown_command_names_itself(home: Path) -> None:
    """# B45"""
    settings = {"defaultAgent": "mine", "agents": {"mine": {"command": ["no-such-agent-anywhere", "--acp"]}}}
    async with server(home, settings) as talk:
        await talk.new_session()
        await talk.send("hello")
        notice = await talk.client.wait_for("notice", lambda p: p["level"] == "error")
        assert "no-such-agent-anywhere" in notice["text"]


async def test_text_arrives_byte_for_byte(talk: Talk) -> None:
    """# B10: CRLF, leading blanks, emoji, U+2028, combining marks, nested JSON-RPC, 1 MB."""
    odd = '  \r\n\tä e\u0301 \u2028 👩\u200d👧 {"jsonrpc": "2.0"} \x1b[31m'
    texts = [odd, odd + "x" * (1_000_000)]
    for count, text in enumerate(texts, 1):
        await talk.send(text)
        await talk.ended(count)
    assert talk.prompts() == texts
    page = await talk.open()
    assert [m["text"] for m in page["messages"] if m["kind"] == "user"] == texts


async def test_a_selection_goes_as_attachment(talk: Talk) -> None:
    """# B51: the snapshot of the selection reaches the agent, with path and lines; the file itself may have changed."""
    path = talk.home / "work" / "a $#é b.py"
    path.write_text("changed meanwhile")
    span = {"start": {"line": 4, "character": 0}, "end": {"line": 5, "character": 3}}
    attachment = {"path": str(path), "range": span, "text": "def f():\n  x", "languageId": "python"}
    await talk.send("look", attachments=[attachment])
    await talk.ended()
    (prompt,) = talk.received_by_agent()
    sent = str(prompt["prompt"])
    assert "a%20%24%23%C3%A9%20b.py" in sent or "a $#é b.py" in sent
    assert "def f():" in sent or any("attachments" in str(block) for block in prompt["prompt"])
    (message,) = [m for m in (await talk.open())["messages"] if m["kind"] == "user"]
    assert message["attachments"][0]["path"] == str(path)
    assert message["attachments"][0]["range"] == span
