"""The Python environment: made in the background, with progress, without touching the plugin's folder."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Editor


@pytest.fixture
def plugin(editor: Editor, tmp_path: Path) -> Path:
    """A copy of the plugin with a set-up script of our own; install.lua of that copy is loaded as agentik.install."""
    folder = tmp_path / "plugin"
    (folder / "scripts").mkdir(parents=True)
    (folder / "lua").symlink_to(ROOT / "lua")
    (folder / "build.lua").symlink_to(ROOT / "build.lua")
    editor.lua(
        """
        package.loaded['agentik.install'] = dofile(... .. '/lua/agentik/install.lua')
        Notes = {}
        vim.notify = function(text) table.insert(Notes, text) end
        """,
        str(folder),
    )
    return folder


def script(plugin: Path, body: str) -> None:
    (plugin / "scripts" / "setup.sh").write_text(f"echo 'agentik setup:' \"$@\"\n{body}\n")


def log_lines(editor: Editor) -> list[str]:
    return list(editor.lua("return vim.api.nvim_buf_get_lines(vim.fn.bufnr('agentik://install'), 0, -1, false)"))


def test_progress_is_shown_and_the_cursor_stays(editor: Editor, plugin: Path) -> None:
    gate = plugin / "gate"
    subprocess.run(["mkfifo", gate], check=True)
    script(plugin, f"printf 'one\\ntw'; cat {gate}; printf 'o\\n' >&2")
    window = editor.lua("return vim.api.nvim_get_current_win()")
    editor.lua("require('agentik.install').command('')")
    editor.wait_until("vim.fn.bufwinid('agentik://install') ~= -1")
    assert editor.lua("return vim.api.nvim_get_current_win()") == window
    folder = editor.lua("return require('agentik.install').folder()")
    editor.wait_until("#vim.api.nvim_buf_get_lines(vim.fn.bufnr('agentik://install'), 0, -1, false) >= 3")
    assert log_lines(editor)[:3] == [f"installing into {folder}", f"agentik setup: base {folder}", "one"]
    gate.write_text("")
    editor.wait_until("#Notes > 0")
    assert editor.lua("return Notes") == ["agentik: the Python environment is ready"]
    assert editor.lua("return vim.fn.bufwinid('agentik://install')") == -1


def test_failure_is_one_line_and_the_log_stays(editor: Editor, plugin: Path) -> None:
    script(plugin, "echo 'no network' >&2; exit 3")
    editor.lua("require('agentik.install').command('voice')")
    editor.wait_until("#Notes > 0")
    assert editor.lua("return Notes") == ["agentik: the installation failed: no network (see the log window)"]
    assert "no network" in log_lines(editor)
    assert editor.lua("return vim.fn.bufwinid('agentik://install')") != -1


def test_only_one_installation_at_a_time(editor: Editor, plugin: Path) -> None:
    gate = plugin / "gate"
    subprocess.run(["mkfifo", gate], check=True)
    script(plugin, f"cat {gate}")
    editor.lua("require('agentik.install').command('base')")
    editor.lua("require('agentik.install').start('base', function() end, function(problem) Second = problem end)")
    assert editor.lua("return Second") == "an installation is running already"
    gate.write_text("")
    editor.wait_until("#Notes > 0")


def test_unknown_kind_is_refused(editor: Editor, plugin: Path) -> None:
    editor.lua("require('agentik.install').command('everything')")
    assert editor.lua("return Notes") == ['agentik: :AgentikInstall takes nothing or "voice" (for dictation)']


def test_dictation_is_kept_when_the_base_is_brought_up_to_date(editor: Editor, plugin: Path) -> None:
    folder = Path(editor.lua("return require('agentik.install').folder()"))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".agentik-voice").write_text("x")
    script(plugin, "")
    editor.lua("require('agentik.install').command('')")
    editor.wait_until("#Notes > 0")
    (folder / ".agentik-voice").unlink()
    assert f"agentik setup: voice {folder}" in log_lines(editor)


def test_other_python_of_the_user_is_mentioned(editor: Editor, plugin: Path) -> None:
    script(plugin, "")
    editor.lua("vim.g.agentik_python = '/usr/bin/python3'")
    editor.lua("require('agentik.install').command('')")
    editor.wait_until("#Notes > 0")
    editor.lua("vim.g.agentik_python = nil")
    assert editor.lua("return Notes") == [
        "agentik: the Python environment is ready, but g:agentik_python points elsewhere"
    ]


def test_host_starts_again_with_the_new_packages(editor: Editor, plugin: Path) -> None:
    script(plugin, "")
    editor.lua("package.loaded['agentik.host'] = { restart = function() Restarted = true end }")
    editor.lua("require('agentik.install').command('')")
    editor.wait_until("Restarted")


@pytest.mark.parametrize("in_coroutine", [True, False])
def test_build_file_of_lazy_nvim(editor: Editor, plugin: Path, in_coroutine: bool) -> None:
    """lazy.nvim runs build.lua as a coroutine and shows what it yields; anything else may source it."""
    script(plugin, 'echo done >"$2.built"')
    run: dict[bool, str] = {
        True: """
          local path, yielded = ..., {}
          local routine = coroutine.create(loadfile(path))
          repeat
            local ok, progress = coroutine.resume(routine)
            assert(ok, progress)
            table.insert(yielded, progress)
          until coroutine.status(routine) == 'dead'
          return yielded
        """,
        False: "dofile(...) return {}",
    }
    yielded = editor.lua(run[in_coroutine], str(plugin / "build.lua"))
    built = Path(editor.lua("return require('agentik.install').folder()") + ".built")
    assert built.read_text() == "done\n"
    built.unlink()
    assert all(isinstance(line, str) for line in yielded)


def test_build_file_fails_with_the_reason(editor: Editor, plugin: Path) -> None:
    script(plugin, "echo 'no python' >&2; exit 1")
    problem = editor.lua("local ok, problem = pcall(dofile, ...) return problem", str(plugin / "build.lua"))
    assert problem == "the installation failed: no python; :AgentikInstall tries again and shows more"


# --- scripts/setup.sh

UV = """#!/bin/sh
echo "uv $*" >>"$LOG"
if [ "$1" = venv ]; then
  for folder; do :; done
  mkdir -p "$folder/bin"
  printf '#!/bin/sh\\n' >"$folder/bin/python"
  chmod +x "$folder/bin/python"
  echo "home = x" >"$folder/pyvenv.cfg"
fi
"""


@pytest.fixture
def setup(tmp_path: Path) -> Any:
    """Runs setup.sh with a `uv` that only notes what it is asked for; gives these lines."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uv").write_text(UV)
    (programs / "uv").chmod(0o755)
    log = tmp_path / "log"

    def run(kind: str, folder: Path) -> list[str]:
        log.write_text("")
        environment = {"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin", "LOG": str(log)}
        subprocess.run(
            ["sh", ROOT / "scripts/setup.sh", kind, folder], check=True, env=environment, capture_output=True
        )
        return log.read_text().splitlines()

    return run


def test_base_installs_dependencies_only(setup: Any, tmp_path: Path) -> None:
    """The plugin's folder may be read-only: nothing is installed into it or from it."""
    folder = tmp_path / "venv"
    lines = setup("base", folder)
    assert lines == [
        f"uv venv --quiet --python >=3.11 {folder}",
        f"uv pip sync --quiet --compile-bytecode --python {folder}/bin/python --require-hashes requirements/base.lock",
    ]
    assert (folder / ".agentik-base").exists()


def test_second_run_does_nothing_and_a_changed_lock_installs_again(setup: Any, tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    setup("base", folder)
    assert setup("base", folder) == []
    (folder / ".agentik-base").write_text("older")
    assert len(setup("base", folder)) == 1


def test_environment_whose_python_is_gone_is_made_anew(setup: Any, tmp_path: Path) -> None:
    folder = tmp_path / "venv"
    setup("base", folder)
    (folder / "bin" / "python").unlink()
    (folder / "bin" / "python").symlink_to("/nowhere/python3")
    assert setup("base", folder)[0].startswith("uv venv")
