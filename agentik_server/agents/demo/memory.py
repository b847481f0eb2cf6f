"""What the demo agent remembers of a session, so that it can be continued: small files in a private temporary folder.

They are gone after a reboot, and then the agent says that it does not know the session, as real ones do.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path

_NAME = re.compile(r"demo-[0-9a-f]{16}")


class Memory:
    """One file a session: a list of {"role": "user" | "agent", "text"}."""

    def __init__(self, folder: Path | None = None) -> None:
        owner = os.getuid() if hasattr(os, "getuid") else 0
        self._folder = folder or Path(tempfile.gettempdir()) / f"agentik-demo-{owner}"

    def create(self) -> str:
        """The id of a new session."""
        session_id = f"demo-{os.urandom(8).hex()}"
        self._write(session_id, [])
        return session_id

    def recall(self, session_id: str) -> list[dict[str, str]] | None:
        """What was said; None for a session that is not known."""
        if not _NAME.fullmatch(session_id) or not self._is_private():
            return None
        try:
            said = json.loads((self._folder / f"{session_id}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return said if isinstance(said, list) else None

    def add(self, session_id: str, said: list[dict[str, str]]) -> None:
        self._write(session_id, [*(self.recall(session_id) or []), *said][-200:])

    def forget(self, session_id: str) -> None:
        if _NAME.fullmatch(session_id):
            (self._folder / f"{session_id}.json").unlink(missing_ok=True)

    def _is_private(self) -> bool:
        """A folder in a shared place may have been put there by somebody else."""
        try:
            state = self._folder.lstat()
        except OSError:
            return False
        mine = not hasattr(os, "getuid") or state.st_uid == os.getuid()
        return mine and state.st_mode & 0o077 == 0 and not self._folder.is_symlink()

    def _write(self, session_id: str, said: list[dict[str, str]]) -> None:
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            if self._is_private():
                path = self._folder / f"{session_id}.json"
                fresh = path.with_suffix(".new")
                fresh.write_text(json.dumps(said), encoding="utf-8")
                fresh.replace(path)
        except OSError:
            return  # it only cannot be continued later
