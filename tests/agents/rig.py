"""A link with its agent, and what it told: the frame of the tests of the agents' side."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from agentik_server.agents.link import AcpLink
from agentik_server.domain.happenings import (
    AgentExited,
    AgentReady,
    ConnectionChanged,
    Happening,
    PermissionAsked,
    PromptAnswered,
    PromptNotWritten,
    StartFailed,
    TextArrived,
)
from agentik_server.domain.message import Attachment
from agentik_server.ports import AgentPolicy, AgentSpec, Launch, OpenBuffers, PromptBlock

SCRIPTED = str(Path(__file__).with_name("scripted.py"))
T = TypeVar("T")


class Rig:
    """`told` is everything the link told, in order. Use as an async context: at its end the agent is gone."""

    def __init__(
        self,
        folder: Path,
        *,
        command: tuple[str, ...] | None = None,
        policy: AgentPolicy | None = None,
        buffers: OpenBuffers | None = None,
        env: dict[str, str] | None = None,
        agent_session_id: str | None = None,
        spec: AgentSpec | None = None,
        **scenario: Any,
    ) -> None:
        self.folder = folder
        self.log = folder / "agent.log"
        self.cwd = folder / "project"
        self.cwd.mkdir(exist_ok=True)
        self.attachments = folder / "attachments"
        self.attachments.mkdir(exist_ok=True)
        arguments = (SCRIPTED, "--log", str(self.log), "--state", str(folder / "state"), "--scenario")
        command = command or (sys.executable, "-S", *arguments, json.dumps(scenario))
        spec = spec or AgentSpec("scripted", "Scripted", command, env or {})
        self.launch = Launch("session", spec, str(self.cwd), agent_session_id, str(self.attachments))
        self.told: list[Happening] = []
        self._news = asyncio.Event()
        self.policy = policy or AgentPolicy(startup_s=15.0)
        self.link = AcpLink(self._tell, lambda: self.policy, buffers)
        self._turns = 0
        self._sent_at: dict[str, int] = {}
        self.react: Callable[[Happening], None] | None = None

    async def __aenter__(self) -> Rig:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.link.kill()
        async with asyncio.timeout(10):
            await self.link.ended()
        await asyncio.sleep(0)  # the last happenings are told

    def _tell(self, happening: Happening) -> None:
        self.told.append(happening)
        if self.react is not None:
            self.react(happening)
        self._news.set()

    def all(self, kind: type[T]) -> list[T]:
        return [happening for happening in self.told if isinstance(happening, kind)]

    async def until(self, condition: Callable[[], object], limit_s: float = 20.0) -> None:
        try:
            async with asyncio.timeout(limit_s):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            told = "\n".join(map(repr, self.told[-40:]))[:4000]
            raise AssertionError(f"it did not come; told:\n{told}") from None

    async def next(self, kind: type[T], count: int = 1, limit_s: float = 20.0) -> T:
        """The `count`-th happening of a kind since the beginning."""
        await self.until(lambda: len(self.all(kind)) >= count, limit_s)
        return self.all(kind)[count - 1]

    async def start(self, attempt: int = 1) -> AgentReady | StartFailed:
        """Start and wait for how it ended."""
        seen = len(self.all(AgentReady)) + len(self.all(StartFailed))
        self.link.start(self.launch, attempt)
        await self.until(lambda: len(self.all(AgentReady)) + len(self.all(StartFailed)) > seen)
        (last,) = [h for h in self.told if isinstance(h, AgentReady | StartFailed)][-1:]
        return last

    async def ready(self) -> AgentReady:
        ready = await self.start()
        assert isinstance(ready, AgentReady), ready
        return ready

    def send(self, text: str, *attachments: Attachment, quiet: bool = False) -> str:
        self._turns += 1
        turn_id = f"turn{self._turns}"
        self._sent_at[turn_id] = len(self.told)
        self.link.prompt(turn_id, [PromptBlock(text, attachments)], quiet=quiet)
        return turn_id

    async def ended(self, turn_id: str, limit_s: float = 20.0) -> PromptAnswered | PromptNotWritten | AgentExited:
        """How a turn ended, from the link's side."""

        def ends() -> list[PromptAnswered | PromptNotWritten | AgentExited]:
            return [
                h
                for h in self.told[self._sent_at.get(turn_id, 0) :]
                if isinstance(h, AgentExited)
                or (isinstance(h, PromptAnswered | PromptNotWritten) and h.turn_id == turn_id)
            ]

        await self.until(ends, limit_s)
        return ends()[-1]

    async def ask(self, text: str, *attachments: Attachment, quiet: bool = False) -> PromptAnswered:
        end = await self.ended(self.send(text, *attachments, quiet=quiet))
        assert isinstance(end, PromptAnswered), end
        return end

    @property
    def text(self) -> str:
        return "".join(h.text for h in self.all(TextArrived) if h.kind == "agent")

    @property
    def states(self) -> list[str]:
        return [h.connection for h in self.all(ConnectionChanged)]

    def answer_all(self, option_id: str | None) -> None:
        """Answer every permission that is asked from now on."""

        def react(happening: Happening) -> None:
            if isinstance(happening, PermissionAsked):
                self.link.answer_permission(happening.permission_id, option_id)

        self.react = react

    def received(self, method: str | None = None) -> list[dict[str, Any]]:
        """What the agent got, in order; of one method: its params."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []
        return lines if method is None else [line["params"] for line in lines if line["method"] == method]

    def continued(self, agent_session_id: str) -> None:
        """From the next start on, continue this session of the agent."""
        self.launch = replace(self.launch, agent_session_id=agent_session_id)
