"""The checks of the Lua sources and of the generated files find what they are made for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT

# In two parts, or the check would find it here.
MISSING = "agentik" + ".no_such_module"


def run(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs Python code with scripts/ as its place of import."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "scripts", check=False)


@pytest.mark.parametrize(
    ("source", "finding"),
    [
        ("local a = 1\nglobal = a", "2: writes the global global"),
        ("print(undefined_name)", "1: reads the global undefined_name"),
        ("return function()\n  return function() oops() end\nend", "2: reads the global oops"),
        ("return vim.api.nvim_buf_set_everything", "1: no such function: vim.api.nvim_buf_set_everything"),
        ("return vim.fn.nosuchfunction()", "1: no such function: vim.fn.nosuchfunction"),
        ("return vim.lsp.util.nothing_like_it", "1: no such name: vim.lsp.util.nothing_like_it"),
        ("return 1 +", "2: does not compile"),
        (f"return require('{MISSING}')", f"1: no module {MISSING}"),
        ("return function()\n" + "  -- x\n" * 70 + "end", "1: function of 72 lines (at most 60)"),
        ("-- vim.api.nvim_nothing, undefined\nlocal text = 'global = 1'\nreturn text", None),
    ],
)
def test_check_of_the_lua_sources_finds(tmp_path: Path, source: str, finding: str | None) -> None:
    """In a small copy of the project: scripts and one Lua file."""
    (tmp_path / "lua").mkdir()
    (tmp_path / "lua" / "it.lua").write_text(source + "\n")
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    program = "import check_lua, pathlib, sys; check_lua.ROOT = pathlib.Path(sys.argv[1]); sys.exit(check_lua.main())"
    result = run(program, tmp_path)
    found = [line.removeprefix("lua/it.lua:") for line in result.stdout.splitlines() if "it.lua" in line]
    if finding is None:
        assert found == []
    else:
        assert any(line.startswith(finding) for line in found), result.stdout + result.stderr


def test_stale_section_of_the_help_is_replaced_and_the_rest_stays() -> None:
    program = """
import generate
text = "intro\\n===\\nX *tag*\\n\\nby hand (generated):\\nold\\n\\n====\\nlast\\n"
print(generate.put_section(text, "tag", "new"))
"""
    result = run(program)
    assert result.stdout == "intro\n===\nX *tag*\n\nby hand (generated):\n\nnew\n\n====\nlast\n\n", result.stderr
