"""Attachments are snapshots: what waits is what the user saw, stored once, gone with its last reference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentik_server.domain import saves
from agentik_server.domain.message import Attachment
from agentik_server.domain.pending import Draft, QueueLimits
from agentik_server.domain.saves import Owner
from agentik_server.store import attachments
from tests.store.desk import denied
from tests.store.running import LIMITS, Running


def _kept(running: Running) -> list[str]:
    folder = running.home / "attachments"
    return sorted(path.name for path in folder.rglob("*") if path.is_file()) if folder.exists() else []


async def _stored(running: Running) -> list[str]:
    """The paths of the attachments that wait."""
    items = (await running.page()).queue.items
    return [attachment.stored or "" for item in items for attachment in item.attachments]


async def test_a_file_is_copied_as_it_was_when_it_was_sent(running: Running, tmp_path: Path) -> None:  # B51
    source = tmp_path / "notes.txt"
    source.write_bytes(b"as it was\r\n\xff")
    await running.send("a", "look", Attachment(str(source), "notes"))
    source.write_bytes(b"changed")
    (attachment,) = (await running.page()).queue.items[0].attachments
    assert attachment.stored is not None
    assert Path(attachment.stored).read_bytes() == b"as it was\r\n\xff"
    assert (attachment.path, attachment.name, attachment.size) == (str(source), "notes", 12)
    assert Path(attachment.stored).name == "notes.txt"


async def test_a_text_is_stored_as_a_file_and_dropped(running: Running) -> None:  # B51
    await running.send("a", "look", Attachment("/x/unsaved.py", text="é = 1\n"))
    (attachment,) = (await running.page()).queue.items[0].attachments
    assert attachment.stored is not None
    assert (attachment.text, attachment.size) == (None, 7)
    assert Path(attachment.stored).read_text() == "é = 1\n"


async def test_kept_files_and_folders_are_private(running: Running) -> None:
    await running.send("a", "look", Attachment("/x/a", text="private"))
    (stored,) = await _stored(running)
    path = Path(stored)
    assert path.stat().st_mode & 0o777 == 0o600
    assert {folder.stat().st_mode & 0o777 for folder in (path.parent, path.parent.parent, running.home)} == {0o700}


async def test_the_same_content_is_stored_once_also_under_two_names(running: Running) -> None:  # B51
    await running.send("a", "look", Attachment("/x/one.py", text="same"), Attachment("/y/one.py", text="same"))
    await running.send("b", "look", Attachment("/x/two.py", text="same"))
    first, second, third = await _stored(running)
    assert first == second
    assert Path(third).name == "two.py"
    assert os.path.samefile(first, third)


@pytest.mark.parametrize(
    "name",
    ["with blank.txt", "$HOME `x`.md", "#hash%20.py", "имя-名.txt", "'quo\"te'", "-rf", "new\nline", "x" * 255, "..."],
)
async def test_odd_names_work(running: Running, tmp_path: Path, name: str) -> None:  # B51
    source = tmp_path / name
    source.write_text("content")
    await running.send("a", "look", Attachment(str(source)))
    (stored,) = await _stored(running)
    assert Path(stored).read_text() == "content"


async def test_long_names_keep_their_ending(running: Running) -> None:
    await running.send("a", "look", Attachment("/" + "語" * 300 + ".rs", text="content"))
    (stored,) = await _stored(running)
    assert stored.endswith("語.rs")
    assert len(Path(stored).name.encode()) <= 200


async def test_a_relative_path_belongs_to_the_sessions_folder(running: Running, tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("here")
    await running.send("a", "look", Attachment("here.txt"))
    (stored,) = await _stored(running)
    assert Path(stored).read_text() == "here"


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "nul"])
async def test_what_is_no_readable_file_is_refused_and_the_queue_unchanged(  # B11
    running: Running, tmp_path: Path, kind: str
) -> None:
    path = tmp_path / ("nul\0" if kind == "nul" else kind)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    good = Attachment("/x/good", text="good")
    assert denied(await running.do(running.admit("a", "look", good, Attachment(str(path))))) == "attachmentMissing"
    assert (await running.page()).queue.items == ()
    assert (await running.send("a", "look")).disposition == "queued"


async def test_too_large_is_refused(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MAX_BYTES", 100)
    big = tmp_path / "big"
    big.write_bytes(b"x" * 101)
    assert denied(await running.do(running.admit("a", "look", Attachment(str(big))))) == "attachmentTooLarge"
    assert denied(await running.do(running.admit("b", "look", Attachment("/t", text="é" * 51)))) == "attachmentTooLarge"
    big.write_bytes(b"x" * 100)
    assert (await running.send("c", "look", Attachment(str(big)))).disposition == "queued"


async def test_refusals_come_in_order_text_before_files(running: Running) -> None:  # B10
    missing = Attachment("/no/such/file")
    assert denied(await running.do(running.admit("a", "nul\0", missing))) == "invalidText"
    limits = QueueLimits(max_files=1)
    draft = Draft("a", "look", (missing, missing))
    write = saves.Admit("s", running.me, draft, limits, False, False, "t", 1, 1)
    assert denied(await running.do(write)) == "tooManyFiles"


async def test_a_repeated_send_is_answered_although_its_file_is_gone(running: Running, tmp_path: Path) -> None:  # B4
    source = tmp_path / "file"
    source.write_text("content")
    attachment = Attachment(str(source))
    await running.send("a", "look", attachment)
    source.unlink()
    assert (await running.send("a", "look", attachment)).repeated
    assert denied(await running.do(running.admit("a", "other", attachment))) == "duplicateId"
    assert _kept(running) == ["file"]


async def test_a_message_may_be_blank_with_an_attachment(running: Running) -> None:  # B10
    assert (await running.send("a", "", Attachment("/x", text="content"))).disposition == "queued"
    assert denied(await running.do(running.admit("b", ""))) == "emptyText"


async def test_a_refused_send_leaves_no_file_behind(running: Running) -> None:
    draft = Draft("a", "look", (Attachment("/x/file", text="content"),))
    full = QueueLimits(max_items=0)
    assert denied(await running.do(saves.Admit("s", running.me, draft, full, False, False, "t", 1, 1))) == "queueFull"
    stranger = saves.Admit("s", Owner("you", 9), draft, LIMITS, False, False, "t", 1, 1)
    assert await running.do(stranger) == saves.Fenced()
    assert _kept(running) == []


@pytest.mark.parametrize("how", ["remove", "clear", "delete", "edit"])
async def test_a_file_goes_with_its_last_reference(running: Running, how: str) -> None:  # B18 B51
    attachment = Attachment("/x/file.txt", text="content")
    await running.send("a", "look", attachment)
    await running.send("b", "look", attachment)
    await running.done(saves.RemovePending("s", "b"))
    assert _kept(running) == ["file.txt"]
    last: saves.Write = {
        "remove": saves.RemovePending("s", "a"),
        "clear": saves.ClearPending("s"),
        "delete": saves.DeleteSession("s", running.me),
        "edit": saves.EditPending("s", Draft("a", "no file"), False, LIMITS),
    }[how]
    await running.done(last)
    assert _kept(running) == []
    assert list((running.home / "attachments").iterdir()) == []


async def test_a_file_stays_while_the_transcript_needs_it(running: Running) -> None:  # B51
    attachment = Attachment("/x/file.txt", text="content")
    await running.send("a", "look", attachment, free=True)
    await running.send("b", "look", attachment)
    await running.done(saves.ClearPending("s"))
    assert _kept(running) == ["file.txt"]
    await running.done(saves.PutBack("s", running.me, "t-a", None))
    assert _kept(running) == ["file.txt"]
    assert Path((await _stored(running))[0]).read_text() == "content"
    await running.done(saves.ClearPending("s"))
    assert _kept(running) == []


async def test_claimed_and_resent_messages_keep_their_files(running: Running) -> None:
    await running.send("a", "look", Attachment("/x/file.txt", text="content"))
    await running.do(saves.Claim("s", running.me, "t", 5, False, 9))
    await running.done(saves.EndTurn("s", running.me, "t", "cancelled", "interrupted", (), None, 9))
    await running.do(saves.Resend("s", running.me, "a", False, "", 0, LIMITS, 9))
    await running.done(saves.ClearPending("s"))
    (copy,) = (await running.page()).messages
    assert copy.attachments[0].stored is not None
    assert Path(copy.attachments[0].stored).read_text() == "content"


async def test_a_stored_attachment_that_comes_back_is_kept_as_it_is(running: Running) -> None:
    await running.send("a", "look", Attachment("/x/file.txt", text="content"))
    attachments_before = (await running.page()).queue.items[0].attachments
    await running.done(saves.EditPending("s", Draft("a", "new", attachments_before), False, LIMITS))
    await running.done(saves.RemovePending("s", (await running.send("b")) and "b"))
    item = (await running.page()).queue.items[0]
    assert (item.text, item.attachments) == ("new", attachments_before)
    assert _kept(running) == ["file.txt"]


async def test_stored_outside_our_folder_is_not_believed(running: Running, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "deep"
    outside.mkdir(parents=True)
    secret = outside / "secret"
    secret.write_text("secret")
    await running.send("a", "look", Attachment("/x", text="snapshot", stored=str(secret)))
    await running.send("b", "look", Attachment(str(secret), stored=str(secret)))
    stored = await _stored(running)
    assert all(path.startswith(str(running.home)) for path in stored)
    await running.done(saves.ClearPending("s"))
    assert secret.read_text() == "secret"


async def test_a_file_that_another_process_just_deleted_is_stored_again(running: Running) -> None:  # B51
    attachment = Attachment("/x/file.txt", text="content")
    await running.send("a", "look", attachment)
    (stored,) = await _stored(running)
    keep = attachments.AttachmentFiles.keep

    def keep_and_lose(self: attachments.AttachmentFiles, one: Attachment, cwd: str) -> Attachment:
        kept = keep(self, one, cwd)
        attachments.AttachmentFiles.keep = keep  # type: ignore[method-assign]
        Path(stored).unlink()  # between the snapshot and the transaction
        return kept

    attachments.AttachmentFiles.keep = keep_and_lose  # type: ignore[method-assign]
    try:
        await running.send("b", "look", attachment)
    finally:
        attachments.AttachmentFiles.keep = keep  # type: ignore[method-assign]
    assert Path(stored).read_text() == "content"


async def test_strays_of_a_process_that_died_go_after_a_day(running: Running) -> None:  # B57
    await running.send("a", "look", Attachment("/x/used.txt", text="used"))
    folder = running.home / "attachments"
    (folder / "00ff").mkdir()
    for name in ("00ff/old.txt", "half.part", "young.part"):
        (folder / name).write_text("stray")
        if "young" not in name:
            os.utime(folder / name, (1, 1))
    (used,) = await _stored(running)
    os.utime(used, (1, 1))
    await running.done(saves.ForgetOld(0))
    assert _kept(running) == ["used.txt", "young.part"]


async def test_a_full_disk_is_a_failure_not_a_refusal(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:  # B58
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(attachments, "_write_durably", full)
    outcome = await running.do(running.admit("a", "look", Attachment("/x", text="content")))
    assert outcome == saves.Failed("an attachment could not be kept: No space left on device")
    assert (await running.page()).queue.items == ()
