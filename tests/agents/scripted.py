#!/usr/bin/env python3
"""A scripted ACP agent: what it does stands in the prompt. Standard library only, starts in 20 ms.

    python scripted.py [--log FILE] [--state FILE] [--scenario JSON]

Lines of the prompt that begin with `#` are carried out one after the other; a prompt without any is echoed. `\\n` in an
argument is a newline.

    #say TEXT / #think TEXT      one chunk                   #id ID              messageId of the chunks that follow
    #big N                       one chunk of N characters
    #stream N [MS]               N chunks "tick i "          #flood N            N chunks "x", as fast as the pipe takes
    #tool ID KIND STATUS TITLE   a tool call                 #update JSON        any session/update
    #permission ID [TITLE]       asks allow/reject, says what was chosen
    #request METHOD JSON         any request, says the reply  #requests N         N permission requests at once
    #read PATH / #write PATH TEXT / #terminal COMMAND (waits for it) / #ask QUESTION (elicitation)
    #plan A;B / #title T / #mode ID / #commands A,B / #usage USED SIZE
    #sleep MS / #hang (until cancelled) / #ignore_cancel / #wait_cancel (then goes on)
    #raw TEXT ($SESSION and $REQUEST are the ids; sent as it is, with a newline) / #hex BYTES / #garbage
    #stderr TEXT / #stderr_bytes N / #fork (a grandchild that holds the pipes)
    #close_stdin / #close_stdout / #exit CODE / #crash / #end REASON / #error CODE MESSAGE / #no_answer / #result JSON
    #late TEXT                   a chunk after the answer     #later MS TEXT      a chunk that many ms from now

`--log`: one JSON line {"method", "params"} for each message received, in order; shared by processes (O_APPEND).
`--state`: sessions that survive the process, for load and resume.
`--scenario` (or the variable SCRIPTED_AGENT): an object with any of
    init          is merged into the answer to initialize     no_init / no_new   never answer
    new           is merged into the answer to session/new    new_error [code, message, data]
    load / resume true to advertise and serve them            load_error [code, message, data]
    replay N      that many updates before load's answer      replay_late N   as many after it
    exit_at       "start" | "initialize" | "session/new"      code            its exit code
    before TEXT   written to stdout at the start              stderr TEXT     written to stderr at the start
    early [...]   updates between session/new and its answer
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

TYPE_CHECKING = False  # `typing` and others are left out: hundreds of these are started in a run of the tests
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]


class Ended(Exception):  # noqa: N818 -- not a fault
    """The turn ends now, with this answer (None: with no answer at all)."""

    def __init__(self, answer: Json | None) -> None:
        super().__init__()
        self.answer = answer


class Wire:
    """Lines out, requests to the client and their replies."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._number = 0
        self._replies: dict[object, Any] = {}
        self._news = threading.Condition()

    def raw(self, data: bytes) -> None:
        with self._lock:
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]

    def send(self, message: Json) -> None:
        self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def post(self, method: str, params: object) -> int:
        with self._lock:
            self._number += 1
            number = self._number
        self.send({"id": number, "method": method, "params": params})
        return number

    def wait(self, number: object) -> Json:
        with self._news:
            self._news.wait_for(lambda: number in self._replies)
            return self._replies.pop(number)  # type: ignore[no-any-return]

    def replied(self, message: Json) -> None:
        with self._news:
            self._replies[message.get("id")] = message
            self._news.notify_all()


class Turn:
    """One prompt, carried out in a thread of its own."""

    def __init__(self, agent: Agent, request_id: object, session_id: str, text: str) -> None:
        self.agent = agent
        self.wire = agent.wire
        self.request_id = request_id
        self.session_id = session_id
        self.text = text
        self.cancelled = threading.Event()
        self.ignores_cancel = False
        self.message_id: str | None = None
        self.late: list[str] = []

    def run(self) -> None:
        reason = "end_turn"
        answer: Json | None
        try:
            lines = [line for line in self.text.splitlines() if line.startswith("#")]
            if not lines:
                self.say("echo: " + self.text)
            for line in lines:
                word, _, argument = line[1:].partition(" ")
                self.step(word, argument.replace("\\n", "\n"))
                if self.cancelled.is_set() and not self.ignores_cancel:
                    reason = "cancelled"
                    break
            answer = {"result": {"stopReason": reason}}
        except Ended as ended:
            answer = ended.answer
        self.agent.turns.pop(self.session_id, None)
        if answer is not None:
            self.wire.send({"id": self.request_id, **answer})
        for text in self.late:
            self.say(text)

    def update(self, update: Json) -> None:
        self.wire.send({"method": "session/update", "params": {"sessionId": self.session_id, "update": update}})

    def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        chunk: Json = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
        self.update({**chunk, "messageId": self.message_id} if self.message_id else chunk)

    def ask(self, method: str, params: Json) -> Json:
        return self.wire.wait(self.wire.post(method, {"sessionId": self.session_id, **params}))

    def step(self, word: str, argument: str) -> None:
        do = getattr(self, "do_" + word, None)
        if do is None:
            raise Ended({"error": {"code": -32602, "message": f"no such step: {word}"}})
        do(argument)

    def do_say(self, text: str) -> None:
        self.say(text)

    def do_think(self, text: str) -> None:
        self.say(text, "agent_thought_chunk")

    def do_id(self, message_id: str) -> None:
        self.message_id = message_id

    def do_stream(self, argument: str) -> None:
        count, _, pause = argument.partition(" ")
        for number in range(int(count)):
            if self.cancelled.wait(float(pause or 5) / 1000) and not self.ignores_cancel:
                return
            self.say(f"tick {number} ")

    def do_flood(self, argument: str) -> None:
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
        message = {"jsonrpc": "2.0", "method": "session/update"}
        line = json.dumps({**message, "params": {"sessionId": self.session_id, "update": chunk}}).encode() + b"\n"
        left = int(argument)
        while left > 0 and (self.ignores_cancel or not self.cancelled.is_set()):
            self.wire.raw(line * min(left, 500))
            left -= 500

    def do_tool(self, argument: str) -> None:
        tool_id, kind, status, *title = argument.split(" ", 3)
        call = {"sessionUpdate": "tool_call", "toolCallId": tool_id, "kind": kind, "status": status}
        self.update({**call, "title": title[0] if title else tool_id})

    def do_update(self, argument: str) -> None:
        self.update(json.loads(argument))

    def do_permission(self, argument: str) -> None:
        tool_id, _, title = argument.partition(" ")
        tool = {"toolCallId": tool_id or "t1", "title": title or "do it", "kind": "edit", "status": "pending"}
        reply = self.ask("session/request_permission", {"toolCall": tool, "options": OPTIONS})
        outcome = reply.get("result", {}).get("outcome", reply)
        self.say(f"permission: {outcome.get('optionId', outcome.get('outcome'))}\n")

    def do_requests(self, argument: str) -> None:
        numbers = []
        for number in range(int(argument)):
            tool = {"toolCallId": f"t{number}", "title": f"tool {number}", "kind": "edit"}
            params = {"sessionId": self.session_id, "toolCall": tool, "options": OPTIONS}
            numbers.append(self.wire.post("session/request_permission", params))
        outcomes = [self.wire.wait(number).get("result", {}).get("outcome", {}) for number in numbers]
        self.say("permissions: " + " ".join(str(o.get("optionId", o.get("outcome"))) for o in outcomes))

    def do_request(self, argument: str) -> None:
        method, _, params = argument.partition(" ")
        reply = self.ask(method, json.loads(params or "{}"))
        body = {key: reply[key] for key in ("result", "error") if key in reply}
        self.say(f"{method} -> {json.dumps(body, ensure_ascii=False)}\n")

    def do_read(self, path: str) -> None:
        self.do_request("fs/read_text_file " + json.dumps({"path": path}))

    def do_write(self, argument: str) -> None:
        path, _, content = argument.partition(" ")
        self.do_request("fs/write_text_file " + json.dumps({"path": path, "content": content}))

    def do_terminal(self, command: str) -> None:
        reply = self.ask("terminal/create", {"command": command})
        if "error" in reply:
            self.say(f"terminal -> {json.dumps(reply['error'])}")
            return
        terminal = {"terminalId": reply["result"]["terminalId"]}
        call = {"sessionUpdate": "tool_call", "toolCallId": "terminal", "kind": "execute", "title": command}
        self.update({**call, "status": "in_progress", "content": [{"type": "terminal", **terminal}]})
        ended = self.ask("terminal/wait_for_exit", terminal)
        output = self.ask("terminal/output", terminal)
        self.ask("terminal/release", terminal)
        self.say(f"terminal -> {json.dumps([ended.get('result', ended), output.get('result', output)])}\n")

    def do_ask(self, question: str) -> None:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        self.do_request(
            "elicitation/create " + json.dumps({"mode": "form", "message": question, "requestedSchema": schema})
        )

    def do_plan(self, argument: str) -> None:
        entries = [{"content": item, "status": "pending", "priority": "medium"} for item in argument.split(";")]
        self.update({"sessionUpdate": "plan", "entries": entries})

    def do_title(self, title: str) -> None:
        self.update({"sessionUpdate": "session_info_update", "title": title})

    def do_mode(self, mode: str) -> None:
        self.update({"sessionUpdate": "current_mode_update", "currentModeId": mode})

    def do_commands(self, argument: str) -> None:
        commands = [{"name": name, "description": f"does {name}"} for name in argument.split(",")]
        self.update({"sessionUpdate": "available_commands_update", "availableCommands": commands})

    def do_usage(self, argument: str) -> None:
        used, size = argument.split()
        self.update({"sessionUpdate": "usage_update", "used": int(used), "size": int(size)})

    def do_sleep(self, argument: str) -> None:
        time.sleep(float(argument) / 1000)

    def do_hang(self, _argument: str) -> None:
        while True:
            self.cancelled.wait()
            if not self.ignores_cancel:
                return
            time.sleep(600)

    def do_wait_cancel(self, _argument: str) -> None:
        self.ignores_cancel = True
        self.cancelled.wait()

    def do_ignore_cancel(self, _argument: str) -> None:
        self.ignores_cancel = True

    def do_raw(self, text: str) -> None:
        text = text.replace("$SESSION", self.session_id).replace("$REQUEST", str(self.request_id))
        self.wire.raw(text.encode("utf-8", "surrogatepass") + b"\n")

    def do_hex(self, argument: str) -> None:
        self.wire.raw(bytes.fromhex(argument))

    def do_big(self, argument: str) -> None:
        self.say("b" * int(argument))

    def do_close_stdin(self, _argument: str) -> None:
        os.close(0)

    def do_garbage(self, _argument: str) -> None:
        for line in (
            b"123",
            b'"x"',
            b"null",
            b"[]",
            b"true",
            b"{",
            b"Loading...",
            b"\xff\xfe",
            b'{"id":{},"result":1}',
        ):
            self.wire.raw(line + b"\n")

    def do_stderr(self, text: str) -> None:
        os.write(2, text.encode() + b"\n")

    def do_stderr_bytes(self, argument: str) -> None:
        for _ in range(int(argument) // 100):
            os.write(2, b"e" * 99 + b"\n")

    def do_fork(self, _argument: str) -> None:
        import subprocess

        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.say(f"forked {child.pid}\n")

    def do_close_stdout(self, _argument: str) -> None:
        os.close(1)
        time.sleep(600)

    def do_exit(self, argument: str) -> None:
        os._exit(int(argument or 0))

    def do_crash(self, _argument: str) -> None:
        os.kill(os.getpid(), 9)

    def do_end(self, reason: str) -> None:
        raise Ended({"result": {"stopReason": reason}})

    def do_result(self, argument: str) -> None:
        raise Ended({"result": json.loads(argument)})

    def do_error(self, argument: str) -> None:
        code, _, message = argument.partition(" ")
        raise Ended({"error": {"code": int(code), "message": message}})

    def do_no_answer(self, _argument: str) -> None:
        raise Ended(None)

    def do_late(self, text: str) -> None:
        self.late.append(text)

    def do_later(self, argument: str) -> None:
        pause, _, text = argument.partition(" ")
        threading.Timer(int(pause) / 1000, self.say, [text]).start()


class Agent:
    """The agent: sessions, and one turn of each at a time."""

    turn_type = Turn

    def __init__(self, options: dict[str, str]) -> None:
        self.wire = Wire()
        self.turns: dict[str, Turn] = {}
        self.scenario: Json = json.loads(options.get("scenario") or os.environ.get("SCRIPTED_AGENT") or "{}")
        self.log_path: str | None = options.get("log")
        self.state_path: str | None = options.get("state")
        self.sessions = set(self._stored())

    def run(self) -> None:
        if "before" in self.scenario:
            self.wire.raw(self.scenario["before"].encode())
        if "stderr" in self.scenario:
            os.write(2, self.scenario["stderr"].encode() + b"\n")
        self.exit_at("start")
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if "method" in message:
                self.log(message)
                self.exit_at(message["method"])
                self.hear(message)
            else:
                self.wire.replied(message)
        os._exit(0)

    def exit_at(self, place: str) -> None:
        if self.scenario.get("exit_at") == place:
            os._exit(self.scenario.get("code", 1))

    def log(self, message: Json) -> None:
        if self.log_path:
            line = json.dumps({"method": message["method"], "params": message.get("params")}) + "\n"
            fd = os.open(self.log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.write(fd, line.encode())
            os.close(fd)

    def hear(self, message: Json) -> None:
        method, params = message["method"], message.get("params") or {}
        name = "on_" + method.replace("/", "_").replace("$", "")
        serve = getattr(self, name, None)
        if serve is None:
            if "id" in message:
                error = {"code": -32601, "message": f'"Method not found": {method}'}
                self.wire.send({"id": message["id"], "error": error})
            return
        answer = serve(message.get("id"), params)
        if answer is not None and "id" in message:
            self.wire.send({"id": message["id"], **answer})

    def on_initialize(self, _id: object, params: Json) -> Json | None:
        if self.scenario.get("no_init"):
            return None
        able = {
            "loadSession": bool(self.scenario.get("load")),
            "promptCapabilities": {"image": True, "embeddedContext": True},
            "sessionCapabilities": {"resume": {}} if self.scenario.get("resume") else {},
        }
        result = {"protocolVersion": 1, "agentCapabilities": able, "agentInfo": {"name": "scripted", "version": "1"}}
        return {"result": {**result, **self.scenario.get("init", {})}}

    def on_session_new(self, _id: object, params: Json) -> Json | None:
        if self.scenario.get("no_new"):
            return None
        if "new_error" in self.scenario:
            return error(self.scenario["new_error"])
        session_id = f"s{len(self.sessions) + 1}-{os.getpid()}"
        self.sessions.add(session_id)
        if self.state_path:
            with open(self.state_path, "a") as file:
                file.write(session_id + "\n")
        for update in self.scenario.get("early", []):
            self.wire.send({"method": "session/update", "params": {"sessionId": session_id, "update": update}})
        return {"result": {"sessionId": session_id, **self.scenario.get("new", {})}}

    def on_session_load(self, id_: object, params: Json) -> Json | None:
        failed = self._failed_load(params)
        if failed is not None:
            return failed
        self._replay(params["sessionId"], self.scenario.get("replay", 2))
        self.wire.send({"id": id_, "result": {}})
        self._replay(params["sessionId"], self.scenario.get("replay_late", 0))
        return None

    def on_session_resume(self, _id: object, params: Json) -> Json | None:
        failed = self._failed_load(params)
        if failed is None and self.scenario.get("resume") == "replays":
            self._replay(params["sessionId"], self.scenario.get("replay", 2))
        return failed or {"result": {}}

    def on_authenticate(self, _id: object, params: Json) -> Json:
        self.scenario.pop("new_error", None)
        return {"result": {}}

    def on_session_set_mode(self, _id: object, params: Json) -> Json:
        return {"result": {}}

    def on_session_set_model(self, _id: object, params: Json) -> Json:
        return {"result": {}}

    def on_session_prompt(self, id_: object, params: Json) -> Json | None:
        session_id = params["sessionId"]
        if session_id not in self.sessions:
            return error([-32002, "session not found"])
        if session_id in self.turns:
            return error([-32600, "a turn is running already"])
        text = "\n".join(block["text"] for block in params["prompt"] if block.get("type") == "text")
        turn = self.turns[session_id] = self.turn_type(self, id_, session_id, text)
        threading.Thread(target=turn.run, daemon=True).start()
        return None

    def on_session_cancel(self, _id: object, params: Json) -> Json | None:
        turn = self.turns.get(params["sessionId"])
        if turn is not None:
            turn.cancelled.set()
        return None

    def _failed_load(self, params: Json) -> Json | None:
        if "load_error" in self.scenario:
            return error(self.scenario["load_error"])
        if params["sessionId"] not in self.sessions:
            return error([-32002, "session not found"])
        return None

    def _replay(self, session_id: str, count: int) -> None:
        for number in range(count):
            kind = "user_message_chunk" if number % 2 == 0 else "agent_message_chunk"
            update = {"sessionUpdate": kind, "content": {"type": "text", "text": f"replayed {number}"}}
            self.wire.send({"method": "session/update", "params": {"sessionId": session_id, "update": update}})

    def _stored(self) -> list[str]:
        if not self.state_path or not os.path.exists(self.state_path):
            return []
        with open(self.state_path) as file:
            return file.read().split()


def error(parts: list[Any]) -> Json:
    names = ("code", "message", "data")
    return {"error": dict(zip(names, parts, strict=False))}


def main() -> None:
    words = sys.argv[1:]
    Agent({name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}).run()


if __name__ == "__main__":
    main()
