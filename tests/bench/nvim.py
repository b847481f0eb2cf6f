"""What the plugin costs in a real Neovim with a screen: `python -m tests.bench nvim` prints tables in three minutes.

Real server, an agent that stamps what it writes (stamping_agent.py), probes in the editor (probes.lua). A bare reader
of the agent's pipe, and typing while nothing happens, are the yardsticks of the same run. CPU: what the editor itself
used; wall times hold what other processes took away as well.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from tests.bench import histories
from tests.bench.editing import (
    AGENT,
    HERE,
    ages,
    cpu,
    editor,
    listen,
    memory,
    one,
    processes,
    rate,
    ready,
    send,
    session,
    take,
    times,
    turns,
    typing,
    watch_typing,
)
from tests.bench.table import Row, percentile, show
from tests.e2e.kit import Editor, neovim

TOKENS_A_SECOND = 200
BURST = 300_000
RUNS = 3
SIZES = {"1,000 messages": 1000, "10,000 messages": 10_000, "100,000 messages": 100_000}
ALL = "10,000 messages"  # loaded to the first of them
WORK = "5 MB, 500 tool calls"
BLOCK = "goal: <= 10 ms"
FRAME = "goal: <= 16 ms"


def run() -> None:
    """Measures and prints."""
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; medians of several runs")
    with tempfile.TemporaryDirectory(prefix="agentik-bench-") as name:
        for number, (title, section) in enumerate(SECTIONS.items()):
            folder = Path(name) / str(number)
            folder.mkdir()
            show(title, section(folder))


# ---------------------------------------------------------------------------------------------- start


def start(folder: Path) -> list[Row]:
    """What stands between a person and the first word typed."""
    ours, yard = [], []
    for _ in range(25):
        found = sourced(folder)
        ours.append(found["plugin/agentik.lua"])
        yard.append(found["plugin/gzip.vim"])
    rows = [
        one(
            "Neovim sources our plugin file (bare: gzip.vim)",
            ours,
            goal="goal: <= 0.3 ms",
            bare=statistics.median(yard),
        )
    ]
    wall, used, server = [], [], []
    for number in range(5):
        with editor(folder / str(number)) as opened:
            begun = time.monotonic()
            held = opened.lua("return { bench.timed(vim.cmd.AgentikToggle) }")
            wall.append(held[0])
            used.append(held[1])
            opened.wait_event("Ready")
            server.append(1000 * (time.monotonic() - begun))
    rows.append(one("the first :AgentikToggle holds the editor", wall, goal=BLOCK))
    rows.append(one("  CPU of it", used))
    rows.append(one("  server ready after", server, goal="goal: <= 500 ms"))
    return rows


def sourced(folder: Path) -> dict[str, float]:
    """Milliseconds of each file that Neovim sources at its start."""
    log = folder / "startup.log"
    argv = [neovim(), "--headless", "--clean", "-n", "--startuptime", str(log), "--cmd", f"set rtp^={HERE.parents[1]}"]
    subprocess.run([*argv, "+qa!"], check=True, env={**os.environ, "XDG_DATA_HOME": str(folder)})
    lines = [line.split() for line in log.read_text().splitlines()]
    log.unlink()
    return {"/".join(line[4].split("/")[-2:]): float(line[1]) for line in lines if line[3:4] == ["sourcing"]}


ARGUMENTS = {"Search": "word", "Rename": "title", "Send": "#say hello", "Import": "scripted"}
LEFT_OUT = {"Install", "Restart"}  # they take away what is measured
TIMED = "local command = ...; return { bench.timed(function() vim.cmd(command) end) }"


def commands(folder: Path) -> list[Row]:
    """Each command, several times: how long the editor is held, by wall and by its own CPU time."""
    wall: dict[str, list[float]] = defaultdict(list)
    used: dict[str, list[float]] = defaultdict(list)
    with editor(folder / "home") as opened:
        ready(opened)
        opened.lua("vim.ui.select, vim.ui.input = function() end, function() end")
        found = [name.removeprefix("Agentik") for name in opened.call("nvim_get_commands", {}) if "Agentik" in name]
        for name in found:
            for number in range(0 if name in LEFT_OUT else 4):
                argument = str(folder / f"{number}.md") if name == "Export" else ARGUMENTS.get(name, "")
                held = opened.lua(TIMED, f"Agentik{name} {argument}")
                wall[name].append(held[0])
                used[name].append(held[1])
                listen(opened, 0.1)
                opened.keys("<Esc>")
    worst = sorted(used, key=lambda name: -max(used[name]))
    rows = [
        Row(f"all {len(used)} commands: median", f"{statistics.median(map(statistics.median, wall.values())):.2f} ms")
    ]
    for name in worst[:4]:
        value = f"{statistics.median(wall[name]):.1f}, worst {max(wall[name]):.1f}, worst CPU {max(used[name]):.1f} ms"
        rows.append(Row(f"  :Agentik{name}: median", value, goal=BLOCK))
    return rows


# ---------------------------------------------------------------------------------------------- streams


def bare(step: str) -> list[list[int]]:
    """Stamps of the agent's step with the time of their arrival at a reader that does nothing else."""
    stamps = []
    with subprocess.Popen([sys.executable, AGENT, "--bare", step], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 1 << 16):
            now = time.monotonic_ns()
            at = data.find(b"@")
            while at >= 0 and (end := data.find(b";", at)) > 0:
                stamps.append([int(data[at + 1 : end]), now])
                at = data.find(b"@", end)
    return stamps


def streams(folder: Path) -> list[Row]:
    """Tokens at the pace of a fast model and a flood, while a person types in another window."""
    with editor(folder / "home") as opened:
        ready(opened)
        until = time.monotonic() + 3
        quiet = [typing(opened, lambda: time.monotonic() > until)]
        host = processes(opened)[1]
        before = memory(host)
        paced, rows = pace(opened, quiet), []
        rows += flood(opened, quiet)
        rows.append(
            Row("  host: at rest, at most", f"{before:.1f}, {memory(host, 'VmHWM'):.1f} MB", goal="goal: <= 30 MB")
        )
    return paced + rows


def pace(opened: Editor, quiet: list[list[float]], where: str = "", runs: int = RUNS) -> list[Row]:
    count = 4 * TOKENS_A_SECOND
    yard = ages({"stamps": bare(f"#stamps {count} {TOKENS_A_SECOND}")})
    tokens, keys = [], []
    for _ in range(runs):
        take(opened)
        over = turns(opened)
        send(opened, f"#stamps {count} {TOKENS_A_SECOND}")
        keys.append(typing(opened, lambda over=over: turns(opened) > over))
        tokens.append(ages(take(opened)))
    goal = "goal: p50 <= 2, p95 <= 8 ms"
    return [
        times(f"{TOKENS_A_SECOND} tokens/s{where}: to the buffer (bare: pipe)", tokens, goal=goal, bare=[yard]),
        times("  typing meanwhile (bare: nothing streams)", keys, goal="goal: p99 <= 5 ms", bare=quiet),
    ]


def flood(opened: Editor, quiet: list[list[float]], where: str = "", runs: int = RUNS) -> list[Row]:
    rates, keys, frames, gaps, spent = [], [], [], [], []
    pids = processes(opened)
    for _ in range(runs):
        take(opened)
        over, before = turns(opened), [cpu(pid) for pid in pids]
        opened.lua("bench.watch_loop()")
        send(opened, f"#burst {BURST}")
        keys.append(typing(opened, lambda over=over: turns(opened) > over))
        opened.lua("bench.stop_loop()")
        noted = take(opened)
        rates.append(rate(noted, BURST))
        frames.append([wall for wall, _ in noted["frames"]])
        gaps.append(noted["gap"])
        spent.append([1e6 * (cpu(pid) - was) / BURST for pid, was in zip(pids, before, strict=True)])
    stamps = bare(f"#burst {BURST}")
    yard = rate({"stamps": stamps}, BURST)
    used = ", ".join(f"{statistics.median(part):.2f}" for part in zip(*spent, strict=True))
    goal = "goal: >= 100,000 tokens/s"
    return [
        one(f"a flood{where} (bare: pipe)", rates, unit="tokens/s", goal=goal, bare=yard),
        Row("  CPU of a token: server, host, Neovim", f"{used} us"),
        times("  typing meanwhile (bare: nothing streams)", keys, goal="goal: p99 <= 5 ms", bare=quiet),
        times("  a frame of the host", frames),
        longest_gap(gaps),
    ]


def longest_gap(gaps: list[list[float]]) -> Row:
    wall, used = (statistics.median(part) for part in zip(*gaps, strict=True))
    return Row("  longest time the main loop was held", f"{wall:.1f} ms, CPU {used:.1f} ms", goal=FRAME)


# ---------------------------------------------------------------------------------------------- long sessions


def long_sessions(folder: Path) -> list[Row]:
    """Opened in a Neovim whose server is there already; each Neovim opens all of them."""
    home = folder / "home"
    stories = {name: histories.talk(name, size) for name, size in SIZES.items()} | {WORK: histories.work(WORK)}
    histories.write(home / "agentik", home / "project", stories)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    rows: list[Row] = []
    for number in range(RUNS):
        with editor(home) as opened:
            opened.lua("require('agentik').new()")
            opened.until("the session", lambda opened=opened: session(opened, "connection") == "has_session")
            opened.lua("bench.watch_frames()")
            for name in stories:
                for what, value in open_one(opened, name).items():
                    found[name, what].append(value)
            if number == RUNS - 1:
                rows = large(opened)
    return [row for name in stories for row in opening_rows(name, found)] + rows


def opening_rows(name: str, found: dict[tuple[str, str], list[float]]) -> list[Row]:
    def middle(what: str) -> float:
        return statistics.median(found[name, what])

    goal = "goal: <= 150 ms" if name == WORK else "goal: <= 100 ms"
    frame = f"worst {middle('frame'):.1f} ms, CPU {middle('frame cpu'):.1f} ms of {middle('frames'):.0f}"
    again = f"{middle('again frames'):.0f}, {middle('again writes'):.0f}"
    return [
        one(f"{name}: first screen", found[name, "first"], goal=goal),
        one("  the call holds the editor", found[name, "held"], goal=BLOCK),
        Row("  loaded by itself", f"{middle('lines'):,.0f} lines after {middle('whole'):,.0f} ms"),
        Row("  its frames", frame, goal=FRAME),
        longest_gap([list(gap) for gap in zip(found[name, "gap"], found[name, "gap cpu"], strict=True)]),
        one("  hidden and shown again", found[name, "again"], goal="goal: <= 20 ms"),
        Row("  frames, changes of the buffer meanwhile", again, goal="goal: 0, 0"),
        Row("  memory of the host, with those before", f"{middle('host'):.1f} MB"),
    ] + ([one("  worst frame to the first message, CPU", found[name, "all"], goal=FRAME)] if name == ALL else [])


OPEN = """
local name = ...
return { bench.timed(function() require('agentik').show(require('agentik.conversation').open(name), false) end) }
"""


def open_one(opened: Editor, name: str) -> dict[str, float]:
    last = "runs 499" if name == WORK else f"number {SIZES[name] - 1}:"
    take(opened)
    begun = time.monotonic()
    held = opened.lua(OPEN, name)
    opened.until("the newest message", lambda: last in opened.screen.text)
    first = 1000 * (time.monotonic() - begun)
    opened.lua("bench.watch_stamps(require('agentik').current().bufs.chat)")
    lines, whole = until_quiet(opened)
    noted = take(opened)
    again = reopened(opened)
    after = take(opened)
    return {
        "first": first,
        "held": held[0],
        "lines": lines,
        "whole": 1000 * (whole - begun),
        "frames": len(noted["frames"]),
        "frame": max(wall for wall, _ in noted["frames"]),
        "frame cpu": max(used for _, used in noted["frames"]),
        "gap": noted["gap"][0],
        "gap cpu": noted["gap"][1],
        "again": again,
        "again frames": len(after["frames"]),
        "again writes": after["writes"],
        "host": memory(opened.host_pid()),
        "all": to_the_first(opened, name) if name == ALL else 0.0,
    }


def to_the_first(opened: Editor, name: str) -> float:
    """The worst frame, milliseconds of CPU, until the first message of the session stands in the buffer."""
    take(opened)
    opened.lua("require('agentik.view.chat').go_to(require('agentik').current(), ...)", f"{name}-0")
    opened.until("the first message", lambda: "number 0:" in opened.screen.text)
    return max(used for _, used in take(opened)["frames"])


def until_quiet(opened: Editor) -> tuple[int, float]:
    """Until no more is loaded by itself: lines of the chat, and when the last of them came."""
    opened.lua("bench.watch_loop()")
    lines, last = -1, time.monotonic()
    while time.monotonic() - last < 0.3:
        listen(opened, 0.05)
        now = opened.lua("return vim.api.nvim_buf_line_count(require('agentik').current().bufs.chat)")
        if now != lines:
            lines, last = now, time.monotonic()
    opened.lua("bench.stop_loop()")
    return lines, last


def reopened(opened: Editor) -> float:
    found = []
    for _ in range(3):
        opened.lua("require('agentik').close()")
        opened.settle()
        flushes, begun = opened.screen.flushes, time.monotonic()
        opened.lua("require('agentik').open({ focus = false })")
        opened.until("a screen", lambda flushes=flushes: opened.screen.flushes > flushes)
        found.append(1000 * (time.monotonic() - begun))
    return statistics.median(found)


KEYS = {
    "scrolling": ["<C-b>", "<C-u>", "<C-e>", "<C-y>", "<C-f>", "gg", "G"],
    "folds": ["zR", "zM", "zo", "zc"],
    "to the next message": ["[[", "[t", "]]", "]t"],
}
PRESS = """
local keys = vim.keycode(...)
return { bench.timed(function() vim.api.nvim_feedkeys(keys, 'xt', false) vim.cmd.redraw() end) }
"""


def large(opened: Editor) -> list[Row]:
    """In the large transcript that is open: keys, and streaming into it."""
    rows = []
    opened.lua("vim.api.nvim_set_current_win(require('agentik.view.layout').of_tab().wins.chat)")
    for what, keys in KEYS.items():
        found = [opened.lua(PRESS, key) for key in keys * 10]
        value = ", ".join(f"{percentile([pair[part] for pair in found], 95):.1f}" for part in (0, 1))
        rows.append(Row(f"{WORK}: {what}", f"p95 {value} ms (wall, CPU)", goal=FRAME))
    opened.keys("G")
    watch_typing(opened)
    until = time.monotonic() + 2
    quiet = [typing(opened, lambda: time.monotonic() > until)]
    return rows + pace(opened, quiet, " into it", 2) + flood(opened, quiet, " into it", 2)


# ---------------------------------------------------------------------------------------------- a wild agent


def wild(folder: Path) -> list[Row]:
    """50,000 updates a second for ten seconds; the person types, then stops it. One run: it is long."""
    with editor(folder / "home") as opened:
        ready(opened)
        server, host, _ = processes(opened)
        until = time.monotonic() + 2
        quiet = [typing(opened, lambda: time.monotonic() > until)]
        note, over = folder / "heard", turns(opened)
        take(opened)
        opened.lua("bench.watch_loop()")
        send(opened, f"#hears {note}\n#pace 50000 12")
        end = time.monotonic() + 10
        keys = [typing(opened, lambda: time.monotonic() > end)]
        opened.lua("bench.stop_loop()")
        gaps = [take(opened)["gap"]]
        asked = time.monotonic_ns()
        opened.lua("require('agentik').stop()")
        opened.until("the cancel", lambda: note.exists() and note.read_text())
        heard = [(int(note.read_text()) - asked) / 1e6]
        opened.until("the end", lambda: turns(opened) > over)
        value = f"{memory(server, 'VmHWM'):.0f}, {memory(host, 'VmHWM'):.0f} MB"
    return [
        times("typing (bare: nothing streams)", keys, goal="goal: p99 <= 10 ms", bare=quiet),
        longest_gap(gaps),
        one("a cancel is heard by the agent after", heard, goal="goal: <= 100 ms"),
        Row("server, host: at most", value, goal="goal: server <= 150 MB"),
    ]


SECTIONS = {
    "start": start,
    "what commands hold up": commands,
    "streaming": streams,
    "long sessions": long_sessions,
    "an agent that sends 50,000 updates/s": wild,
}


if __name__ == "__main__":
    run()
