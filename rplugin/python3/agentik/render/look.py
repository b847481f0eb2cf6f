"""How a transcript is to look: the person's options and the facts of the session that rendering needs. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Look:
    """From the options of setup(). `icons` by the names of agentik.config.schema; `keys`: action -> key, for hints."""

    icons: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    fold_thoughts: bool = True
    fold_tools: bool = True
    output_lines: int = 8
    """Lines of a tool's output that are shown at its head, and as many at its tail."""
    diff_lines: int = 80

    def icon(self, name: str) -> str:
        return self.icons.get(name, "")


@dataclass(frozen=True, slots=True)
class Scene:
    """Facts of one session. `clock` turns milliseconds since the epoch into the time of day that is shown."""

    look: Look
    clock: Callable[[int], str]
    agent_name: str = "Agent"
    cwd: str = ""

    def place(self, path: str) -> str:
        """A path as it is shown: relative to the session's folder where it lies in it."""
        folder = self.cwd.rstrip("/") + "/"
        return path[len(folder) :] if self.cwd and path.startswith(folder) else path
