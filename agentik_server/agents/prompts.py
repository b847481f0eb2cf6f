"""A prompt's messages and attachments as ACP content blocks (text and resource_link are taken by every agent).

Reads attachments from disk, so it is run in a thread. The text of a message is a block of its own and goes byte for
byte (B10). Must not change anything on disk.
"""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from agentik_server.domain.message import Attachment, Range
from agentik_server.ports import PromptBlock

EMBED_LIMIT = 512 * 1024  # bytes of a text that is embedded; more is linked
INLINE_LIMIT = 64 * 1024  # bytes of a selection that is written into the prompt for agents without embedded resources
MEDIA_LIMIT = 8 * 1024 * 1024  # bytes of an image or a sound


@dataclass(frozen=True, slots=True)
class Takes:
    """`promptCapabilities` of the agent."""

    image: bool = False
    audio: bool = False
    embedded: bool = False


class AttachmentLost(Exception):  # noqa: N818 -- the world's fault: the kept copy is not there any more
    """The file of an attachment cannot be read; `str()` is one line for a person."""


def prompt_blocks(blocks: Sequence[PromptBlock], takes: Takes) -> list[dict[str, object]]:
    """The `prompt` of session/prompt: each message's text, then its attachments. Raises AttachmentLost."""
    prompt: list[dict[str, object]] = []
    for block in blocks:
        if block.text:
            prompt.append({"type": "text", "text": block.text})
        prompt.extend(_attachment_block(attachment, takes) for attachment in block.attachments)
    return prompt


def _attachment_block(attachment: Attachment, takes: Takes) -> dict[str, object]:
    mime = attachment.mime_type or mimetypes.guess_type(attachment.path)[0]
    is_snapshot = attachment.range is not None or attachment.text is not None
    data = _content(attachment)
    media = (mime or "").partition("/")[0]
    if (media == "image" and takes.image) or (media == "audio" and takes.audio):
        if len(data) <= MEDIA_LIMIT:  # no further field: agentao refuses an image with a uri
            return {"type": media, "mimeType": mime, "data": base64.b64encode(data).decode("ascii")}
        return _link(attachment, mime, len(data))
    text = _as_text(data)
    if text is not None and takes.embedded and len(data) <= EMBED_LIMIT:
        resource: dict[str, object] = {"uri": file_uri(attachment.path, attachment.range), "text": text}
        return {"type": "resource", "resource": {**resource, "mimeType": mime} if mime else resource}
    if text is not None and is_snapshot and len(data) <= INLINE_LIMIT:
        return {"type": "text", "text": _quoted(attachment, text)}
    return _link(attachment, mime, len(data))


def _content(attachment: Attachment) -> bytes:
    if attachment.text is not None:
        return attachment.text.encode("utf-8", "surrogatepass")
    path = attachment.stored or attachment.path
    try:
        return Path(path).read_bytes()
    except OSError as error:
        name = attachment.name or attachment.path
        raise AttachmentLost(f"the attachment {name} cannot be read: {error.strerror or error}") from error


def _as_text(data: bytes) -> str | None:
    """The text of a text file in UTF-8; None for anything else."""
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _link(attachment: Attachment, mime: str | None, size: int) -> dict[str, object]:
    """To the file itself where it still is what was attached, else to the kept copy (B51)."""
    name = attachment.name or Path(attachment.path).name
    link: dict[str, object] = {"type": "resource_link", "name": name, "size": size}
    if mime:
        link["mimeType"] = mime
    if attachment.stored is not None and not _same_file(attachment):
        link["title"] = f"{attachment.path} as it was when it was attached"
        return {**link, "uri": file_uri(attachment.stored)}
    return {**link, "uri": file_uri(attachment.path, attachment.range)}


def _same_file(attachment: Attachment) -> bool:
    """Whether the file on disk holds what was attached; never for a part of a file."""
    if attachment.range is not None or attachment.stored is None:
        return False
    try:
        original, kept = Path(attachment.path), Path(attachment.stored)
        return original.stat().st_size == kept.stat().st_size and original.read_bytes() == kept.read_bytes()
    except OSError:
        return False


def file_uri(path: str, part: Range | None = None) -> str:
    """file:// with the 1-based lines of a part as fragment: #L3-L7."""
    uri = "file://" + quote(path, safe="/", errors="surrogateescape")
    if part is None:
        return uri
    first, last = lines_of(part)
    return f"{uri}#L{first}" if first == last else f"{uri}#L{first}-L{last}"


def lines_of(part: Range) -> tuple[int, int]:
    """First and last line, 1-based; a part that ends before the first character of a line does not hold that line."""
    first, last = part.start.line + 1, part.end.line + 1
    if part.end.character == 0 and last > first:
        last -= 1
    return first, last


def _quoted(attachment: Attachment, text: str) -> str:
    """A snapshot as text, for agents that take nothing else: where it is from, and a fence longer than any inside."""
    fence = "```"
    while fence in text:
        fence += "`"
    place = attachment.path
    if attachment.range is not None:
        first, last = lines_of(attachment.range)
        place += f", line {first}" if first == last else f", lines {first} to {last}"
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{place}:\n{fence}{attachment.language_id or ''}\n{text}{end}{fence}"
