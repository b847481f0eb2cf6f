"""Text files on disk for agents: read and written byte-exact, whole or not at all (B50).

Blocking: run in a thread. Encodings: UTF-8 (with or without BOM), UTF-16 with BOM, else single bytes as Latin-1, so
that whatever was read is written back as the same bytes. Must not open what is no regular file, and no unresolved path.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import secrets
import stat
from dataclasses import dataclass

from agentik_server.agents.paths import Roots, opened_path

READ_LIMIT = 32 * 1024 * 1024  # bytes of a file


class FileRefused(Exception):  # noqa: N818 -- the answer to the agent
    """The file cannot be read or written; `str()` says why. `missing`: it does not exist."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


@dataclass(frozen=True, slots=True)
class Coding:
    """How the bytes of a file are a text. The mark is not part of the text."""

    name: str = "utf-8"
    mark: bytes = b""


def read_text(roots: Roots, real: str) -> str:
    """The text of the file at the resolved path. Raises FileRefused, PathRefused."""
    data = _read(roots, real)
    coding = coding_of(data)
    return data[len(coding.mark) :].decode(coding.name)


def write_text(roots: Roots, real: str, text: str) -> None:
    """Replace or make the file at the resolved path, in the encoding it has. Raises FileRefused, PathRefused."""
    try:
        old: bytes | None = _read(roots, real)
    except FileRefused as refused:
        if not refused.missing:
            raise
        old = None
    data = encode_like(text, Coding() if old is None else coding_of(old), real)
    if old is not None and not os.access(real, os.W_OK):
        raise FileRefused(f"{real} is read-only")
    try:
        if old is None:
            os.makedirs(os.path.dirname(real), exist_ok=True)
        _replace(roots, real, data, exists=old is not None)
    except OSError as error:
        raise FileRefused(f"{real}: {error.strerror or error}") from error


def coding_of(data: bytes) -> Coding:
    """By its mark, else UTF-8 if it is that, else single bytes. Raises FileRefused for what is no text."""
    if data.startswith(codecs.BOM_UTF8):
        return Coding("utf-8", codecs.BOM_UTF8) if _decodes(data[3:], "utf-8") else Coding("latin-1")
    for mark, name in ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if data.startswith(mark) and _decodes(data[2:], name):
            return Coding(name, mark)
    if _decodes(data, "utf-8"):
        return Coding()
    if b"\0" in data:
        raise FileRefused("it is not a text file")
    return Coding("latin-1")


def encode_like(text: str, coding: Coding, path: str) -> bytes:
    """`text` as bytes of that coding, with its mark once."""
    if coding.mark:
        text = text.removeprefix("\ufeff")
    try:
        return coding.mark + text.encode(coding.name)
    except UnicodeEncodeError as error:
        raise FileRefused(f"{path}: the text does not fit the file's encoding {coding.name}: {error.reason}") from error


def _read(roots: Roots, real: str) -> bytes:
    try:
        with roots.folder(real, write=False) as (folder, name):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=folder)
            try:
                state = os.fstat(descriptor)
                if not stat.S_ISREG(state.st_mode):
                    raise FileRefused(f"{real} is not a regular file")
                if state.st_size > READ_LIMIT:
                    raise FileRefused(f"{real} is too large: {state.st_size} bytes, the limit is {READ_LIMIT}")
                roots.check(opened_path(descriptor, real), write=False)
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    return file.read(READ_LIMIT + 1)
            finally:
                os.close(descriptor)
    except FileNotFoundError as error:
        raise FileRefused(f"{real} does not exist", missing=True) from error
    except OSError as error:
        raise FileRefused(f"{real}: {error.strerror or error}") from error


def _replace(roots: Roots, real: str, data: bytes, *, exists: bool) -> None:
    """By a new file in the same folder that takes the old one's place; mode bits and owner are kept."""
    with roots.folder(real, write=True) as (folder, name):
        old = os.stat(name, dir_fd=folder, follow_symlinks=False) if exists else None
        fresh = f".agentik-{secrets.token_hex(8)}"
        try:
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=folder)
        except PermissionError:
            if old is None:
                raise
            _overwrite(folder, name, data)  # a folder without write permission: only the file may be changed
            return
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                if old is not None:
                    _take_after(file.fileno(), old)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.unlink(fresh, dir_fd=folder)
            raise


def _take_after(descriptor: int, old: os.stat_result) -> None:
    """Owner first: changing it drops the special mode bits."""
    state = os.fstat(descriptor)
    if (state.st_uid, state.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(
            PermissionError
        ):  # only root may give a file away; else it is ours, as with any editor
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _overwrite(folder: int, name: str, data: bytes) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)


def _decodes(data: bytes, name: str) -> bool:
    try:
        data.decode(name)
    except UnicodeDecodeError:
        return False
    return True
