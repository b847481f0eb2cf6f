"""Where things are kept: under one home folder where one is named, else in the platform's user folders.

Must not create anything: who keeps something in a folder makes it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from platformdirs import PlatformDirs


@dataclass(frozen=True, slots=True)
class Folders:
    """`data` holds agentik.db, attachments/ and locks/; `log` and `settings` are files."""

    data: Path
    log: Path
    settings: Path

    @property
    def attachments(self) -> Path:
        return self.data / "attachments"


def find_folders(home: str | None) -> Folders:
    """`home`: from initializationOptions; else the environment variable AGENTIK_HOME; else the user's folders."""
    chosen = home or os.environ.get("AGENTIK_HOME")
    if chosen:
        folder = Path(chosen).expanduser().absolute()
        return Folders(folder, folder / "agentik.log", folder / "settings.json")
    platform = PlatformDirs("agentik", appauthor=False)
    return Folders(
        Path(platform.user_data_dir),
        Path(platform.user_state_dir) / "agentik.log",
        Path(platform.user_config_dir) / "settings.json",
    )
