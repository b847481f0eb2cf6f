"""A headless Neovim with the plugin on its runtimepath, for the Lua modules that need neither host nor server."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pynvim
import pytest

ROOT = Path(__file__).resolve().parents[2]


class Editor:
    """One embedded Neovim; every call is answered or raises pynvim.NvimError."""

    def __init__(self, home: Path) -> None:
        binary = subprocess.run([ROOT / "scripts/nvim.sh"], check=True, capture_output=True, text=True).stdout.strip()
        folders = [f"let $XDG_{name}_HOME = '{home}/{name.lower()}'" for name in ("CONFIG", "DATA", "STATE", "CACHE")]
        argv = ["env", f"HOME={home}", binary, "--embed", "--headless", "-u", "NONE", "-i", "NONE", "-n"]
        for command in (f"set rtp^={ROOT}", *folders, "set shortmess+=I undolevels=1000", "filetype plugin on"):
            argv += ["--cmd", command]
        self.nvim = pynvim.attach("child", argv=argv)

    def lua(self, code: str, *args: Any) -> Any:
        return self.nvim.exec_lua(code, *args)

    def cmd(self, command: str) -> None:
        self.nvim.command(command)

    def keys(self, keys: str) -> None:
        """Types keys and waits until they are carried out."""
        self.lua("vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(..., true, false, true), 'x', false)", keys)

    def edit(self, path: Path) -> int:
        """Opens a file in the current window and returns the number of its buffer."""
        self.lua("vim.cmd.edit({ args = { ... }, magic = { file = false, bar = false } })", str(path))
        return int(self.nvim.api.get_current_buf().number)

    def lines(self, buf: int = 0) -> list[str]:
        return list(self.nvim.api.buf_get_lines(buf, 0, -1, True))

    def wait_until(self, condition: str) -> None:
        """Waits for a Lua expression to become true; Neovim goes on with its own work in between."""
        deadline = time.monotonic() + 5  # a guard
        while not self.lua(f"return {condition}"):
            assert time.monotonic() < deadline, f"never true: {condition}\n" + "\n".join(self.lines())

    def reset(self) -> None:
        """No buffer, no option and no loaded module of the plugin is left of the test before."""
        self.lua("""
          vim.cmd('silent! autocmd! test_formatter')
          vim.cmd('stopinsert | silent! tabonly! | silent! only! | silent! %bwipeout!')
          vim.cmd('set fileformat& fileencoding& bomb& undolevels=1000 hidden | cd /')
          for name in pairs(package.loaded) do
            if name:match('^agentik') then
              package.loaded[name] = nil
            end
          end
        """)

    def close(self) -> None:
        self.nvim.close()


@pytest.fixture(scope="module")
def running_editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    editor = Editor(tmp_path_factory.mktemp("home"))
    yield editor
    editor.close()


@pytest.fixture
def editor(running_editor: Editor) -> Editor:
    """The module's Neovim, emptied."""
    running_editor.reset()
    return running_editor
