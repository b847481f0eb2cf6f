"""One prompt on its way: blocks are read, the quiet after a cancel is awaited, the frame is written, the answer comes.

Ends in exactly one of PromptNotWritten and PromptAnswered, or silently in PeerClosed, of which the connection tells
(B26, B34, B37). Must not know how an agent is started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from agentik_server.agents import controls, faults
from agentik_server.agents.clean import as_dict, as_text, one_line
from agentik_server.agents.peer import Answer, Peer, PeerClosed, Request, RpcError
from agentik_server.agents.prompts import AttachmentLost, Takes, prompt_blocks
from agentik_server.domain.happenings import Happening, PromptAnswered, PromptNotWritten
from agentik_server.ports import AgentPolicy, PromptBlock


class Turn:
    """`written` once a byte may be in the pipe. `ended` is called once, before the happening is told."""

    def __init__(
        self,
        turn_id: str,
        session_id: str,
        peer: Peer,
        tell: Callable[[Happening], None],
        *,
        on_written: Callable[[], None],
        ended: Callable[[], None],
        add_usage: Callable[[dict[str, object] | None], None],
    ) -> None:
        self.turn_id = turn_id
        self.cancelling = False
        self.written = False
        self._session_id = session_id
        self._peer = peer
        self._tell = tell
        self._on_written = on_written
        self._ended = ended
        self._add_usage = add_usage
        self._over = False
        self._request: Request | None = None
        self._preparing: asyncio.Task[None] | None = None

    def begin(self, blocks: Sequence[PromptBlock], takes: Takes) -> None:
        """Write the prompt now: nothing has to be read or awaited."""
        self._write(prompt_blocks(blocks, takes))

    async def prepare(
        self, blocks: Sequence[PromptBlock], takes: Takes, wait: Callable[[], float], policy: AgentPolicy
    ) -> None:
        """Read attachments in a thread and wait for quiet: `wait` says for how many seconds still, 0 = it is quiet."""
        self._preparing = asyncio.current_task()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            prompt = await asyncio.to_thread(prompt_blocks, blocks, takes)
        except AttachmentLost as lost:
            self.drop(str(lost))
            return
        while (rest := min(wait(), begun + policy.quiet_limit_s - loop.time())) > 0:  # noqa: ASYNC110 -- quiet: no event
            await asyncio.sleep(rest)
        self._preparing = None
        if not self._over:
            self._write(prompt)

    def cancel(self) -> bool:
        """Drop what was not written (told as PromptNotWritten), else say session/cancel once. True: it was dropped."""
        if self._over or self.cancelling:
            return False
        if self._request is None or self._peer.withdraw(self._request):
            self.drop("the turn was cancelled before it was sent")
            return True
        self.cancelling = True
        self._peer.notify("session/cancel", {"sessionId": self._session_id})
        return False

    def drop(self, detail: str) -> None:
        """Certainly nothing of the prompt reached the agent."""
        if self._over:
            return
        self._over = True
        if self._preparing is not None and self._preparing is not asyncio.current_task():
            self._preparing.cancel()
        self._ended()
        self._tell(PromptNotWritten(self.turn_id, detail))

    def _write(self, prompt: list[dict[str, object]]) -> None:
        self._on_written()
        params = {"sessionId": self._session_id, "prompt": prompt}
        self._request = self._peer.request("session/prompt", params, self._answered)
        self.written = True

    def _answered(self, answer: Answer) -> None:
        if self._over:
            return
        ticket = self._request.ticket if self._request is not None else None
        if isinstance(answer.error, PeerClosed):
            if ticket is None or not ticket.started:
                self.drop(one_line(str(answer.error) or "the agent is gone"))
                return
            self._over = True
            self._ended()
            return
        self._over = True
        result = as_dict(answer.result)
        self._add_usage(controls.prompt_usage(result))
        self._ended()
        if isinstance(answer.error, RpcError):
            error = answer.error
            self._tell(PromptAnswered(self.turn_id, None, faults.describe(error), faults.is_auth(error)))
        else:
            self._tell(PromptAnswered(self.turn_id, as_text(result.get("stopReason"))))
