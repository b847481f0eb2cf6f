"""An editor that dies with its server, comes back and goes on: it keeps what was not acknowledged and sends it again.

It compares each reply with what it knows and writes what is untrue into the book. Chooses nothing: see chaos.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.server.harness import scripted_agent
from tests.stdio_client import Params, RpcError, ServerGone, StdioClient
from tests.torture.book import Book, Sent, account, deliveries
from tests.torture.nursery import ForkedClient, Nursery, Order
from tests.torture.processes import TAG, Process, kill, orphans, started_by
from tests.torture.screen import Screen

LIMIT_S = 30.0
LATE_S = 2.0
TOO_LATE = {"alreadyDelivered", "unknownMessage"}
SETTINGS: Params = {
    "syncInterval": 0.25,
    "timeouts": {"cancelGrace": 0.5, "retryDelay": 0.05},
    "log": {"level": "info"},
}


class Editor:
    """`sessions`: those that it opens each time it comes back. `mortality()`: when its next server dies (Order)."""

    def __init__(self, name: str, home: Path, nursery: Nursery, book: Book, run_tag: str) -> None:
        self.name = name
        self.home = home
        self.book = book
        self.sessions: list[str] = []
        self.screen = Screen()
        self.outbox: dict[str, Sent] = {}
        self.client: StdioClient
        self.queue_settings: Params = {}
        self.ending = False  # its server was told to end: it may refuse what it does not carry out any more
        self.mortality: Callable[[], tuple[int, str]] = lambda: (0, "")
        self._nursery = nursery
        self._run_tag = run_tag
        self._lives = 0
        self._watches: set[asyncio.Task[None]] = set()
        self._attachments: dict[str, list[Params]] = {}

    # ------------------------------------------------------------------------------------------------ its life

    @property
    def tag(self) -> str:
        return f"{self._run_tag}-{self.name}-{self._lives}-"

    async def come(self) -> None:
        """Start a server, open the sessions, send again what was not acknowledged; again if it dies meanwhile."""
        while True:
            self._lives += 1
            self.ending = False
            die_after, armed_by = self.mortality()
            order = Order({TAG: self.tag}, die_after, armed_by)
            self.client = ForkedClient(self._nursery, order, log=self.home / "agentik.log", limit_s=LIMIT_S)
            await self.client.start()
            self.client.heard = self.screen.heard
            try:
                await self.client.initialize(self.home, self._settings())
                for session_id in self.sessions:
                    await self.watch(session_id)
                for sent in list(self.outbox.values()):
                    self._post(sent)
            except ServerGone:
                await self.go()
            else:
                return

    def _settings(self) -> Params:
        return {**scripted_agent(self.home), **SETTINGS, "queue": self.queue_settings}

    async def go(self) -> None:
        """The server is dead or dying: what it leaves behind is looked at, its processes are watched to their end."""
        await self.client.wait_exit(LIMIT_S)
        await self.client.close()
        self.screen.disconnected()
        self._look_back()
        self.book.counts["servers died"] += 1
        self._watch(self.tag)

    async def leave(self) -> None:
        """The orderly end. `self.client` has seen every turn since it came to its end."""
        for turn_id in self._turns("turnStarted") - self._turns("turnEnded"):
            self.book.wrong(f"{self.name}: no turnEnded for {turn_id}")  # B35
        await self.client.shutdown()
        await self.client.close()
        self._look_back()
        self._watch(self.tag)
        await asyncio.gather(*self._watches)

    def _turns(self, method: str) -> set[str]:
        return {note["turnId"] for note in self.client.of(method) if note["sessionId"] in self.sessions}

    def _look_back(self) -> None:
        for violation in self.client.violations:
            self.book.wrong(f"{self.name}: the server broke the protocol: {violation}")
        for method in ("turnStarted", "turnEnded"):
            turns = [note["turnId"] for note in self.client.of(method)]
            for turn_id in {turn_id for turn_id in turns if turns.count(turn_id) > 1}:
                self.book.wrong(f"{self.name}: {method} twice for {turn_id}")  # B35
        self.client.notifications.clear()

    def _watch(self, tag: str) -> None:
        async def watch() -> None:
            for process in await orphans(tag):
                self.book.wrong(f"an orphan: {process}")
                kill(process.pid, signal.SIGKILL)

        task = asyncio.create_task(watch())
        self._watches.add(task)
        task.add_done_callback(self._watches.discard)

    # ------------------------------------------------------------------------------------------------- talking

    async def call(self, method: str, session_id: str, **params: Any) -> Any:
        if self.client.exited.is_set():
            raise ServerGone("the server is gone")
        return await self.client.request(f"agentik/{method}", {"sessionId": session_id, **params})

    async def asked(self, method: str, session_id: str, allowed: set[str], **params: Any) -> str | None:
        """The reason of a refusal, None when it was done. A reason that is not `allowed` is wrong."""
        try:
            await self.call(method, session_id, **params)
        except RpcError as error:
            self.book.counts[f"{method} refused"] += 1
            if error.reason not in allowed:
                self.book.wrong(f"{method} {params}: {error}")
            return error.reason or str(error.code)
        self.book.counts[method] += 1
        return None

    def send(self, sent: Sent, attachments: list[Params] | None = None) -> None:
        """Send without waiting; the reply is noted when it comes."""
        self.book.counts["sent"] += 1
        self.outbox[sent.message_id] = sent
        if attachments:
            self._attachments[sent.message_id] = attachments
        if self.client.exited.is_set():
            raise ServerGone("the server is gone")
        self._post(sent)

    def _post(self, sent: Sent) -> None:
        params: Params = {"sessionId": sent.session_id, "messageId": sent.message_id, "text": sent.text(0)}
        if sent.urgent:
            params["now"] = True
        if sent.message_id in self._attachments:
            params["attachments"] = self._attachments[sent.message_id]
        future = self.client.send_request("agentik/sendMessage", params)
        future.add_done_callback(lambda done: self._replied(sent, done))

    def _replied(self, sent: Sent, done: asyncio.Future[Params]) -> None:
        error = done.exception()
        if error is None:
            disposition = done.result()["disposition"]
            sent.acknowledged = sent.acknowledged or disposition
            if disposition == "removed" and sent.removed == "no":
                self.book.wrong(f"{sent.message_id} is said to be removed, and nobody asked for it")
        elif isinstance(error, RpcError) and error.code == 4000:
            sent.refused = error.reason
            self.book.counts[f"send refused: {error.reason}"] += 1
            if error.reason != "queueFull" and not (self.ending and error.reason == "storeFailed"):
                self.book.wrong(f"sendMessage {sent.message_id}: {error}")
        else:
            return  # no reply: it stays in the outbox
        self.outbox.pop(sent.message_id, None)

    async def replies(self) -> None:
        """Until everything that was sent has its reply, or the server is gone."""
        while self.outbox and not self.client.exited.is_set():
            await self.news(1.0)

    async def open(self, session_id: str, **params: Any) -> Params:
        """agentik/openSession; what it says is not shown on the screen."""
        page: Params = await self.call("openSession", session_id, **params)
        return page

    async def watch(self, session_id: str) -> None:
        """Open the session as the plugin does: what is newer than what the screen shows."""
        mirror = self.screen.mirror(session_id)
        after = mirror.revision
        self.screen.gaps.discard(session_id)
        mirror.loading()
        page = await self.open(session_id, **({} if after is None else {"after": after}))
        self.screen.opened(session_id, page, after)

    async def count(self, book: Book, *, drained: bool) -> list[str]:
        """What is wrong with the messages, and with the screen; another server's news may be a second late (B59)."""
        deadline = time.monotonic() + LATE_S
        while True:
            await self.mend()
            pages = {session_id: await self.open(session_id, limit=10_000) for session_id in self.sessions}
            found = account(book, deliveries(self.home / "agent.log"), pages)
            for session_id, page in pages.items():
                found += self.screen.differences(session_id, page)
                found += [f"{item['messageId']} waits still" for item in page["pending"] if drained]
            if not found or time.monotonic() > deadline:
                return found
            await self.news(0.1)

    async def mend(self) -> None:
        """Ask again for what is missing on the screen."""
        for session_id in list(self.screen.gaps):
            self.book.counts["gaps in a stream"] += 1
            await self.watch(session_id)

    async def news(self, limit_s: float) -> None:
        """Until the next notification of whatever kind; for at most `limit_s`, and not once the server is gone."""
        mark = self.client.mark()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit_s):
                while self.client.mark() == mark and not self.client.exited.is_set():
                    await asyncio.sleep(0.003)

    # -------------------------------------------------------------------------------------------- edits, checked

    async def remove(self, sent: Sent) -> None:
        before, sent.removed = sent.removed, "perhaps" if sent.removed == "no" else sent.removed
        reason = await self.asked("removePending", sent.session_id, TOO_LATE, messageId=sent.message_id)
        if reason is None:
            sent.removed = "yes"
        elif before == "no":
            sent.removed = "no"
            self._unknown_is_true(sent, reason)

    async def edit(self, sent: Sent) -> None:
        sent.version += 1
        reason = await self.asked("editPending", sent.session_id, TOO_LATE, messageId=sent.message_id, text=sent.text())
        self._edited(sent, reason)

    async def move(self, sent: Sent, position: int) -> None:
        sent.moved = True
        reason = await self.asked(
            "movePending", sent.session_id, TOO_LATE, messageId=sent.message_id, position=position
        )
        if reason is not None:
            self._unknown_is_true(sent, reason)

    async def send_now(self, sent: Sent) -> None:
        sent.moved = True
        reason = await self.asked("sendPendingNow", sent.session_id, TOO_LATE, messageId=sent.message_id)
        if reason is not None:
            self._unknown_is_true(sent, reason)

    async def apply(self, edits: list[tuple[str, Sent, int]]) -> None:
        """agentik/applyPendingEdits; (op, message, position)."""
        body = []
        for op, sent, position in edits:
            edit: Params = {"op": op, "messageId": sent.message_id}
            if op == "edit":
                sent.version += 1
                edit["text"] = sent.text()
            elif op == "move":
                sent.moved = True
                edit["position"] = position
            elif sent.removed == "no":
                sent.removed = "perhaps"
            body.append(edit)
        answer = await self.call("applyPendingEdits", edits[0][1].session_id, edits=body)
        self.book.counts["applyPendingEdits"] += 1
        for (op, sent, _), result in zip(edits, answer["results"], strict=True):
            reason = None if result["applied"] else result["reason"]
            if op == "edit":
                self._edited(sent, reason)
            elif op == "remove":
                sent.removed = "yes" if reason is None or sent.removed == "yes" else "no"

    def _edited(self, sent: Sent, reason: str | None) -> None:
        if reason is None:
            sent.confirmed = sent.version
        else:
            self._unknown_is_true(sent, reason)

    def _unknown_is_true(self, sent: Sent, reason: str) -> None:
        if reason == "unknownMessage" and self.book.waits_for_sure(sent.message_id):
            self.book.wrong(f"{sent.message_id} is said to be unknown: {sent}")

    # ------------------------------------------------------------------------------------------------- violence

    def kill_server(self) -> None:
        self.book.counts["servers killed"] += 1
        self.client.kill()

    def hang_up(self) -> None:
        """The editor is gone: the end of the server's stdin."""
        self.book.counts["editors gone"] += 1
        self.client.close_stdin()

    async def look_away(self, seconds: float) -> None:
        """The editor does not read for a while: its pipe fills up."""
        self.client.stop_reading()
        await asyncio.sleep(seconds)
        self.client.resume_reading()
        self.book.counts["looked away"] += 1

    def kill_of_agent(self, choice: float, *, guard: bool) -> None:
        """One of the agents of this server, or the guard of one."""
        found: list[Process] = [p for p in started_by(self.tag) if (p.is_guard if guard else p.is_agent)]
        if found and kill(found[int(choice * len(found))].pid, signal.SIGKILL):
            self.book.counts["guards killed" if guard else "agents killed"] += 1


def pick(choices: list[str], book: Book, fraction: float) -> Sent | None:
    """One of these messages, by a choice between 0 and 1."""
    if not choices:
        return None
    return book.sent.get(choices[min(int(fraction * len(choices)), len(choices) - 1)])


def seeded(seed: int, *names: object) -> random.Random:
    return random.Random(":".join(map(str, (seed, *names))))
