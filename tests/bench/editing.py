"""A Neovim under measurement: the plugin, the real server, an agent with a clock, probes, and a person who types."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.table import Row, percentile
from tests.e2e.kit import Editor

HERE = Path(__file__).parent
AGENT = HERE / "stamping_agent.py"
KEYS_A_SECOND = 50


@contextmanager
def editor(home: Path) -> Iterator[Editor]:
    """The stamping agent is the default one; `bench` is the table of probes.lua."""
    command = ", ".join(f"'{part}'" for part in (sys.executable, AGENT, "--state", home / "agent.state"))
    agents = f"{{ scripted = {{ command = {{ {command} }} }} }}"
    opened = Editor(
        home, width=120, height=40, options=f"{{ settings = {{ defaultAgent = 'scripted', agents = {agents} }} }}"
    )
    try:
        opened.lua(f"_G.bench = dofile('{HERE / 'probes.lua'}')")
        yield opened
    finally:
        opened.close()


# ---------------------------------------------------------------------------------------------- driving


def session(opened: Editor, part: str) -> Any:
    return opened.lua("return require('agentik').current().session[...]", part)


def ready(opened: Editor) -> None:
    """A new session beside a window with text; its agent is there."""
    opened.lua("require('agentik').open({ focus = false })")
    opened.until("the session", lambda: session(opened, "connection") == "has_session")
    opened.lua("bench.watch_stamps(require('agentik').current().bufs.chat); bench.watch_frames()")
    watch_typing(opened)


def watch_typing(opened: Editor) -> None:
    """The cursor is in insert mode in a window that is not ours."""
    opened.lua("vim.api.nvim_set_current_win(vim.api.nvim_tabpage_list_wins(0)[1])")
    opened.cmd("enew")
    opened.lua("bench.watch_keys(0)")
    opened.keys("i")
    opened.until("insert mode", lambda: opened.call("nvim_get_mode")["mode"] == "i")


def send(opened: Editor, text: str) -> None:
    opened.lua("require('agentik').send(...)", text)


def turns(opened: Editor) -> int:
    """How many are over."""
    return len(opened.all_events("TurnEnded"))


def listen(opened: Editor, seconds: float) -> None:
    """Takes in what Neovim sends for so long."""
    opened._rpc.listen(seconds)


def typing(opened: Editor, until: Callable[[], bool]) -> list[float]:
    """Types at a steady pace, whatever comes of it, until `until()`; milliseconds until each key was worked off."""
    sent: list[int] = []
    start = time.monotonic()
    while not until():
        listen(opened, max(0.0, start + len(sent) / KEYS_A_SECOND - time.monotonic()))
        sent.append(time.monotonic_ns())
        opened.send("nvim_input", "x" if len(sent) % 60 else "<CR>")
    opened.until("the keys", lambda: opened.lua("return #bench.keys") >= len(sent))
    came = opened.lua("local keys = bench.keys; bench.keys = {}; return keys")
    return [(there - here) / 1e6 for here, there in zip(sent, came, strict=False)]


def take(opened: Editor) -> dict[str, Any]:
    """What the probes noted since the last time."""
    noted: dict[str, Any] = opened.lua("return bench.take()")
    return noted


def ages(noted: dict[str, Any]) -> list[float]:
    """How old each token was when it stood in the buffer, in milliseconds."""
    return [(came - written) / 1e6 for written, came in noted["stamps"]]


def rate(noted: dict[str, Any], count: int) -> float:
    """Tokens a second of `#burst COUNT`: from the first written to the last in the buffer."""
    stamps = noted["stamps"]
    return count / ((stamps[-1][1] - stamps[0][0]) / 1e9)


# ---------------------------------------------------------------------------------------------- processes


def processes(opened: Editor) -> tuple[int, int, int]:
    """Server, host, Neovim."""
    return opened.server_pid(), opened.host_pid(), opened.pid


def memory(pid: int, field: str = "VmRSS") -> float:
    """Megabytes; VmHWM: at most so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def cpu(pid: int) -> float:
    """Seconds of processor time so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------------------------------------- rows


def times(what: str, runs: list[list[float]], *, goal: str = "", bare: list[list[float]] | None = None) -> Row:
    """Percentiles in milliseconds, each the median of the runs. `bare`: the same without us."""
    found, yard = _medians(runs), _medians(bare) if bare else None
    text = "  ".join(f"{name} {value:6.2f}" for name, value in zip(("p50", "p95", "p99"), found, strict=True))
    return Row(what, f"{text} ms", yard[0] if yard else None, found[0], goal)


def _medians(runs: list[list[float]]) -> list[float]:
    return [statistics.median(percentile(run, part) for run in runs) for part in (50, 95, 99)]


def one(what: str, milliseconds: list[float], *, goal: str = "", unit: str = "ms", bare: float | None = None) -> Row:
    """One number, the median of the runs."""
    middle = statistics.median(milliseconds)
    shown = f"{middle:,.0f}" if middle >= 1000 else f"{middle:.2f}"
    return Row(what, f"{shown} {unit} (of {len(milliseconds)})", bare, middle, goal)
