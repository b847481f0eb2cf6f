"""ports.Agents: makes the links of all sessions, and ends what still runs when the server ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from agentik_server.agents.link import AcpLink
from agentik_server.domain.happenings import Happening
from agentik_server.ports import AgentPolicy, OpenBuffers


class AgentService:
    """`policy` is asked at each start of an agent, so that changed settings count from then on."""

    def __init__(self, policy: Callable[[], AgentPolicy], buffers: OpenBuffers | None = None) -> None:
        self._policy = policy
        self._buffers = buffers
        self._links: dict[str, AcpLink] = {}

    def link(self, session_id: str, tell: Callable[[Happening], None]) -> AcpLink:
        """A new link; the session's former one must have been stopped."""
        link = AcpLink(tell, self._policy, self._buffers)
        self._links[session_id] = link
        return link

    def pids(self) -> dict[str, tuple[int, ...]]:
        """Guard and agent process of each session that has one."""
        return {session_id: pids for session_id, link in self._links.items() if (pids := link.pids)}

    async def close(self, limit_s: float) -> bool:
        """Stop every agent and wait at most `limit_s`; what is left then is the guards' work (B47). True: all ended."""
        links = [link for link in self._links.values() if link.pids]
        for link in links:
            link.stop()
        waits = [asyncio.create_task(link.ended()) for link in links]
        if not waits:
            return True
        _done, late = await asyncio.wait(waits, timeout=limit_s)
        for wait in late:
            wait.cancel()
        return not late
