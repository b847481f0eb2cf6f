"""LSP frames, however the bytes are cut."""

from __future__ import annotations

import pytest
from agentik import wire
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.text()), st.integers(1, 20))
def test_frames_survive_any_cut(texts: list[str], size: int) -> None:
    """Bodies of any text, read in pieces of any size, come out as they went in."""
    stream = b"".join(wire.notification("m", {"text": text}) for text in texts)
    decoder = wire.Decoder()
    found = [
        envelope for start in range(0, len(stream), size) for envelope in decoder.feed(stream[start : start + size])
    ]
    assert [wire.decode(envelope.params)["text"] for envelope in found] == texts


def test_header_names_are_case_insensitive_and_others_ignored() -> None:
    body = b'{"jsonrpc":"2.0","id":"x","result":1}'
    (envelope,) = wire.Decoder().feed(b"content-length:%d\r\nX-Other: 1\r\n\r\n%b" % (len(body), body))
    assert envelope.id == "x"


@pytest.mark.parametrize(
    "data", [b"Content-Length: x\r\n\r\n", b"Content-Length: 99999999999\r\n\r\n", b"hello\r\n\r\n"]
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.Decoder().feed(data)
