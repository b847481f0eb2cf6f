"""A real Neovim with the plugin, the real host and the real server, driven as a person would.

Waits are for events, never for time: a time limit only guards. When something fails, `report` has the screen, the
buffers, the plugin's log and the server's. Ends only what it started.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.e2e.rpc import NvimFault, NvimGone, Rpc
from tests.e2e.screen import Screen

ROOT = Path(__file__).resolve().parents[2]
SNAPSHOTS = Path(__file__).parent / "snapshots"
LIMIT_S = 20.0
TIMES = re.compile(r"(\b\d\d:\d\d\b|\b[\d.]+ s\b)")

BUFFER = """
local conversation = require('agentik').current()
local buf = conversation and conversation.bufs[...]
return buf and vim.api.nvim_buf_is_loaded(buf) and vim.api.nvim_buf_get_lines(buf, 0, -1, true) or {}
"""
FRESH = """
require('agentik').close()
vim.cmd('stopinsert | silent! tabonly! | silent! only! | silent! cclose')
for _, current in ipairs(require('agentik.conversation').all()) do
  if current.session_id and current.session.state ~= 'idle' or #current.pending.items > 0 then
    local call = require('agentik.conversation').call
    call(current, 'clearPending', {}, function() end)
    call(current, 'cancelTurn', {}, function() end)
  end
end
vim.cmd('enew!')
for _, buf in ipairs(vim.api.nvim_list_bufs()) do
  if vim.bo[buf].buflisted and buf ~= vim.api.nvim_get_current_buf() then
    vim.api.nvim_buf_delete(buf, { force = true })
  end
end
"""
LISTEN = """
vim.api.nvim_create_autocmd('User', {
  pattern = 'Agentik*',
  callback = function(event) vim.rpcnotify(1, 'event', event.match, event.data or vim.empty_dict()) end,
})
"""


@cache
def neovim() -> str:
    """The binary under test."""
    return subprocess.run([ROOT / "scripts/nvim.sh"], check=True, capture_output=True, text=True).stdout.strip()


class Editor:
    """One Neovim. `home` holds everything that it and the server keep."""

    def __init__(
        self,
        home: Path,
        *,
        width: int = 100,
        height: int = 30,
        options: str = "{}",
        env: dict[str, str] | None = None,
        background: str = "dark",
    ) -> None:
        """`options`: Lua, what setup() is given."""
        self.home = home
        self.screen = Screen(width, height)
        self.events: list[tuple[str, dict[str, Any]]] = []
        project = home / "project"
        project.mkdir(parents=True, exist_ok=True)
        argv = [neovim(), "--embed", "--clean", "-n", "--cmd", f"set rtp^={ROOT}"]
        argv += ["--cmd", f"let g:agentik_python = '{sys.executable}'"]
        argv += ["--cmd", f"set background={background} noswapfile shortmess+=I"]
        if options != "{}":
            argv += ["-c", f"lua require('agentik').setup({options})"]
        self._rpc = Rpc(argv, self._environment(env or {}), str(project), self._notified)
        self.call("nvim_ui_attach", width, height, {"rgb": True, "ext_linegrid": True})
        self.lua(LISTEN)

    def _environment(self, extra: dict[str, str]) -> dict[str, str]:
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "NVIM", "VIM", "AGENTIK"))
        }
        folders = {f"XDG_{name.upper()}_HOME": str(self.home / name) for name in ("config", "data", "state", "cache")}
        own = {"HOME": str(self.home), "AGENTIK_HOME": str(self.home / "agentik"), "TZ": "UTC", "LANG": "C.UTF-8"}
        return kept | folders | own | extra

    def _notified(self, name: str, arguments: list[Any]) -> None:
        if name == "redraw":
            self.screen.redraw(arguments)
        elif name == "event":
            self.events.append((arguments[0].removeprefix("Agentik"), arguments[1]))

    # Driving

    @property
    def pid(self) -> int:
        return self._rpc.process.pid

    def call(self, method: str, *arguments: Any, timeout_s: float = LIMIT_S) -> Any:
        return self._rpc.call(method, *arguments, timeout_s=timeout_s)

    def send(self, method: str, *arguments: Any) -> None:
        """Without waiting for the answer."""
        self._rpc.send(method, *arguments)

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.call("nvim_exec_lua", code, list(arguments))

    def cmd(self, command: str) -> None:
        self.call("nvim_command", command)

    def keys(self, keys: str) -> None:
        """Types; Neovim works the keys off by itself."""
        self.call("nvim_input", keys)

    def type(self, text: str, send: str = "<C-s>") -> None:
        """Writes a message in the compose window and sends it."""
        self.lua("require('agentik').compose()")
        self.keys(text.replace("<", "<lt>") + send + "<Esc>")

    # Waiting

    def until(self, what: str, condition: Callable[[], Any], timeout_s: float = LIMIT_S) -> None:
        """Waits for something to become true. `condition` may call Neovim."""
        try:
            self._rpc.pump(lambda: bool(condition()), timeout_s, what)
        except TimeoutError as error:
            raise AssertionError(f"waited in vain for {what}\n{self.report()}") from error

    def wait_screen(self, text: str) -> None:
        self.until(f"{text!r} on the screen", lambda: text in self.screen.text)

    def wait_gone(self, text: str) -> None:
        self.until(f"{text!r} off the screen", lambda: text not in self.screen.text)

    def wait_event(self, name: str, count: int = 1) -> dict[str, Any]:
        """The `count`th event of that name since the start, without `Agentik`."""
        self.until(f"event {name} ({count})", lambda: len(self.all_events(name)) >= count)
        return self.all_events(name)[count - 1]

    def all_events(self, name: str) -> list[dict[str, Any]]:
        return [params for each, params in self.events if each == name]

    def wait_chat(self, text: str) -> None:
        self.until(f"{text!r} in the chat", lambda: text in self.chat)

    # Looking

    def buffer(self, part: str) -> str:
        return "\n".join(self.lua(BUFFER, part))

    @property
    def chat(self) -> str:
        return self.buffer("chat")

    @property
    def pending(self) -> str:
        return self.buffer("pending")

    @property
    def compose(self) -> str:
        return self.buffer("compose")

    @property
    def waiting(self) -> list[str]:
        """Texts of the messages that wait, as the server told."""
        items: list[dict[str, Any]] = self.state("pending")["items"]
        return [item["text"] for item in items]

    def state(self, part: str) -> Any:
        """A part of the current conversation: session, pending, permissions, turn ..."""
        return self.lua("return (require('agentik').current() or {})[...]", part)

    def windows(self) -> list[str]:
        """File type or name of each window of this tab page, in the order of their numbers."""
        return list(
            self.lua("""
              return vim.tbl_map(function(win)
                local buf = vim.api.nvim_win_get_buf(win)
                local own = vim.bo[buf].filetype:match('^agentik%-(.*)')
                return own or vim.fs.basename(vim.api.nvim_buf_get_name(buf))
              end, vim.api.nvim_tabpage_list_wins(0))
            """)
        )

    def mode(self) -> str:
        return str(self.call("nvim_get_mode")["mode"])

    def settle(self) -> None:
        """Until Neovim has drawn all that it had to draw."""
        flushes = self.screen.flushes
        self.cmd("redraw!")
        self.until("a redraw", lambda: self.screen.flushes > flushes)

    def snapshot(self, name: str, *, below: str = "") -> None:
        """The screen equals tests/e2e/snapshots/NAME.txt; AGENTIK_SNAPSHOTS=write writes it, to be reviewed by eye.

        Times and durations are shown as zeros. `below`: only from the line on that holds this text.
        """
        self.settle()
        first = next(row for row, line in enumerate(self.screen.lines) if below in line)
        screen = "\n".join(self.screen.lines[first:])
        zeros = [re.sub(r"\d", "0", part) if index % 2 else part for index, part in enumerate(TIMES.split(screen))]
        text = "".join(zeros) + "\n"
        path = SNAPSHOTS / f"{name}.txt"
        if os.environ.get("AGENTIK_SNAPSHOTS") == "write":
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no snapshot {path.name}; the screen is\n{text}"
        assert text == path.read_text(encoding="utf-8"), f"{path.name} differs, the screen is\n{text}"

    def report(self) -> str:
        """Everything that helps to understand a failure."""
        parts = ["-- screen --", self.screen.text, "-- events --", str([name for name, _ in self.events][-40:])]
        try:
            log = self.call("nvim_exec_lua", "return require('agentik.hub').logged()", [], timeout_s=3)
            parts += ["-- plugin log --", *log]
            for part in ("chat", "pending", "compose"):
                parts += [f"-- {part} --", self.buffer(part)]
        except (NvimFault, NvimGone, TimeoutError, AssertionError) as error:
            parts.append(f"(Neovim does not answer: {error!r})")
        for path in sorted((self.home / "agentik").glob("*.log")):
            parts += [f"-- {path.name} --", *path.read_text(errors="replace").splitlines()[-60:]]
        return "\n".join(parts)

    def bugs(self) -> list[str]:
        """Lines of the plugin's log with the traceback of an error of ours; none when Neovim is gone or waits."""
        try:
            log = self.call("nvim_exec_lua", "return require('agentik.hub').logged()", [], timeout_s=3)
        except (NvimFault, NvimGone, TimeoutError):
            return []
        return [line for line in log if "traceback" in line.lower()]

    def start_afresh(self) -> None:
        """As new: one empty window, no event, a new session of the demo agent, hidden. What ran before is stopped."""
        self.lua(FRESH)
        for path in (self.home / "project").iterdir():
            path.unlink()
        previous = self.state("session_id")
        self.lua("require('agentik').new('demo')")
        self.until("a new session", lambda: self.state("session_id") not in {None, previous})
        self.lua("require('agentik').close()")
        self.keys("<C-Bslash><C-n>")
        self.settle()
        self.events.clear()

    def host_pid(self) -> int:
        return int(self.lua("return require('agentik.host').pid()"))

    def server_pid(self) -> int:
        return int(self.lua("return require('agentik.host').status().server"))

    def close(self) -> int:
        return self._rpc.close()


def is_alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def descendants(pid: int) -> list[int]:
    """Children of a process, and theirs."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found
