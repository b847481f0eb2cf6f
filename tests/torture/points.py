"""The way of a message, and a death after every single SQL statement of it: one life of a server for each.

One editor plays the same short scene again and again in new sessions; its server dies after the n-th statement, n = 1,
2, 3 ... until it survives the scene. Then the editor comes back, sends again what was not acknowledged, and counts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from pathlib import Path

from tests.stdio_client import ServerGone
from tests.torture.book import Book
from tests.torture.editor import Editor
from tests.torture.nursery import Nursery

SURVIVED_AT_MOST = 3  # lives that outlast the scene, one after the other, before we believe that n is too large
LIMIT_S = 30.0


class Points:
    """`statements`: the numbers of the statements after which to die. `book` has the counts and the problems."""

    def __init__(self, home: Path, statements: Iterable[int], seconds: float = 1e9) -> None:
        self.home = home
        self.book = Book()
        self.points = 0
        self.complete = False  # the scene was outlived: there is no statement left
        self._statements = statements
        self._ends_at = time.monotonic() + seconds
        self._point = 0

    async def run(self, nursery: Nursery) -> None:
        (self.home / "work").mkdir(parents=True)
        tag = f"points-{time.time_ns()}"
        editor = Editor("A", self.home, nursery, self.book, tag)
        other = Editor("B", self.home, nursery, self.book, tag)
        await other.come()
        editor.mortality = lambda: (self._point, self._prefix)
        survived = 0
        for point in self._statements:
            self.complete = survived == SURVIVED_AT_MOST
            if self.complete or time.monotonic() > self._ends_at:
                break
            self._point = point
            await editor.come()
            alive = await self._play(editor, other)
            survived = survived + 1 if alive else 0
            self.points += not alive
            self.book.counts["points"] += not alive
            if alive:
                editor.kill_server()
            await editor.go()
            await self._count(editor, other)
        await other.leave()

    @property
    def _prefix(self) -> str:
        return f"p{self._point}-"

    async def _play(self, editor: Editor, other: Editor) -> bool:
        """The scene; whether the server outlived it."""
        try:
            answer = await editor.client.request("agentik/newSession", {"cwd": str(self.home / "work")})
            session_id = answer["session"]["sessionId"]
            editor.sessions = [session_id]
            for one in (editor, other):
                await one.watch(session_id)
            await self._scene(editor, session_id)
        except ServerGone:
            return False
        return not editor.client.exited.is_set()

    async def _scene(self, editor: Editor, session_id: str) -> None:
        def send(command: str, *, urgent: bool = False, file: str | None = None) -> str:
            sent = self.book.new(editor.name, session_id, command, urgent=urgent, prefix=self._prefix)
            editor.send(sent, [{"path": str(self.home / "work" / file), "text": "kept"}] if file else None)
            return sent.message_id

        sent = self.book.sent
        send("#say straight into the run")
        await editor.replies()
        await self._rest(editor, session_id)
        send("#hang")
        edited, removed, moved, paused = send("#say a"), send("#say b"), send("#say c", file="f"), send("#say d")
        await editor.replies()
        await editor.edit(sent[edited])
        await editor.move(sent[moved], 0)
        await editor.remove(sent[removed])
        await editor.apply([("edit", sent[edited], 0), ("move", sent[paused], 1)])
        send("#say at once", urgent=True)
        await editor.replies()
        await self._rest(editor, session_id)
        send("#hang")
        send("#say e")
        await editor.replies()
        await editor.asked("pauseQueue", session_id, set())
        await editor.asked("cancelTurn", session_id, set())
        await self._rest(editor, session_id, waiting=1)
        await editor.asked("resumeQueue", session_id, set())
        await self._rest(editor, session_id)

    async def _rest(self, editor: Editor, session_id: str, waiting: int = 0) -> None:
        """Until nothing runs and so many wait."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                if editor.client.exited.is_set():
                    raise ServerGone("the server is gone")
                await editor.mend()
                if editor.screen.rests(session_id, waiting):
                    return
                await editor.news(0.5)

    async def _count(self, editor: Editor, other: Editor) -> None:
        """The editor comes back, in every other round at the other server; then everything is delivered and counted."""
        if not editor.sessions:
            return
        (session_id,) = editor.sessions
        point, self._point = self._point, 0
        back = editor
        if point % 2:
            back = other
            for sent in list(editor.outbox.values()):
                back.send(sent)
            editor.outbox.clear()
        else:
            await editor.come()
        await back.replies()
        await self._drain(back, session_id)
        back.sessions = [session_id]
        found = await back.count(self.book, drained=True)
        self.book.problems += [f"died after statement {point}: {problem}" for problem in found]
        await back.asked("deleteSession", session_id, {"notOwner"})
        self.book.sent.clear()
        (self.home / "agent.log").unlink(missing_ok=True)
        if back is editor:
            editor.kill_server()
            await editor.go()
        back.sessions = editor.sessions = []

    async def _drain(self, editor: Editor, session_id: str) -> None:
        async with asyncio.timeout(LIMIT_S):
            while True:
                page = await editor.open(session_id)
                if page["session"]["state"] == "idle" and not page["pending"]:
                    return
                if page["session"]["paused"]:
                    await editor.asked("resumeQueue", session_id, set())
                if any("#hang" in m["text"] for m in page["messages"][-2:]):
                    await editor.asked("cancelTurn", session_id, set())
                await editor.news(0.05)
