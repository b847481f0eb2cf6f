"""BEHAVIOUR.md, "Files and buffers" (B50, B51), as an editor sees them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.server.harness import Chat, Talk, agents, server, until
from tests.stdio_client import Params

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("rules_files")]

PLAIN = {"init": {"agentCapabilities": {}}}  # takes text and links only


class Editor:
    """What the client answers for its buffers, by the name of the file; what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Params]] = []
        self.reads: dict[str, Params | None] = {}
        self.writes: dict[str, Params | None] = {}

    def read(self, params: Params) -> Params | None:
        self.asked.append(("read", params))
        return self.reads.get(Path(params["path"]).name, {"loaded": False, "modified": False})

    def write(self, params: Params) -> Params | None:
        self.asked.append(("write", params))
        return self.writes.get(Path(params["path"]).name, {"applied": False})


@pytest.fixture(scope="module")
def editor() -> Editor:
    return Editor()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def talk(tmp_path_factory: pytest.TempPathFactory, editor: Editor) -> AsyncIterator[Talk]:
    async with server(tmp_path_factory.mktemp("files"), agents(rich={}, plain=PLAIN)) as talk:
        talk.client.answer("agentik/readBuffer", editor.read)
        talk.client.answer("agentik/writeBuffer", editor.write)
        yield talk


@pytest_asyncio.fixture(loop_scope="module")
async def chat(talk: Talk) -> Chat:
    return await Chat.begin(talk)


def write(path: Path, content: str) -> str:
    """A step of the scripted agent, to which a backslash and an n are a newline of the script."""
    params = json.dumps({"path": str(path), "content": content})
    return "#request fs/write_text_file " + params.replace("\\n", "\\u000a")


async def answer(chat: Chat, step: str) -> Params:
    """What the agent got for one request: {"result": ...} or {"error": ...}."""
    await chat.do(step)
    texts = [m["text"] for m in (await chat.open())["messages"] if m["kind"] == "agent"]
    return dict(json.loads(texts[-1].split(" -> ", 1)[1]))


async def test_a_file_with_unsaved_changes_is_read_from_its_buffer(chat: Chat, editor: Editor) -> None:
    """# B50: any other from the disk, whether it is open or not."""
    for name in ("modified", "loaded", "closed"):
        (chat.folder / f"{name}.txt").write_text("on disk\n")
    editor.reads["modified.txt"] = {"loaded": True, "modified": True, "text": "one\ntwo unsaved\nthree"}
    editor.reads["loaded.txt"] = {"loaded": True, "modified": False}
    expected = {"modified": "one\ntwo unsaved\nthree", "loaded": "on disk\n", "closed": "on disk\n"}
    for name, content in expected.items():
        assert await answer(chat, f"#read {chat.folder / name}.txt") == {"result": {"content": content}}
    part = {"path": str(chat.folder / "modified.txt"), "line": 2, "limit": 1}
    cut = await answer(chat, "#request fs/read_text_file " + json.dumps(part))
    assert cut["result"]["content"].rstrip("\n") == "two unsaved"
    assert ("read", {"path": str(chat.folder / "modified.txt")}) in editor.asked


async def test_a_write_to_an_open_buffer_goes_through_the_buffer(chat: Chat, editor: Editor) -> None:
    """# B50: the editor gets the text as it is and puts it on disk; the server writes nothing beside it."""
    path = chat.folder / "open.txt"
    path.write_text("old")
    for modified in (False, True):
        editor.reads["open.txt"] = {"loaded": True, "modified": modified, "text": "mine"}
        editor.writes["open.txt"] = {"applied": True}
        assert await answer(chat, write(path, "\ufeffnéw\r\n no end")) == {"result": {}}
        assert editor.asked[-1] == ("write", {"path": str(path), "text": "\ufeffnéw\r\n no end"})
        assert path.read_text() == "old"


async def test_unsaved_changes_are_never_overwritten_silently(chat: Chat, editor: Editor) -> None:
    """# B50: refused by the editor, with or without a reason: the agent gets an error, the disk stays."""
    path = chat.folder / "mine.txt"
    path.write_text("old")
    editor.reads["mine.txt"] = {"loaded": True, "modified": True, "text": "mine"}
    editor.writes["mine.txt"] = {"applied": False, "reason": "the user said no"}
    assert "the user said no" in (await answer(chat, write(path, "new")))["error"]["message"]
    editor.writes["mine.txt"] = {"applied": False}
    assert "unsaved" in (await answer(chat, write(path, "new")))["error"]["message"]
    assert path.read_text() == "old"


async def test_an_editor_that_does_not_answer(talk: Talk, editor: Editor) -> None:
    """# B50: after 2 s a read takes the disk, a write fails with the reason and leaves the disk as it is."""
    reader, writer, late = [await Chat.begin(talk) for _ in range(3)]
    for chat in (reader, writer, late):
        (chat.folder / "slow.txt").write_text("on disk")
        (chat.folder / "half.txt").write_text("on disk")
    editor.reads["slow.txt"] = None
    editor.reads["half.txt"] = {"loaded": True, "modified": False}
    editor.writes["half.txt"] = None
    read, written, half = await asyncio.gather(
        answer(reader, f"#read {reader.folder / 'slow.txt'}"),
        answer(writer, write(writer.folder / "slow.txt", "new")),
        answer(late, write(late.folder / "half.txt", "new")),
    )
    assert read == {"result": {"content": "on disk"}}
    for failed in (written, half):
        assert failed["error"]["message"]
    assert {(chat.folder / name).read_text() for chat in (writer, late) for name in ("slow.txt", "half.txt")} == {
        "on disk"
    }


FILES = {
    "plain.txt": (b"a\nb\n", "a\nc\n", b"a\nc\n"),
    "noend.txt": (b"a\nb", "a\nc", b"a\nc"),
    "crlf.txt": (b"a\r\nb\r\n", "a\r\nc\r\n", b"a\r\nc\r\n"),
    "bom.txt": (b"\xef\xbb\xbfa\n", "c\n", b"\xef\xbb\xbfc\n"),
    "latin.txt": (b"caf\xe9\n", "th\u00e9\n", b"th\xe9\n"),
    "utf16.txt": (b"\xff\xfea\0\n\0", "c\n", b"\xff\xfec\0\n\0"),
}


async def test_the_disk_is_written_byte_exact(talk: Talk) -> None:
    """# B50: ends of lines and of files, BOM, encoding and mode bits stay; a client without buffers answers -32601."""
    home = talk.home / "bare"
    async with server(home, agents(rich={})) as bare:
        chat = await Chat.begin(bare)
        for name, (before, text, after) in FILES.items():
            path = chat.folder / name
            path.write_bytes(before)
            path.chmod(0o751)
            assert await answer(chat, write(path, text)) == {"result": {}}
            assert path.read_bytes() == after
            assert path.stat().st_mode & 0o777 == 0o751
            assert await answer(chat, f"#read {path}") == {"result": {"content": text}}
        assert await answer(chat, write(chat.folder / "deep" / "er" / "new.txt", "x")) == {"result": {}}
        assert (chat.folder / "deep" / "er" / "new.txt").read_bytes() == b"x"
        missing = await answer(chat, f"#read {chat.folder / 'missing.txt'}")
        assert missing["error"]["code"] == -32002


async def test_an_editor_that_only_knows_writes_is_asked(talk: Talk) -> None:
    """PROTOCOL.md, requests to the client: each stands for itself."""
    home = talk.home / "writes"
    asked: list[Params] = []

    def applied(params: Params) -> Params:
        asked.append(params)
        return {"applied": True}

    async with server(home, agents(rich={})) as half:
        half.client.answer("agentik/writeBuffer", applied)
        chat = await Chat.begin(half)
        (chat.folder / "f.txt").write_text("old")
        assert await answer(chat, write(chat.folder / "f.txt", "new")) == {"result": {}}
        assert asked == [{"path": str(chat.folder / "f.txt"), "text": "new"}]
        assert (chat.folder / "f.txt").read_text() == "old"


async def test_only_the_editor_of_the_owner_is_asked(chat: Chat, editor: Editor) -> None:
    """# B50 B59"""
    second_editor = Editor()
    async with server(chat.home, agents(rich={})) as second:
        second.client.answer("agentik/readBuffer", second_editor.read)
        second.client.answer("agentik/writeBuffer", second_editor.write)
        other = await chat.at(second)
        (chat.folder / "f.txt").write_text("x")
        before = len(editor.asked)
        await other.send(f"#read {chat.folder / 'f.txt'}\n{write(chat.folder / 'f.txt', 'y')}")
        await chat.ended()
        assert len(editor.asked) > before
        assert second_editor.asked == []
        assert (chat.folder / "f.txt").read_text() == "y"


# ------------------------------------------------------------------------------------------ attachments


def resources(prompt: Params) -> list[Params]:
    return [block["resource"] for block in prompt["prompt"] if block["type"] == "resource"]


async def test_what_waits_is_what_the_user_saw(chat: Chat) -> None:
    """# B51: a file is kept as it was when the message was sent, whatever becomes of it; so is a selection."""
    file = chat.folder / "a $x #1 ü.py"
    file.write_text("as it was")
    gone = chat.folder / "gone.txt"
    gone.write_text("still known")
    part = {"start": {"line": 2, "character": 0}, "end": {"line": 4, "character": 1}}
    selection = {"path": str(file), "name": "part", "range": part, "text": "selected", "languageId": "python"}
    await chat.busy()
    sent = [{"path": str(file)}, {"path": str(gone)}, selection, {"path": "gone.txt"}]
    message_id, _ = await chat.send("look", attachments=sent)
    file.write_text("changed")
    gone.unlink()
    (item,) = (await chat.open())["pending"]
    assert [Path(path).read_text() for path in item["files"]] == ["as it was", "still known", "selected", "still known"]
    assert all(os.path.isabs(path) for path in item["files"])
    assert item["attachments"][2]["range"] == part
    assert item["attachments"][2]["languageId"] == "python"
    assert os.path.samefile(item["files"][1], item["files"][3])
    await chat.call("cancelTurn")
    await chat.call("resumeQueue")
    await chat.ended(2)
    prompt = chat.received_by_agent()[1]
    assert [r["text"] for r in resources(prompt)] == ["as it was", "still known", "selected", "still known"]
    assert [r["uri"].split("#")[-1] for r in resources(prompt)][2] == "L3-L5"
    assert "a%20%24x%20%231%20%C3%BC.py" in resources(prompt)[0]["uri"]
    message = next(m for m in (await chat.open())["messages"] if m["messageId"] == message_id)
    assert [a["path"] for a in message["attachments"]][:3] == [str(file), str(gone), str(file)]
    assert message["attachments"][2]["range"] == part


async def test_the_same_content_is_stored_once(chat: Chat) -> None:
    """# B51: under any name; it goes with its last user."""
    text = f"content of {chat.session_id}"
    await chat.busy()
    ids = [(await chat.send(n, attachments=[{"path": f"/x/{n}.txt", "text": text}]))[0] for n in ("a", "b", "a")]
    files = [Path(path) for item in (await chat.open())["pending"] for path in item["files"]]
    assert len({os.stat(path).st_ino for path in files}) == 1
    assert [path.name for path in files] == ["a.txt", "b.txt", "a.txt"]
    await chat.call("removePending", messageId=ids[0])
    assert files[2].read_text() == text
    await chat.call("clearPending")
    await until(lambda: not any(path.exists() for path in files))


async def test_what_cannot_be_attached_is_refused(chat: Chat) -> None:
    """# B11 B51: missing, a folder, a pipe, too large; nothing is sent and nothing stays."""
    os.mkfifo(chat.folder / "pipe")
    with open(chat.folder / "huge", "wb") as huge:
        huge.truncate(1 << 30)
    for name, reason in (
        ("no", "attachmentMissing"),
        (".", "attachmentMissing"),
        ("pipe", "attachmentMissing"),
        ("huge", "attachmentTooLarge"),
    ):
        files: list[Any] = [{"path": str(chat.folder / "fine"), "text": "x"}, {"path": str(chat.folder / name)}]
        assert await chat.refusal("sendMessage", messageId="m", text="x", attachments=files) == reason
    page = await chat.open()
    assert (page["messages"], page["pending"]) == ([], [])


async def test_bytes_that_are_no_text(chat: Chat) -> None:
    """# B51: an image as an image, anything else as a link to the file, or to its kept copy."""
    image, other = chat.folder / "dot.png", chat.folder / "data.bin"
    image.write_bytes(b"\x89PNG\r\n\x1a\n\0\0rest")
    other.write_bytes(bytes(range(256)))
    await chat.do("see", attachments=[{"path": str(image)}, {"path": str(other)}])
    blocks = chat.received_by_agent()[0]["prompt"]
    assert [block["type"] for block in blocks] == ["text", "image", "resource_link"]
    assert base64.b64decode(blocks[1]["data"]) == image.read_bytes()
    assert blocks[1]["mimeType"] == "image/png"
    assert blocks[2]["uri"].startswith("file:///")
    kept = (await chat.open())["messages"][0]["attachments"]
    assert [a["path"] for a in kept] == [str(image), str(other)]


async def test_agents_that_take_only_text_and_links(talk: Talk) -> None:
    """# B51: a selection is written into the prompt, a file is linked."""
    chat = await Chat.begin(talk, agentId="plain")
    (chat.folder / "f.txt").write_text("of a file")
    part = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
    await chat.do(
        "see", attachments=[{"path": str(chat.folder / "f.txt")}, {"path": "/x/y.c", "range": part, "text": "int x;"}]
    )
    blocks = chat.received_by_agent()[0]["prompt"]
    assert {block["type"] for block in blocks} == {"text", "resource_link"}
    assert "int x;" in str(blocks)
    assert "/x/y.c" in str(blocks)
    assert (chat.folder / "f.txt").as_uri() in str(blocks)
