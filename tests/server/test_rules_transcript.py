"""BEHAVIOUR.md, "Transcript, cache, sync" (B52 to B58), as an editor sees them."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.server.harness import ROOT, Chat, Talk, agents, server, until
from tests.stdio_client import Note, Params, RpcError, StdioClient

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_transcript")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Talk]:
    settings = {**agents(plain={}, broken={"exit_at": "start"}), "syncInterval": 0.3}
    async with server(tmp_path_factory.mktemp("transcript"), settings) as talk:
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(talk: Talk) -> Chat:
    return await Chat.begin(talk)


@contextlib.contextmanager
def database(home: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(home / "agentik.db", isolation_level=None)) as db:
        yield db


# ------------------------------------------------------------------------------------------------- pages


async def test_nothing_new_is_an_empty_answer(chat: Chat) -> None:
    """# B52: at every point of a conversation; and then all of it is asked for, it is as before."""
    assert (await chat.open(after=(await chat.open())["revision"]))["messages"] == []
    for text in (
        "#say one",
        "#think hm\n#tool t read completed\n#plan a;b\n#say two",
        "#error -32603 no",
        "#say three",
    ):
        await chat.do(text)
        page = await chat.open()
        again = await chat.open(after=page["revision"])
        assert (again["messages"], again["more"]) == ([], False)
        assert again["revision"] >= page["revision"]  # the session's row may be saved after the end of its turn
        assert (await chat.open())["messages"] == page["messages"]


async def test_a_growing_answer_is_new_as_long_as_it_grows(chat: Chat) -> None:
    """# B52 B54: what was there before it is not told again."""
    await chat.do("#say old")
    known = await chat.open()
    await chat.send("#say growing\n#hang")
    await chat.wait("streamingToken", lambda p: p["text"] == "growing")
    page = await chat.open(after=known["revision"])
    assert [(m["kind"], m["text"]) for m in page["messages"]] == [("user", "#say growing\n#hang"), ("agent", "growing")]
    await chat.call("cancelTurn")
    await chat.ended()


async def test_pages_by_seq_in_both_directions(chat: Chat) -> None:
    """# B52 B53: 100 at a time by default; nothing twice and nothing left out, at whatever size."""
    count = 60
    for number in range(count):
        await chat.send(f"#say answer {number}")
    await chat.ended(count)
    everything = (await chat.open(limit=10_000))["messages"]
    assert len(everything) == 2 * count
    seqs = [m["seq"] for m in everything]
    assert seqs == sorted(set(seqs))
    newest = await chat.open()
    assert (newest["messages"], newest["more"]) == (everything, False)
    newest = await chat.open(limit=7)
    assert (newest["messages"], newest["more"]) == (everything[-7:], True)
    first = await chat.call("listMessages")
    assert (first["messages"], first["more"]) == (everything[:100], True)
    assert first["revision"] == newest["revision"]
    for size in (7, 33, 100):
        upwards: list[Params] = []
        while True:
            page = await chat.call("listMessages", limit=size, **({"after": upwards[-1]["seq"]} if upwards else {}))
            upwards += page["messages"]
            if not page["more"]:
                break
        assert upwards == everything
        downwards: list[Params] = []
        top = everything[-1]["seq"] + 1
        while True:
            page = await chat.call("listMessages", limit=size, before=downwards[0]["seq"] if downwards else top)
            downwards = page["messages"] + downwards
            if not page["more"]:
                break
        assert downwards == everything
    between = await chat.call("listMessages", after=everything[4]["seq"], before=everything[9]["seq"])
    assert (between["messages"], between["more"]) == (everything[5:9], False)
    for edge in ({"before": -5}, {"after": 10**9}, {"before": everything[0]["seq"]}):
        page = await chat.call("listMessages", **edge)
        assert (page["messages"], page["more"]) == ([], False)


async def test_what_changed_is_told_whatever_its_age(chat: Chat) -> None:
    """# B54: a message that is sent again: its old place, its new one, and nothing of what stayed."""
    await chat.do("#say first")
    message_id, _ = await chat.send("#error -32603 no\n#say again")
    await chat.ended(2)
    await chat.do("#say last")
    known = await chat.open()
    await chat.call("resendMessage", messageId=message_id)
    await chat.ended(4)
    changed = (await chat.open(after=known["revision"]))["messages"]
    merged = {m["messageId"]: m for m in known["messages"]}
    merged.update({m["messageId"]: m for m in changed})
    fresh = (await chat.open())["messages"]
    left = [m for m in merged.values() if not m.get("deleted")]
    assert sorted(left, key=lambda m: m["seq"]) == fresh
    assert all(m["revision"] > known["revision"] for m in changed)
    assert [m["text"] for m in fresh if m["kind"] == "agent"] == ["first", "last"]


# --------------------------------------------------------------------------------------------- streaming


class Mirror:
    """A client as the documents describe it: by id, by revision, by offset; asks again when it lacks text."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat
        self.messages: dict[str, Params] = {}
        self.pending: list[Params] = []
        self.revision = 0
        self.lacks = False
        self._read = 0

    def take(self, page: Params) -> None:
        for message in page["messages"]:
            self._message(message)
        self.pending = page["pending"]
        self.revision = page["revision"]

    def hear(self) -> None:
        """All notifications since the last call."""
        notes = self.chat.client.notifications
        for note in notes[self._read :]:
            if self.chat.concerns(note.params):
                self._note(note)
        self._read = len(notes)

    def forget(self) -> None:
        """Not subscribed: nothing is heard."""
        self._read = len(self.chat.client.notifications)

    def _note(self, note: Note) -> None:
        params = note.params
        match note.method.removeprefix("agentik/"):
            case "messageReceived" | "messageUpdated":
                self._message(params["message"])
            case "streamingToken":
                message = self.messages.setdefault(
                    params["messageId"],
                    {
                        "messageId": params["messageId"],
                        "seq": params["seq"],
                        "text": "",
                        "revision": 0,
                        "kind": params["kind"],
                    },
                )
                text, offset = message["text"], params["offset"]
                if len(text) < offset:
                    self.lacks = True
                else:
                    message["text"] = text[:offset] + params["text"] + text[offset + len(params["text"]) :]
            case "pendingChanged":
                self.pending = params["pending"]

    def _message(self, message: Params) -> None:
        known = self.messages.get(message["messageId"])
        if known is None or message["revision"] >= known["revision"]:
            self.messages[message["messageId"]] = dict(message)

    def shown(self) -> list[tuple[str, str]]:
        there = [m for m in self.messages.values() if not m.get("deleted")]
        return [(m["kind"], m["text"]) for m in sorted(there, key=lambda m: m["seq"])]


@pytest.mark.parametrize("seed", range(4))
async def test_any_schedule_of_reconnects_ends_in_the_same_picture(talk: Talk, seed: int) -> None:
    """# B55: closed and opened again with `after` at random moments of streams, tools, cancels, edits and resends."""
    dice = random.Random(seed)
    chat = await Chat.begin(talk)
    mirror = Mirror(chat)
    mirror.take(await chat.open())
    mirror.forget()
    sent = 0
    for step in range(40):
        match dice.randrange(6):
            case 0 | 1:
                sent += 1
                text = dice.choice(
                    [
                        "#think a\n#stream 6 4\n#tool t{n} read completed\n#stream 4 3",
                        "#stream 9 2\n#plan a;b",
                        "#say é🙂{n}",
                    ]
                )
                await chat.send(text.replace("{n}", str(step)))
            case 2:
                await chat.call("cancelTurn")
            case 3:
                await chat.call("resumeQueue")
            case 4:
                mirror.hear()
                await chat.call("closeSession")
                mirror.hear()
                await talk.client.request("agentik/status", {})
                mirror.forget()
                page = await chat.open(after=mirror.revision)
                mirror.take(page)
                mirror.hear()
            case _:
                waiting = (await chat.open())["pending"]
                if waiting:
                    with contextlib.suppress(RpcError):
                        await chat.call("editPending", messageId=waiting[-1]["messageId"], text=f"#say edited {step}")
        mirror.hear()
        if mirror.lacks:
            mirror.take(await chat.open(after=mirror.revision))
            mirror.lacks = False
    await chat.call("resumeQueue")
    while (page := await chat.open())["session"]["state"] != "idle" or page["pending"]:
        await chat.call("resumeQueue")
        await talk.client.request("agentik/listAgents", {})
    await chat.wait("messageUpdated")
    mirror.hear()
    fresh = (await chat.open(limit=10_000))["messages"]
    assert mirror.shown() == [(m["kind"], m["text"]) for m in fresh]
    assert mirror.pending == []


async def test_offsets_count_code_points(chat: Chat) -> None:
    """PROTOCOL.md, Values: also where a character came in halves; no half of one is ever told."""
    session = (await chat.open())["session"]["agentSessionId"]

    def chunk(text: str) -> str:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        line = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}
        return "#raw " + json.dumps(line)

    pieces = ["a🙂", "\ud83d", "\ude00b", "e\u0301", "\ud83d", "c", "👩\u200d", "👧"]
    await chat.do("\n#sleep 5\n".join(chunk(piece) for piece in pieces))
    tokens = chat.of("streamingToken")
    text = ""
    for token in tokens:
        assert token["offset"] == len(text)
        text += token["text"]
    assert text == "a🙂😀be\u0301\ufffdc👩\u200d👧"
    assert (await chat.open())["messages"][-1]["text"] == text


async def test_messages_keep_the_order_in_which_they_came(chat: Chat) -> None:
    """PROTOCOL.md, Values: thoughts, tools, plans and texts by `seq`; a text is over when something else begins."""
    await chat.do(
        "#think t1\n#say a1\n#tool x read in_progress\n#say a2\n#think t2\n#plan p\n#say a3\n#tool x read completed"
    )
    messages = (await chat.open())["messages"][1:]
    assert [(m["kind"], m["text"]) for m in messages] == [
        ("thought", "t1"),
        ("agent", "a1"),
        ("tool", ""),
        ("agent", "a2"),
        ("thought", "t2"),
        ("plan", ""),
        ("agent", "a3"),
    ]
    assert messages[2]["tool"]["status"] == "completed"
    assert messages[5]["plan"] == [{"content": "p", "status": "pending", "priority": "medium"}]
    assert {m["turnId"] for m in messages} == {chat.ends()[0]["turnId"]}
    assert {m["status"] for m in messages} == {"complete"}


# ---------------------------------------------------------------------------------------- settings, store


async def test_settings_are_made_to_be_edited_by_hand(talk: Talk) -> None:
    """# B56: comments; unknown keys, bad values and broken files are told with line and key; the rest holds."""
    home = talk.home / "settings"
    home.mkdir()
    (home / "settings.json").write_text(
        '{\n  // my settings\n  "queue.maxItems": 1,\n  "queue": {"drain": "some"},\n  "quee": {}, /* a slip */\n'
        '  "timeouts": {"prompt": 9},\n}\n'
    )
    async with server(home, {**agents(plain={}), "queue": {"maxFiles": 1}}) as first:
        notices = [p["text"] for p in first.client.of("notice")]
        assert len(notices) == 2
        (drain,) = [text for text in notices if "queue.drain" in text]
        assert "line 4" in drain
        (slip,) = [text for text in notices if "quee" in text]
        assert "line 5" in slip
        status = await first.client.request("agentik/status", {})
        assert status["settingsProblems"] == notices
        chat = await Chat.begin(first)
        await chat.busy()
        await chat.send("one")
        assert await chat.refusal("sendMessage", messageId="x", text="two") == "queueFull"
        files = [{"path": "/a", "text": ""}] * 2
        assert await chat.refusal("sendMessage", messageId="x", text="two", attachments=files) == "tooManyFiles"
    (home / "settings.json").write_text('{\n  "queue": {\n    "maxItems": 2\n    "maxFiles": 3\n  }\n}\n')
    async with server(home, agents(plain={})) as second:
        notice = second.client.of("notice")[0]
        assert "settings.json" in notice["text"]
        assert "line 4" in notice["text"] or "line 3" in notice["text"]
        assert "maxItems" in notice["text"] or "maxFiles" in notice["text"]
        assert (await Chat.begin(second)).session_id


async def test_old_sessions_leave_but_none_that_has_something_waiting(talk: Talk) -> None:
    """# B57: with their attachments; `retentionDays` 0 keeps all."""
    home = talk.home / "old"
    async with server(home, agents(plain={})) as first:
        old, waits, young = [await Chat.begin(first) for _ in range(3)]
        for chat in (old, young):
            await chat.do("#say x", attachments=[{"path": "/x/of.txt", "text": f"file of {chat.session_id}"}])
        await waits.busy()
        await waits.send("waits")
    with database(home) as db:
        day = 24 * 60 * 60 * 1000
        for chat in (old, waits):
            db.execute(
                "UPDATE sessions SET updated_at = updated_at - ? WHERE session_id = ?", (100 * day, chat.session_id)
            )
    kept = {path.read_text() for path in (home / "attachments").rglob("*") if path.is_file()}
    assert len(kept) == 2
    for days, left in ((0, {old, waits, young}), (101, {old, waits, young}), (90, {waits, young})):
        async with server(home, {**agents(plain={}), "retentionDays": days}) as again:
            sessions = await again.client.request("agentik/listSessions", {})
            await until(lambda: True)
            assert {s["sessionId"] for s in sessions["sessions"]} == {chat.session_id for chat in left}
    kept = {path.read_text() for path in (home / "attachments").rglob("*") if path.is_file()}
    assert kept == {f"file of {young.session_id}"}


@pytest.mark.parametrize("fault", ["damaged", "newer"])
async def test_a_database_that_cannot_be_used_is_set_aside(talk: Talk, fault: str) -> None:
    """# B58: with a notice, never deleted; the new one has another id."""
    home = talk.home / fault
    async with server(home, agents(plain={})) as first:
        await (await Chat.begin(first)).do("#say x")
        await first.client.request("agentik/status", {})
    path = home / "agentik.db"
    if fault == "damaged":
        path.write_bytes(b"this is no database at all, but long enough to be looked at\n" * 200)
    else:
        with database(home) as db:
            db.execute("PRAGMA user_version = 1000000")
    before = path.read_bytes()
    for _ in range(2):
        async with StdioClient([sys.executable, "-m", "agentik_server"], cwd=ROOT) as client:
            await client.initialize(home, agents(plain={}))
            notices = [p["text"] for p in client.of("notice")]
            aside = [p for p in home.iterdir() if p.name.startswith("agentik.db.")]
            assert before in [p.read_bytes() for p in aside]
            listed = await client.request("agentik/listSessions", {})
            assert listed["sessions"] == []
            if notices:
                assert fault in notices[0] or "newer" in notices[0]
                assert str(home) in notices[0]
    assert notices == []  # the second start finds the new one
    assert len(aside) == 1


async def test_the_database_has_an_id(talk: Talk) -> None:
    """PROTOCOL.md, initialize: the same as long as it is the same database."""
    home = talk.home / "identity"
    found = []
    for remove in (False, False, True):
        if remove:
            for path in home.glob("agentik.db*"):
                path.unlink()
        async with StdioClient([sys.executable, "-m", "agentik_server"], cwd=ROOT) as client:
            found.append(await client.initialize(home, agents(plain={})))
    ids = [ours["databaseId"] for ours in found]
    assert ids[0] == ids[1] != ids[2]
    assert {ours["protocolVersion"] for ours in found} == {1}
    assert all(ours["version"] for ours in found)


@contextlib.contextmanager
def failing(home: Path, table: str, when: str) -> Iterator[None]:
    """Until the end of the block every such write fails."""
    with database(home) as db:
        db.execute(f"CREATE TRIGGER boom BEFORE {when} ON {table} BEGIN SELECT RAISE(ABORT, 'no space left'); END")
        try:
            yield
        finally:
            db.execute("DROP TRIGGER boom")


async def test_a_failed_write_is_not_acknowledged(chat: Chat) -> None:
    """# B5 B58: storeFailed with the reason; nothing of it is there, nothing else is harmed, the same id goes later."""
    await chat.do("#say before")
    page = await chat.open()
    with failing(chat.home, "submissions", "INSERT"):
        with pytest.raises(RpcError) as refused:
            await chat.send("#say lost", f"{chat.session_id} m")
        assert (refused.value.code, refused.value.reason) == (4000, "storeFailed")
        assert "no space left" in refused.value.message
        with pytest.raises(RpcError) as refused:
            await chat.send("#say lost", f"{chat.session_id} m")
    after = await chat.open()
    assert (after["messages"], after["pending"]) == (page["messages"], [])
    assert (await chat.send("#say lost", f"{chat.session_id} m"))[1] == "started"
    await chat.ended(2)
    assert chat.prompts() == ["#say before", "#say lost"]


async def test_an_end_that_cannot_be_saved_is_shown_and_saved_later(chat: Chat) -> None:
    """# B35 B58: a notice; then the turn ends, once, and what waits goes on."""
    mark = chat.client.mark()
    await chat.busy("#wait_cancel\n#say x\n#end end_turn")
    await chat.send("#say next")
    with failing(chat.home, "turns", "UPDATE"):
        await chat.call("cancelTurn")
        notice = await chat.wait("notice", lambda p: p["level"] == "error", since=mark)
        assert "no space left" in notice["text"]
        assert "\n" not in notice["text"]
        assert not chat.ends()
    await chat.ended()
    await chat.call("resumeQueue")
    await chat.ended(2)
    assert chat.prompts()[1:] == ["#say next"]
    assert [m["text"] for m in (await chat.open())["messages"] if m["kind"] == "agent"] == ["x", "next"]


@pytest.mark.parametrize("how", ["a file", "no folder"])
async def test_a_home_that_cannot_be_used_is_a_clear_error(talk: Talk, how: str) -> None:
    """# B58 PROTOCOL.md, Transport: the answer to initialize and one line on stderr; then a good one may follow."""
    bad = talk.home / "settings-file"
    bad.write_text("")
    home = bad if how == "a file" else Path("/proc/agentik")
    async with StdioClient([sys.executable, "-m", "agentik_server"], cwd=ROOT) as client:
        with pytest.raises(RpcError) as refused:
            await client.initialize(home, agents(plain={}))
        assert str(home) in refused.value.message
        assert str(home) in client.stderr.decode()
        assert "Traceback" not in client.stderr.decode()
        assert await client.initialize(talk.home / "good", agents(plain={}))
