"""The server over real pipes: every sentence of the protocol's "Transport", with a tiny application behind it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import strategies as st

from tests.stdio_client import Params, RpcError, StdioClient

pytestmark = pytest.mark.asyncio(loop_scope="module")

Start = Callable[[], StdioClient]


def echo(log: Path) -> StdioClient:
    return StdioClient([sys.executable, "-m", "tests.editor.echo_app", str(log)], log=log, check=False)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[StdioClient]:
    """One server for all tests that leave it as it was."""
    async with echo(tmp_path_factory.mktemp("shared") / "log") as client:
        await client.initialize(home="/home", capabilities={"window": {"workDoneProgress": True}})
        yield client


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """A server of one's own."""
    return lambda: echo(tmp_path / "log")


def send(text: str, message_id: str = "m") -> Params:
    return {"sessionId": "s", "messageId": message_id, "text": text}


async def error_of(client: StdioClient, method: str, params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await client.request(method, params)
    return caught.value


async def raw_error(client: StdioClient, data: bytes) -> Params:
    """The error without an id that the bytes are answered with; the server lives on."""
    since = client.mark()
    client.send_bytes(data)
    error = await client.wait_for("$/error", since=since)
    await client.request("agentik/status")
    return error


def framed(value: Any) -> bytes:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


# -- initialize and the end -------------------------------------------------------------------------------------------


async def test_initialize_tells_protocol_version_version_and_database(start: Start) -> None:
    """initialize.result.capabilities.experimental.agentik; the options reach the application."""
    async with start() as client:
        told = await client.initialize(home="/h", settings={"queue": {"drain": "all"}})
        assert told == {
            "protocolVersion": 1,
            "version": "1.2.3",
            "databaseId": "db:/h:{'queue': {'drain': 'all'}}",
        }
        error = await error_of(client, "initialize", {})
        assert error.code == -32600
        assert await client.shutdown() == 0
        assert client.stderr == b"noise of a library\n"  # nothing but frames on stdout


async def test_initialize_may_be_tried_again_until_it_succeeds(start: Start) -> None:
    """Before it: -32002. Params that do not validate, a start that fails: told, and the client may correct it."""
    async with start() as client:
        assert (await error_of(client, "agentik/status", {})).code == -32002
        assert (await error_of(client, "nonsense", {})).code == -32002
        client.notify("$/setTrace", {"value": "off"})
        for params, field in (
            ({"initializationOptions": []}, "initializationOptions"),
            ({"initializationOptions": {"home": 7}}, "initializationOptions.home"),
            ({"initializationOptions": {"settings": []}}, "initializationOptions.settings"),
            ({"processId": "x"}, "processId"),
            ([], "params"),
        ):
            error = await error_of(client, "initialize", params)
            assert (error.code, error.data["field"]) == (-32602, field)
            assert error.data["reason"]
        error = await error_of(client, "initialize", {"initializationOptions": {"home": "/broken"}})
        assert (error.code, error.reason) == (4000, "storeFailed")
        assert error.message == "the database cannot be written: /broken"
        assert b"agentik-server: the database cannot be written: /broken\n" in client.stderr
        error = await error_of(client, "initialize", {"initializationOptions": {"home": "/bug"}})
        assert error.code == -32603
        assert "secret" not in str(error)
        result = await client.request("initialize", None)  # `params: null` means `{}`
        assert result["capabilities"]["experimental"]["agentik"]["databaseId"] == "db:None:{}"
        assert result["serverInfo"] == {"name": "agentik-server", "version": "1.2.3"}
        await client.wait_for("notice")
        told = [note.params["text"] for note in client.notifications]
        assert told == ["starting in None"]  # nothing of the starts that failed
        frames = list(client._frames)
        (answer,) = (n for n, text in enumerate(frames) if "serverInfo" in text)
        (notice,) = (n for n, text in enumerate(frames) if "starting in" in text)
        assert answer < notice  # LSP: nothing before the answer to initialize
        assert await client.shutdown() == 0


async def test_shutdown_answers_open_requests(start: Start) -> None:
    """B61: nothing is left without an answer; later requests are refused."""
    async with start() as client:
        await client.initialize()
        still_open = [client.send_request("agentik/listSessions", {}) for _ in range(3)]
        done = client.send_request("shutdown")
        late = client.send_request("agentik/status")
        assert await client.answer_of(done) is None
        for future in still_open:
            with pytest.raises(RpcError) as caught:
                await future
            assert caught.value.code == -32800
        with pytest.raises(RpcError) as caught:
            await late
        assert caught.value.code == -32600
        client.notify("exit")
        assert await client.wait_exit() == 0


async def test_exit_without_shutdown_is_1_and_right_after_it_is_0(start: Start) -> None:
    """As in LSP."""
    async with start() as client:
        await client.initialize()
        client.notify("exit")
        assert await client.wait_exit() == 1
    async with start() as client:
        await client.initialize()
        answer = client.send_request("shutdown")
        client.notify("exit")
        assert await client.wait_exit() == 0
        assert await answer is None


async def test_the_end_of_stdin_is_an_orderly_end(start: Start) -> None:
    """Whatever was asked before it is still answered; half a frame is no harm."""
    async with start() as client:
        await client.initialize()
        asked = client.send_request("agentik/listSessions")
        client.send_bytes(b"Content-Length: 100\r\n\r\n{")
        client.close_stdin()
        assert await client.wait_exit() == 0
        with pytest.raises(RpcError):
            await asked


async def test_a_signal_is_an_orderly_end(start: Start) -> None:
    """SIGTERM ends the server as the end of stdin does."""
    async with start() as client:
        await client.initialize()
        client._transport.send_signal(signal.SIGTERM)
        assert await client.wait_exit() == 0


async def test_a_client_that_closed_stdout_is_gone(start: Start) -> None:
    """Nobody can be told anything any more: the orderly end."""
    async with start() as client:
        await client.initialize()
        client._stdout.close()
        assert await client.wait_exit() == 0


async def test_files_serve_as_stdin_and_stdout(tmp_path: Path) -> None:
    """A recorded conversation can be replayed from a file; the null device is an editor that left at once."""
    frames, answers = tmp_path / "in", tmp_path / "out"
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    frames.write_bytes(framed(message))
    command = [sys.executable, "-m", "tests.editor.echo_app", str(tmp_path / "log")]
    with frames.open("rb") as stdin, answers.open("wb") as stdout:
        assert subprocess.run(command, stdin=stdin, stdout=stdout, check=True, timeout=30).returncode == 0
    assert answers.read_bytes().startswith(b"Content-Length: ")
    assert b'"databaseId":"db:None:{}"' in answers.read_bytes()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=30)
    assert done.stdout == b""


# -- requests ---------------------------------------------------------------------------------------------------------


async def test_unknown_methods_are_told(shared: StdioClient) -> None:
    """A request for an unknown method gets -32601; unknown notifications are ignored."""
    for method in ("agentik/nothing", "textDocument/hover", "workspace/executeCommand", "", "exit", "initialized"):
        assert (await error_of(shared, method, {})).code == -32601
    shared.notify("agentik/nothing", {})
    shared.notify("textDocument/didOpen", {"textDocument": 5})
    shared.notify("agentik/sendMessage", send("without an id"))
    assert "m" not in (await shared.request("agentik/status"))["order"]


async def test_invalid_params_are_told_with_field_and_reason(shared: StdioClient) -> None:
    """-32602 with the field and the reason in data."""
    error = await error_of(shared, "agentik/sendMessage", {**send("x"), "messageId": "x" * 129})
    assert error.code == -32602
    assert error.data["field"] == "messageId"
    assert "128" in error.data["reason"]
    error = await error_of(shared, "agentik/sendMessage", [1])
    assert (error.code, error.data["field"]) == (-32602, "params")


async def test_absent_and_null_params_are_an_empty_object(shared: StdioClient) -> None:
    """`params: null` and absent params mean `{}`."""
    for params in (b"", b', "params": null', b', "params": {}'):
        future = shared.send_request("agentik/status", None, id=f"a{params!r}")
        del future
        shared.send_bytes(framed(b'{"jsonrpc": "2.0", "id": "b", "method": "agentik/listAgents"%s}' % params))
        shared._open["b"] = ("", asyncio.get_running_loop().create_future())
        assert await shared.answer_of(shared._open["b"][1]) == {"method": "listAgents", "params": {}}


async def test_nested_json_passes_unchanged(shared: StdioClient) -> None:
    """A content that itself holds a "jsonrpc" key is data, both ways."""
    content = {"jsonrpc": "2.0", "method": "exit", "id": [{"type_name": "x", "result": None}], "é": "\u2028\U0001f600"}
    params = {"sessionId": "s", "questionId": "q", "action": "accept", "content": content}
    assert await shared.request("agentik/answerQuestion", params) == {"echo": content}


async def test_an_id_may_be_a_text_and_is_given_back(shared: StdioClient) -> None:
    """Ids are strings or integers, whatever they hold."""
    for number in ("é 1", "", 0, -5, 2**53):
        assert await shared.answer_of(shared.send_request("agentik/status", {}, id=number))


async def test_an_id_in_use_is_refused(shared: StdioClient) -> None:
    """Two open requests cannot be told apart by the client: the second is refused."""
    first = shared.send_request("agentik/listSessions", {}, id="twin")
    with pytest.raises(RpcError) as caught:
        await shared.send_request("agentik/listSessions", {}, id="twin")
    assert caught.value.code == -32600
    shared._open["twin"] = ("", first)
    shared.notify("$/cancelRequest", {"id": "twin"})
    with pytest.raises(RpcError):
        await first


async def test_refusals_carry_their_reason(shared: StdioClient) -> None:
    """error.code 4000 with error.data.reason, at once or later."""
    error = await error_of(shared, "agentik/sendMessage", send("refuse"))
    assert (error.code, error.reason, error.message) == (4000, "queueFull", "the queue is full")
    assert error.data["most"] == 100
    error = await error_of(shared, "agentik/sendMessage", send("refuse-later"))
    assert (error.code, error.reason, error.data["pid"]) == (4000, "notOwner", 1)


async def test_half_a_surrogate_pair_is_refused_by_name(shared: StdioClient) -> None:
    """invalidText, with the id of the request: the client knows which message it was."""
    shared.send_bytes(
        framed(
            b'{"jsonrpc": "2.0", "id": "odd", "method": "agentik/sendMessage",'
            b' "params": {"sessionId": "s", "messageId": "m", "text": "\\ud83d"}}'
        )
    )
    future = asyncio.get_running_loop().create_future()
    shared._open["odd"] = ("", future)
    with pytest.raises(RpcError) as caught:
        await shared.answer_of(future)
    assert (caught.value.reason, caught.value.data["field"]) == ("invalidText", "text")


async def test_a_bug_costs_one_answer(shared: StdioClient) -> None:
    """Handlers that raise are logged and answered with -32603, without a traceback; the server lives on."""
    for text in ("raise", "no-json"):
        error = await error_of(shared, "agentik/sendMessage", send(text))
        assert error.code == -32603
        assert error.data is None
        assert "secret" not in error.message
    assert await shared.request("agentik/sendMessage", send("twice")) == {"messageId": "1", "disposition": "started"}
    assert shared._log is not None
    log = shared._log.read_text()
    assert "RuntimeError: secret of the traceback" in log
    assert "a second answer to agentik/sendMessage was dropped" in log


async def test_cancel_request_ends_what_only_reads(shared: StdioClient) -> None:
    """-32800 at once; a request that changes something is answered in the end; unknown ids are ignored."""
    future = shared.send_request("agentik/searchMessages", {"query": "x"}, id="search")
    odd: list[Any] = ["search", "search", 12345, None, {}, [1]]
    for number in odd:
        shared.notify("$/cancelRequest", {"id": number})
    shared.notify("$/cancelRequest", None)
    with pytest.raises(RpcError) as caught:
        await shared.answer_of(future)
    assert caught.value.code == -32800
    await shared.request("agentik/status")


async def test_requests_are_taken_in_order(shared: StdioClient) -> None:
    """Plain calls in the order of the wire."""
    ids = [f"order-{number}" for number in range(200)]
    futures = [shared.send_request("agentik/sendMessage", send("x", number)) for number in ids]
    assert [(await future)["messageId"] for future in futures] == ids
    order = (await shared.request("agentik/status"))["order"]
    assert [number for number in order if number in set(ids)] == ids


# -- broken frames ----------------------------------------------------------------------------------------------------


async def test_headers_in_any_case_and_unknown_headers(shared: StdioClient) -> None:
    """Header names are case-insensitive; unknown headers are ignored."""
    body = b'{"jsonrpc": "2.0", "id": "h", "method": "agentik/status"}'
    for header in (b"content-length:%d\r\n\r\n", b"X-Y: z\r\nCONTENT-LENGTH: %d\r\nContent-Type: t\r\n\r\n"):
        shared._open["h"] = ("", asyncio.get_running_loop().create_future())
        future = shared._open["h"][1]
        for byte in header % len(body) + body:
            shared.send_bytes(bytes([byte]))
        assert "order" in await shared.answer_of(future)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (framed(b"{"), -32700),
        (framed(b""), -32700),
        (framed(b"\xff\xfe"), -32700),
        (framed(b"[" * 50_000), -32700),
        (framed([]), -32600),
        (framed([{"jsonrpc": "2.0", "id": 1, "method": "agentik/status"}]), -32600),
        (framed("text"), -32600),
        (framed({"jsonrpc": "2.0", "id": True, "method": "m"}), -32600),
        (framed({"jsonrpc": "2.0"}), -32600),
        (b"Content-Length: -1\r\n\r\n", -32700),
        (b"Content-Length: 99999999999999999999\r\n\r\n", -32700),
        (b"Content-Length: 1000000000\r\n\r\n", -32700),
        (b"Content-Length: garbage\r\n\r\n{}", -32700),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", -32700),
        (b"x" * 20_000, -32700),
    ],
)
async def test_what_is_no_message_gets_an_error_and_the_stream_goes_on(
    shared: StdioClient, data: bytes, code: int
) -> None:
    """-32700 or -32600, id null; the next request is answered."""
    error = await raw_error(shared, data)
    assert error["code"] == code
    assert "data" not in error


async def test_responses_that_nobody_waits_for_are_ignored(shared: StdioClient) -> None:
    """A late or odd answer of the client is no harm."""
    for message in (
        {"id": "agentik-999", "result": 1},
        {"id": 1, "error": {"code": "x"}},
        {"id": None, "error": {"code": -32700, "message": "m"}},
        {"id": 5, "error": {}},
    ):
        shared.send_bytes(framed({"jsonrpc": "2.0", **message}))
    await shared.request("agentik/status")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
methods = st.sampled_from(["agentik/sendMessage", "agentik/movePending", "$/cancelRequest", "$/setTrace", "initialize"])
messages = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0")},
        optional={
            "id": json_values,
            "method": methods | json_values,
            "params": json_values | st.dictionaries(st.sampled_from(["sessionId", "text", "id", "value"]), json_values),
            "result": json_values,
            "error": json_values,
        },
    ),
)
noise = st.one_of(
    messages.map(framed),
    st.binary(max_size=60),
    st.binary(max_size=60).map(framed),
    st.integers().map(lambda number: b"Content-Length: %d\r\n\r\n" % number),
)


async def test_no_input_ends_the_server(shared: StdioClient) -> None:
    """Random messages, random JSON, random bytes: at the end it answers as at the start."""
    shared.send_bytes(b"".join(_examples(noise, 500)))
    shared.send_bytes(b"\r\n\r\n" + b"x" * 9000)  # whatever was begun is over
    assert "order" in await shared.answer_of(shared.send_request("agentik/status", {}, id="the end"))
    shared.violations.clear()  # answers to ids that the noise made up


def _examples(strategy: st.SearchStrategy[bytes], count: int) -> list[bytes]:
    """So many values, the same in every run."""
    from hypothesis import given, seed, settings

    found: list[bytes] = []

    @seed(1)
    @settings(max_examples=count, database=None, deadline=None)
    @given(strategy)
    def collect(value: bytes) -> None:
        found.append(value)

    collect()
    return found


# -- a client that does not read --------------------------------------------------------------------------------------


def peak_memory(pid: int) -> int:
    """Bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


async def test_a_client_that_does_not_read_is_heard_and_loses_nothing(start: Start) -> None:
    """Cancel is heard meanwhile, memory stays bounded, and the text is whole afterwards."""
    count = 200_000
    async with start() as client:
        await client.initialize()
        before = peak_memory(client.pid)
        client.stop_reading()
        client.send_request("agentik/sendMessage", send(f"flood {count}", "flood"))
        client.send_request("agentik/cancelTurn", {"sessionId": "s"})
        status = client.send_request("agentik/status")
        await asyncio.to_thread(_wait_for_line, client, "the flood is over")
        grown = peak_memory(client.pid) - before
        client.resume_reading()
        await client.wait_for("turnEnded")
        assert (await status)["tokens"] < count  # answered while the flood went on
        order = (await client.request("agentik/status"))["order"]
        assert order.index("cancel") < order.index("answer")
        assert _text_of_answer(client) == "".join(f"{number} " for number in range(count))
        assert len(client.notifications) < 2000
        if sys.platform == "linux":
            assert grown < 40e6


def _wait_for_line(client: StdioClient, line: str) -> None:
    """Until the server's log has it. A file cannot be awaited; the client must not read its pipe meanwhile."""
    assert client._log is not None
    with subprocess.Popen(["tail", "-n", "+1", "-f", str(client._log)], stdout=subprocess.PIPE, text=True) as tail:
        assert tail.stdout is not None
        for each in tail.stdout:
            if line in each:
                break
        tail.terminate()


def _text_of_answer(client: StdioClient, since: int = 0) -> str:
    """Replays what came, as a client does."""
    text = ""
    for note in client.notifications[since:]:
        if note.method == "agentik/streamingToken":
            assert note.params["offset"] <= len(text), "a gap"
            text = text[: note.params["offset"]] + note.params["text"]
        elif note.method == "agentik/messageUpdated" and note.params["message"]["messageId"] == "answer":
            text = note.params["message"]["text"]
    return text


async def test_streaming_to_a_client_that_reads(shared: StdioClient) -> None:
    """Few frames, no gap, in order: borders of the turn around the text, the finished message at the end."""
    since = shared.mark()
    await shared.request("agentik/sendMessage", send("flood 20000"))
    await shared.wait_for("turnEnded", since=since)
    names = [note.method.removeprefix("agentik/") for note in shared.notifications[since:]]
    assert names[0] == "turnStarted"
    assert names[-2:] == ["messageUpdated", "turnEnded"]
    assert _text_of_answer(shared, since) == "".join(f"{number} " for number in range(20000))


async def test_asking_and_never_reading_is_bounded(start: Start) -> None:
    """A client that asks for megabytes again and again and reads nothing: refused, then unheard, then well again."""
    async with start() as client:
        await client.initialize()
        client.stop_reading()
        big, small = ({"sessionId": size, "format": "markdown"} for size in ("2000000", "5"))
        asked = [client.send_request("agentik/exportSession", big) for _ in range(60)]
        client.send_request("agentik/sendMessage", send("flood 100", "end"))
        cancelled = client.send_request("agentik/cancelTurn", {"sessionId": "s"})
        client.resume_reading()
        assert await client.answer_of(cancelled) == {"cancelled": True}
        outcomes: list[int | str] = []
        for future in asked:
            try:
                outcomes.append(len((await client.answer_of(future))["text"]))
            except RpcError as error:
                outcomes.append(str(error.reason))
        assert outcomes[0] == 2_000_000
        assert set(outcomes) <= {2_000_000, "serverBusy"}
        assert await client.request("agentik/exportSession", small) == {"text": "xxxxx"}


# -- what the server asks ---------------------------------------------------------------------------------------------


async def test_open_buffers_are_read_and_written(shared: StdioClient) -> None:
    """agentik/readBuffer and agentik/writeBuffer (B50)."""
    shared.answer("agentik/readBuffer", lambda params: {"loaded": True, "modified": True, "text": params["path"]})
    shared.answer("agentik/writeBuffer", lambda _: {"applied": False, "reason": "it was changed"})
    answer = await shared.request("agentik/sendMessage", send("read /a"))
    assert answer == {"state": [True, True, "/a"]}
    answer = await shared.request("agentik/sendMessage", send("write /a"))
    assert answer == {"outcome": [False, "it was changed"]}


def _always(answer: Any, _params: Params) -> Any:
    return answer


async def test_a_client_without_buffers_is_asked_once(start: Start) -> None:
    """-32601: the server uses the disk, and remembers it. A client that shows no progress is told none."""
    async with start() as client:
        asked: list[Params] = []
        await client.initialize()
        for path in ("/a", "/b"):
            assert await client.request("agentik/sendMessage", send(f"read {path}")) == {"state": None}
            client.answer("agentik/readBuffer", asked.append)
        assert asked == []
        await client.request("agentik/sendMessage", send("progress"))
        assert client.of("$/progress") == []  # it cannot show progress


async def test_answers_about_buffers_that_cannot_be_used(start: Start) -> None:
    """No answer in 2 s, an odd one or an error: TimeoutError says why, and a late answer is no harm (B50)."""
    async with start() as client:
        await client.initialize()
        odd: Any
        for odd in (5, {}, {"loaded": 1, "modified": True}, {"loaded": True, "modified": True}):
            client.answer("agentik/readBuffer", partial(_always, odd))
            assert "cannot be used" in (await client.request("agentik/sendMessage", send("read /a")))["late"]
        client.answer("agentik/readBuffer", lambda _: None)
        assert (await client.request("agentik/sendMessage", send("read /a"))) == {
            "late": "the editor did not answer within 2 s"
        }
        number = client.of("$/cancelRequest")[0]["id"]
        client.send_bytes(framed({"jsonrpc": "2.0", "id": number, "result": {"loaded": False, "modified": False}}))
        waiting = client.send_request("agentik/sendMessage", send("read /a"))
        await client.request("agentik/status")
        await client.request("shutdown")
        with pytest.raises(RpcError) as caught:
            await waiting
        assert caught.value.code == -32800


async def test_progress_where_the_client_shows_it(shared: StdioClient) -> None:
    """LSP $/progress: create, begin, report, end."""
    shared.answer("window/workDoneProgress/create", lambda _: {})
    await shared.request("agentik/sendMessage", send("progress"))
    await shared.wait_for("$/progress", lambda params: params["value"]["kind"] == "end")
    assert [params["value"] for params in shared.of("$/progress")] == [
        {"kind": "begin", "title": "Loading"},
        {"kind": "report", "message": "two", "percentage": 100},
        {"kind": "end", "message": "done"},
    ]
