"""Frames out of any bytes, and messages out of any JSON: nothing raises, nothing is lost but what is broken."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.editor.codec import (
    MAX_HEADER,
    BrokenFrame,
    FrameParser,
    Incoming,
    Invalid,
    Notification,
    Request,
    Response,
    decode,
    frame,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just("jsonrpc"), inner, max_size=4),
    max_leaves=12,
)


def framed(body: bytes, header: bytes = b"Content-Length: %d\r\n\r\n") -> bytes:
    return header % len(body) + body


def fed(parser: FrameParser, data: bytes, cuts: list[int]) -> list[bytes | BrokenFrame]:
    """Feed `data` cut at the given places."""
    found: list[bytes | BrokenFrame] = []
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in itertools.pairwise(edges):
        found += parser.feed(data[start:stop])
    return found


def bodies(found: list[bytes | BrokenFrame]) -> list[bytes]:
    return [each for each in found if isinstance(each, bytes)]


@given(st.lists(st.binary(max_size=300), max_size=8), st.lists(st.integers(min_value=0), max_size=20))
def test_bodies_come_out_whatever_the_split(messages: list[bytes], cuts: list[int]) -> None:
    """Frames are found however the bytes are cut, and whatever the bodies hold."""
    data = b"".join(framed(body) for body in messages)
    assert fed(FrameParser(), data, cuts) == messages


# A frame after garbage is found again, provided the garbage does not itself announce a frame.
garbage = st.binary(min_size=1, max_size=200).filter(lambda data: b"ontent" not in data.lower() and b"\r" not in data)


@given(
    st.lists(st.tuples(garbage, json_values), min_size=1, max_size=5), st.lists(st.integers(min_value=0), max_size=9)
)
def test_garbage_between_frames_costs_no_frame(pieces: list[tuple[bytes, Any]], cuts: list[int]) -> None:
    """Whatever stands between frames, every frame is found."""
    messages = [json.dumps(value).encode() for _, value in pieces]
    data = b"".join(noise + framed(body) for (noise, _), body in zip(pieces, messages, strict=True))
    assert bodies(fed(FrameParser(), data, cuts)) == messages


@given(st.binary(max_size=2000), st.lists(st.integers(min_value=0), max_size=9))
def test_random_bytes_neither_raise_nor_pile_up(data: bytes, cuts: list[int]) -> None:
    """No input may end the server; what is garbage is not kept."""
    parser = FrameParser(max_body=500)
    fed(parser, data, cuts)
    assert len(parser._buffer) <= MAX_HEADER + 500


@pytest.mark.parametrize(
    "header",
    [
        b"content-length: %d\r\n\r\n",
        b"CONTENT-LENGTH:%d\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length:   %d  \r\n\r\n",
        b"X-Unknown: Content-Length: 3\r\nContent-Length: %d\r\nno colon\r\n\r\n",
    ],
)
def test_header_names_in_any_case_and_unknown_headers(header: bytes) -> None:
    """Header names are case-insensitive; unknown headers are ignored."""
    assert FrameParser().feed(framed(b"{}", header)) == [b"{}"]


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: -5\r\n\r\n{}",
        b"Content-Length: 99999999999999999999\r\n\r\n{}",
        b"Content-Length: 1000000000\r\n\r\n{}",
        b"Content-Length: abc\r\n\r\n{}",
        b"Content-Length: 1_0\r\n\r\n{}",
        b"Content-Length: +5\r\n\r\n{}",
        b"Content-Length: \r\n\r\n{}",
        b"Content-Length: 12345678901234567890123456789012345678901234567890\r\n\r\n{}",
        b"Content-Type: x\r\n\r\n{}",
        b"\r\n\r\n",
        b"x" * (MAX_HEADER + 1),
    ],
)
def test_a_bad_header_is_told_once_and_the_next_frame_is_found(header: bytes) -> None:
    """Huge, negative and garbage lengths never end the stream."""
    parser = FrameParser()
    found = parser.feed(header + framed(b'{"a": 1}') + framed(b"[]"))
    assert [type(each) for each in found] == [BrokenFrame, bytes, bytes]
    assert bodies(found) == [b'{"a": 1}', b"[]"]


def test_a_huge_announced_body_is_not_kept() -> None:
    """A message above the limit is dropped as it comes, and what follows is heard."""
    parser = FrameParser(max_body=1000)
    parser.feed(b"Content-Length: 5000000\r\n\r\n")
    for _ in range(50):
        assert parser.feed(b"x" * 100_000) == []
        assert len(parser._buffer) < 200
    assert parser.feed(framed(b"{}")) == [b"{}"]


@given(st.lists(st.integers(min_value=0), max_size=9), st.integers(30, 10**7))
def test_a_length_that_is_too_long_does_not_swallow_what_follows(cuts: list[int], length: int) -> None:
    """Where the next header stands, the frame before it has ended, whatever it announced."""
    data = b"Content-Length: %d\r\n\r\n{}" % length + framed(b'{"a": 1}') + framed(b'{"b": 2}')
    found = fed(FrameParser(), data, cuts)
    assert found[-1] == b'{"b": 2}' or length < len(data)
    if length > len(data):
        assert [type(each) for each in found] == [BrokenFrame, bytes, bytes]


def test_a_text_about_the_protocol_is_no_header() -> None:
    """A message that quotes a frame is a message."""
    body = json.dumps({"text": "Content-Length: 7\r\n\r\n{}"}).encode()
    assert FrameParser().feed(b"garbage\r\n\r\n" + framed(body))[1:] == [body]


def message(**fields: Any) -> Incoming:
    return decode(json.dumps({"jsonrpc": "2.0", **fields}).encode())


@given(json_values)
def test_nested_json_passes_unchanged(value: Any) -> None:
    """Nested JSON is data, "jsonrpc" keys and all."""
    for carried in ({"v": value}, {"jsonrpc": "2.0", "id": 1, "method": "exit", "type_name": value}):
        assert message(id=1, method="m", params=carried) == Request(1, "m", carried)
        assert message(id="é", result=carried) == Response("é", carried)


@pytest.mark.parametrize("params", [None, {}])
def test_null_and_absent_params_are_an_empty_object(params: Any) -> None:
    """`params: null` and absent params mean `{}`."""
    assert message(id=1, method="m", params=params) == message(id=1, method="m") == Request(1, "m", {})
    assert message(method="m", params=params) == Notification("m", {})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'"\xff"',
        b'{"jsonrpc": "2.0"} x',
        b"[" * 100_000,
        b'{"a": ' * 5000 + b"1" + b"}" * 5000,
        b"1" * 5000,
    ],
)
def test_what_is_no_json_is_a_parse_error(body: bytes) -> None:
    """-32700, without an id."""
    found = decode(body)
    assert isinstance(found, Invalid)
    assert (found.code, found.id) == (-32700, None)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ([], None),
        ([{"jsonrpc": "2.0", "id": 1, "method": "m"}], None),
        (1, None),
        ("x", None),
        (None, None),
        ({}, None),
        ({"id": 5, "method": "m"}, 5),
        ({"jsonrpc": "1.0", "id": 5, "method": "m"}, 5),
        ({"jsonrpc": "2.0", "id": 5}, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": 7}, 5),
        ({"jsonrpc": "2.0", "method": None}, None),
        ({"jsonrpc": "2.0", "id": "a", "method": "m", "params": "text"}, "a"),
        ({"jsonrpc": "2.0", "id": None, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "m"}, None),
        ({"jsonrpc": "2.0", "id": [1], "result": 1}, None),
        ({"jsonrpc": "2.0", "id": 5, "error": "boom"}, 5),
        ({"jsonrpc": "2.0", "result": 1}, None),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(value: Any, number: Any) -> None:
    """-32600, with the id where there is one; a batch is none."""
    found = decode(json.dumps(value).encode())
    assert isinstance(found, Invalid)
    assert (found.code, found.id) == (-32600, number)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_decoded_to_something(body: bytes) -> None:
    """decode never raises."""
    assert isinstance(decode(body), Request | Notification | Response | Invalid)


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ('{"text": "\\ud83d"}', "text"),
        ('{"a": [1, {"b": "x\\udc00y"}]}', "a[1].b"),
        ('{"a": {"\\ud83d": 1}}', "a"),
    ],
)
def test_half_a_surrogate_pair_is_found(params: str, path: str) -> None:
    """The request is known by its id, so it can be refused by name."""
    found = decode(b'{"jsonrpc": "2.0", "id": 1, "method": "m", "params": %s}' % params.encode())
    assert isinstance(found, Request)
    assert found.bad_text == path


@given(json_values)
def test_frames_read_back_as_they_were(value: Any) -> None:
    """What is sent is UTF-8 with the right length."""
    (body,) = FrameParser().feed(frame({"v": value}))
    assert isinstance(body, bytes)
    assert json.loads(body) == {"v": value}


def test_a_half_surrogate_of_an_agent_does_not_stop_the_stream() -> None:
    """Halves are replaced, whole pairs are kept."""
    (body,) = FrameParser().feed(frame({"a": ["x\ud83dy", "\ud83d\ude00"]}))
    assert isinstance(body, bytes)
    assert json.loads(body) == {"a": ["x\ufffdy", "\U0001f600"]}
