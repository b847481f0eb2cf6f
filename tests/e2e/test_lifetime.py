"""Starting, ending and failing: one clear line each, and nothing left behind (B45, B60, B61)."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.driving import FAST, SLOW, busy
from tests.e2e.kit import Editor

FAKE = Path(__file__).parents[1] / "fakes" / "server.py"


def test_starting_neovim_loads_nothing_of_the_plugin(editor: Editor) -> None:
    """Commands and maps only; the first of them loads the rest."""
    loaded = "return vim.tbl_filter(function(name) return name:match('^agentik') end, vim.tbl_keys(package.loaded))"
    assert editor.lua(loaded) == []
    assert editor.call("nvim_eval", "exists(':AgentikSend')") == 2
    assert editor.call("nvim_eval", "maparg('<Plug>(agentik-toggle)', 'n')") != ""


def test_without_a_python_environment_one_line_says_what_to_do(editor: Editor) -> None:
    editor.lua("vim.g.agentik_python = nil")
    editor.cmd("AgentikToggle")
    editor.wait_screen(":AgentikInstall")
    editor.type("kept")
    editor.wait_screen("not sent")
    editor.until("the text", lambda: editor.compose == "kept")
    editor.lua("vim.g.agentik_python = ...", sys.executable)
    editor.keys("<CR>")
    editor.wait_event("TurnEnded")
    assert "\nkept\n" in editor.chat


def test_a_server_that_cannot_start_says_why(editor: Editor) -> None:
    """The last line of its stderr, in the bar and in the empty chat; the text stays."""
    folder = editor.home / "fake"
    folder.mkdir()
    (folder / "script.json").write_text('{"initialize": [{"exit": 1, "stderr": "no room on this disk"}]}')
    editor.lua("vim.g.agentik_server_command = { ... }", sys.executable, str(FAKE), str(folder))
    editor.type("kept")
    editor.wait_screen("no room on this disk")
    editor.until("the text", lambda: editor.compose == "kept")
    assert editor.mode() == "n"


def test_an_agent_that_is_not_there_is_named(editor: Editor) -> None:
    """B45: what could not be started, and the message is kept."""
    editor.lua("""
      require('agentik').setup({ agent = 'ghost', settings = { agents = { ghost = { command = 'no-such-agent' } } } })
    """)
    editor.type("hello")
    editor.wait_screen("no-such-agent")
    assert "hello" in editor.chat + editor.pending + editor.compose


def test_a_crashed_agent_says_so_and_the_next_message_starts_it_again(open_editor: Callable[..., Editor]) -> None:
    """B42, B44, B29: exit code and stderr in the chat, what waits is kept and paused."""
    editor = open_editor(env={"AGENTIK_DEMO_RATE": "60"})
    editor.type("/crash")
    editor.wait_event("TurnStarted")
    editor.type("waits")
    assert editor.wait_event("TurnEnded")["stopReason"] == "crashed"
    log = "return table.concat(require('agentik.hub').logged(), ' ')"
    editor.until("exit code and stderr", lambda: "exit code 42" in editor.lua(log) and "asked for" in editor.lua(log))
    editor.wait_screen("paused: agent crashed")
    assert editor.waiting == ["waits"]
    editor.cmd("AgentikResume")
    editor.wait_chat("It begins with:")


def test_quitting_does_not_wait_for_a_server_that_hangs(open_editor: Callable[..., Editor]) -> None:
    """B61: `:qa` returns within two seconds."""
    editor = open_editor(env=SLOW)
    busy(editor)
    server = editor.server_pid()
    os.kill(server, signal.SIGSTOP)
    try:
        began = time.monotonic()
        editor.close()
        assert time.monotonic() - began < 4  # two seconds on a machine that does nothing else
    finally:
        os.kill(server, signal.SIGKILL)


def test_update_remote_plugins_exports_nothing(editor: Editor) -> None:
    """A foreign python3 host finds no handler of ours."""
    editor.lua("vim.g.python3_host_prog = ...", sys.executable)
    editor.cmd("runtime! plugin/rplugin.vim")
    editor.cmd("silent! UpdateRemotePlugins")
    manifest = Path(editor.call("nvim_eval", "g:loaded_remote_plugins"))
    assert not manifest.exists() or "agentik" not in manifest.read_text()


def test_a_restart_on_demand_keeps_the_chat(open_editor: Callable[..., Editor]) -> None:
    """`:AgentikRestart`: another host and another server, the same conversation."""
    editor = open_editor(env=FAST)
    editor.type("hello")
    editor.wait_event("TurnEnded")
    before, host = editor.chat, editor.host_pid()
    editor.cmd("AgentikRestart")
    editor.wait_event("Ready", 2)
    assert editor.host_pid() != host
    editor.type("again")
    editor.wait_event("TurnEnded", 2)
    assert editor.chat.startswith(before)


def test_a_host_that_dies_again_is_given_up_with_one_line(editor: Editor) -> None:
    """B60: once by itself; afterwards the next action starts it."""
    editor.type("hello")
    editor.wait_event("TurnEnded")
    os.kill(editor.host_pid(), signal.SIGKILL)
    editor.wait_event("Ready", 2)
    os.kill(editor.host_pid(), signal.SIGKILL)
    editor.wait_screen("the plugin host stopped")
    editor.type("revived")
    editor.wait_event("TurnEnded", 2)
    assert "\nrevived\n" in editor.chat


def test_the_host_is_small(open_editor: Callable[..., Editor]) -> None:
    """No pygls, no pydantic: at most 30 MB (FACTS.md), with a conversation in it."""
    editor = open_editor(env=FAST)
    editor.type("/tour")
    editor.wait_event("PermissionRequested")
    status = Path(f"/proc/{editor.host_pid()}/status").read_text()
    resident_kb = int(status.split("VmRSS:")[1].split()[0])
    assert resident_kb < 34_000, f"{resident_kb} KB"
