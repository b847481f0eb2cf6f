"""Agents that lie, flood, hang and die: each oddity of AGENTS.md 2.1 and 5, and some more. Nothing hangs or leaks.

After every case of a turn the same agent must still be able to answer, unless it is gone.
"""
# ruff: noqa: E501 -- a table of cases reads better with one case a line

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentik_server.domain.happenings import (
    AgentExited,
    AgentReady,
    AskWithdrawn,
    ControlsChanged,
    PermissionAsked,
    PromptAnswered,
    PromptNotWritten,
    QuestionAsked,
    Remark,
    StartFailed,
    TextArrived,
    ToolCallChanged,
)
from agentik_server.ports import AgentPolicy

from .rig import Rig
from .waiting import eventually, group_members, is_alive


@dataclass(frozen=True)
class Case:
    """A prompt, the agent's text after it, and how the turn ended (stop reason, or a part of the error)."""

    name: str
    prompt: str
    text: str = ""
    stop: str | None = "end_turn"
    error: str | None = None


def raw(message: dict[str, Any]) -> str:
    return "#raw " + json.dumps({"jsonrpc": "2.0", **message}) + "\n"


def update(fields: dict[str, Any], session: object = "$SESSION") -> dict[str, Any]:
    return {"method": "session/update", "params": {"sessionId": session, "update": fields}}


def chunk(text: str) -> dict[str, Any]:
    return update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})


def answer(**body: Any) -> str:
    """The answer to the prompt, with members of our own."""
    return (
        "#raw "
        + json.dumps({"jsonrpc": "2.0", "id": 0, **body}).replace('"id": 0', '"id": $REQUEST', 1)
        + "\n#no_answer"
    )


def permission(id_: object, options: object, tool: object = None) -> str:
    params = {"sessionId": "$SESSION", "toolCall": tool or {"toolCallId": "t"}, "options": options}
    return raw({"id": id_, "method": "session/request_permission", "params": params})


CHUNK_JSON = json.dumps({"jsonrpc": "2.0", **chunk("x")})
LATIN_1 = b'{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\xe9"}}}}\n'
DONE = '"result":{"stopReason":"end_turn"}'

TURNS = [
    # lines that are no messages
    Case("garbage", "#say a\n#garbage\n#say b", "ab"),
    Case("null line", "#say a\n#raw null\n#say b", "ab"),
    Case("blank lines", "#say a\n#raw \n#raw  \n#say b", "ab"),
    Case("empty array", "#raw []\n#say b", "b"),
    Case("batch", f"#raw [{CHUNK_JSON},{CHUNK_JSON},5,null]\n#say b", "xxb"),
    Case("glued noise", f"#raw Loading... {CHUNK_JSON}\n#say b", "xb"),
    Case("glued braces", f"#raw {{models}} 50% {{ {CHUNK_JSON} done\n#say b", "xb"),
    Case("two frames on a line", f"#raw {CHUNK_JSON}{CHUNK_JSON}\n#say b", "xxb"),
    Case("carriage returns", "#raw " + CHUNK_JSON + "\r\n#say b".replace("\r\n", "\n"), "xb"),
    Case("byte order mark", f"#raw \ufeff{CHUNK_JSON}\n#say b", "xb"),
    Case("colours", f"#raw \x1b[31m{CHUNK_JSON}\x1b[0m\n#say b", "xb"),
    Case("half a frame", "#raw " + CHUNK_JSON[:40] + "\n#say b", "b"),
    Case("not UTF-8", "#hex ff fe 22 0a\n#say b", "b"),
    Case("not UTF-8 inside a text", "#hex " + LATIN_1.hex() + "\n#say b", "\ufffdb"),
    Case("deep nesting", "#raw " + "[" * 100_000 + "\n#say b", "b"),
    Case("deep nesting inside", raw(update({"sessionUpdate": "tool_call", "toolCallId": "t", "rawInput": 1})).replace("1}", "[" * 400 + "]" * 400 + "}", 1) + "#say b", "b"),
    Case("huge number", '#raw {"jsonrpc":"2.0","id":' + "9" * 5000 + ',"result":1}\n#say b', "b"),
    Case("NaN", '#raw {"jsonrpc":"2.0","method":"session/update","params":{"x":NaN,"y":-Infinity}}\n#say b', "b"),
    Case("no jsonrpc member", "#raw " + json.dumps(chunk("x")) + "\n#say b", "xb"),
    Case("a message without anything", "#raw {}\n#say b", "b"),
    Case("a method that is a number", '#raw {"jsonrpc":"2.0","method":7,"params":{}}\n#say b', "b"),
    Case("10 MB in one line", "#big 10000000\n#say b", "b" * 10_000_001),
    Case("a line over the limit", "#big 34000000\n#say b", "b"),
    # texts
    Case("lone surrogates", raw(chunk("a\ud83d")) + "#say b", "a\ufffdb"),
    Case("a pair in two chunks", raw(chunk("\ud83d")) + raw(chunk("\ude00")), "😀"),
    Case("NUL", raw(chunk("a\0b")), "a\u2400b"),
    Case("a text that looks like a frame", raw(chunk('{"jsonrpc":"2.0","id":1,"result":{}}')), '{"jsonrpc":"2.0","id":1,"result":{}}'),
    # answers
    Case("id as text", '#raw {"jsonrpc":"2.0","id":"$REQUEST",' + DONE + "}\n#no_answer"),
    Case("id as float", '#raw {"jsonrpc":"2.0","id":$REQUEST.0,' + DONE + "}\n#no_answer"),
    Case("ids of nobody", "".join(f'#raw {{"jsonrpc":"2.0","id":{i},{DONE}}}\n' for i in ("{}", "[1]", "true", "null", "99999", '"x"')) + "#say b", "b"),
    Case("error is a text", answer(error="boom"), stop=None, error="boom"),
    Case("error is a number", answer(error=5), stop=None, error="5"),
    Case("error without message", answer(error={"code": -32603}), stop=None, error="-32603"),
    Case("error with odd members", answer(error={"code": "400", "message": {"a": 1}, "data": [1]}), stop=None, error='{"a": 1}'),
    Case("error holds JSON", answer(error={"code": 500, "message": '{"error":{"message":"quota"}}'}), stop=None, error="quota (500)"),
    Case("error and result", answer(error={"code": 1, "message": "no"}, result={"stopReason": "end_turn"}), stop=None, error="no (1)"),
    Case("error is null", answer(error=None, result={"stopReason": "end_turn"})),
    Case("parse error without id", '#raw {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}\n#no_answer', stop=None, error="Parse error"),
    Case("result is null", answer(result=None), stop=None),
    Case("result is empty", answer(result={}), stop=None),
    Case("result is a text", answer(result="ok"), stop=None),
    Case("neither result nor error", answer(), stop=None),
    Case("stop reason of its own", answer(result={"stopReason": "bored"}), stop="bored"),
    Case("stop reason is a number", answer(result={"stopReason": 5}), stop=None),
    Case("answered twice", '#raw {"jsonrpc":"2.0","id":$REQUEST,' + DONE + "}\n#say late", "late"),
    # updates
    Case("update of another session", raw(update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}, "other")) + "#say b", "b"),
    Case("update without session", raw({"method": "session/update", "params": {"update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}}}) + "#say b", "xb"),
    Case("update is nothing", "".join(raw({"method": "session/update", "params": p}) for p in (None, [], 5, {}, {"sessionId": "$SESSION", "update": None}, {"sessionId": {}})) + "#say b", "b"),
    Case("meta that names members", raw({"method": "session/update", "params": {**chunk("x")["params"], "_meta": {"sessionId": "evil", "update": 1, "self": 2}}}), "x"),
    Case("echo of the user", raw(update({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "me"}})) + "#say b", "b"),
    Case("unknown content", raw(update({"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram"}})), "[hologram]"),
    Case("unknown notification", raw({"method": "qwen/notify/session/x", "params": {}}) + raw({"method": "_auth/status_update"}) + "#say b", "b"),
    Case("late usage", "#late x\n#usage 1 2", "x"),
    # requests
    Case("unknown request", '#request craft/drainMidTurnQueue {}', 'craft/drainMidTurnQueue -> {"error": {"code": -32601, "message": "Method not found: craft/drainMidTurnQueue"}}\n'),
    Case("read without path", '#request fs/read_text_file {}', 'fs/read_text_file -> {"error": {"code": -32602, "message": "path must be a text"}}\n'),
    Case("write without content", '#request fs/write_text_file {"path": "/x"}', 'fs/write_text_file -> {"error": {"code": -32602, "message": "content must be a text"}}\n'),
    Case("write of half a character", '#request fs/write_text_file {"path": "/x", "content": "\\ud83d"}', 'fs/write_text_file -> {"error": {"code": -32602, "message": "content holds half of a character (a lone surrogate)"}}\n'),
    Case("terminal of nobody", '#request terminal/output {"terminalId": 7}', 'terminal/output -> {"error": {"code": -32002, "message": "there is no terminal 7"}}\n'),
    Case("terminal without command", '#request terminal/create {"command": null}', 'terminal/create -> {"error": {"code": -32602, "message": "command must be a text"}}\n'),
    Case("elicitation without form", '#request elicitation/create {"message": "x"}', 'elicitation/create -> {"error": {"code": -32602, "message": "elicitation/create needs requestedSchema or url"}}\n'),
    Case("permission without options", '#request session/request_permission {"toolCall": {"toolCallId": "t"}}', 'session/request_permission -> {"result": {"outcome": {"outcome": "cancelled"}}}\n'),
    Case("permission without tool", '#request session/request_permission {"options": []}', 'session/request_permission -> {"error": {"code": -32602, "message": "toolCall.toolCallId is missing"}}\n'),
    Case("request without params", raw({"id": "q", "method": "fs/read_text_file"}) + raw({"id": "r", "method": "fs/read_text_file", "params": [1]}) + "#say b", "b"),
    Case("cancel of nothing", raw({"method": "$/cancel_request", "params": {"requestId": 5}}) + raw({"method": "$/cancel_request"}) + "#say b", "b"),
    # pipes
    Case("a megabyte on stderr", "#stderr_bytes 1000000\n#say b", "b"),
    Case("a flood", "#flood 20000", "x" * 20_000),
]  # fmt: skip


@pytest.mark.parametrize("case", TURNS, ids=lambda case: case.name)
async def test_the_turn_ends_as_it_should_and_the_agent_can_go_on(tmp_path: Path, case: Case) -> None:  # B46
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.answer_all("yes")
        end = await rig.ask(case.prompt)
        assert end.stop_reason == case.stop
        assert (case.error is None) == (end.error is None)
        assert (case.error or "") in (end.error or "")
        await rig.ask("still there?", quiet=True)
        assert rig.text == case.text + "echo: still there?"
        assert rig.all(AgentExited) == []


PERMISSIONS = [
    ("ids are numbers", [{"optionId": 1, "name": "A", "kind": "allow_once"}], "1"),
    ("ids twice", [{"optionId": "a", "kind": "x"}, {"optionId": "a", "kind": "y"}], "a"),
    ("kinds of its own", [{"optionId": "a", "name": "A", "kind": "maybe"}], "a"),
    ("names missing", [{"optionId": "a"}, {"name": "no id"}, 7, None], "a"),
]


@pytest.mark.parametrize(("name", "options", "option"), PERMISSIONS, ids=[name for name, *_ in PERMISSIONS])
async def test_odd_permission_options_can_be_answered(
    tmp_path: Path, name: str, options: list[Any], option: str
) -> None:  # B48
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.answer_all(option)
        tool = {"toolCallId": "t", "title": name}
        await rig.ask("#request session/request_permission " + json.dumps({"toolCall": tool, "options": options}))
        asked = await rig.next(PermissionAsked)
        assert [o.option_id for o in asked.options] == [option]
        assert json.dumps({"outcome": "selected", "optionId": options[0]["optionId"]}) in rig.text


@pytest.mark.parametrize("id_", [0, "0", "uuid", 1.5, {"a": [1]}, -1])
async def test_a_permission_is_answered_under_any_id(tmp_path: Path, id_: object) -> None:  # B48
    async with Rig(tmp_path) as rig:
        await rig.ready()
        options = [{"optionId": "a", "name": "A", "kind": "allow_once"}]
        turn = rig.send(permission(id_, options) + "#stream 1 1\n#permission t2")
        asked = await rig.next(PermissionAsked, 2)
        rig.link.answer_permission(rig.all(PermissionAsked)[0].permission_id, "a")
        rig.link.answer_permission(asked.permission_id, "yes")
        await rig.ended(turn)


async def test_a_permission_that_the_agent_takes_back_is_withdrawn(tmp_path: Path) -> None:  # B48, AGENTS.md 5.4
    async with Rig(tmp_path) as rig:
        await rig.ready()
        cancel = raw({"method": "$/cancel_request", "params": {"requestId": "p"}})
        await rig.ask(permission("p", [{"optionId": "a"}]) + cancel + "#say b")
        asked = await rig.next(PermissionAsked)
        assert rig.all(AskWithdrawn) == [AskWithdrawn(asked.permission_id)]


async def test_a_permission_that_is_open_at_the_end_of_the_turn_is_withdrawn(tmp_path: Path) -> None:  # B48
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask(permission("p", [{"optionId": "a"}]) + "#say b")
        asked = await rig.next(PermissionAsked)
        assert rig.all(AskWithdrawn) == [AskWithdrawn(asked.permission_id)]


async def test_a_thousand_requests_at_once_are_all_answered(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.answer_all("yes")
        await rig.ask("#requests 1000")
        outcomes = rig.text.split()[1:]
        assert len(outcomes) == 1000
        assert outcomes.count("yes") >= 500  # the others are refused while so many are open


async def test_news_of_one_tool_call_come_from_three_sources_in_any_order(tmp_path: Path) -> None:  # AGENTS.md 5.1
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.answer_all("yes")
        await rig.ask(
            raw(update({"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "pending"}))
            + "#permission t Title\n#tool t edit pending Again\n#tool t edit in_progress Again"
        )
        news = [h.change for h in rig.all(ToolCallChanged)] + [h.tool for h in rig.all(PermissionAsked)]
        assert {change.tool_call_id for change in news} == {"t"}


@pytest.mark.parametrize("method", ["_agentao.cn/ask_user", "ask_user", "x/ask_user"])
async def test_a_question_by_a_method_of_its_own_is_asked(tmp_path: Path, method: str) -> None:  # AGENTS.md 5.13
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send(f'#request {method} {{"question": "Which?", "options": ["a", "b"]}}')
        asked = await rig.next(QuestionAsked)
        assert asked.message == "Which?"
        assert asked.schema["properties"]["answer"]["enum"] == ["a", "b"]  # type: ignore[index]
        rig.link.answer_question(asked.question_id, "accept", {"answer": "b"})
        await rig.ended(turn)
        assert '"outcome": "answered", "text": "b"' in rig.text


@pytest.mark.parametrize(
    ("action", "reply"),
    [("accept", {"action": "accept", "content": {"name": "Ada"}}), ("decline", {"action": "decline"}), ("cancel", {"action": "cancel"})],
)  # fmt: skip
async def test_a_form_is_answered(tmp_path: Path, action: str, reply: dict[str, Any]) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#ask Your name?")
        asked = await rig.next(QuestionAsked)
        rig.link.answer_question(asked.question_id, action, {"name": "Ada"})
        rig.link.answer_question(asked.question_id, "cancel", None)
        await rig.ended(turn)
        assert json.dumps(reply) in rig.text


async def test_a_flood_of_unknown_updates_is_a_few_remarks(tmp_path: Path) -> None:  # B46
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask("".join(raw(update({"sessionUpdate": f"kind{i}"})) for i in range(300)))
        assert 1 <= len(rig.all(Remark)) <= 5


# ------------------------------------------------------------------------------------- ends of agents


ENDS = [
    ("exit 0", "#say a\n#exit 0", "exit code 0"),
    ("exit 3", "#say a\n#exit 3", "exit code 3"),
    ("crash", "#say a\n#crash", "killed by SIGKILL"),
    ("exit with a grandchild on the pipes", "#say a\n#fork\n#exit 1", "exit code 1"),
    ("crash with an open permission", "#say a\n" + permission("p", [{"optionId": "a"}]) + "#crash", "SIGKILL"),
    ("crash after half a frame", "#say a\n#hex 7b22\n#crash", "SIGKILL"),
    ("stdout closed", "#say a\n#close_stdout", "SIGKILL"),
]


@pytest.mark.parametrize(("name", "prompt", "detail"), ENDS, ids=[name for name, *_ in ENDS])
async def test_the_end_of_an_agent_ends_the_turn_and_leaves_nothing(
    tmp_path: Path, name: str, prompt: str, detail: str
) -> None:  # B42
    async with Rig(tmp_path) as rig:
        await rig.ready()
        agent = rig.link.pids[1]
        end = await rig.ended(rig.send(prompt))
        assert isinstance(end, AgentExited), name
        assert detail in end.detail
        assert rig.text.startswith("a")
        await eventually(lambda: not group_members(agent), "the group is gone", 1.0)
        await rig.ready()


async def test_an_agent_that_ignores_everything_is_killed(tmp_path: Path) -> None:  # B32
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#ignore_cancel\n#hang")
        await rig.until(lambda: "streaming" in rig.states)
        rig.link.cancel(turn)
        rig.link.kill()
        assert (await rig.next(AgentExited)).wanted


async def test_a_prompt_for_an_agent_that_does_not_read_can_be_dropped_or_killed(tmp_path: Path) -> None:  # B34, B46
    async with Rig(tmp_path, command=(sys.executable, "-c", DEAF)) as rig:
        await rig.ready()
        first = rig.send("x" * 3_000_000)
        rig.link.cancel(first)
        rig.link.kill()
        assert isinstance(await rig.ended(first), AgentExited)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_agent_that_closes_its_stdin_is_ended_and_so_is_its_turn(tmp_path: Path, when: str) -> None:  # B42
    async with Rig(tmp_path, command=(sys.executable, "-c", CLOSES_STDIN)) as rig:
        await rig.ready()
        if when == "before":
            await rig.next(AgentExited)
        end = await rig.ended(rig.send("hello"))
        assert isinstance(end, PromptNotWritten | AgentExited)


BRAIN = r"""
import sys, json, os, time, signal
def send(m): os.write(1, (json.dumps({"jsonrpc": "2.0", **m}) + "\n").encode())
def next_request(): return json.loads(sys.stdin.readline())
def start():
    send({"id": next_request()["id"], "result": {"protocolVersion": 1}})
    send({"id": next_request()["id"], "result": {"sessionId": "s"}})
"""
DEAF = BRAIN + "start(); time.sleep(600)"
CLOSES_STDIN = BRAIN + "start(); os.close(0); time.sleep(600)"
STUBBORN = BRAIN + "signal.signal(15, signal.SIG_IGN)\nstart()\nwhile True: time.sleep(600)"
SERVES = (
    BRAIN
    + r"""
start()
while True:
    message = next_request()
    if message["method"] == "session/prompt":
        send({"id": message["id"], "result": {"stopReason": "end_turn"}})
"""
)
REEXEC = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {SERVES!r}]))"


async def test_an_agent_that_ignores_the_end_of_stdin_and_term_is_ended_in_order(tmp_path: Path) -> None:  # B47
    async with Rig(tmp_path, command=(sys.executable, "-c", STUBBORN)) as rig:
        await rig.ready()
        agent = rig.link.pids[1]
        rig.link.stop()
        exited = await rig.next(AgentExited)
        assert exited.wanted
        assert "SIGKILL" in exited.detail
        assert not is_alive(agent)


async def test_an_agent_that_starts_itself_again_is_ended_with_its_child(tmp_path: Path) -> None:  # AGENTS.md 5.18
    async with Rig(tmp_path, command=(sys.executable, "-c", REEXEC)) as rig:
        await rig.ready()
        await rig.ask("x")
        agent = rig.link.pids[1]
        assert len(group_members(agent)) == 2
        os.kill(agent, 9)
        exited = await rig.next(AgentExited)
        assert not exited.wanted
        await eventually(lambda: not group_members(agent), "the group is gone", 1.0)


# ------------------------------------------------------------------------------------------ odd starts


@dataclass(frozen=True)
class Start:
    name: str
    scenario: dict[str, Any]
    failed: str | None = None  # a part of the detail; None: it comes up


STARTS = [
    Start("banner before the first frame", {"before": "Welcome!\n> Node 20 warning\n\n"}),
    Start("banner without newline", {"before": "Loading models... "}),
    Start("garbage before the first frame", {"before": "123\nnull\n[]\n\"x\"\n{}\n"}),
    Start("answers nobody asked for", {"before": '{"jsonrpc":"2.0","id":7,"result":{}}\n{"jsonrpc":"2.0","id":null,"error":{}}\n'}),
    Start("version as text is no version", {"init": {"protocolVersion": "1"}}),
    Start("no version", {"init": {"protocolVersion": None}}),
    Start("another version", {"init": {"protocolVersion": 2}}, "speaks version 2 of ACP"),
    Start("capabilities of odd types", {"init": {"agentCapabilities": [], "agentInfo": 5, "authMethods": {}}}),
    Start("capabilities are true", {"init": {"agentCapabilities": {"sessionCapabilities": True, "loadSession": "yes"}}}),
    Start("modes and options of odd types", {"new": {"modes": 5, "configOptions": {}, "models": []}}),
    Start("options hold odd things", {"new": {"configOptions": [None, 5, {"id": "a"}, {"id": 7}], "modes": {"availableModes": [1]}}}),
    Start("no session id", {"new": {"sessionId": None}}, "gave no session id"),
    Start("session id is a number", {"new": {"sessionId": 5}}, "gave no session id"),
    Start("session id is empty", {"new": {"sessionId": ""}}, "gave no session id"),
    Start("exits at once", {"exit_at": "start", "code": 0}, "ended at its start: exit code 0"),
    Start("exits at initialize", {"exit_at": "initialize", "code": 9}, "exit code 9"),
    Start("exits at session/new", {"exit_at": "session/new", "code": 9}, "exit code 9"),
    Start("refuses session/new", {"new_error": [-32603, "no disk"]}, "opened no session: no disk (-32603)"),
    Start("wants a login in words", {"new_error": [-32603, "Please log in first"]}, "wants a login"),
    Start("wants a login with methods", {"new_error": [-32000, "Auth", {"authMethods": []}]}, "wants a login"),
    Start("session updates of nobody", {"early": [{"sessionUpdate": "usage_update", "used": 1}] * 300}),
]  # fmt: skip


@pytest.mark.parametrize("start", STARTS, ids=lambda start: start.name)
async def test_an_odd_start_comes_up_or_fails_with_one_clear_line(tmp_path: Path, start: Start) -> None:  # B45
    async with Rig(tmp_path, **start.scenario) as rig:
        end = await rig.start()
        if start.failed is None:
            assert isinstance(end, AgentReady), end
            await rig.ask("hello")
            assert rig.text == "echo: hello"
        else:
            assert isinstance(end, StartFailed)
            assert start.failed in end.detail
            assert "\n" not in end.detail


async def test_a_session_that_never_opens_is_a_timeout(tmp_path: Path) -> None:  # B39
    async with Rig(tmp_path, no_new=True, policy=AgentPolicy(startup_s=0.3)) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert failed.reason == "timeout"
        assert "no answer to session/new in 0.3 s" in failed.detail


@pytest.mark.parametrize("kind", ["folder", "not executable", "no program inside", "script without interpreter"])
async def test_a_command_that_cannot_run_is_named(tmp_path: Path, kind: str) -> None:  # B45
    path = tmp_path / "agent"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_text("#!/no/such/interpreter\n" if kind == "script without interpreter" else "\x7fnonsense")
        path.chmod(0o644 if kind == "not executable" else 0o755)
    async with Rig(tmp_path, command=(str(path),)) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert str(path) in failed.detail


async def test_a_folder_that_does_not_exist_is_said(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        rig.cwd.rmdir()
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert "does not exist" in failed.detail


# ------------------------------------------------------------------------------------------- floods


async def test_a_flood_reaches_the_application_merged_and_cancel_is_heard(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#flood 400000")
        await rig.until(lambda: sum(len(h.text) for h in rig.all(TextArrived)) > 20_000)
        rig.link.cancel(turn)
        end = await rig.ended(turn)
        assert isinstance(end, PromptAnswered)
        assert end.stop_reason == "cancelled"
        texts = rig.all(TextArrived)
        assert sum(len(h.text) for h in texts) > 20 * len(texts)


async def test_a_flood_that_cannot_be_merged_is_slowed_down_and_nothing_is_lost(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask("".join(f"#say {n} \n#think {n} \n" for n in range(1500)))
        wanted = "".join(f"{n} " for n in range(1500))
        assert rig.text == wanted
        assert "".join(h.text for h in rig.all(TextArrived) if h.kind == "thought") == wanted


async def test_controls_are_merged_and_the_last_word_counts(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask("".join(f"#usage {n} 100\n" for n in range(500)))
        assert rig.all(ControlsChanged)[-1].controls.usage == {"used": 499, "size": 100}
