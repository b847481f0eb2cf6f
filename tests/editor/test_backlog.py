"""What waits for a client that does not read: merged, bounded, and in the end as if nothing had waited."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentik_server.editor.backlog import LONGEST_TEXT, Backlog
from agentik_server.editor.codec import frame

Json = dict[str, Any]
MARK = re.compile(r"<\d+>")


def parsed(data: bytes) -> Json:
    value: Json = json.loads(data.partition(b"\r\n\r\n")[2])
    return value


def drained(backlog: Backlog) -> list[Json]:
    frames = []
    while (data := backlog.take()) is not None:
        frames.append(parsed(data))
    return frames


def token(text: str, offset: int, message: str = "m", session: str = "s", turn: str = "t") -> tuple[str, Json]:
    params = {"sessionId": session, "turnId": turn, "messageId": message, "kind": "agent", "seq": 1}
    return "agentik/streamingToken", {**params, "offset": offset, "text": text}


def updated(text: str, revision: int, status: str = "complete", message: str = "m") -> tuple[str, Json]:
    inner = {"messageId": message, "sessionId": "s", "text": text, "status": status, "revision": revision}
    return "agentik/messageUpdated", {"sessionId": "s", "message": inner, "revision": revision}


def state(name: str, revision: int, session: str = "s") -> tuple[str, Json]:
    if name == "sessionChanged":
        return "agentik/sessionChanged", {"session": {"sessionId": session, "revision": revision}}
    return f"agentik/{name}", {"sessionId": session, "revision": revision}


def border(name: str, session: str = "s") -> tuple[str, Json]:
    return f"agentik/{name}", {"sessionId": session, "turnId": "t", "messageId": "u"}


def said(*news: tuple[str, Json], full: bool = True) -> list[tuple[str, Any]]:
    """(short method, text or revision) of the frames that come out when all of `news` waited."""
    backlog = Backlog()
    backlog.full = full
    for method, params in news:
        backlog.add(method, params)
    out = []
    for each in drained(backlog):
        params = each["params"]
        facts = params.get("session", params)
        out.append((each["method"].removeprefix("agentik/"), facts.get("text", facts.get("revision"))))
    assert backlog.size == 0
    assert not any((backlog._open_text, backlog._texts, backlog._latest, backlog._to_reload))
    return out


def test_text_of_one_message_is_joined() -> None:
    """Frames of one message may be merged: offset of the first, texts joined."""
    backlog = Backlog()
    for method, params in (token("ab", 0), token("c", 2), token("é😀", 3), token("x", 5)):
        backlog.add(method, params)
    (only,) = drained(backlog)
    assert only["params"]["offset"] == 0
    assert only["params"]["text"] == "abcé😀x"


def test_text_that_does_not_continue_is_not_joined() -> None:
    """A gap, or text of another message, starts a frame of its own."""
    assert said(token("ab", 0), token("d", 3)) == [("streamingToken", "ab"), ("streamingToken", "d")]
    assert said(token("a", 0, "m"), token("b", 0, "n"), token("c", 1, "m")) == [
        ("streamingToken", "ac"),
        ("streamingToken", "b"),
    ]


@pytest.mark.parametrize("name", ["turnStarted", "turnEnded"])
def test_text_is_never_joined_over_a_turns_border(name: str) -> None:
    """Text stays on its side of turnStarted and turnEnded of its session."""
    found = said(token("a", 0), border(name), token("b", 1))
    assert [method for method, _ in found] == ["streamingToken", name, "streamingToken"]
    found = said(token("a", 0), border(name, "another"), token("b", 1))
    assert [method for method, _ in found] == ["streamingToken", name]


def test_text_is_not_joined_over_a_response() -> None:
    """The response may hold a snapshot of the text as it was."""
    backlog = Backlog()
    backlog.full = True
    backlog.add(*token("a", 0))
    backlog.add_frame(frame({"jsonrpc": "2.0", "id": 1, "result": {"text": "a"}}))
    backlog.add(*token("b", 1))
    assert [each.get("id") for each in drained(backlog)] == [None, 1, None]


def test_very_long_text_goes_in_several_frames() -> None:
    """A stalled client gets pieces that it can digest."""
    pieces = [token("x" * 1000, 1000 * n) for n in range(LONGEST_TEXT // 1000 + 10)]
    found = said(*pieces)
    assert len(found) == 2
    assert sum(len(text) for _, text in found) == 1000 * len(pieces)


@pytest.mark.parametrize("name", ["pendingChanged", "sessionChanged", "connectionChanged"])
def test_a_newer_state_replaces_an_older_one_of_the_same_session_while_the_pipe_is_full(name: str) -> None:
    """It stands at the newer one's place: revisions never fall."""
    news = [state(name, 1), state(name, 2, "other"), border("turnStarted"), state(name, 3)]
    assert [item for _, item in said(*news)] == [2, None, 3]
    assert [item for _, item in said(*news, full=False)] == [1, 2, None, 3]  # B38: each step, while it can be told


def test_levels_and_guesses_replace_older_ones() -> None:
    """Only the newest input level and the newest partial text are of use."""
    news = [("agentik/dictationLevel", {"dictationId": "d", "level": 0.1, "revision": n}) for n in range(5)]
    news += [("agentik/dictationPartial", {"dictationId": "d", "text": str(n)}) for n in range(5)]
    assert said(*news) == [("dictationLevel", 4), ("dictationPartial", "4")]


def test_a_message_told_whole_replaces_its_text_and_older_states() -> None:
    """No streamingToken of a message follows its final messageUpdated, unless it came later."""
    assert said(updated("", 1, "streaming"), token("ab", 0), token("c", 2, "n"), updated("ab", 2)) == [
        ("streamingToken", "c"),
        ("messageUpdated", 2),
    ]
    assert said(token("ab", 0), updated("ab", 2), token("c", 2)) == [("messageUpdated", 2), ("streamingToken", "c")]


def test_a_message_told_short_of_the_queued_text_replaces_nothing() -> None:
    """What was saved earlier than it was streamed does not take text back."""
    found = said(updated("", 1, "streaming"), token("abc", 0), updated("ab", 2, "streaming"), token("d", 3))
    assert [method for method, _ in found] == ["messageUpdated", "streamingToken", "messageUpdated", "streamingToken"]


def test_an_update_does_not_reach_over_queued_and_received() -> None:
    """B25: a message that was put back is queued again; each step stands in its order."""
    queued = ("agentik/messageQueued", {"sessionId": "s", "messageId": "m", "revision": 2})
    received = ("agentik/messageReceived", {"sessionId": "s", "messageId": "m", "message": {"messageId": "m"}})
    found = said(updated("x", 1), queued, received, updated("x", 4))
    assert [method for method, _ in found] == ["messageUpdated", "messageQueued", "messageReceived", "messageUpdated"]


def test_what_is_no_json_is_logged_and_the_rest_goes(caplog: pytest.LogCaptureFixture) -> None:
    """A bug in one notification costs that one."""
    assert said(("agentik/notice", {"text": "a", "odd": object()}), ("agentik/notice", {"text": "b"})) == [
        ("notice", "b")
    ]
    assert "agentik/notice cannot be sent" in caplog.text


class Server:
    """Says random news and knows what a client must hold in the end."""

    def __init__(self, backlog: Backlog) -> None:
        self.backlog = backlog
        self.texts: dict[str, str] = {}
        self.complete: set[str] = set()
        self.revision = 0
        self.words = 0
        self.borders = 0
        self.border_of_word: dict[str, int] = {}
        self.steps: list[Any] = []  # what must come out as it went in

    def token(self, message: str, word: str) -> None:
        text = self.texts.setdefault(message, "")
        self.words += 1
        mark = f"<{self.words}>{word}"
        self.border_of_word[f"<{self.words}>"] = self.borders
        self.backlog.add(*token(mark, len(text), message))
        self.texts[message] = text + mark

    def update(self, message: str, complete: bool, cut: int) -> None:
        self.revision += 1
        text = self.texts.setdefault(message, "")
        if complete:
            self.complete.add(message)
        told = text if complete else text[: len(text) - cut]
        self.backlog.add(*updated(told, self.revision, "complete" if complete else "streaming", message))

    def border(self) -> None:
        self.borders += 1
        self.steps.append(("border", self.borders))
        self.backlog.add(border("turnStarted")[0], {"sessionId": "s", "turnId": "t", "number": self.borders})

    def state(self, name: str) -> None:
        self.revision += 1
        self.backlog.add(*state(name, self.revision))

    def respond(self, what: Json) -> None:
        self.backlog.add_frame(frame({"jsonrpc": "2.0", "id": 1, "result": {**what, "revision": self.revision}}))

    def snapshot(self) -> None:
        self.respond({"snapshot": dict(self.texts)})


class Client:
    """Replays frames as PROTOCOL.md tells a client to."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.texts: dict[str, str] = {}
        self.latest: dict[str, int] = {}
        self.steps: list[Any] = []
        self.revision = 0
        self.borders = 0
        self.reloading = 0
        self.reloads = 0

    def take(self, message: Json) -> None:
        if "result" in message:
            self._response(message["result"])
            return
        method, params = message["method"].removeprefix("agentik/"), message["params"]
        if method == "streamingToken":
            self._token(params)
            return
        if method == "resync":
            self.reloading += 1
            self.reloads += 1
            self.server.snapshot()  # the answer to openSession
            return
        if method == "turnStarted":
            self.borders = params["number"]
            self.steps.append(("border", self.borders))
            return
        assert params.get("revision") is None or params["revision"] > self.revision
        self.revision = params.get("revision") or params["session"]["revision"]
        self.latest[method] = self.revision
        if method == "messageUpdated":
            inner = params["message"]
            held = self.texts.get(inner["messageId"], "")
            self.texts[inner["messageId"]] = (
                inner["text"] if inner["status"] == "complete" else max(held, inner["text"])
            )

    def _token(self, params: Json) -> None:
        held = self.texts.get(params["messageId"], "")
        if params["offset"] > len(held):
            assert self.reloading, "a gap"
            return
        for word in MARK.findall(params["text"]):
            assert self.server.border_of_word[word] == self.borders or self.reloads
        self.texts[params["messageId"]] = held[: params["offset"]] + params["text"]

    def _response(self, result: Json) -> None:
        if "snapshot" in result:
            self.reloading = max(0, self.reloading - 1)
            self.texts.update(result["snapshot"])
            self.revision = result["revision"]
        else:
            self.steps.append(("response", result["number"]))


Step = Callable[[Server], None]
names = st.sampled_from(["m1", "m2"])
steps = st.one_of(
    st.builds(lambda m, w: lambda server: server.token(m, w), names, st.text(max_size=5)),
    st.builds(lambda m, c, n: lambda server: server.update(m, c, n), names, st.booleans(), st.integers(0, 9)),
    st.just(Server.border),
    st.sampled_from(["pendingChanged", "sessionChanged", "connectionChanged"]).map(
        lambda name: lambda server: server.state(name)
    ),
    st.just(Server.snapshot),
    st.just("respond"),
)
# A burst of news, the pipe full or not yet; then the client reads some frames (None: all).
bursts = st.tuples(st.lists(steps, max_size=25), st.none() | st.integers(0, 4), st.booleans())
Schedule = list[tuple[list[Any], int | None, bool]]
schedules = st.lists(bursts, max_size=6)


def replayed(schedule: Schedule, limit: int) -> tuple[Server, Client, Backlog]:
    backlog = Backlog(limit)
    server = Server(backlog)
    client = Client(server)

    def read(most: int | None = None) -> None:
        while most != 0 and (data := backlog.take()) is not None:
            client.take(parsed(data))
            most = None if most is None else most - 1

    numbers = itertools.count()
    for news, count, full in schedule:
        backlog.full = full
        for step in news:
            if step == "respond":
                server.steps.append(("response", number := next(numbers)))
                server.respond({"number": number})
            else:
                step(server)
        read(count)
    read()
    return server, client, backlog


@settings(max_examples=400)
@given(schedules)
def test_any_schedule_of_news_and_stalls_ends_in_the_same_text(schedule: Schedule) -> None:
    """Gapless: replaying the frames yields the same texts, whenever the client stopped reading."""
    server, client, backlog = replayed(schedule, limit=10**9)
    assert client.texts == {message: text for message, text in server.texts.items() if message in client.texts}
    assert all(not text for message, text in server.texts.items() if message not in client.texts)
    assert client.steps == server.steps
    assert client.reloads == 0
    assert (len(backlog), backlog.size) == (0, 0)
    assert not any((backlog._open_text, backlog._texts, backlog._latest))


@settings(max_examples=200)
@given(schedules, st.integers(300, 3000))
def test_a_stall_beyond_the_limit_ends_in_a_reload_and_the_same_text(schedule: Schedule, limit: int) -> None:
    """Bounded: what was dropped is announced by resync, and one openSession makes the client whole."""
    server, client, backlog = replayed(schedule, limit)
    assert client.texts == {message: text for message, text in server.texts.items() if message in client.texts}
    assert client.reloading == 0
    assert (len(backlog), backlog.size) == (0, 0)
    assert not any((backlog._open_text, backlog._texts, backlog._latest, backlog._to_reload))


def test_memory_is_bounded_whatever_is_said() -> None:
    """A client that does not read for ever: text, states, steps of many sessions stay below the limit."""
    backlog = Backlog(limit=200_000)
    backlog.full = True
    for n in range(20_000):
        session = f"s{n % 7}"
        backlog.add(*token("some text ", 10 * n, session=session))
        backlog.add("agentik/messageReceived", {"sessionId": session, "messageId": str(n), "text": "x" * 100})
        backlog.add("agentik/notice", {"level": "info", "text": "x" * 50})
        assert backlog.size <= 200_000
    assert len(backlog) < 1000
    reloads = [each["params"]["sessionId"] for each in drained(backlog) if each["method"] == "agentik/resync"]
    assert sorted(reloads) == [f"s{n}" for n in range(7)]


def test_merged_text_of_a_minute_of_flood_is_all_there() -> None:
    """60 s at 5,000 tokens a second wait as a few frames, and nothing of them is lost."""
    backlog = Backlog()
    backlog.full = True
    offset = 0
    for n in range(300_000):
        text = f"{n} "
        backlog.add(*token(text, offset))
        offset += len(text)
    frames = drained(backlog)
    assert len(frames) < 10
    assert "".join(each["params"]["text"] for each in frames).split() == [str(n) for n in range(300_000)]
