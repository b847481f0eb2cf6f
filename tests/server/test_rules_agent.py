"""BEHAVIOUR.md, "The agent process" (B38 to B49), as an editor sees it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.server.harness import SCRIPTED, Chat, Talk, agents, server, until
from tests.stdio_client import Params

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_agent")]

AGENT = f"exec '{sys.executable}' -S '{SCRIPTED}' --log agent.log --state agent.state"
FLAKY = f'echo x >> starts; [ "$(wc -l < starts)" -gt 2 ] && {AGENT}; echo "not yet" >&2; exit 6'
REVEALING = f"env > env.txt; pwd > pwd.txt; {AGENT}"
LOST = [-32002, "Resource not found: session"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    settings = agents(
        plain={},
        loads={"load": True, "replay": 4},
        resumes={"load": True, "resume": True},
        forgets={"load": True, "resume": True, "load_error": LOST},
        fails={"load": True, "load_error": [-32603, "disk full"]},
        silent={"no_init": True},
        sessionless={"no_new": True},
        noisy={"before": 'Welcome!\n{"not": "ended\n', "stderr": "\x1b[31mwarning\x1b[0m"},
    )
    settings["agents"]["flaky"] = {"command": ["sh", "-c", FLAKY]}
    settings["agents"]["revealing"] = {"command": "sh", "args": ["-c", REVEALING], "env": {"MINE": "set", "HOME": "/x"}}
    settings["agents"]["gemini"] = {"command": "gemini-is-not-here"}
    settings["agents"]["mine"] = {"command": ["/no/such/program", "--acp"], "name": "My agent"}
    settings["timeouts"] = {"startup": 0.6, "retryDelay": 0.1}
    environment = {"EDITOR_SAYS": "hello = wörld", "MINE": "not this"}
    async with server(tmp_path_factory.mktemp("agent"), settings, env=environment) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(talk: Talk) -> Chat:
    return await Chat.begin(talk)


async def pids(chat: Chat) -> tuple[int, int]:
    """The guard and the agent."""
    status = await chat.client.request("agentik/status", {})
    (found,) = [agent["pids"] for agent in status["agents"] if agent["sessionId"] == chat.session_id]
    return found[0], found[1]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def writing(path: Path | str, text: str) -> str:
    """A step of the scripted agent."""
    return "#request fs/write_text_file " + json.dumps({"path": str(path), "content": text})


def steps(chat: Chat, since: int = 0) -> list[str]:
    return [p["connection"] for p in chat.of("connectionChanged", since)]


async def gone(chat: Chat, since: int) -> None:
    await chat.wait("connectionChanged", lambda p: p["connection"] == "disconnected", since=since)


async def pass_time(talk: Talk, ms: int) -> None:
    """For what must not happen: as long as a turn of another session takes."""
    await (await Chat.begin(talk)).do(f"#sleep {ms}")


async def test_every_step_is_announced(chat: Chat) -> None:
    """# B38 B42 B44: a crash, the next start, and that the session's own row says the same."""
    assert steps(chat) == ["connecting", "initializing", "connected", "has_session"]
    mark = chat.client.mark()
    await chat.send("#crash")
    await chat.ended()
    await gone(chat, mark)
    assert steps(chat, mark) == ["streaming", "disconnected"]
    mark = chat.client.mark()
    await chat.do("#say x")
    assert steps(chat, mark)[-2:] == ["streaming", "has_session"]
    assert {p["session"]["connection"] for p in chat.of("sessionChanged")} >= {"has_session", "streaming"}


async def test_two_requests_start_one_agent(talk: Talk) -> None:
    """# B39: openings and a send at once."""
    chat = await Chat.begin(talk, ready=False)
    params = {"sessionId": chat.session_id}
    futures = [chat.client.send_request("agentik/openSession", params) for _ in range(3)]
    await chat.send("#say x")
    for future in futures:
        await chat.client.answer_of(future)
    await chat.ended()
    assert len(chat.received_by_agent("initialize")) == len(chat.received_by_agent("session/new")) == 1
    assert steps(chat).count("connecting") == 1


async def test_a_send_tries_a_start_twice(talk: Talk) -> None:
    """# B39: after the short wait once more; here the second attempt succeeds, and the message was never refused."""
    chat = await Chat.begin(talk, ready=False, agentId="flaky")
    await gone(chat, 0)
    assert (await chat.send("#say at last"))[1] == "started"
    assert (await chat.ended())["stopReason"] == "end_turn"
    assert (chat.folder / "starts").read_text().count("x") == 3
    assert [p["attempt"] for p in chat.of("connectionChanged") if p["connection"] == "connecting"] == [1, 1, 2]
    assert not [p for p in chat.of("notice") if p["level"] == "error"]
    assert len(chat.of("messageReceived")) == 1


@pytest.mark.parametrize(("agent", "word"), [("silent", "initialize"), ("sessionless", "session/new")])
async def test_a_start_has_a_time_limit(talk: Talk, agent: str, word: str) -> None:
    """# B39: `timeouts.startup`; the agent is named, the message stays at the head, its process is gone."""
    chat = await Chat.begin(talk, ready=False, agentId=agent)
    await gone(chat, 0)
    message_id, _ = await chat.send("#say x")
    notice = await chat.wait("notice", lambda p: p["level"] == "error")
    assert word in notice["text"]
    assert "\n" not in notice["text"]
    assert "error_startup" in steps(chat)
    page = await chat.open()
    assert [item["messageId"] for item in page["pending"]] == [message_id]
    await until(lambda: steps(chat)[-1] == "disconnected")


async def test_a_missing_program_is_named_with_how_to_install_it(talk: Talk) -> None:
    """# B45: a known agent by its catalogue entry, one's own by its command; the same in agentik/listAgents."""
    listed = {a["agentId"]: a for a in (await talk.client.request("agentik/listAgents", {}))["agents"]}
    for agent, command in (("gemini", "gemini-is-not-here"), ("mine", "/no/such/program")):
        chat = await Chat.begin(talk, ready=False, agentId=agent)
        await chat.send("hello")
        notice = await chat.wait("notice", lambda p: p["level"] == "error")
        assert command in notice["text"]
        assert not listed[agent]["available"]
        assert listed[agent]["reason"]
        assert listed[agent]["command"][0] == command
        paused = await chat.wait("pendingChanged", lambda p: p["paused"])
        assert (paused["pauseReason"], command in paused["pauseDetail"]) == ("start", True)
    assert "npm" in listed["gemini"]["installHint"]
    assert listed["mine"]["name"] == "My agent"


async def test_a_session_without_load_is_begun_anew_and_says_so(chat: Chat) -> None:
    """# B40: the context is lost visibly: in the chat, as a notice, and with the new id stored."""
    await chat.do("#say one")
    before = (await chat.open())["session"]["agentSessionId"]
    mark = chat.client.mark()
    os.kill((await pids(chat))[1], signal.SIGKILL)
    await gone(chat, mark)
    await chat.do("#say two")
    notice = await chat.wait("notice", lambda p: "context was reset" in p["text"], since=mark)
    assert notice["level"] in {"info", "warning"}
    page = await chat.open()
    assert [m["kind"] for m in page["messages"]].count("notice") == 1
    assert page["session"]["agentSessionId"] not in {before, None}
    assert chat.received_by_agent("session/load") == []
    assert len(chat.received_by_agent("session/new")) == 2


@pytest.mark.parametrize(
    ("agent", "asked"),
    [("loads", ["session/load"]), ("resumes", ["session/resume"]), ("forgets", ["session/resume", "session/load"])],
)
async def test_a_session_is_continued_where_the_agent_can(talk: Talk, agent: str, asked: list[str]) -> None:
    """# B40 B44 B54: an exit while idle is no error; a replay adds nothing; anew only after "not found"."""
    chat = await Chat.begin(talk, agentId=agent)
    await chat.do("#say one")
    page = await chat.open()
    mark = chat.client.mark()
    os.kill((await pids(chat))[1], signal.SIGTERM)
    await gone(chat, mark)
    assert not [p for p in chat.of("notice", mark) if p["level"] == "error"]
    assert not (await chat.open())["session"]["paused"]
    await chat.do("#say two")
    after = await chat.open()
    for method in ("session/load", "session/resume"):
        sent = chat.received_by_agent(method)
        assert [p["sessionId"] for p in sent] == [page["session"]["agentSessionId"]] * (method in asked)
        assert all(p["cwd"] == str(chat.folder) and p["mcpServers"] == [] for p in sent)
    anew = len(chat.received_by_agent("session/new")) == 2
    assert anew == (agent == "forgets")
    assert (after["session"]["agentSessionId"] != page["session"]["agentSessionId"]) == anew
    assert bool([p for p in chat.of("notice", mark) if "context was reset" in p["text"]]) == anew
    texts = [m["text"] for m in after["messages"] if m["kind"] != "notice"]
    assert texts == ["#say one", "one", "#say two", "two"]
    known = {m["messageId"]: m["revision"] for m in page["messages"]}
    assert {m["messageId"]: m["revision"] for m in after["messages"] if m["messageId"] in known} == known


async def test_another_failure_to_load_is_no_reason_to_begin_anew(talk: Talk) -> None:
    """# B40: the context is kept for a later attempt; the message waits."""
    chat = await Chat.begin(talk, agentId="fails")
    await chat.do("#say one")
    before = (await chat.open())["session"]["agentSessionId"]
    mark = chat.client.mark()
    os.kill((await pids(chat))[1], signal.SIGKILL)
    await gone(chat, mark)
    message_id, _ = await chat.send("#say two")
    notice = await chat.wait("notice", lambda p: p["level"] == "error")
    assert "disk full" in notice["text"]
    page = await chat.open()
    assert [item["messageId"] for item in page["pending"]] == [message_id]
    assert page["session"]["agentSessionId"] == before
    assert len(chat.received_by_agent("session/new")) == 1


async def test_only_silence_of_this_session_is_a_timeout(talk: Talk) -> None:
    """# B41: updates restart it, those of another session do not; open permissions stop it until all are answered."""
    home = talk.home / "patience"
    async with server(home, {**agents(plain={}), "timeouts": {"prompt": 0.5, "keepalive": 0.1}}) as hasty:
        streams, strange, asks = [await Chat.begin(hasty) for _ in range(3)]
        await streams.send("#stream 12 100")
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
        foreign = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "other", "update": update}}
        noise = {"jsonrpc": "2.0", "method": "_vendor/ping", "params": {}}
        await strange.send("\n".join(f"#raw {json.dumps(line)}\n#sleep 100" for line in (foreign, noise) * 10))
        await asks.send("#requests 2\n#hang")
        await asks.wait("permissionRequested", lambda _: len(asks.of("permissionRequested")) == 2)
        assert (await streams.ended())["stopReason"] == "end_turn"
        assert (await strange.ended())["stopReason"] == "timeout"
        for count, asked in enumerate(asks.of("permissionRequested")):
            assert not asks.ends(), f"after {count} answers"
            await asks.call("answerPermission", permissionId=asked["permission"]["permissionId"], optionId="yes")
            if count == 0:
                await pass_time(hasty, 800)
        assert (await asks.ended())["stopReason"] == "timeout"


async def test_a_death_is_seen_although_a_grandchild_holds_the_pipes(chat: Chat) -> None:
    """# B35 B36 B42 B43: one end, soon; the reason has exit code and stderr; nothing is sent again by itself."""
    await chat.send(
        "#say partly\n#tool t edit in_progress\n#fork\n#stderr first line\n#stderr last words\n#sleep 30\n#exit 23"
    )
    await chat.send("#say later")
    ended = await asyncio.wait_for(chat.ended(), 5)
    assert ended["stopReason"] == "crashed"
    assert "23" in ended["error"]
    assert "last words" in ended["error"]
    paused = await chat.wait("pendingChanged", lambda p: p["paused"])
    assert paused["pauseReason"] == "crash"
    assert "23" in paused["pauseDetail"]
    page = await chat.open()
    assert page["messages"][0]["status"] == "unknown"
    assert [m["status"] for m in page["messages"] if m["kind"] == "agent"][-1] == "interrupted"
    (tool,) = [m["tool"] for m in page["messages"] if m["kind"] == "tool"]
    assert tool["status"] not in {"pending", "in_progress"}
    child = int(next(m["text"] for m in page["messages"] if "forked" in m["text"]).split("forked")[1])
    await until(lambda: not is_alive(child))
    await chat.call("resumeQueue")
    await chat.ended(2)
    assert len(chat.prompts()) == 2
    assert chat.prompts()[1] == "#say later"


async def test_a_killed_guard_takes_the_agent_with_it(chat: Chat) -> None:
    """# B47: and the turn ends as crashed, the next message starts both anew."""
    await chat.busy("#say x\n#fork\n#hang")
    guard, agent = await pids(chat)
    os.kill(guard, signal.SIGKILL)
    assert (await chat.ended())["stopReason"] == "crashed"
    await until(lambda: not is_alive(agent))
    await chat.do("#say back")
    assert (await pids(chat))[1] != agent


async def test_the_whole_environment_is_passed_on(talk: Talk) -> None:
    """# B47: the editor's, with the agent's settings over it; it runs in the session's folder, one with a blank."""
    chat = await Chat.begin(talk, agentId="revealing")
    seen = dict(line.split("=", 1) for line in (chat.folder / "env.txt").read_text().splitlines() if "=" in line)
    for name in ("PATH", "LANG", "USER", "SHELL", "TERM", "EDITOR_SAYS"):
        expected = "hello = wörld" if name == "EDITOR_SAYS" else os.environ.get(name)
        assert seen.get(name) == expected
    assert (seen["MINE"], seen["HOME"]) == ("set", "/x")
    assert " " in chat.folder.name
    assert Path((chat.folder / "pwd.txt").read_text().strip()) == chat.folder.resolve()
    assert await chat.do("#say x")


async def test_a_stream_full_of_rubbish_is_read(talk: Talk) -> None:
    """# B46: banners, broken JSON, a flood on stderr, split characters, 10 MB lines, unknown requests, string ids."""
    chat = await Chat.begin(talk, agentId="noisy")
    word = "ä🙂".encode()
    session = (await chat.open())["session"]["agentSessionId"]
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "@"}}
    chunk = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}
    head, tail = (part.encode().hex() for part in (json.dumps(chunk) + "\n").split("@"))
    script = f"#garbage\n#stderr_bytes 300000\n#hex {head}{word[:3].hex()}\n#sleep 20\n#hex {word[3:].hex()}{tail}"
    assert (await chat.do(script + "\n#request _x/unknown {}\n#say  end"))["stopReason"] == "end_turn"
    said = await chat.said()
    assert said.startswith("ä🙂")
    assert '"code": -32601' in said
    assert said.endswith("end")
    await chat.do("#big 10000000")
    assert len((await chat.open())["messages"][-1]["text"]) == 10_000_000
    ask = {"toolCall": {"toolCallId": "s1"}, "options": [{"optionId": "ok", "name": "Ok", "kind": "allow_once"}]}
    line = {
        "jsonrpc": "2.0",
        "id": "text-id",
        "method": "session/request_permission",
        "params": {"sessionId": session, **ask},
    }
    await chat.send(f"#raw {json.dumps(line)}\n#update {json.dumps({'sessionUpdate': 'from_the_future'})}\n#hang")
    asked = (await chat.wait("permissionRequested"))["permission"]
    await chat.call("answerPermission", permissionId=asked["permissionId"], optionId="ok")
    await chat.wait(
        "messageUpdated", lambda p: p["message"]["kind"] == "notice" and "from_the_future" in p["message"]["text"]
    )
    await chat.call("cancelTurn")
    await chat.ended(3)


async def test_several_permissions_are_answered_in_any_order(chat: Chat) -> None:
    """# B48: the agent gets for each what was chosen; nothing is drained and nothing times out meanwhile."""
    await chat.send("#requests 4")
    await chat.wait("permissionRequested", lambda _: len(chat.of("permissionRequested")) == 4)
    assert (await chat.send("#say later"))[1] == "queued"
    asked = [p["permission"] for p in chat.of("permissionRequested")]
    assert (await chat.open())["permissions"] == asked
    assert {(p["sessionId"], p["toolCall"]["toolKind"]) for p in asked} == {(chat.session_id, "edit")}
    assert all(p["createdAt"] > 0 for p in asked)
    for index, option in ((3, "no"), (1, None), (0, "always"), (2, "yes")):
        assert (await chat.open())["session"]["state"] == "waiting"
        assert len(chat.prompts()) == 1
        bad = {"permissionId": asked[index]["permissionId"], "optionId": "never offered"}
        assert await chat.refusal("answerPermission", **bad) == "unknownOption"
        await chat.call("answerPermission", permissionId=asked[index]["permissionId"], optionId=option)
    await chat.ended(2)
    assert "permissions: always cancelled yes no" in await chat.said()
    outcomes = {p["permissionId"]: p["outcome"] for p in chat.of("permissionResolved")}
    assert [outcomes[p["permissionId"]] for p in asked] == ["always", "cancelled", "yes", "no"]
    assert await chat.refusal("answerPermission", permissionId="nobody", optionId="yes") == "unknownPermission"


async def test_a_permission_before_its_tool_call_and_odd_options(chat: Chat) -> None:
    """# B48: one entry for the tool, whatever comes first; options of any kind and name are offered as they are."""
    options = [
        {"optionId": "a b/ü", "name": "Do it, please", "kind": "allow_once"},
        {"optionId": "2", "name": "Twice", "kind": "of_my_own"},
        {"optionId": "x" * 200, "name": "", "kind": "reject_always"},
    ]
    change = {"type": "diff", "path": "/f", "oldText": "a", "newText": "b"}
    call = {"toolCallId": "t9", "title": "Change it", "kind": "edit", "content": [change]}
    request = json.dumps({"toolCall": call, "options": options})
    await chat.send(f"#request session/request_permission {request}\n#tool t9 edit completed Changed")
    asked = (await chat.wait("permissionRequested"))["permission"]
    assert [o["optionId"] for o in asked["options"]] == [o["optionId"] for o in options]
    assert [o["kind"] for o in asked["options"]] == [o["kind"] for o in options]
    assert asked["toolCall"]["diffs"] == [{"path": "/f", "oldText": "a", "newText": "b"}]
    assert asked["toolCall"]["title"] == "Change it"
    await chat.call("answerPermission", permissionId=asked["permissionId"], optionId="2")
    await chat.ended()
    assert '"optionId": "2"' in await chat.said()
    tools = [m["tool"] for m in (await chat.open())["messages"] if m["kind"] == "tool"]
    assert [(t["toolCallId"], t["status"], t["title"]) for t in tools] == [("t9", "completed", "Changed")]


async def test_a_permission_ends_with_the_agent(chat: Chat) -> None:
    """# B48 B42: nobody is left with a question that nobody hears."""
    await chat.send("#permission p1")
    asked = (await chat.wait("permissionRequested"))["permission"]
    os.kill((await pids(chat))[1], signal.SIGKILL)
    assert (await chat.ended())["stopReason"] == "crashed"
    assert (await chat.wait("permissionResolved"))["permissionId"] == asked["permissionId"]
    assert (await chat.open())["permissions"] == []
    answer = {"permissionId": asked["permissionId"], "optionId": "yes"}
    assert await chat.refusal("answerPermission", **answer) == "unknownPermission"


async def test_files_outside_of_the_session_are_refused(chat: Chat) -> None:
    """# B49: by name, by `..`, by a link, by the kernel's folders; an error to the agent and told in the chat."""
    (chat.home / "work" / "outside.txt").write_text("not yours")
    (chat.folder / "inside.txt").write_text("yours")
    (chat.folder / "link").symlink_to(chat.home / "work" / "outside.txt")
    (chat.folder / "inner").symlink_to(chat.folder / "inside.txt")
    good = [chat.folder / "inside.txt", chat.folder / "inner", chat.folder / "x" / ".." / "inside.txt"]
    bad = [
        chat.home / "work" / "outside.txt",
        chat.folder / "link",
        chat.folder / ".." / "outside.txt",
        Path("/etc/passwd"),
    ]
    bad += [Path("/proc/self/environ"), Path("inside.txt"), chat.home / "agentik.db"]
    await chat.do("\n".join(f"#read {path}" for path in good))
    assert (await chat.said()).count('"content": "yours"') == 3
    mark = chat.client.mark()
    await chat.do("\n".join(f"#read {path}" for path in bad))
    await chat.do(
        "\n".join(writing(path, "overwritten") for path in bad if not str(path).startswith(("/etc", "/proc")))
    )
    said = await chat.said()
    assert said.count('"error"') == 7 + 5
    assert "not yours" not in said
    assert (chat.home / "work" / "outside.txt").read_text() == "not yours"
    assert [p for p in chat.of("messageUpdated", mark) if p["message"]["kind"] == "notice"]


async def test_attachments_of_the_session_may_be_read(chat: Chat) -> None:
    """# B49 B51: where they are kept, but not written."""
    note = {"path": str(chat.folder / "a.txt"), "text": f"attached to {chat.session_id}"}
    await chat.busy()
    await chat.send("x", attachments=[note])
    (stored,) = (await chat.open())["pending"][0]["files"]
    await chat.call(
        "editPending",
        messageId=(await chat.open())["pending"][0]["messageId"],
        text=f"#read {stored}\n{writing(stored, 'gone')}",
    )
    await chat.call("cancelTurn")
    await chat.call("resumeQueue")
    await chat.ended(2)
    said = await chat.said()
    assert f'"content": "attached to {chat.session_id}"' in said
    assert '"error"' in said
    assert Path(stored).read_text() == note["text"]


POLICY: Params = {
    "permissions": {
        "files": {"read": "deny", "write": "ask"},
        "tools": {"edit": "allow", "execute": "deny", "fetch": "ask"},
        "terminal": "allow",
    }
}


async def test_the_settings_decide_what_agents_may_do(talk: Talk) -> None:
    """# B49, settings `permissions.*`: by the agent's own once-options; a person is asked only where they say so."""
    home = talk.home / "policy"
    async with server(home, {**agents(plain={}), **POLICY}) as strict:
        chat = await Chat.begin(strict)
        (able,) = [p["clientCapabilities"] for p in chat.received_by_agent("initialize")]
        assert (able["fs"]["readTextFile"], able["fs"]["writeTextFile"], able["terminal"]) == (False, True, True)
        once = [
            {"optionId": k, "name": k, "kind": k}
            for k in ("allow_always", "allow_once", "reject_always", "reject_once")
        ]
        for kind, chosen in (("edit", "allow_once"), ("execute", "reject_once")):
            params = {"toolCall": {"toolCallId": kind, "kind": kind}, "options": once}
            await chat.do(f"#request session/request_permission {json.dumps(params)}")
            assert f'"optionId": "{chosen}"' in (await chat.open())["messages"][-1]["text"]
        assert not chat.of("permissionRequested")
        always = {"toolCall": {"toolCallId": "e2", "kind": "edit"}, "options": [once[0], once[3]]}
        await chat.send(f"#request session/request_permission {json.dumps(always)}")
        asked = (await chat.wait("permissionRequested"))["permission"]  # no once-option: a person is asked
        await chat.call("answerPermission", permissionId=asked["permissionId"], optionId="reject_once")
        await chat.ended(3)
        (chat.folder / "f.txt").write_text("old")
        await chat.do(f"#read {chat.folder / 'f.txt'}")
        assert '"error"' in (await chat.open())["messages"][-1]["text"] or '"error"' in await chat.said()
        for option, text in (("reject_once", "old"), ("allow_once", "new")):
            mark = chat.client.mark()
            await chat.send(writing(chat.folder / "f.txt", "new"))
            asked = (await chat.wait("permissionRequested", since=mark))["permission"]
            assert asked["toolCall"]["diffs"][0]["newText"] == "new"
            answer = next(o["optionId"] for o in asked["options"] if o["kind"] == option)
            await chat.call("answerPermission", permissionId=asked["permissionId"], optionId=answer)
            await chat.wait("turnEnded", since=mark)
            assert (chat.folder / "f.txt").read_text() == text
        mark = chat.client.mark()
        await chat.do("#terminal echo from the terminal")
        assert "from the terminal" in await chat.said()
        assert not chat.of("permissionRequested", mark)


async def test_an_idle_agent_is_stopped_and_its_context_kept(talk: Talk) -> None:
    """Setting `timeouts.idleAgent`; # B40 B44: no error, no notice; the next message continues the session."""
    home = talk.home / "idle"
    async with server(home, {**agents(keeps={"resume": True}), "timeouts": {"idleAgent": 0.2}}) as thrifty:
        chat = await Chat.begin(thrifty)
        mark = chat.client.mark()
        await chat.do("#sleep 300\n#say one")
        agent = (await pids(chat))[1]
        await gone(chat, mark)
        await until(lambda: not is_alive(agent))
        await chat.do("#say two")
        assert len(chat.received_by_agent("session/resume")) >= 1
        assert len(chat.received_by_agent("session/new")) == 1
        assert not chat.of("notice")
        assert not (await chat.open())["session"]["paused"]
