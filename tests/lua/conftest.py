"""A headless Neovim with the plugin on its runtimepath, for the Lua modules that need neither host nor server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kit import neovim
from tests.e2e.rpc import Rpc

ROOT = Path(__file__).resolve().parents[2]


class Options:
    """Options of the current buffer and window by name."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def __getitem__(self, name: str) -> Any:
        return self._editor.call("nvim_get_option_value", name, {})


class Editor:
    """One embedded Neovim; every call is answered or raises NvimFault, NvimGone or TimeoutError."""

    def __init__(self, home: Path) -> None:
        folders = {f"XDG_{name.upper()}_HOME": str(home / name) for name in ("config", "data", "state", "cache")}
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "NVIM", "VIM", "AGENTIK"))
        }
        argv = [neovim(), "--embed", "--headless", "--clean", "-n", "--cmd", f"set rtp^={ROOT} shortmess+=I"]
        self._rpc = Rpc(argv, {**kept, **folders, "HOME": str(home), "LANG": "C.UTF-8"}, "/", lambda *_: None)
        self.options = Options(self)

    def call(self, method: str, *arguments: Any) -> Any:
        return self._rpc.call(method, *arguments)

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.call("nvim_exec_lua", code, list(arguments))

    def cmd(self, command: str) -> None:
        self.call("nvim_command", command)

    def keys(self, keys: str) -> None:
        """Types keys and waits until they are carried out."""
        self.lua("vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(..., true, false, true), 'x', false)", keys)

    def edit(self, path: Path) -> int:
        """Opens a file in the current window and returns the number of its buffer."""
        self.lua("vim.cmd.edit({ args = { ... }, magic = { file = false, bar = false } })", str(path))
        return int(self.lua("return vim.api.nvim_get_current_buf()"))

    def lines(self) -> list[str]:
        return list(self.call("nvim_buf_get_lines", 0, 0, -1, True))

    @property
    def line(self) -> str:
        return str(self.call("nvim_get_current_line"))

    def wait_until(self, condition: str) -> None:
        """Waits for a Lua expression to become true; Neovim goes on with its own work in between."""
        self._rpc.pump(lambda: bool(self.lua(f"return {condition}")), 10, condition)

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
        self._rpc.close()


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
