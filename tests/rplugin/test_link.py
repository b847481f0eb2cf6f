"""The link to the server: started, started again, and each message sent once (B4, B60)."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest
from agentik import link as link_module
from agentik import wire
from agentik.connection import LostError, RpcError
from agentik.link import Link, Request

SERVER = Path(__file__).parents[1] / "fakes" / "server.py"


class Owner:
    """Notes what it is told; every event can be waited for."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.lines: list[str] = []

    def notified(self, method: str, params: wire.Raw) -> None:
        self.events.put_nowait((method, wire.decode(params)))

    def asked(self, method: str, params: wire.Raw) -> Awaitable[Any] | None:
        async def answer() -> Any:
            return {"echo": wire.decode(params)}

        return answer() if method == "known" else None

    async def connected(self, server: dict[str, Any], request: Request) -> None:
        await request("agentik/openSession", {})
        self.events.put_nowait(("connected", server))

    def disconnected(self, detail: str, *, restarts: bool) -> None:
        self.events.put_nowait(("disconnected", (detail, restarts)))

    async def next(self, name: str) -> Any:
        """The next event of that name."""
        async with asyncio.timeout(20):
            while True:
                event, value = await self.events.get()
                if event == name:
                    return value


class Fake:
    """A link to the scripted server, and the server's log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.owner = Owner()
        command = [sys.executable, str(SERVER), str(folder)]
        self.link = Link(command, str(folder), {"home": "h"}, self.owner, self.owner.lines.append)

    def script(self, **actions: list[dict[str, Any]]) -> None:
        named = {(name if name == "initialize" else f"agentik/{name}"): acts for name, acts in actions.items()}
        (self.folder / "script.json").write_text(json.dumps(named))

    def log(self, method: str) -> list[dict[str, Any]]:
        lines = (self.folder / "requests.jsonl").read_text().splitlines()
        return [entry for entry in map(json.loads, lines) if entry.get("method") == method]


@pytest.fixture
async def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fake]:
    monkeypatch.setattr(link_module, "RESTART_DELAYS_S", (0.0, 0.0))
    fake = Fake(tmp_path)
    yield fake
    await fake.link.close()


KILLED = {"die": signal.SIGKILL}


async def test_the_server_is_initialized_in_a_session_of_its_own(fake: Fake) -> None:
    """Neovim signals the host's group when it exits: the server must not hear that."""
    await fake.link.start()
    (entry,) = fake.log("initialize")
    assert entry["params"]["initializationOptions"] == {"home": "h"}
    assert entry["sid"] == entry["pid"] == fake.link.pid != os.getsid(0)
    assert fake.log("initialized")


async def test_others_wait_until_the_owner_is_up_to_date(fake: Fake) -> None:
    """B55: subscriptions come before any send."""
    await fake.link.send({"messageId": "1"})
    methods = [json.loads(line)["method"] for line in (fake.folder / "requests.jsonl").read_text().splitlines()]
    assert methods == ["initialize", "initialized", "agentik/openSession", "agentik/sendMessage"]


async def test_what_was_not_answered_is_sent_again_under_the_same_id(fake: Fake) -> None:
    """B4, B60: the server dies with two messages unanswered; both arrive once more, in order, and no third time."""
    fake.script(sendMessage=[{"mute": True}, KILLED, {"result": {"disposition": "started"}}])
    answers = await asyncio.gather(*(fake.link.send({"messageId": each, "text": each}) for each in "ab"))
    assert [answer["disposition"] for answer in answers] == ["started", "started"]
    assert [entry["params"]["messageId"] for entry in fake.log("agentik/sendMessage")] == ["a", "b", "a", "b"]
    assert (await fake.owner.next("disconnected"))[1] is True


async def test_the_same_message_sent_twice_at_once_goes_out_once(fake: Fake) -> None:
    message = {"messageId": "a"}
    await asyncio.gather(fake.link.send(message), fake.link.send(message))
    assert len(fake.log("agentik/sendMessage")) == 1


async def test_other_requests_fail_when_the_server_dies(fake: Fake) -> None:
    """Nothing hangs: a lost request is told as lost, with signal or exit code."""
    fake.script(pauseQueue=[KILLED])
    with pytest.raises(LostError, match="signal 9"):
        await fake.link.request("agentik/pauseQueue", {})
    assert await fake.owner.next("connected")
    assert await fake.owner.next("connected")


async def test_a_server_that_cannot_start_says_why_and_is_not_tried_again(fake: Fake) -> None:
    """One clear line: the last of its stderr."""
    fake.script(initialize=[{"exit": 3, "stderr": "cannot open the database"}])
    with pytest.raises(LostError, match=r"exit code 3.*cannot open the database"):
        await fake.link.send({"messageId": "a"})
    assert len(fake.log("initialize")) == 1
    assert (await fake.owner.next("disconnected"))[1] is False


async def test_a_refused_start_is_told(fake: Fake) -> None:
    fake.script(initialize=[{"error": {"code": 4000, "message": "the database is newer"}}])
    with pytest.raises(LostError, match="the database is newer"):
        await fake.link.start()


async def test_a_server_killed_while_it_starts_is_started_again(fake: Fake) -> None:
    fake.script(initialize=[KILLED, {}])
    await fake.link.send({"messageId": "a"})
    assert len(fake.log("initialize")) == 2


async def test_a_server_that_dies_again_and_again_is_given_up_until_asked_for(fake: Fake) -> None:
    """No endless restarts; the message comes back as an error, and the next request starts a server."""
    fake.script(sendMessage=[KILLED, KILLED, KILLED, {"result": {"disposition": "queued"}}])
    with pytest.raises(LostError):
        await fake.link.send({"messageId": "a"})
    assert (await fake.link.send({"messageId": "a"}))["disposition"] == "queued"


async def test_errors_carry_the_reason(fake: Fake) -> None:
    fake.script(sendMessage=[{"error": {"code": 4000, "message": "full", "data": {"reason": "queueFull"}}}])
    with pytest.raises(RpcError, match="full") as caught:
        await fake.link.send({"messageId": "a"})
    assert caught.value.reason == "queueFull"


async def test_questions_of_the_server_are_answered(fake: Fake) -> None:
    """Unknown ones with -32601, so that the server uses the disk."""
    fake.script(status=[{"ask": [["q1", "known", {"path": "p"}], ["q2", "unknown", {}]]}, {}])
    await fake.link.request("agentik/status", {})
    await fake.link.request("agentik/status", {})
    lines = (fake.folder / "requests.jsonl").read_text().splitlines()
    answers = {entry["id"]: entry for entry in map(json.loads, lines) if "method" not in entry}
    assert answers["q1"]["result"] == {"echo": {"path": "p"}}
    assert answers["q2"]["error"]["code"] == -32601


async def test_a_cancelled_request_is_told_to_the_server(fake: Fake) -> None:
    fake.script(status=[{"mute": True}])
    task = asyncio.ensure_future(fake.link.request("agentik/status", {}))
    await fake.link.request("agentik/other", {})
    task.cancel()
    await asyncio.wait([task])
    await fake.link.request("agentik/other", {})
    assert len(fake.log("$/cancelRequest")) == 1
