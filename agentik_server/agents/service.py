"""ports.Agents: makes the links of all sessions, and ends what still runs when the server ends."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence

from agentik_server.agents.catalogue import Catalogue
from agentik_server.agents.clean import as_dict, as_list
from agentik_server.agents.link import AcpLink
from agentik_server.domain.happenings import AgentReady, CallAnswered, Happening, StartFailed
from agentik_server.domain.refusal import Refused
from agentik_server.ports import AgentListing, AgentPolicy, AgentSpec, Launch, OpenBuffers

Listed = Callable[[Sequence[Mapping[str, object]] | None, str], None]
Checked = Callable[[bool, str, Mapping[str, object] | None], None]


class AgentService:
    """`policy` is asked at each start of an agent, so that changed settings count from then on."""

    def __init__(
        self, policy: Callable[[], AgentPolicy], catalogue: Catalogue, buffers: OpenBuffers | None = None
    ) -> None:
        self._policy = policy
        self._catalogue = catalogue
        self._buffers = buffers
        self._links: dict[str, AcpLink] = {}
        self._checks = itertools.count(1)

    def link(self, session_id: str, tell: Callable[[Happening], None]) -> AcpLink:
        """A new link; the session's former one must have been stopped."""
        link = AcpLink(tell, self._policy, self._buffers)
        self._links[session_id] = link
        return link

    def spec(self, agent_id: str | None) -> AgentSpec:
        """See ports.Agents."""
        return self._catalogue.spec(agent_id)

    def listed(self) -> Sequence[AgentListing]:
        """See ports.Agents."""
        return self._catalogue.listed()

    def check(self, agent_id: str, done: Checked) -> None:
        """See ports.Agents. The session that it opens is in the folder for temporary files."""
        try:
            spec = self._catalogue.spec(agent_id)
        except Refused as refused:
            done(False, refused.message, None)
            return

        def tell(happening: Happening) -> None:
            if isinstance(happening, AgentReady):
                done(True, f"{happening.agent_name or spec.name} answers", {"name": happening.agent_name or spec.name})
                link.stop()
            elif isinstance(happening, StartFailed):
                done(False, happening.detail, None)
                link.stop()  # one that wants a login is still there

        link = AcpLink(tell, self._policy, None)
        self._links[f"check {next(self._checks)} of {agent_id}"] = link
        link.start(Launch("check", spec, tempfile.gettempdir(), None, ""), 1)

    def list_sessions(self, agent_id: str, cwd: str, done: Listed) -> None:
        """See ports.Agents. Some agents make an empty session when they are asked; that is their way."""
        try:
            spec = self._catalogue.spec(agent_id)
        except Refused as refused:
            done(None, refused.message)
            return

        def tell(happening: Happening) -> None:
            if isinstance(happening, AgentReady):
                link.call("list", "list", {"cwd": cwd})
            elif isinstance(happening, StartFailed):
                done(None, happening.detail)
            elif isinstance(happening, CallAnswered):
                found = as_list(as_dict(happening.result).get("sessions"))
                done(None if happening.error else [as_dict(item) for item in found], happening.error or "")
                link.stop()

        link = AcpLink(tell, self._policy, None)
        self._links[f"list of {agent_id}"] = link
        link.start(Launch("list", spec, cwd, None, ""), 1)

    def processes(self) -> Sequence[Mapping[str, object]]:
        """See ports.Agents. `pids`: guard (B47) and agent; `stderr`: its last lines."""
        rows = ((session_id, link.process_facts()) for session_id, link in self._links.items())
        return [{"sessionId": session_id, **facts} for session_id, facts in rows if facts]

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
