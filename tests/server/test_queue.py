"""The pending queue over real stdio: edits, moves, limits, pause, and the races of each with the drain."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.server.harness import Talk, server, until
from tests.stdio_client import RpcError


async def busy(talk: Talk) -> str:
    """A turn that lasts until it is cancelled."""
    message_id, _ = await talk.send("#hang")
    await until(lambda: "#hang" in talk.prompts())
    return message_id


async def applies(talk: Talk, method: str, **params: object) -> bool:
    """Whether the edit came in time; the only other answer is that the message was taken."""
    try:
        await talk.call(method, **params)
    except RpcError as error:
        if error.reason == "alreadyDelivered":
            return False
        raise
    return True


async def waiting(talk: Talk) -> list[str]:
    return [item["text"] for item in (await talk.open())["pending"]]


async def test_edit_keeps_id_and_place(talk: Talk) -> None:
    """# B13: a blank edit is refused and the original stays."""
    await busy(talk)
    for text in ("a", "b", "c"):
        await talk.send(text, text)
    await talk.call("editPending", messageId="b", text="b2")
    assert await talk.refusal("editPending", messageId="b", text=" \n") == "emptyText"
    assert await waiting(talk) == ["a", "b2", "c"]
    changed = talk.client.of("pendingChanged")[-1]
    assert [item["messageId"] for item in changed["pending"]] == ["a", "b", "c"]


async def test_move_is_stable_and_clamped(talk: Talk) -> None:
    """# B12 B15"""
    await busy(talk)
    for text in ("a", "b", "c", "d"):
        await talk.send(text, text)
    await talk.call("movePending", messageId="d", position=1)
    assert await waiting(talk) == ["a", "d", "b", "c"]
    await talk.call("movePending", messageId="a", position=99)
    assert await waiting(talk) == ["d", "b", "c", "a"]
    assert await talk.refusal("movePending", messageId="nobody", position=0) == "unknownMessage"


async def test_what_is_in_the_transcript_cannot_be_edited(talk: Talk) -> None:
    """# B14"""
    message_id = await busy(talk)
    for method, more in (("editPending", {"text": "x"}), ("movePending", {"position": 0}), ("removePending", {})):
        assert await talk.refusal(method, messageId=message_id, **more) == "alreadyDelivered"
        assert await talk.refusal(method, messageId="never-seen", **more) == "unknownMessage"


async def test_clear_removes_everything_from_disk(talk: Talk) -> None:
    """# B18: attachments included; nothing of it is sent later."""
    file = talk.home / "work" / "note.txt"
    file.write_text("secret of the attachment")
    await busy(talk)
    await talk.send("a", "a", attachments=[{"path": str(file)}])
    kept = [Path(f) for item in (await talk.open())["pending"] for f in item["files"]]
    assert [f.read_text() for f in kept] == ["secret of the attachment"]
    await talk.call("clearPending")
    assert await waiting(talk) == []
    await until(lambda: not any(f.exists() for f in kept))
    await talk.call("cancelTurn")
    await talk.ended()
    await talk.send("#say b")
    await talk.ended(2)
    assert "a" not in talk.prompts()


@pytest.mark.parametrize(
    ("limits", "texts", "reason"),
    [
        ({"maxItems": 2}, ["a", "b", "c"], "queueFull"),
        ({"maxTextBytes": 5}, ["äöü"], "textTooLong"),
        ({"maxTotalBytes": 8}, ["aaaa", "bbbb", "c"], "queueTooLarge"),
    ],
)
async def test_over_a_limit_is_refused_and_changes_nothing(
    home: Path, limits: dict[str, int], texts: list[str], reason: str
) -> None:
    """# B11"""
    async with server(home, {"queue": limits}) as talk:
        await talk.new_session()
        await talk.send("#h") if "maxTextBytes" in limits else await busy(talk)
        for text in texts[:-1]:
            await talk.send(text)
        assert await talk.refusal("sendMessage", messageId="m", text=texts[-1]) == reason
        assert await waiting(talk) == texts[:-1]


async def test_too_many_files(home: Path) -> None:
    """# B11"""
    async with server(home, {"queue": {"maxFiles": 1}}) as talk:
        await talk.new_session()
        files = [{"path": str(home / "work" / name), "text": name} for name in ("a", "b")]
        assert await talk.refusal("sendMessage", messageId="m", text="x", attachments=files) == "tooManyFiles"
        missing = [{"path": str(home / "work" / "not-there")}]
        assert await talk.refusal("sendMessage", messageId="m", text="x", attachments=missing) == "attachmentMissing"
        await talk.send("#say fine", "m")


async def test_pause_and_resume(talk: Talk) -> None:
    """# B28 B30"""
    await busy(talk)
    await talk.send("#say a", "a")
    await talk.call("pauseQueue")
    await talk.call("cancelTurn")
    await talk.ended()
    assert await talk.send("#say b", "b") == ("b", "queued")
    page = await talk.open()
    assert (page["session"]["pauseReason"], page["session"]["paused"]) == ("user", True)
    await talk.call("resumeQueue")
    await talk.ended(3)
    assert talk.prompts() == ["#hang", "#say a", "#say b"]


async def test_edits_of_a_list_are_one_transaction_and_late_ones_are_told(talk: Talk) -> None:
    """# B14 B16: agentik/applyPendingEdits while the head is held."""
    delivered = await busy(talk)
    for text in ("a", "b", "c"):
        await talk.send(text, text)
    await talk.call("holdPending", hold=True)
    answer = await talk.call(
        "applyPendingEdits",
        edits=[
            {"op": "remove", "messageId": "a"},
            {"op": "edit", "messageId": "b", "text": "b2"},
            {"op": "edit", "messageId": delivered, "text": "too late"},
            {"op": "move", "messageId": "c", "position": 0},
        ],
    )
    assert [(r["applied"], r.get("reason")) for r in answer["results"]] == [
        (True, None),
        (True, None),
        (False, "alreadyDelivered"),
        (True, None),
    ]
    assert await waiting(talk) == ["c", "b2"]
    await talk.call("holdPending", hold=False)


async def test_steering(talk: Talk) -> None:
    """`now`: cancel the running turn, this one first, the rest in order and not paused."""
    await busy(talk)
    await talk.send("#say a", "a")
    await talk.send("#say b", "b")
    await talk.send("#say urgent", "urgent", now=True)
    await talk.ended(4)
    assert talk.prompts() == ["#hang", "#say urgent", "#say a", "#say b"]
    assert talk.ends()[0]["stopReason"] == "cancelled"
    assert not (await talk.open())["session"]["paused"]


async def test_send_pending_now(talk: Talk) -> None:
    await busy(talk)
    for text in ("#say a", "#say b"):
        await talk.send(text, text)
    await talk.call("sendPendingNow", messageId="#say b")
    await talk.ended(3)
    assert talk.prompts() == ["#hang", "#say b", "#say a"]


@pytest.mark.parametrize("method", ["removePending", "editPending", "movePending", "sendPendingNow"])
async def test_races_of_an_edit_with_the_drain(talk: Talk, method: str) -> None:
    """# B14: every reply is true: applied means that it shows at the agent, refused means that it does not."""
    more = {"editPending": {"text": "edited"}, "movePending": {"position": 0}}.get(method, {})
    rounds = 25
    for index in range(rounds):
        first, second = f"first {index}", f"second {index}"
        before = len(talk.ends())
        await asyncio.gather(talk.send(first, first), talk.send(second, second))
        applied = await applies(talk, method, messageId=second, **more)
        await talk.ended(before + 1 if method == "removePending" and applied else before + 2)
        prompts = talk.prompts()
        if method == "removePending":
            assert (second in prompts) != applied
        if method == "editPending":
            assert (second in prompts) != applied
        assert prompts.count(second) <= 1
        assert prompts.count(first) == 1
        await talk.client.wait_for(
            "sessionChanged", lambda p: p["session"]["state"] == "idle" and not p["session"]["pendingCount"]
        )
    assert len(talk.client.of("turnStarted")) == len(talk.client.of("turnEnded"))
