"""Attachments on the disk: snapshots taken at send time, kept by content, private (B51). Knows no database.

`FOLDER/<sha256>/<name>`; the same content under a second name is a link to the first.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agentik_server.domain.message import Attachment
from agentik_server.domain.refusal import Refused

MAX_BYTES = 32 << 20  # of one attachment
_NAME_BYTES = 200  # file systems take 255
_SUFFIX_BYTES = 20


class AttachmentFiles:
    """The kept files below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, attachment: Attachment, cwd: str) -> Attachment:
        """The attachment with `stored` and `size`, its content on the disk (fsync) and `text` dropped.

        A path that is not absolute belongs to `cwd`. What is stored already stays as it is.
        Raises Refused (attachmentMissing, attachmentTooLarge), OSError when it cannot be written.
        """
        if self.is_kept(attachment):
            return attachment
        if attachment.text is not None:
            content = attachment.text.encode(errors="replace")
            if len(content) > MAX_BYTES:
                raise _too_large(attachment)
        else:
            content = _read(attachment, cwd)
        stored = self._write(content, _file_name(attachment))
        return replace(attachment, text=None, stored=str(stored), size=len(content))

    def is_kept(self, attachment: Attachment) -> bool:
        """Whether its copy is there, among our files."""
        if attachment.text is not None or attachment.stored is None:
            return False
        path = Path(attachment.stored)
        return path.parent.parent == self._folder and path.is_file()

    def remove(self, stored: str) -> None:
        """Delete a kept file, if it is there and ours."""
        path = Path(stored)
        if path.parent.parent != self._folder:
            return
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # another name of the same content is left, or it is gone
            path.parent.rmdir()

    def older_than(self, seconds: float) -> Iterator[str]:
        """Kept and half-written files that nobody touched for so long."""
        limit = time.time() - seconds
        for folder, _, names in os.walk(self._folder):
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    if path.stat().st_mtime < limit:
                        yield str(path)

    def discard_half_written(self, path: str) -> None:
        """A file that a process which died had begun (it lies beside the folders of the finished ones)."""
        if Path(path).parent == self._folder:
            Path(path).unlink(missing_ok=True)

    def _write(self, content: bytes, name: str) -> Path:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        folder = self._folder / hashlib.sha256(content).hexdigest()
        folder.mkdir(mode=0o700, exist_ok=True)
        target = folder / name
        if target.is_file() and target.stat().st_size == len(content):
            target.touch()  # B51 stored once; not an old stray any more
            return target
        temporary = self._folder / f"{uuid.uuid4().hex}.part"
        try:
            if not _link_sibling(folder, temporary, len(content)):
                _write_durably(temporary, content)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(folder)
        _sync_folder(self._folder)
        return target


def _read(attachment: Attachment, cwd: str) -> bytes:
    path = os.path.join(cwd, attachment.path)
    try:
        # NONBLOCK: a named pipe must not stop the store
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Refused("attachmentMissing", f"{attachment.path} is not a file")
            if status.st_size > MAX_BYTES:
                raise _too_large(attachment)
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Refused("attachmentMissing", f"{attachment.path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Refused("attachmentMissing", f"{attachment.path!r} is no path") from error
    if len(content) > MAX_BYTES:
        raise _too_large(attachment)
    return content


def _too_large(attachment: Attachment) -> Refused:
    return Refused("attachmentTooLarge", f"{attachment.path} is larger than {MAX_BYTES >> 20} MiB")


def _file_name(attachment: Attachment) -> str:
    """The last part of the path (agents read the ending), made safe to be a file's name."""
    name = os.path.basename(attachment.path) or attachment.name or ""
    name = name.replace("/", "_").replace("\0", "_").encode(errors="replace").decode()
    if name in {"", ".", ".."}:
        return "attachment"
    if len(name.encode()) <= _NAME_BYTES:
        return name
    stem, suffix = os.path.splitext(name)
    if len(suffix.encode()) > _SUFFIX_BYTES:
        suffix = ""
    return stem.encode()[: _NAME_BYTES - len(suffix.encode())].decode(errors="ignore") + suffix


def _link_sibling(folder: Path, temporary: Path, size: int) -> bool:
    """Link the same content that is there under another name; False when there is none, or no links here."""
    for sibling in folder.iterdir():
        try:
            if sibling.stat().st_size == size:
                os.link(sibling, temporary)
                return True
        except OSError:  # the file system has no links: a copy is as good
            return False
    return False


def _write_durably(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
