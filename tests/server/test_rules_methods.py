"""PROTOCOL.md row by row: requests, errors and settings that no rule of BEHAVIOUR.md is about, on a real server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.server.harness import ROOT, Chat, Talk, agents, server, until
from tests.stdio_client import Params, RpcError, StdioClient

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_methods")]

MODES = {
    "modes": {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code", "description": "writes"}],
    }
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    settings = agents(plain={}, modal={"new": MODES})
    settings["agents"]["served"] = {
        **settings["agents"]["plain"],
        "name": "With servers",
        "mcpServers": [{"name": "files", "command": "mcp-files", "args": ["-v"], "env": {"A": "1"}}],
    }
    settings["agents"]["trace"] = True
    settings["log"] = {"level": "debug"}
    async with server(tmp_path_factory.mktemp("methods"), settings) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(talk: Talk) -> Chat:
    return await Chat.begin(talk)


async def error_of(client: StdioClient, method: str, params: Any) -> RpcError:
    with pytest.raises(RpcError) as refused:
        await client.request(method if "/" in method else f"agentik/{method}", params)
    return refused.value


# What each method of a session needs besides its id.
OF_SESSION: dict[str, Params] = {
    "openSession": {},
    "closeSession": {},
    "deleteSession": {},
    "renameSession": {"title": "x"},
    "listMessages": {},
    "searchMessages": {"query": "x"},
    "exportSession": {"format": "markdown"},
    "sendMessage": {"messageId": "x", "text": "x"},
    "editPending": {"messageId": "x", "text": "x"},
    "movePending": {"messageId": "x", "position": 0},
    "removePending": {"messageId": "x"},
    "clearPending": {},
    "sendPendingNow": {"messageId": "x"},
    "applyPendingEdits": {"edits": [{"op": "remove", "messageId": "x"}]},
    "holdPending": {"hold": True},
    "pauseQueue": {},
    "resumeQueue": {},
    "cancelTurn": {},
    "resendMessage": {"messageId": "x"},
    "answerPermission": {"permissionId": "x", "optionId": None},
    "answerQuestion": {"questionId": "x", "action": "cancel"},
    "setMode": {"modeId": "x"},
    "setConfigOption": {"optionId": "x", "value": "x"},
    "authenticate": {"methodId": "x"},
    "restartAgent": {},
}


async def test_every_method_of_a_session_says_when_there_is_none(talk: Talk) -> None:
    """Errors: 4000 with data.reason unknownSession and a message for a person."""
    for method, more in OF_SESSION.items():
        error = await error_of(talk.client, method, {"sessionId": "nobody", **more})
        assert (method, error.code, error.reason) == (method, 4000, "unknownSession")
        assert error.message


async def test_params_that_do_not_validate_name_the_field(talk: Talk, chat: Chat) -> None:
    """Transport: -32602 with field and reason, for missing and wrong values; unknown fields are ignored."""
    for method, more in OF_SESSION.items():
        for name in ("sessionId", *more):
            if (method, name) in {("searchMessages", "sessionId"), ("answerPermission", "optionId")}:
                continue
            params = {"sessionId": chat.session_id, **more}
            del params[name]
            error = await error_of(talk.client, method, params)
            assert (method, error.code, error.data["field"]) == (method, -32602, name)
            assert error.data["reason"]
    bad = [
        ("sendMessage", {"sessionId": chat.session_id, "messageId": "", "text": "x"}, "messageId"),
        ("sendMessage", {"sessionId": chat.session_id, "messageId": "x" * 129, "text": "x"}, "messageId"),
        ("sendMessage", {"sessionId": chat.session_id, "messageId": 7, "text": "x"}, "messageId"),
        ("sendMessage", {"sessionId": chat.session_id, "messageId": "x", "text": None}, "text"),
        ("newSession", {"cwd": "relative/path"}, "cwd"),
        ("newSession", {}, "cwd"),
        ("openSession", {"sessionId": chat.session_id, "limit": 0}, "limit"),
        ("openSession", {"sessionId": chat.session_id, "after": "1"}, "after"),
        ("exportSession", {"sessionId": chat.session_id, "format": "pdf"}, "format"),
        ("listSessions", [1, 2], "params"),
        ("listSessions", {"limit": True}, "limit"),
    ]
    for method, wrong, field in bad:
        error = await error_of(talk.client, method, wrong)
        assert (method, error.code, error.data["field"]) == (method, -32602, field)
    assert (await chat.send("x", "i" * 128, somethingNew={"a": 1}))[1] == "started"
    await chat.ended()


async def raw(client: StdioClient, request_id: str, body: bytes, header: bytes = b"Content-Length: %d\r\n\r\n") -> Any:
    """The result of a request as these bytes."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    client._open[request_id] = ("", future)
    client.send_bytes(header % len(body) + body)
    return await client.answer_of(future)


async def test_no_input_ends_the_server(talk: Talk) -> None:
    """Transport: broken frames, headers in any case, unknown methods, null and absent params, a batch."""
    client = talk.client
    for body, code in ((b"{nope", -32700), (b"[]", -32600), (b"7", -32600), (b'{"method": 5}', -32600)):
        mark = client.mark()
        client.send_bytes(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert (await client.wait_for("$/error", since=mark))["code"] == code
    odd = b"content-type: application/vscode-jsonrpc; charset=utf-8\r\nX-Unknown: 1\r\ncontent-LENGTH:%d\r\n\r\n"
    listing = b'{"jsonrpc": "2.0", "id": "a", "method": "agentik/listAgents"'
    assert (await raw(client, "a", listing + b', "params": null}', odd))["agents"]
    assert (await raw(client, "a", listing + b"}"))["agents"]
    assert (await raw(client, "a", listing + b', "params": {"unknown": 1}}'))["agents"]
    for method in ("agentik/noSuchThing", "textDocument/hover", "workspace/executeCommand", "nonsense"):
        with pytest.raises(RpcError) as refused:
            await client.request(method, {})
        assert refused.value.code == -32601
    with pytest.raises(RpcError) as refused:
        await client.request("initialize", {"capabilities": {}})
    assert refused.value.code == -32600


async def test_agents_are_listed(talk: Talk) -> None:
    """agentik/listAgents: the settings' ones and the catalogue's; exactly one default; command, reason and hint."""
    listed = (await talk.client.request("agentik/listAgents", {}))["agents"]
    known = {agent["agentId"]: agent for agent in listed}
    assert len(known) == len(listed)
    assert [agent["agentId"] for agent in listed if agent["isDefault"]] == ["plain"]
    assert {"plain", "modal", "served", "demo", "claude", "codex", "gemini", "opencode"} <= set(known)
    assert "trace" not in known
    assert known["served"]["name"] == "With servers"
    assert known["plain"]["command"][0] == sys.executable
    assert known["demo"]["available"] is True
    for agent in listed:
        assert isinstance(agent["name"], str)
        assert agent["available"] or (agent["reason"] and agent["installHint"])


async def test_a_new_session(talk: Talk) -> None:
    """agentik/newSession: all fields of a Session; the setting's agent unless another is named; unknownAgent."""
    folder = talk.home / "work" / "new one"
    folder.mkdir()
    answer = await talk.client.request("agentik/newSession", {"cwd": str(folder)})
    session = answer["session"]
    assert (session["agentId"], session["cwd"], session["title"]) == ("plain", str(folder), "")
    assert (session["state"], session["owned"], session["pendingCount"], session["paused"]) == ("idle", True, 0, False)
    assert session["agentSessionId"] is None
    assert session["connection"] in {"disconnected", "connecting"}
    assert session["createdAt"] == session["updatedAt"] > 1_700_000_000_000
    assert session["revision"] > 0
    named = {"cwd": str(folder), "agentId": "modal", "title": "A title"}
    other = (await talk.client.request("agentik/newSession", named))["session"]
    assert (other["agentId"], other["title"]) == ("modal", "A title")
    assert (
        await error_of(talk.client, "newSession", {"cwd": str(folder), "agentId": "nobody"})
    ).reason == "unknownAgent"


async def test_sessions_are_listed_newest_first(talk: Talk) -> None:
    """agentik/listSessions: by folder, agent and words, of messages too; in pages; what happens makes one newest."""
    folder = talk.home / "work" / "many"
    folder.mkdir()
    made = []
    for number in range(7):
        params = {"cwd": str(folder), "title": f"Número {number}", "agentId": "modal" if number == 3 else "plain"}
        made.append((await talk.client.request("agentik/newSession", params))["session"]["sessionId"])

    async def listed(**params: Any) -> list[str]:
        found: list[str] = []
        cursor: Params = {}
        while True:
            page = await talk.client.request("agentik/listSessions", {**params, **cursor})
            found += [s["sessionId"] for s in page["sessions"]]
            if not page.get("nextCursor"):
                return found
            cursor = {"cursor": page["nextCursor"]}

    everything = await listed(cwd=str(folder))
    assert set(everything) == set(made)
    for limit in (1, 2, 3, 7, 8):
        assert await listed(cwd=str(folder), limit=limit) == everything
    assert await listed(cwd=str(folder), agentId="modal") == [made[3]]
    assert await listed(cwd=str(folder), query="NÚMERO 5") == [made[5]]
    assert await listed(cwd=str(folder), query="no such words") == []
    opened = Chat(talk.client, talk.home, folder)
    await opened.open(made[4])
    await opened.do("#say something about quokkas")
    assert await listed(cwd=str(folder), query="quokka") == [made[4]]
    assert await listed(cwd="/nowhere") == []
    await talk.client.request("agentik/renameSession", {"sessionId": made[1], "title": "renamed"})
    assert (await listed(cwd=str(folder)))[0] == made[1]
    assert set(made) <= set(await listed())
    assert (await error_of(talk.client, "listSessions", {"cursor": "nonsense"})).code in {4000, -32602}


async def test_titles(chat: Chat) -> None:
    """agentik/renameSession: the first words, then the agent's title, and the user's, which stays."""
    await chat.do("Please look at\nthe parser " + "and more " * 20)
    title = (await chat.open())["session"]["title"]
    assert title.startswith("Please look at the parser")
    assert len(title) <= 100
    await chat.do("#title What the agent calls it")
    await chat.wait("sessionChanged", lambda p: p["session"]["title"] == "What the agent calls it")
    mark = chat.client.mark()
    assert await chat.call("renameSession", title="Mine") == {}
    await chat.wait("sessionChanged", lambda p: p["session"]["title"] == "Mine", since=mark)
    await chat.do("#title Something else")
    assert (await chat.open())["session"]["title"] == "Mine"
    listed = await chat.client.request("agentik/listSessions", {"cwd": str(chat.folder)})
    assert [s["title"] for s in listed["sessions"]] == ["Mine"]


async def test_search_takes_any_query(chat: Chat, talk: Talk) -> None:
    """agentik/searchMessages: words of everybody's messages, newest first; no query is an error; deleted is deleted."""
    word = "w" + chat.session_id.replace("-", "")[:12]
    await chat.do(f"#say the {word} zebra's Straße_x \\n(answer)\n#think about {word}")
    other = await Chat.begin(talk)
    await other.do(f"#say another {word}")

    async def matches(query: str, **params: Any) -> list[Params]:
        found = await talk.client.request("agentik/searchMessages", {"query": query, **params})
        return list(found["matches"])

    found = await matches(word)
    assert {m["sessionId"] for m in found} == {chat.session_id, other.session_id}
    assert found[0]["sessionId"] == other.session_id
    assert all(word in m["snippet"] and m["createdAt"] > 0 for m in found)
    inside = await matches(word, sessionId=chat.session_id)
    assert {m["sessionId"] for m in inside} == {chat.session_id}
    messages = {m["messageId"] for m in (await chat.open())["messages"]}
    assert {m["messageId"] for m in inside} <= messages
    assert len(await matches(word, limit=1)) == 1
    assert await matches(word.upper())
    assert await matches(word[:-2])
    assert await matches(f"zebra {word}", sessionId=chat.session_id)
    assert await matches(f'"the {word}"')
    assert not await matches(f'"zebra {word}"')
    for odd in (
        "",
        " ",
        '"',
        "'",
        "*",
        "a*b",
        "(",
        ")",
        "AND",
        "OR NOT",
        "NEAR(",
        "text:x",
        "-x",
        "^",
        "\\",
        "\0",
        "🙂",
        "%",
        "_",
        "x" * 10_000,
        '"' * 99,
    ):
        await matches(odd)
    await chat.call("deleteSession")
    assert {m["sessionId"] for m in await matches(word)} == {other.session_id}


async def test_export(chat: Chat) -> None:
    """agentik/exportSession: title, who said what, tools and plans, in order."""
    await chat.do("#say An **answer**.\n#tool t edit completed Edit the file\n#plan first;second\n#say Done.")
    await chat.call("renameSession", title="The title")
    text = (await chat.call("exportSession", format="markdown"))["text"]
    places = [
        text.index(part) for part in ("The title", "#say An", "An **answer**.\n", "Edit the file", "second", "\nDone.")
    ]
    assert places == sorted(places)


async def test_status(chat: Chat) -> None:
    """agentik/status: versions, folders, sessions, agent processes, queue depths, last errors; no texts."""
    await chat.busy("#hang\n#say a secret text")
    await chat.send("another secret")
    status = await chat.client.request("agentik/status", {})
    assert status["versions"]["agentik"]
    assert status["folders"]["data"] == str(chat.home)
    (session,) = [s for s in status["sessions"] if s["sessionId"] == chat.session_id]
    assert (session["state"], session["agentId"]) == ("busy", "plain")
    (agent,) = [a for a in status["agents"] if a["sessionId"] == chat.session_id]
    assert len(agent["pids"]) == 2
    assert status["queues"][chat.session_id] == 1
    assert isinstance(status["lastErrors"], list)
    assert "secret" not in json.dumps(status)
    await chat.call("clearPending")
    await chat.call("cancelTurn")


async def test_what_an_agent_offers(talk: Talk) -> None:
    """agentik/setMode, setConfigOption, and modes, commands and usage in the session and in sessionChanged."""
    chat = await Chat.begin(talk, agentId="modal")
    session = (await chat.open())["session"]
    assert session["modeId"] == "ask"
    assert [mode["id"] for mode in session["modes"]] == ["ask", "code"]
    assert await chat.call("setMode", modeId="code") == {}
    assert chat.received_by_agent("session/set_mode")[0]["modeId"] == "code"
    await chat.wait("sessionChanged", lambda p: p["session"].get("modeId") == "code")
    await chat.do("#mode ask\n#commands plan,review\n#usage 10 200")
    await chat.wait("sessionChanged", lambda p: p["session"].get("usage") is not None)
    session = (await chat.open())["session"]
    assert session["modeId"] == "ask"
    assert [command["name"] for command in session["commands"]] == ["plan", "review"]
    assert (session["usage"]["used"], session["usage"]["size"]) == (10, 200)
    error = await error_of(
        chat.client, "setConfigOption", {"sessionId": chat.session_id, "optionId": "x", "value": True}
    )
    assert error.code == 4000
    assert error.message


async def test_restarting_the_agent(chat: Chat) -> None:
    """agentik/restartAgent: another process; a running turn ends as cancelled, what waits is kept."""
    pids = [await agent_pid(chat)]
    mark = chat.client.mark()
    assert await chat.call("restartAgent") == {}
    await chat.wait("connectionChanged", lambda p: p["connection"] == "has_session", since=mark)
    pids.append(await agent_pid(chat))
    await chat.busy()
    await chat.send("#say later")
    mark = chat.client.mark()
    assert await chat.call("restartAgent") == {}
    assert (await chat.ended())["stopReason"] == "cancelled"
    await chat.wait("connectionChanged", lambda p: p["connection"] == "has_session", since=mark)
    pids.append(await agent_pid(chat))
    assert len(set(pids)) == 3
    await chat.call("resumeQueue")
    assert (await chat.ended(2))["stopReason"] == "end_turn"


async def agent_pid(chat: Chat) -> int:
    status = await chat.client.request("agentik/status", {})
    (pids,) = [agent["pids"] for agent in status["agents"] if agent["sessionId"] == chat.session_id]
    return int(pids[1])


@pytest.mark.parametrize(("action", "word"), [("decline", "decline"), ("cancel", "cancel"), (None, "cancel")])
async def test_a_question_is_declined_cancelled_or_ends_with_the_turn(
    chat: Chat, action: str | None, word: str
) -> None:
    """agentik/answerQuestion."""
    await chat.send("#ignore_cancel\n#ask who?")
    question = (await chat.wait("questionAsked"))["question"]
    if action is None:
        await chat.call("cancelTurn")
    else:
        await chat.call("answerQuestion", questionId=question["questionId"], action=action)
    resolved = await chat.wait("questionResolved")
    assert (resolved["questionId"], resolved["outcome"].startswith(word)) == (question["questionId"], True)
    await chat.ended()
    assert f'"action": "{word}"' in await chat.said()


async def test_a_message_is_sent_again(chat: Chat) -> None:
    """agentik/resendMessage: interrupted and failed ones, also behind others; never twice at a time."""
    done, _ = await chat.send("#say fine")
    await chat.ended()
    failed, _ = await chat.send("#error -32603 no\n#say never")
    await chat.ended(2)
    stopped = await chat.busy("#hang")
    await chat.call("cancelTurn")
    await chat.ended(3)
    assert await chat.refusal("resendMessage", messageId=done) == "alreadyDelivered"
    assert await chat.refusal("resendMessage", messageId="nobody") == "unknownMessage"
    assert await chat.call("resendMessage", messageId=stopped) == {"messageId": stopped, "disposition": "started"}
    assert await chat.call("resendMessage", messageId=failed) == {"messageId": failed, "disposition": "queued"}
    assert await chat.call("resendMessage", messageId=failed) == {"messageId": failed, "disposition": "queued"}
    await chat.wait("messageQueued", lambda p: p["messageId"] == failed)
    await until(lambda: len(chat.prompts()) == 4)
    await chat.call("cancelTurn")
    await chat.call("resumeQueue")
    assert (await chat.ended(5))["stopReason"] == "error"
    texts = [m["text"] for m in (await chat.open())["messages"] if m["kind"] == "user"]
    assert texts.count("#hang") == 2
    assert texts.count("#error -32603 no\n#say never") == 2


async def test_agents_of_the_settings(talk: Talk) -> None:
    """Settings `agents.ID.mcpServers`, `agents.trace` and `log.level`."""
    chat = await Chat.begin(talk, agentId="served")
    (sent,) = chat.received_by_agent("session/new")
    assert sent["mcpServers"] == [
        {"name": "files", "command": "mcp-files", "args": ["-v"], "env": [{"name": "A", "value": "1"}]}
    ]
    await chat.do('#raw {"jsonrpc": "2.0", "method": "_x/unheard", "params": {}}\n#say traced words')
    assert "DEBUG" in (talk.home / "agentik.log").read_text()
    traced = [path for path in talk.home.glob("*") if path.is_file() and b"session/prompt" in path.read_bytes()]
    assert [path for path in traced if path.name not in {"agentik.db", "agentik.db-wal"}]


async def test_the_first_agent_that_can_start_is_the_default(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Setting `defaultAgent`: else `demo`; an unknown one is told, and refused when it is needed."""
    home = tmp_path_factory.mktemp("default")
    async with StdioClient(
        [sys.executable, "-m", "agentik_server"], cwd=ROOT, env={"AGENTIK_HOME": str(home)}
    ) as client:
        await client.initialize(settings={})
        assert (home / "agentik.db").exists()
        session = (await client.request("agentik/newSession", {"cwd": str(home)}))["session"]
        listed = (await client.request("agentik/listAgents", {}))["agents"]
        first = next(agent["agentId"] for agent in listed if agent["isDefault"])
        assert session["agentId"] == first
        assert next(agent["available"] for agent in listed if agent["isDefault"])
    async with server(home, {"defaultAgent": "nobody"}) as talk:
        assert (await error_of(talk.client, "newSession", {"cwd": str(home)})).reason == "unknownAgent"
