"""A tiny application behind the real editor side, as a process: `python -m tests.editor.echo_app`.

It answers by what the text of a message says; the tests' words are in `EchoApp.request`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Mapping
from typing import Any

from agentik_server.domain.refusal import Refused
from agentik_server.editor.server import EditorServer, run
from agentik_server.editor.stdio import claim_stdio
from agentik_server.ports import InitializeOptions, Reply, StartupError

logger = logging.getLogger(__name__)


class EchoApp:
    """Echoes; `listSessions` is answered never, so that it stays open."""

    def __init__(self, editor: EditorServer) -> None:
        self._editor = editor
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: list[Reply] = []
        self._tokens = 0
        self._order: list[str] = []
        self._progress = 0
        self._slow_close = False

    async def start(self, options: InitializeOptions) -> str:
        self._editor.notify("agentik/notice", {"level": "warning", "text": f"starting in {options.home}"})
        match options.home:
            case "/broken":
                raise StartupError("the database cannot be written: /broken", "storeFailed")
            case "/bug":
                raise RuntimeError("secret of the traceback")
            case "/slow-end":
                self._slow_close = True
        return f"db:{options.home}:{dict(options.settings)}"

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._slow_close:
            await asyncio.Event().wait()

    def request(self, method: str, params: Mapping[str, Any], reply: Reply) -> None:
        match method:
            case "sendMessage":
                self._send(params, reply)
            case "searchMessages" | "listSessions":
                self._open.append(reply)
            case "cancelTurn":
                self._order.append("cancel")
                reply.result({"cancelled": True})
            case "answerQuestion":
                reply.result({"echo": params["content"]})
            case "status":
                reply.result({"tokens": self._tokens, "order": self._order})
            case "exportSession":
                reply.result({"text": "x" * int(params["sessionId"])})
            case _:
                reply.result({"method": method, "params": params})

    def _send(self, params: Mapping[str, Any], reply: Reply) -> None:
        words = params["text"].split(" ")
        self._order.append(params["messageId"])
        match words[0]:
            case "raise":
                raise RuntimeError("secret of the traceback")
            case "refuse":
                raise Refused("queueFull", "the queue is full", most=100)
            case "refuse-later":
                asyncio.get_running_loop().call_soon(reply.refuse, "notOwner", "another process owns it", {"pid": 1})
                return
            case "no-json":
                reply.result({"x": object()})
                return
            case "twice":
                reply.result({"messageId": "1", "disposition": "started"})
            case "flood":
                self._spawn(self._flood(params, int(words[1])))
            case "read":
                self._spawn(self._read(words[1], reply))
                return
            case "write":
                self._spawn(self._write(words[1], reply))
                return
            case "progress":
                self._show_progress()
        reply.result({"messageId": params["messageId"], "disposition": "started"})

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flood(self, params: Mapping[str, Any], count: int) -> None:
        """`count` tokens, a tool call that changes all the time, and the end of the turn."""
        session, text = params["sessionId"], ""
        turn = {"sessionId": session, "turnId": "t"}
        self._editor.notify("agentik/turnStarted", {**turn, "messageId": params["messageId"]})
        for number in range(count):
            piece = f"{number} "
            token = {**turn, "messageId": "answer", "kind": "agent", "seq": 2, "offset": len(text), "text": piece}
            self._editor.notify("agentik/streamingToken", token)
            text += piece
            self._tokens += 1
            if number % 10 == 0:
                tool = {"toolCallId": "c", "title": str(number), "toolKind": "read", "status": "in_progress"}
                self._updated(session, "tool", kind="tool", text="", status="streaming", tool=tool)
            if number % 100 == 0:
                await asyncio.sleep(0)
        self._updated(session, "answer", kind="agent", text=text, status="complete")
        self._editor.notify("agentik/turnEnded", {**turn, "stopReason": "end_turn"})
        logger.info("the flood is over")

    def _updated(self, session: str, message: str, **fields: Any) -> None:
        self._order.append(message)
        shape = {"messageId": message, "sessionId": session, "seq": 2, "turnId": "t", "createdAt": 1, **fields}
        revision = len(self._order)
        self._editor.notify(
            "agentik/messageUpdated",
            {"sessionId": session, "message": {**shape, "revision": revision}, "revision": revision},
        )

    async def _read(self, path: str, reply: Reply) -> None:
        try:
            state = await self._editor.read(path)
            reply.result({"state": None if state is None else [state.loaded, state.modified, state.text]})
        except TimeoutError as error:
            reply.result({"late": str(error)})

    async def _write(self, path: str, reply: Reply) -> None:
        try:
            reply.result({"outcome": await self._editor.write(path, "x\r\n")})
        except TimeoutError as error:
            reply.result({"late": str(error)})

    def _show_progress(self) -> None:
        progress = self._editor.progress("Loading")
        progress.report("one", 10)
        progress.report("two", 200)
        progress.end("done")
        progress.report("late")


def main() -> int:
    incoming, outgoing = claim_stdio()
    print("noise of a library")
    logging.basicConfig(filename=sys.argv[1], level=logging.DEBUG)
    editor = EditorServer("1.2.3")
    return run(EchoApp(editor), editor, incoming, outgoing)


if __name__ == "__main__":
    sys.exit(main())
