"""A real server process with a scripted agent, driven as an editor would: used by the tests of `tests/server`.

The agent's log file says what reached it, in order; waits are for notifications and for lines of that log.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.stdio_client import Params, RpcError, StdioClient

ROOT = Path(__file__).resolve().parents[2]
SCRIPTED = ROOT / "tests" / "agents" / "scripted.py"
RUNNING: list[StdioClient] = []  # of the servers that run now: a failing test shows what they said


def scripted_agent(home: Path, *, scenario: Params | None = None) -> Params:
    """Settings that make the scripted agent the default one; its log and its sessions are kept under `home`."""
    env = {"SCRIPTED_AGENT": json.dumps(scenario or {})}
    command = [
        sys.executable,
        "-S",
        str(SCRIPTED),
        "--log",
        str(home / "agent.log"),
        "--state",
        str(home / "agent.state"),
    ]
    return {"defaultAgent": "scripted", "agents": {"scripted": {"command": command, "env": env}}}


class Talk:
    """One editor at one server; `session_id` is the session of `new_session` or `open`."""

    def __init__(self, client: StdioClient, home: Path) -> None:
        self.client = client
        self.home = home
        self.session_id = ""

    async def new_session(self, **params: Any) -> Params:
        answer = await self.client.request("agentik/newSession", {"cwd": str(self.home / "work"), **params})
        self.session_id = answer["session"]["sessionId"]
        session: Params = answer["session"]
        return session

    async def call(self, method: str, **params: Any) -> Any:
        return await self.client.request(f"agentik/{method}", {"sessionId": self.session_id, **params})

    async def refusal(self, method: str, **params: Any) -> str:
        """The reason why the call is refused."""
        with pytest.raises(RpcError) as refused:
            await self.call(method, **params)
        assert refused.value.code == 4000, refused.value
        return refused.value.reason or ""

    async def send(self, text: str, message_id: str | None = None, **params: Any) -> tuple[str, str]:
        """(message id, disposition)."""
        answer = await self.call("sendMessage", messageId=message_id or str(uuid.uuid4()), text=text, **params)
        return answer["messageId"], answer["disposition"]

    async def open(self, session_id: str | None = None, **params: Any) -> Params:
        if session_id is not None:
            self.session_id = session_id
        page: Params = await self.call("openSession", **params)
        return page

    async def ended(self, count: int = 1) -> Params:
        """The `count`-th turnEnded of the session."""

        def is_it(_: Params) -> bool:
            return len(self.ends()) >= count

        await self.client.wait_for("turnEnded", is_it)
        return self.ends()[count - 1]

    def ends(self) -> list[Params]:
        return [p for p in self.client.of("turnEnded") if p["sessionId"] == self.session_id]

    async def connected(self) -> None:
        """The agent's session is up."""
        await self.client.wait_for("connectionChanged", lambda p: p["connection"] == "has_session")

    async def idle(self) -> Params:
        return await self.client.wait_for(
            "sessionChanged",
            lambda p: p["session"]["sessionId"] == self.session_id and p["session"]["state"] == "idle",
            since=self.client.mark(),
        )

    def received_by_agent(self, method: str = "session/prompt") -> list[Params]:
        """What reached the agent so far, in order."""
        log = self.home / "agent.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [entry["params"] for entry in map(json.loads, lines) if entry["method"] == method]

    def prompts(self) -> list[str]:
        """The texts of all prompts that reached the agent."""
        return [
            "".join(b.get("text", "") for b in p["prompt"] if b["type"] == "text") for p in self.received_by_agent()
        ]


def agents(**scenarios: Params) -> Params:
    """Settings with one scripted agent for each scenario, the first the default; each keeps its log in its session's
    folder, so that many sessions of one server can be told apart.
    """
    command = [sys.executable, "-S", str(SCRIPTED), "--log", "agent.log", "--state", "agent.state"]
    known = {
        name: {"command": command, "env": {"SCRIPTED_AGENT": json.dumps(scenario)}}
        for name, scenario in scenarios.items()
    }
    return {"defaultAgent": next(iter(scenarios)), "agents": known}


class Chat(Talk):
    """One session, in a folder of its own, of a server that several tests share (its agents: see `agents`)."""

    def __init__(self, client: StdioClient, home: Path, folder: Path) -> None:
        super().__init__(client, home)
        self.folder = folder

    @classmethod
    async def begin(cls, talk: Talk, *, ready: bool = True, **params: Any) -> Chat:
        """A new session; `ready`: with its agent connected."""
        folder = talk.home / "work" / f"chat {uuid.uuid4().hex[:8]}"
        folder.mkdir(parents=True)
        chat = cls(talk.client, talk.home, folder)
        answer = await chat.client.request("agentik/newSession", {"cwd": str(folder), **params})
        chat.session_id = answer["session"]["sessionId"]
        if ready:
            await chat.connected()
        return chat

    async def at(self, talk: Talk) -> Chat:
        """The same session as seen by another server."""
        other = Chat(talk.client, talk.home, self.folder)
        await other.open(self.session_id)
        return other

    def concerns(self, params: Params) -> bool:
        return (params.get("session") or params).get("sessionId") == self.session_id

    def of(self, method: str, since: int = 0) -> list[Params]:
        """Params of this session's notifications `method` so far."""
        return [params for params in self.client.of(method, since) if self.concerns(params)]

    def names(self, since: int = 0) -> list[str]:
        """The methods of this session's notifications, in order, without the prefix."""
        notes = self.client.notifications[since:]
        return [note.method.removeprefix("agentik/") for note in notes if self.concerns(note.params)]

    async def wait(self, method: str, accepts: Callable[[Params], bool] = lambda _: True, *, since: int = 0) -> Params:
        """The first notification of this session that is accepted, past or future."""
        return await self.client.wait_for(method, lambda p: self.concerns(p) and accepts(p), since=since)

    async def connected(self) -> None:
        await self.wait("connectionChanged", lambda p: p["connection"] == "has_session")

    async def ended(self, count: int = 1) -> Params:
        await self.wait("turnEnded", lambda _: len(self.ends()) >= count)
        return self.ends()[count - 1]

    async def busy(self, text: str = "#hang") -> str:
        """A turn that lasts until it is cancelled, its prompt with the agent; returns the message's id."""
        message_id, disposition = await self.send(text)
        assert disposition == "started"
        await until(lambda: text in self.prompts())
        return message_id

    async def do(self, text: str, **params: Any) -> Params:
        """Send, and wait for the end of the turn."""
        before = len(self.ends())
        await self.send(text, **params)
        return await self.ended(before + 1)

    async def at_rest(self, since: int = 0) -> Params:
        """The session is idle and nothing waits."""

        def is_it(params: Params) -> bool:
            return params["session"]["state"] == "idle" and not params["session"]["pendingCount"]

        return (await self.wait("sessionChanged", is_it, since=since))["session"]

    def received_by_agent(self, method: str = "session/prompt") -> list[Params]:
        log = self.folder / "agent.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [entry["params"] for entry in map(json.loads, lines) if entry["method"] == method]

    async def said(self) -> str:
        """All texts of the agent's messages."""
        return "".join(m["text"] for m in (await self.open())["messages"] if m["kind"] == "agent")


@asynccontextmanager
async def server(
    home: Path,
    settings: Params | None = None,
    *,
    scenario: Params | None = None,
    limit_s: float = 20.0,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Talk]:
    """A started server on `home`; its agent's work folder is `home/work`."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    merged = {**scripted_agent(home, scenario=scenario), **(settings or {})}
    command = [sys.executable, "-m", "agentik_server"]
    async with StdioClient(command, cwd=ROOT, log=home / "agentik.log", limit_s=limit_s, env=env) as client:
        RUNNING.append(client)
        try:
            await client.initialize(home, merged)
            yield Talk(client, home)
        finally:
            RUNNING.remove(client)


async def until(condition: Callable[[], object], limit_s: float = 20.0) -> None:
    """For facts outside the protocol (a process is gone, a line is in a log): looked at often, guarded by a limit."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.01)
