"""The JSON-RPC peer, fed with bytes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentik_server.agents.frames import Noise
from agentik_server.agents.peer import Answer, Call, Peer, PeerClosed, RequestTimedOut, RpcError
from agentik_server.agents.pipes import Ticket


class Wire:
    """A peer whose other side is a list."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.notes: list[tuple[str, object]] = []
        self.calls: list[tuple[str, object, Call]] = []
        self.noise: list[Noise] = []
        self.answers: list[Answer] = []
        self.stuck = False
        self.peer = Peer(self._write, self._discard, self)

    def _write(self, data: bytes) -> Ticket:
        ticket = Ticket(data)
        ticket.started = not self.stuck
        self.sent.append(json.loads(data))
        return ticket

    def _discard(self, ticket: Ticket) -> bool:
        return not ticket.started

    def notified(self, method: str, params: object) -> None:
        self.notes.append((method, params))

    def requested(self, method: str, params: object, call: Call) -> None:
        if method == "boom":
            raise ZeroDivisionError
        self.calls.append((method, params, call))

    def strayed(self, noise: Noise) -> None:
        self.noise.append(noise)

    def feed(self, *lines: str) -> None:
        self.peer.feed("".join(line + "\n" for line in lines).encode())

    def ask(self) -> None:
        self.peer.request("m", {}, self.answers.append)


@pytest.mark.parametrize("id_", ["1", '"1"', "1.0", '" 1 "'])
async def test_an_answer_is_found_by_its_id_however_it_is_written(id_: str) -> None:  # B46
    wire = Wire()
    wire.ask()
    wire.feed(f'{{"id":{id_},"result":5}}')
    assert wire.answers == [Answer(result=5)]


@pytest.mark.parametrize("id_", ["true", "{}", "[1]", "2", '"x"', "null", "1.5", '"01x"'])
async def test_an_answer_with_a_foreign_id_answers_nothing_and_the_next_one_is_heard(id_: str) -> None:
    wire = Wire()
    wire.ask()
    wire.feed(f'{{"id":{id_},"result":5}}', '{"id":1,"result":6}', '{"id":1,"result":7}')
    assert wire.answers == [Answer(result=6)]
    assert len(wire.noise) == 2


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ('"boom"', None, "boom"),
        ("7", None, "7"),
        ("[1]", None, "[1]"),
        ('{"code":-32603,"message":"m","data":{"a":1}}', -32603, "m"),
        ('{"code":"-32000","message":null}', -32000, '{"code": "-32000", "message": null}'),
        ('{"code":{},"message":{"x":1}}', None, '{"x": 1}'),
    ],
)
async def test_an_error_of_any_shape_ends_the_request(error: str, code: int | None, message: str) -> None:
    wire = Wire()
    wire.ask()
    wire.feed(f'{{"id":1,"error":{error}}}')
    (answer,) = wire.answers
    assert isinstance(answer.error, RpcError)
    assert (answer.error.code, answer.error.message) == (code, message)


async def test_a_parse_error_without_id_ends_the_newest_request() -> None:
    wire = Wire()
    wire.ask()
    wire.feed('{"id":null,"error":{"code":-32700,"message":"Parse error"}}')
    assert isinstance(wire.answers[0].error, RpcError)


async def test_an_answer_with_neither_result_nor_error_is_a_null_result() -> None:
    wire = Wire()
    wire.ask()
    wire.feed('{"id":1}')
    assert wire.answers == [Answer(result=None)]


async def test_a_request_that_is_never_answered_times_out_and_is_called_off() -> None:
    wire = Wire()
    with pytest.raises(RequestTimedOut):
        await wire.peer.ask("slow", {}, timeout_s=0.01)
    assert wire.sent[-1]["method"] == "$/cancel_request"
    assert wire.sent[-1]["params"] == {"requestId": 1}
    wire.feed('{"id":1,"result":1}')
    assert len(wire.noise) == 1


async def test_a_cancelled_waiter_calls_its_request_off() -> None:
    wire = Wire()
    task = asyncio.ensure_future(wire.peer.ask("slow", {}))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert wire.sent[-1]["method"] == "$/cancel_request"


async def test_a_request_of_which_nothing_was_written_can_be_taken_back() -> None:  # B34
    wire = Wire()
    wire.stuck = True
    request = wire.peer.request("m", {}, wire.answers.append)
    assert wire.peer.withdraw(request)
    wire.peer.close(PeerClosed())
    assert wire.answers == []


async def test_close_ends_every_request_and_later_ones_at_once() -> None:  # B42
    wire = Wire()
    wire.ask()
    wire.peer.feed(b'{"id":1,"result":"without newline"}')
    wire.ask()
    gone = PeerClosed("gone")
    wire.peer.close(gone)
    assert wire.answers == [Answer(result="without newline"), Answer(error=gone)]
    with pytest.raises(PeerClosed):
        await wire.peer.ask("m", {})


@pytest.mark.parametrize("id_", [0, "abc", 1.5, {"a": 1}, [1], -3, True])
async def test_a_request_of_the_agent_is_answered_under_its_id_as_given(id_: object) -> None:  # B46
    wire = Wire()
    wire.feed(json.dumps({"jsonrpc": "2.0", "id": id_, "method": "fs/x", "params": {"p": 1}}))
    ((method, params, call),) = wire.calls
    assert (method, params) == ("fs/x", {"p": 1})
    call.result({"ok": True})
    call.error(1, "too late")
    assert wire.sent == [{"jsonrpc": "2.0", "id": id_, "result": {"ok": True}}]


async def test_the_agent_can_call_its_request_off() -> None:  # B48
    wire = Wire()
    wire.feed('{"id":"7","method":"a"}', '{"id":8,"method":"b"}')
    told: list[str] = []
    wire.calls[0][2].on_cancel = lambda: told.append("withdrawn")
    wire.feed('{"method":"$/cancel_request","params":{"requestId":"7"}}')
    assert told == ["withdrawn"]
    assert wire.sent == [
        {"jsonrpc": "2.0", "id": "7", "error": {"code": -32800, "message": "the request was cancelled"}}
    ]


@pytest.mark.parametrize("params", ["null", "[]", "{}", '{"requestId":{}}'])
async def test_a_cancel_of_nothing_is_nothing(params: str) -> None:
    wire = Wire()
    wire.feed(f'{{"method":"$/cancel_request","params":{params}}}')
    assert wire.sent == []


async def test_a_request_that_we_fail_at_is_answered_with_an_error() -> None:
    wire = Wire()
    wire.feed('{"id":1,"method":"boom"}', '{"method":"after"}')
    assert wire.sent[0]["error"]["code"] == -32603
    assert wire.notes == [("after", None)]


@pytest.mark.parametrize("line", ["{}", '{"jsonrpc":"2.0"}', '{"method":5}', '{"method":{}}', '{"params":{}}'])
async def test_an_object_that_is_no_message_is_skipped(line: str) -> None:
    wire = Wire()
    wire.feed(line, '{"method":"after"}')
    assert wire.notes == [("after", None)]
    assert len(wire.noise) == 1


async def test_a_request_whose_method_is_no_text_is_refused() -> None:
    wire = Wire()
    wire.feed('{"id":1,"method":5}')
    assert wire.sent[0]["error"]["code"] == -32600


async def test_a_notification_with_a_null_id_is_a_notification() -> None:
    wire = Wire()
    wire.feed('{"id":null,"method":"session/update","params":{}}')
    assert wire.notes == [("session/update", {})]


async def test_requests_beyond_the_limit_are_refused_and_those_before_stay_open() -> None:
    wire = Wire()
    wire.feed(*(json.dumps({"id": i, "method": "session/request_permission"}) for i in range(600)))
    assert len(wire.calls) == 500
    assert len(wire.sent) == 100
    assert all(message["error"]["code"] == -32603 for message in wire.sent)
