"""Turns over real stdio: cancel, crash, permission, time-out, and that nothing of an agent stays behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.server.harness import Talk, server, until


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def agent_pids(talk: Talk) -> list[int]:
    """Guard and agent, as the server tells them."""
    status = await talk.client.request("agentik/status", {})
    pids = {pid for agent in status["agents"] for pid in agent["pids"]}
    assert pids
    return sorted(pids)


async def test_cancel(talk: Talk) -> None:
    """# B32 B33 B36: one session/cancel, the partial answer stays, the next message is taken."""
    await talk.send("#say partly\n#hang")
    await talk.client.wait_for("streamingToken")
    assert await talk.call("cancelTurn") == {"cancelled": True}
    ended = await talk.ended()
    assert ended["stopReason"] == "cancelled"
    assert "error" not in ended
    page = await talk.open()
    assert [(m["text"], m["status"]) for m in page["messages"] if m["kind"] == "agent"] == [("partly", "interrupted")]
    assert len(talk.received_by_agent("session/cancel")) == 1
    assert await talk.call("cancelTurn") == {"cancelled": False}
    await talk.send("#say next")
    await talk.ended(2)


async def test_an_agent_that_ignores_cancel_is_killed(home: Path) -> None:
    """# B32: after the grace; the turn ends as cancelled, and the session goes on."""
    async with server(home, {"timeouts": {"cancelGrace": 0.3}}) as talk:
        await talk.new_session()
        await talk.send("#ignore_cancel\n#say x\n#hang")
        await talk.client.wait_for("streamingToken")
        await talk.call("cancelTurn")
        assert (await talk.ended())["stopReason"] == "cancelled"
        await talk.send("#say back")
        assert (await talk.ended(2))["stopReason"] == "end_turn"


async def test_a_crash_is_one_clear_line(talk: Talk) -> None:
    """# B42 B43: exit code and the last of stderr; the message is unknown and can be sent again by the user."""
    message_id, _ = await talk.send("#say partly\n#stderr out of memory\n#exit 9")
    ended = await talk.ended()
    assert ended["stopReason"] == "crashed"
    assert "9" in ended["error"]
    assert "out of memory" in ended["error"]
    assert "\n" not in ended["error"]
    page = await talk.open()
    assert [(m["kind"], m["status"]) for m in page["messages"]] == [("user", "unknown"), ("agent", "interrupted")]
    again = await talk.call("resendMessage", messageId=message_id)
    assert again == {"messageId": message_id, "disposition": "started"}
    await talk.ended(2)
    assert len(talk.prompts()) == 2


async def test_permission(talk: Talk) -> None:
    """# B7 B48: asked, answered with an offered option, while messages wait."""
    await talk.send("#permission p1 edit the file")
    asked = await talk.client.wait_for("permissionRequested")
    permission = asked["permission"]
    assert [o["kind"] for o in permission["options"]] == ["allow_once", "allow_always", "reject_once"]
    assert (await talk.open())["permissions"] == [permission]
    _, disposition = await talk.send("#say later")
    assert disposition == "queued"
    assert (
        await talk.refusal("answerPermission", permissionId=permission["permissionId"], optionId="x") == "unknownOption"
    )
    await talk.call("answerPermission", permissionId=permission["permissionId"], optionId="yes")
    assert (
        await talk.refusal("answerPermission", permissionId=permission["permissionId"], optionId="yes")
        == "unknownPermission"
    )
    await talk.ended(2)
    assert talk.client.of("permissionResolved")[0]["outcome"] == "yes"


async def test_silence_ends_the_turn(home: Path) -> None:
    """# B41: cancel first, stop reason timeout."""
    async with server(home, {"timeouts": {"prompt": 0.3}}) as talk:
        await talk.new_session()
        await talk.send("#hang")
        assert (await talk.ended())["stopReason"] == "timeout"
        assert len(talk.received_by_agent("session/cancel")) == 1


async def test_an_idle_agent_is_stopped_and_comes_back(home: Path) -> None:
    """`timeouts.idleAgent`; # B44"""
    async with server(home, {"timeouts": {"idleAgent": 0.1}}) as talk:
        await talk.new_session()
        await talk.send("#say one")
        await talk.ended()
        await talk.client.wait_for("connectionChanged", lambda p: p["connection"] == "disconnected")
        await talk.send("#say two")
        assert (await talk.ended(2))["stopReason"] == "end_turn"


async def test_connection_steps_are_announced(talk: Talk) -> None:
    """# B38"""
    await talk.send("#say x")
    await talk.ended()
    await talk.client.wait_for("connectionChanged", lambda p: p["connection"] == "has_session", since=4)
    steps = [p["connection"] for p in talk.client.of("connectionChanged")]
    assert steps == ["connecting", "initializing", "connected", "has_session", "streaming", "has_session"]


@pytest.mark.parametrize("how", ["eof", "kill", "exit"])
async def test_nothing_of_the_agent_stays_behind(home: Path, how: str) -> None:
    """# B47 B60 B61: also a grandchild that holds the pipes, also after kill -9 of the server."""
    async with server(home) as talk:
        await talk.new_session()
        await talk.send("#fork\n#hang")
        await until(talk.prompts)
        pids = await agent_pids(talk)
        group = os.getpgid(pids[-1])
        if how == "eof":
            talk.client.close_stdin()
        elif how == "kill":
            talk.client.kill()
        else:
            await talk.client.shutdown()
        await talk.client.wait_exit()
        await until(lambda: not any(alive(pid) for pid in pids))
        await until(lambda: not group_members(group))


def group_members(group: int) -> list[int]:
    """Processes of a group, by /proc."""
    members = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            members.append(int(entry.parent.name))
    return members
