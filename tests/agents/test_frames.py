"""Bytes to frames: every weak spot of AGENTS.md section 2.1 that is a matter of lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.agents.frames import LineSplitter, Noise, encode, parse_line


def lines_of(chunks: list[bytes], limit: int = 1 << 20) -> list[bytes | Noise]:
    splitter = LineSplitter(limit)
    return [line for chunk in chunks for line in splitter.feed(chunk)]


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 7))
def test_lines_are_the_same_however_the_stream_is_cut(parts: list[bytes], size: int) -> None:  # B46
    stream = b"\n".join(parts) + b"\n"
    chunks = [stream[i : i + size] for i in range(0, len(stream), size)]
    assert lines_of(chunks) == [line for line in stream[:-1].split(b"\n") if line]


def test_a_character_cut_over_two_reads_is_whole() -> None:  # B46
    data = '{"id":1,"result":"€😀"}\n'.encode()
    for cut in range(1, len(data)):
        (line,) = lines_of([data[:cut], data[cut:]])
        assert isinstance(line, bytes)
        assert list(parse_line(line)) == [{"id": 1, "result": "€😀"}]


def test_a_line_over_the_limit_is_skipped_and_the_next_one_is_heard() -> None:  # B46
    result = lines_of([b"x" * 60, b"y" * 60, b"z\n{}\n"], limit=100)
    assert [type(line) for line in result] == [Noise, bytes]
    assert result[1] == b"{}"


@pytest.mark.parametrize(
    "line", [b"123", b'"x"', b"true", b"null", b"[]", b"1e999", b"-", b"Loading...", b"\xff\xfe", b"["]
)
def test_a_line_that_is_no_object_is_noise(line: bytes) -> None:  # B46
    assert all(isinstance(item, Noise) for item in parse_line(line))


def test_a_batch_is_taken_apart() -> None:
    assert list(parse_line(b'[{"id":1},{"id":2},3]'))[:2] == [{"id": 1}, {"id": 2}]


def test_a_frame_glued_to_noise_is_found() -> None:  # B46
    noise, frame = parse_line(b'Loading {models}... {"jsonrpc":"2.0","method":"x"}')
    assert isinstance(noise, Noise)
    assert frame == {"jsonrpc": "2.0", "method": "x"}


def test_two_frames_on_one_line_are_both_found() -> None:
    assert list(parse_line(b'{"jsonrpc":"2.0","id":1}{"jsonrpc":"2.0","id":2} done'))[:2] == [
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 2},
    ]


def test_deep_nesting_and_huge_numbers_are_noise_and_no_crash() -> None:
    assert all(isinstance(item, Noise) for item in parse_line(b"[" * 200_000))
    assert all(isinstance(item, Noise) for item in parse_line(b'{"id":' + b"9" * 10_000 + b"}"))


def test_nan_and_infinity_do_not_come_through() -> None:
    assert list(parse_line(b'{"id":1,"result":[NaN,Infinity]}')) == [{"id": 1, "result": [None, None]}]


@given(st.text())
def test_what_is_encoded_is_one_line_for_every_line_reader_and_comes_back(text: str) -> None:  # B10
    data = encode({"text": text})
    assert len(data.decode().splitlines()) == 1
    assert json.loads(data) == {"text": text}


def test_a_lone_surrogate_is_encoded_as_an_escape() -> None:
    assert json.loads(encode({"text": "\ud83d"})) == {"text": "\ud83d"}
