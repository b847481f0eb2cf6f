"""The front between a scripted server and an editor that keeps its frames: what it asks for, and when."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from agentik import link as link_module
from agentik.frames import Frame
from agentik.front import Front

from tests.rplugin.buffer import Buffer

SERVER = Path(__file__).parents[1] / "fakes" / "server.py"
SESSION = {"sessionId": "s", "agentId": "demo", "cwd": "/", "state": "idle", "revision": 1}


def message(number: int, text: str = "", **fields: Any) -> dict[str, Any]:
    base = {"messageId": f"m{number}", "sessionId": "s", "seq": number, "kind": "agent", "revision": number}
    return base | {"text": text or f"text {number}"} | fields


def snapshot(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"session": SESSION, "messages": list(messages), "revision": 10, "more": False} | fields


class Desk:
    """Plays Neovim: applies the patches of each frame and acknowledges it at once."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.get_running_loop()
        self.folder = folder
        self.frames: list[Frame] = []
        self.buffer = Buffer()
        self.state: dict[str, Any] = {}
        self.events: list[tuple[str, Any]] = []
        self.lines: list[str] = []
        self.front = Front(self, self.lines.append)
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._changed = asyncio.Condition()
        self.asked_lua: list[tuple[str, Any]] = []

    def lua(self, code: str, *args: Any) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self.loop.create_future()
        if ".frame(" not in code:
            self.asked_lua.append((code, args))
            answer.set_result({"loaded": False, "modified": False})
            return answer
        frame: Frame = args[0]
        self.frames.append(frame)
        for chat in frame.get("chats", {}).values():
            if chat["reset"]:
                self.buffer = Buffer()
            self.buffer.apply(chat["patches"])
        for state in frame.get("states", {}).values():
            self.state |= state
        self.events += [tuple(event) for event in frame.get("events", ())]
        for result in frame.get("results", ()):
            self._answers.pop(result["number"]).set_result((result.get("error"), result.get("result")))
        answer.set_result([])
        self.loop.create_task(self._notify())
        return answer

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(condition)

    def script(self, **actions: list[dict[str, Any]]) -> None:
        named = {(name if name == "initialize" else f"agentik/{name}"): acts for name, acts in actions.items()}
        (self.folder / "script.json").write_text(json.dumps(named))

    def start(self) -> None:
        command = [sys.executable, str(SERVER), str(self.folder)]
        self.front.start({"command": command, "cwd": str(self.folder)})

    async def ask(self, name: str, *args: Any) -> Any:
        """Calls a method of the front that answers; gives (error, result)."""
        number = len(self._answers) + 1000 + len(self.frames)
        self._answers[number] = self.loop.create_future()
        getattr(self.front, name)(number, *args)
        async with asyncio.timeout(20):
            return await self._answers[number]

    def requests(self, method: str) -> list[dict[str, Any]]:
        lines = (self.folder / "requests.jsonl").read_text().splitlines()
        return [entry["params"] for entry in map(json.loads, lines) if entry.get("method") == f"agentik/{method}"]


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr(link_module, "RESTART_DELAYS_S", (0.0, 0.0, 0.0))
    desk = Desk(tmp_path)
    yield desk
    left = asyncio.Event()
    desk.front.quit(left.set)
    await left.wait()


async def watch(desk: Desk) -> None:
    desk.start()
    error, _ = await desk.ask("watch", "s")
    assert error is None


async def test_a_session_is_drawn_from_the_first_page_and_completed_page_by_page(desk: Desk) -> None:
    """B52: the newest first, then older pages; the line that says so goes when all are there."""
    desk.script(
        openSession=[{"result": snapshot(message(5), message(6), more=True)}],
        listMessages=[
            {"result": {"messages": [message(3), message(4)], "more": True, "revision": 10}},
            {"result": {"messages": [message(1), message(2)], "more": False, "revision": 10}},
        ],
    )
    await watch(desk)
    await desk.until(lambda: desk.state.get("more") is False)
    await desk.until(lambda: "text 1" in desk.buffer.text)
    texts = [line for line in desk.buffer.lines if line.startswith("text")]
    assert texts == [f"text {number}" for number in range(1, 7)]
    assert [params["before"] for params in desk.requests("listMessages")] == [5, 3]


async def test_after_a_restart_only_what_is_newer_is_asked_for(desk: Desk) -> None:
    """B54, B60: `after` is the last revision, and nothing that stands there is drawn again."""
    desk.script(
        openSession=[
            {"result": snapshot(message(1))},
            {"result": snapshot(message(2, revision=11), revision=11)},
        ],
        pauseQueue=[{"die": 9}],
    )
    await watch(desk)
    await desk.ask("call", "agentik/pauseQueue", {})
    await desk.until(lambda: "text 2" in desk.buffer.text)
    assert [params.get("after") for params in desk.requests("openSession")] == [None, 10]
    assert not [frame for frame in desk.frames[2:] for chat in frame.get("chats", {}).values() if chat["reset"]]


async def test_another_database_means_load_anew(desk: Desk) -> None:
    """PROTOCOL.md: with another `databaseId` what the client knows is void."""
    about = {"protocolVersion": 1, "databaseId": "one"}
    capabilities = [
        {"result": {"capabilities": {"experimental": {"agentik": about | {"databaseId": each}}}}} for each in "ab"
    ]
    desk.script(
        initialize=capabilities,
        openSession=[{"result": snapshot(message(1, "old"))}, {"result": snapshot(message(9, "new"))}],
        pauseQueue=[{"die": 9}],
    )
    await watch(desk)
    await desk.ask("call", "agentik/pauseQueue", {})
    await desk.until(lambda: "new" in desk.buffer.text)
    assert "old" not in desk.buffer.text
    assert desk.requests("openSession")[1].get("after") is None


async def test_a_session_that_is_gone_is_told(desk: Desk) -> None:
    gone = {"error": {"code": 4000, "message": "no such session", "data": {"reason": "unknownSession"}}}
    desk.script(openSession=[{"result": snapshot(message(1))}, gone], pauseQueue=[{"die": 9}])
    await watch(desk)
    await desk.ask("call", "agentik/pauseQueue", {})
    await desk.until(lambda: [name for name, _ in desk.events if name == "sessionGone"])


async def test_missing_text_is_asked_for_once(desk: Desk) -> None:
    """B55: a gap in the stream loads the session again, however many tokens show it."""
    token = {"sessionId": "s", "messageId": "m1", "kind": "agent", "seq": 1}
    gap = [["agentik/streamingToken", token | {"offset": at, "text": "x"}] for at in (4, 5, 6)]
    whole = message(1, "abcd", status="streaming")
    desk.script(
        openSession=[{"result": snapshot()}, {"result": snapshot(whole)}],
        status=[{"notify": [["agentik/streamingToken", token | {"offset": 0, "text": "ab"}], *gap]}],
    )
    await watch(desk)
    await desk.ask("call", "agentik/status", {})
    await desk.until(lambda: "abcdxxx" in desk.buffer.text)
    assert len(desk.requests("openSession")) == 2


async def test_answers_and_events_keep_their_order_and_hold_no_null(desk: Desk) -> None:
    """Lua never sees vim.NIL; an error is told as code, message and reason."""
    full = {"code": 4000, "message": "the queue is full", "data": {"reason": "queueFull"}}
    news = {"sessionId": "s", "turnId": "t", "stopReason": "end_turn", "error": None}
    desk.script(
        openSession=[{"result": snapshot()}],
        sendMessage=[{"notify": [["agentik/turnEnded", news]], "error": full}],
    )
    await watch(desk)
    error, result = await desk.ask("send", {"sessionId": "s", "messageId": "1", "text": "x"})
    assert error == {"code": 4000, "message": "the queue is full", "reason": "queueFull"}
    assert result is None
    assert ("turnEnded", {"sessionId": "s", "turnId": "t", "stopReason": "end_turn"}) in desk.events
    assert "null" not in json.dumps(desk.frames)


async def test_what_cannot_be_understood_is_logged_and_the_rest_goes_on(desk: Desk) -> None:
    """A message of the wrong shape is a fault of the server; the next one is drawn."""
    bad = ["agentik/messageUpdated", {"sessionId": "s", "message": {"messageId": 7}, "revision": 11}]
    good = ["agentik/messageUpdated", {"sessionId": "s", "message": message(2, revision=12), "revision": 12}]
    desk.script(openSession=[{"result": snapshot()}], status=[{"notify": [bad, good]}])
    await watch(desk)
    await desk.ask("call", "agentik/status", {})
    await desk.until(lambda: "text 2" in desk.buffer.text)
    assert any("messageUpdated" in line for line in desk.lines)


async def test_questions_about_open_files_go_to_lua(desk: Desk) -> None:
    desk.script(
        openSession=[{"result": snapshot()}],
        status=[{"ask": [["q", "agentik/readBuffer", {"path": "/f"}]]}],
    )
    await watch(desk)
    await desk.ask("call", "agentik/status", {})
    await desk.ask("call", "agentik/other", {})
    assert desk.asked_lua == [("return require('agentik.host').read_buffer(...)", ({"path": "/f"},))]
