"""A real server process with a scripted agent, driven as an editor would: used by the tests of `tests/server`.

The agent's log file says what reached it, in order; waits are for notifications and for lines of that log.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.stdio_client import Params, RpcError, StdioClient

ROOT = Path(__file__).resolve().parents[2]
SCRIPTED = ROOT / "tests" / "agents" / "scripted.py"


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


@asynccontextmanager
async def server(
    home: Path, settings: Params | None = None, *, scenario: Params | None = None, limit_s: float = 20.0
) -> AsyncIterator[Talk]:
    """A started server on `home`; its agent's work folder is `home/work`."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    merged = {**scripted_agent(home, scenario=scenario), **(settings or {})}
    command = [sys.executable, "-m", "agentik_server"]
    async with StdioClient(command, cwd=ROOT, log=home / "agentik.log", limit_s=limit_s) as client:
        await client.initialize(home, merged)
        yield Talk(client, home)


async def until(condition: Callable[[], object], limit_s: float = 20.0) -> None:
    """For facts outside the protocol (a process is gone, a line is in a log): looked at often, guarded by a limit."""
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.01)
