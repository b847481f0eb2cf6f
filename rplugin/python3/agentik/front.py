"""Joins server and editor: news go into mirrors and documents, frames come out; calls of Lua go to the server.

Every failure ends in an answer to the call it belongs to, or in one line of the log. Must not draw and must not speak
JSON-RPC or Neovim's API itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from agentik import wire
from agentik.connection import LostError, RpcError
from agentik.frames import Editor, Frames
from agentik.link import Link, Request
from agentik.mirror import Change, Message, Snapshot, Token
from agentik.news import changes, slim, without_none
from agentik.render.look import Look, Scene
from agentik.render.text import plain
from agentik.watched import Watched

PAGE = 100
"""Messages of the first load and of each older page (B52)."""
AUTOMATIC = 5000
"""So many messages are loaded by themselves, page by page; older ones when the person asks."""
BUFFERS = {"agentik/readBuffer": "read_buffer", "agentik/writeBuffer": "write_buffer"}

_token = msgspec.json.Decoder(Token).decode


class Front:
    """One per Neovim. All methods belong to the loop."""

    def __init__(self, editor: Editor, report: Callable[[str], None]) -> None:
        self._editor = editor
        self._report = report
        self._frames = Frames(editor, self._take_frame, self._acknowledged, report)
        self._link: Link | None = None
        self._look = Look()
        self._names: dict[str, str] = {}
        self._database: str | None = None
        self._watched: dict[str, Watched] = {}
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._events: list[list[Any]] = []
        self._results: list[dict[str, Any]] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    # Lua calls

    def start(self, options: dict[str, Any]) -> None:
        """`options`: command, cwd, initialize (initializationOptions), look (fields of `Look`)."""
        self._look = Look(**(options.get("look") or {}))
        self._link = Link(options["command"], options["cwd"], options.get("initialize") or {}, self, self._report)
        self._link.start()

    def call(self, number: int, method: str, params: Any) -> None:
        """Any request of the protocol; the answer comes as a result with the same number."""
        self._answer(number, self._request(method, params or {}))

    def send(self, number: int, params: dict[str, Any]) -> None:
        """`sendMessage`, over a restart of the server if need be."""
        self._answer(number, self._send(params))

    def watch(self, number: int, session_id: str) -> None:
        """Opens the session and keeps the editor told of it."""
        self._answer(number, self._watch(session_id))

    def unwatch(self, session_id: str) -> None:
        """The editor shows it no more; the session lives on."""
        if self._watched.pop(session_id, None):
            self._spawn(self._request("agentik/closeSession", {"sessionId": session_id}))

    def redraw(self, session_id: str) -> None:
        """The buffer of the session is new, or was changed by somebody else."""
        if watched := self._watched.get(session_id):
            watched.redraw()
            self._frames.want()

    def older(self, session_id: str) -> None:
        """Loads a page of older messages, unless one is on its way."""
        watched = self._watched.get(session_id)
        if watched and not watched.paging.locked():
            self._spawn(self._page(watched))

    def find(self, number: int, session_id: str, block: int, offset: int) -> None:
        """What stands at a place of the chat: { kind, id, path?, line?, text?, output?, status? }."""
        self._answer(number, self._find(session_id, block, offset))

    def changes(self, number: int, session_id: str) -> None:
        """The diffs of all tool calls of the session that did not fail, oldest first, older pages included."""
        self._answer(number, self._changes(session_id))

    def reach(self, number: int, session_id: str, message_id: str) -> None:
        """Loads older pages until a message is there: True when it is, and drawn with the answer."""
        self._answer(number, self._reach(session_id, message_id))

    def quit(self, leave: Callable[[], None]) -> None:
        """Ends the server in order, then calls `leave`."""
        self._spawn(self._quit(leave))

    def status(self) -> dict[str, Any]:
        """For health checks and tests, without asking the server."""
        pid = self._link.pid if self._link else None
        stderr = self._link.stderr if self._link else []
        return {"server": pid, "frames": self._frames.count, "sessions": list(self._watched), "stderr": stderr}

    def _linked(self) -> Link:
        if self._link is None:
            raise LostError("the host was not started")
        return self._link

    async def _request(self, method: str, params: dict[str, Any]) -> Any:
        return await self._linked().request(method, params)

    async def _quit(self, leave: Callable[[], None]) -> None:
        if self._link:
            await self._link.close()
        leave()

    async def _send(self, params: dict[str, Any]) -> Any:
        return await self._linked().send(params)

    def _answer(self, number: int, work: Coroutine[Any, Any, Any]) -> None:
        async def run() -> None:
            error = result = None
            try:
                result = await work
            except RpcError as failure:
                error = {"code": failure.code, "message": str(failure), "reason": failure.reason}
            except Exception as failure:  # noqa: BLE001 - the caller waits for an answer, whatever went wrong
                self._report(f"call {number}: {failure!r}")
                error = {"code": -32603, "message": f"{type(failure).__name__}: {failure}"}
            self._results.append({"number": number, "error": error, "result": result})
            self._frames.want()

        self._spawn(run())

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._editor.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._report(f"{task.get_coro()}: {error!r}")

    # Sessions

    async def _watch(self, session_id: str) -> dict[str, Any]:
        watched = self._watched.get(session_id)
        if watched is None:
            await self._linked().start()
            watched = self._watched.setdefault(session_id, Watched(session_id, self._scene({})))
        async with watched.opening:
            if watched.mirror.revision is None:
                try:
                    await self._load(watched, self._request)
                except RpcError:
                    self._watched.pop(session_id, None)
                    raise
        return watched.mirror.session

    def _scene(self, session: dict[str, Any]) -> Scene:
        agent_id = session.get("agentId") or ""
        name = self._names.get(agent_id) or agent_id or "Agent"
        return Scene(self._look, _time_of_day, name, session.get("cwd") or "")

    async def _load(self, watched: Watched, request: Request) -> None:
        """Asks for all that is newer than what is known, or for the newest page (B52, B55)."""
        mirror = watched.mirror
        after = mirror.revision
        params: dict[str, Any] = {"sessionId": mirror.session_id, "limit": PAGE}
        if after is not None:
            params["after"] = after
        mirror.loading()
        try:
            snapshot = msgspec.convert(await request("agentik/openSession", params), Snapshot)
        except BaseException:
            mirror.load_failed()
            raise
        watched.document.scene = self._scene(snapshot.session)
        self._absorb(watched, mirror.load(snapshot, after=after))
        watched.guess_turn()
        self._frames.want()
        if mirror.more and after is None:
            self._spawn(self._page(watched, automatic=True))

    async def _page(self, watched: Watched, *, automatic: bool = False) -> None:
        """Older messages, a page a frame, so that the editor is never busy for long."""
        session_id = watched.session_id
        async with watched.paging:
            while watched.mirror.more and self._watched.get(session_id) is watched:
                await self._drawn(watched)
                params = {"sessionId": session_id, "before": watched.mirror.oldest, "limit": PAGE}
                page = await self._request("agentik/listMessages", params)
                messages = msgspec.convert(page["messages"], list[Message])
                more = bool(page["more"]) and bool(messages)
                self._absorb(watched, watched.mirror.page(messages, more=more, revision=page.get("revision", 0)))
                if not automatic or len(watched.mirror.messages) >= AUTOMATIC:
                    break

    async def _drawn(self, watched: Watched) -> None:
        """Returns when all messages that are here now stand in the buffer."""
        await self._frames.drawn()
        while watched.document.has_waiting and self._watched.get(watched.session_id) is watched:
            self._frames.want()
            await self._frames.drawn()

    def _absorb(self, watched: Watched, changed: list[Change]) -> None:
        if watched.absorb(changed):
            self._reload(watched)
        if changed:
            self._frames.want()

    def _reload(self, watched: Watched) -> None:
        """Text is missing: asks once more, however often it is noticed meanwhile."""
        running = self._loads.get(watched.session_id)
        if running is None or running.done():
            task = self._editor.loop.create_task(self._load(watched, self._request))
            self._loads[watched.session_id] = task
            task.add_done_callback(self._done)

    async def _changes(self, session_id: str) -> list[dict[str, Any]]:
        watched = self._watched.get(session_id)
        if watched is None:
            return []
        await self._older_until(watched, lambda: False)
        tools = [message.tool for message in watched.mirror.transcript() if message.tool]
        done = [tool for tool in tools if tool.get("status") == "completed"]
        return [diff for tool in done for diff in tool.get("diffs") or ()]

    async def _reach(self, session_id: str, message_id: str) -> bool:
        await self._watch(session_id)  # it may be on its way: a found message opens its session and is gone to at once
        watched = self._watched.get(session_id)
        if watched is None:
            return False
        await self._older_until(watched, lambda: message_id in watched.mirror.messages)
        await self._drawn(watched)
        return message_id in watched.mirror.messages

    async def _older_until(self, watched: Watched, enough: Callable[[], bool]) -> None:
        while not enough() and watched.mirror.more and self._watched.get(watched.session_id) is watched:
            await self._page(watched)

    async def _find(self, session_id: str, block: int, offset: int) -> dict[str, Any]:
        watched = self._watched.get(session_id)
        found = watched.document.find(block, offset) if watched else None
        if watched is None or found is None:
            return {}
        result: dict[str, Any] = {"kind": found.kind, "id": found.item_id}
        if found.place:
            result |= {"path": found.place.path, "line": found.place.line}
        if message := watched.mirror.messages.get(found.item_id):
            result |= {"text": message.text, "status": message.status, "turnId": message.turn_id}
            if message.tool:
                result |= {"output": plain(str(message.tool.get("output") or "")), "tool": message.tool}
        return result

    # Owner of the link

    async def connected(self, server: dict[str, Any], request: Request) -> None:
        """Brings every session that is shown up to date, then tells Lua."""
        database = server.get("databaseId")
        if self._database is not None and database != self._database:
            for watched in list(self._watched.values()):
                fresh = Watched(watched.session_id, watched.document.scene)
                self._watched[watched.session_id] = fresh
        self._database = database
        agents = (await request("agentik/listAgents", {}))["agents"]
        self._names = {agent["agentId"]: agent["name"] for agent in agents}
        for watched in list(self._watched.values()):
            try:
                await self._load(watched, request)
            except LostError:
                raise
            except RpcError as error:
                self._gone(watched.session_id, str(error))
        self._event("ready", server | {"agents": self._names})

    def disconnected(self, detail: str, *, restarts: bool) -> None:
        for watched in self._watched.values():
            watched.mirror.disconnected()
        self._event("serverDown", {"detail": detail, "restarts": restarts})

    def asked(self, method: str, params: wire.Raw) -> Awaitable[Any] | None:
        """The server's questions about open files are answered by Lua; progress may always be shown."""
        if method == "window/workDoneProgress/create":
            return _yes()
        name = BUFFERS.get(method)
        if name is None:
            return None
        return self._editor.lua(f"return require('agentik.host').{name}(...)", wire.decode(params))

    def notified(self, method: str, params: wire.Raw) -> None:
        if method == "agentik/streamingToken":
            token = _token(params)
            if watched := self._watched.get(token.session_id):
                self._absorb(watched, watched.mirror.grow(token))
            return
        news = wire.decode(params) or {}
        if method == "$/progress":
            self._event("progress", news["value"])
            return
        session_id = str(news.get("sessionId") or (news.get("session") or {}).get("sessionId"))
        if watched := self._watched.get(session_id):
            self._heard(watched, method, news)
        self._event(method.removeprefix("agentik/"), slim(news))

    def _heard(self, watched: Watched, method: str, news: dict[str, Any]) -> None:
        match method:
            case "agentik/turnStarted":
                watched.turn_started(news["turnId"], int(time.time() * 1000))
            case "agentik/turnEnded":
                watched.turn_ended(news["turnId"])
            case "agentik/sessionDeleted":
                self._gone(watched.session_id, "the session was deleted")
            case "agentik/resync":
                self._reload(watched)
            case _:
                self._absorb(watched, changes(watched.mirror, method, news))

    def _gone(self, session_id: str, detail: str) -> None:
        self._watched.pop(session_id, None)
        self._event("sessionGone", {"sessionId": session_id, "detail": detail})

    def _event(self, name: str, params: dict[str, Any]) -> None:
        self._events.append([name, params])
        self._frames.want()

    # Frames

    def _take_frame(self) -> dict[str, Any] | None:
        chats = {}
        states = {}
        for session_id, watched in self._watched.items():
            if not watched.is_stale or watched.mirror.revision is None:
                continue
            if drawn := watched.take_patches():
                chats[session_id] = drawn
            if state := watched.take_state():
                states[session_id] = state
            if watched.is_stale:
                self._frames.want()  # there was no room for all of it
        events, self._events = self._events, []
        results, self._results = self._results, []
        parts = {"chats": chats, "states": states, "events": events, "results": results}
        frame: dict[str, Any] = without_none({name: part for name, part in parts.items() if part})
        return frame or None

    def _acknowledged(self, answer: Any) -> None:
        """Neovim names the sessions whose buffer is not what the document thinks."""
        for session_id in answer or ():
            self.redraw(session_id)


async def _yes() -> None:
    """The answer to a request that wants nothing but one."""


def _time_of_day(milliseconds: int) -> str:
    return time.strftime("%H:%M", time.localtime(milliseconds / 1000))
