"""fs/read_text_file and fs/write_text_file: through the editor where it has the file, else on disk (B49, B50).

Every request ends in a result or in an error with a reason; a refusal is shown to the person as well.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from agentik_server.agents.clean import as_int
from agentik_server.agents.disk_files import FileRefused, read_text, write_text
from agentik_server.agents.paths import PathRefused, Roots
from agentik_server.agents.peer import INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND, Call
from agentik_server.agents.permits import Deed, Permits
from agentik_server.domain.message import Diff, Location, ToolChange
from agentik_server.ports import BufferState, OpenBuffers

log = logging.getLogger(__name__)


class Files:
    """The files of one session. `remark` tells the person of what was refused."""

    def __init__(
        self, roots: Roots, permits: Permits, buffers: OpenBuffers | None, remark: Callable[[str], None]
    ) -> None:
        self._roots = roots
        self._permits = permits
        self._buffers = buffers
        self._remark = remark
        self.missing_reads_empty = False

    async def read(self, params: Mapping[str, object], call: Call) -> None:
        """Answers {content}; `line` (1-based) and `limit` cut it at line ends."""
        try:
            real = self._roots.resolve(params.get("path"), write=False)
            tool = ToolChange("agentik-read", f"Read {real}", "read", "pending", (Location(real),))
            await self._ask("read", real, tool, call)
            text = await self._read_or_nothing(real)
            call.result({"content": cut_lines(text, as_int(params.get("line")), as_int(params.get("limit")))})
        except (PathRefused, FileRefused) as refused:
            self._refuse("read", refused, call)

    async def write(self, params: Mapping[str, object], call: Call) -> None:
        """Answers {}. Never overwrites unsaved edits of the user without the editor's word."""
        content = params.get("content")
        if not isinstance(content, str):
            call.error(INVALID_PARAMS, "content must be a text")
            return
        try:
            content.encode("utf-8")
            real = self._roots.resolve(params.get("path"), write=True)
            if self._permits.rule("write") == "ask":
                await self._ask("write", real, await self._change(real, content), call)
            else:
                await self._ask("write", real, ToolChange("agentik-write"), call)
            await self._write(real, content)
            call.result({})
        except UnicodeEncodeError:
            call.error(INVALID_PARAMS, "content holds half of a character (a lone surrogate)")
        except (PathRefused, FileRefused) as refused:
            self._refuse("write", refused, call)

    async def _ask(self, deed: Deed, real: str, tool: ToolChange, call: Call) -> None:
        """Raises PathRefused unless it may be done."""
        if not await self._permits.may(deed, real, tool, call):
            why = "the settings deny it" if self._permits.rule(deed) == "deny" else "the user said no"
            raise PathRefused(f"{real}: {why}")

    async def _change(self, real: str, content: str) -> ToolChange:
        """What the user is shown before a write."""
        try:
            old: str | None = await self._read(real)
        except FileRefused as refused:
            if not refused.missing:
                raise
            old = None
        diff = Diff(real, content, old)
        return ToolChange("agentik-write", f"Write {real}", "edit", "pending", (Location(real),), (diff,))

    async def _read_or_nothing(self, real: str) -> str:
        """For agents that cannot tell our "not found" from any other error, and so could make no new file."""
        try:
            return await self._read(real)
        except FileRefused as refused:
            if refused.missing and self.missing_reads_empty:
                return ""
            raise

    async def _read(self, real: str) -> str:
        try:
            state = await self._buffer(real)
        except TimeoutError as late:
            log.info("the file on disk is read: %s", late)
            state = None
        if state is not None and state.loaded and state.modified and state.text is not None:
            return state.text
        return await asyncio.to_thread(read_text, self._roots, real)

    async def _write(self, real: str, content: str) -> None:
        try:
            state = await self._buffer(real)
            if self._buffers is not None and (state is None or state.loaded):  # None: it only knows writes, perhaps
                answer = await self._buffers.write(real, content)
                applied, reason = answer if answer is not None else (False, None)
                if applied:
                    return
                if reason is None and state is not None and state.modified:
                    reason = "the editor has unsaved changes of it"
                if reason is not None:
                    raise FileRefused(f"{real}: {reason}")
        except TimeoutError as late:
            reason = str(late) or "the editor, which may have the file open, did not answer"
            raise FileRefused(f"{real}: {reason}") from late
        await asyncio.to_thread(write_text, self._roots, real, content)

    async def _buffer(self, real: str) -> BufferState | None:
        return None if self._buffers is None else await self._buffers.read(real)

    def _refuse(self, deed: str, refused: PathRefused | FileRefused, call: Call) -> None:
        if isinstance(refused, FileRefused):
            call.error(NOT_FOUND if refused.missing else INTERNAL_ERROR, str(refused))
            if refused.missing:
                return  # agents look for files that are not there all the time
        else:
            call.error(INVALID_PARAMS, str(refused))
        self._remark(f"The agent was not let {deed} a file: {refused}")


def cut_lines(text: str, line: int | None, limit: int | None) -> str:
    """From the 1-based `line` on, at most `limit` lines, line ends kept."""
    if line is None and limit is None:
        return text
    lines = text.split("\n")
    first = max(0, (line or 1) - 1)
    last = len(lines) if limit is None else first + max(0, limit)
    part = "\n".join(lines[first:last])
    return part + "\n" if first < last < len(lines) else part
