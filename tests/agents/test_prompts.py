"""Messages and attachments as content blocks."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from agentik_server.agents.prompts import EMBED_LIMIT, AttachmentLost, Takes, file_uri, prompt_blocks
from agentik_server.domain.message import Attachment, Position, Range
from agentik_server.ports import PromptBlock

PART = Range(Position(2, 0), Position(5, 0))


def block_of(attachment: Attachment, takes: Takes = Takes()) -> dict[str, object]:  # noqa: B008 -- a frozen value
    (block,) = prompt_blocks([PromptBlock("", [attachment])], takes)
    return block


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "kept"
    path.write_text("x = 1\n")
    return path


def test_the_text_comes_first_and_alone() -> None:  # B10
    blocks = prompt_blocks([PromptBlock("/cmd a", [Attachment("/f", text="t")])], Takes())
    assert blocks[0] == {"type": "text", "text": "/cmd a"}


def test_a_selection_is_embedded_with_its_lines_where_the_agent_takes_it(stored: Path) -> None:
    attachment = Attachment("/my file#1.py", range=PART, stored=str(stored), mime_type="text/x-python")
    assert block_of(attachment, Takes(embedded=True)) == {
        "type": "resource",
        "resource": {"uri": "file:///my%20file%231.py#L3-L5", "text": "x = 1\n", "mimeType": "text/x-python"},
    }


def test_a_selection_is_written_into_the_prompt_where_not(stored: Path) -> None:
    stored.write_text("a ``` b")
    block = block_of(Attachment("/f.md", range=PART, stored=str(stored), language_id="markdown"))
    assert block == {"type": "text", "text": "/f.md, lines 3 to 5:\n````markdown\na ``` b\n````"}


def test_a_file_that_is_still_the_same_is_linked_where_it_is(tmp_path: Path, stored: Path) -> None:  # B51
    original = tmp_path / "original.py"
    original.write_text("x = 1\n")
    block = block_of(Attachment(str(original), stored=str(stored)))
    assert block["type"] == "resource_link"
    assert (block["uri"], block["name"], block["size"]) == (f"file://{original}", "original.py", 6)


def test_a_file_that_has_changed_since_is_linked_as_it_was(tmp_path: Path, stored: Path) -> None:  # B51
    original = tmp_path / "original.py"
    original.write_text("y = 2\n")
    assert block_of(Attachment(str(original), stored=str(stored)))["uri"] == f"file://{stored}"


def test_an_image_is_sent_as_one_where_the_agent_takes_it_and_linked_where_not(tmp_path: Path) -> None:
    image = tmp_path / "shot.png"
    image.write_bytes(b"\x89PNG\0")
    attachment = Attachment(str(image))
    assert block_of(attachment, Takes(image=True)) == {
        "type": "image",
        "mimeType": "image/png",
        "data": base64.b64encode(b"\x89PNG\0").decode(),
    }
    assert block_of(attachment)["type"] == "resource_link"


@pytest.mark.parametrize("data", [b"\0binary", b"\xff\xfe\xfa", b"x" * (EMBED_LIMIT + 1)])
def test_what_is_no_text_or_too_large_is_linked(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "big"
    path.write_bytes(data)
    assert block_of(Attachment(str(path)), Takes(embedded=True))["type"] == "resource_link"


def test_a_kept_copy_that_is_gone_is_said_by_name() -> None:
    with pytest.raises(AttachmentLost, match=r"the attachment a\.py cannot be read: No such file"):
        prompt_blocks([PromptBlock("x", [Attachment("/f", name="a.py", stored="/gone")])], Takes())


@pytest.mark.parametrize(("path", "uri"), [("/a b/ü$#?.c", "file:///a%20b/%C3%BC%24%23%3F.c"), ("/x", "file:///x")])
def test_paths_of_any_characters_make_a_uri(path: str, uri: str) -> None:  # B51
    assert file_uri(path) == uri


def test_one_line_is_named_as_one() -> None:
    assert file_uri("/x", Range(Position(4, 2), Position(4, 9))) == "file:///x#L5"
    assert file_uri("/x", Range(Position(4, 0), Position(5, 0))) == "file:///x#L5"
