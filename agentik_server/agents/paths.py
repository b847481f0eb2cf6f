"""Where an agent may reach through us (B49): a path is resolved first, then asked whether it is inside a root.

Must not open anything by a name that was not resolved, and must check what was opened: a link may be put in between.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_KERNEL = ("/proc", "/sys", "/dev")  # names there lead out of any folder, or to what is no file


class PathRefused(Exception):  # noqa: N818 -- the answer to the agent
    """The agent may not reach that path; `str()` says why."""


class Roots:
    """The folders of a session. `readable` are roots for reading only."""

    def __init__(self, roots: Sequence[str], readable: Sequence[str] = ()) -> None:
        self._roots = tuple(os.path.realpath(root) for root in roots if root)
        self._readable = tuple(os.path.realpath(root) for root in readable if root)

    def resolve(self, path: object, *, write: bool) -> str:
        """The real path of `path` with links and `..` resolved. Raises PathRefused."""
        if not isinstance(path, str) or not path:
            raise PathRefused("path must be a text")
        if "\0" in path:
            raise PathRefused("path must not hold NUL")
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise PathRefused("path is no valid Unicode") from error
        if not os.path.isabs(path):
            raise PathRefused(f"path must be absolute: {path}")
        _refuse_kernel(os.path.normpath(path))
        try:
            real = os.path.realpath(path)
        except OSError as error:
            raise PathRefused(f"{path}: {error.strerror or error}") from error
        self.check(real, write=write)
        return real

    def check(self, real: str, *, write: bool) -> None:
        """Raises PathRefused when the resolved path `real` is outside."""
        _refuse_kernel(real)
        roots = self._roots if write else (*self._roots, *self._readable)
        if not any(_inside(real, root) for root in roots):
            raise PathRefused(f"{real} is outside the session's folders")

    @contextmanager
    def folder(self, real: str, *, write: bool) -> Iterator[tuple[int, str]]:
        """Descriptor of the folder of the resolved path `real`, checked after it was opened, and the name in it."""
        parent, name = os.path.split(real)
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            self.check(os.path.join(opened_path(descriptor, parent), name), write=write)
            yield descriptor, name
        finally:
            os.close(descriptor)


def opened_path(descriptor: int, fallback: str) -> str:
    """Where an open descriptor really is; `fallback` where the system does not say."""
    if sys.platform == "linux":
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            return fallback  # no /proc in this sandbox
    if sys.platform == "darwin":
        import fcntl

        try:
            found = fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(1024))
        except OSError:
            return fallback
        return os.fsdecode(found.rstrip(b"\0"))
    return fallback


def _inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _refuse_kernel(path: str) -> None:
    if any(_inside(path, place) for place in _KERNEL):
        raise PathRefused(f"{path} is no file of the session")
