"""Checks every Lua file of the project under Neovim's own LuaJIT.

Each file compiles, uses no accidental global and no vim.* name that does not exist in Neovim 0.10, and each
`require('agentik...')`, also in Python sources, has its module. Prints `FILE:LINE: MESSAGE` and ends with 1 when
something is wrong. Must not change any file. Takes less than a second.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LUA_FOLDERS = ("plugin", "lua", "scripts", "tests", "rplugin")
# Also in Python sources: the host calls Lua by text.
REQUIRE = re.compile(r"""require\s*\(?\s*(['"])(agentik(?:\.\w+)*)\1""")


def lua_files() -> list[Path]:
    """Every Lua file of the project, sorted."""
    found = set(ROOT.glob("*.lua"))
    for folder in LUA_FOLDERS:
        found.update((ROOT / folder).rglob("*.lua"))
    return sorted(found)


def check_inside_neovim(files: list[Path]) -> list[str]:
    """Findings of scripts/check_lua.lua; raises CalledProcessError when Neovim itself fails."""
    neovim = subprocess.run([ROOT / "scripts/nvim.sh"], check=True, capture_output=True, text=True).stdout.strip()
    names = [str(path.relative_to(ROOT)) for path in files]
    command = [neovim, "--clean", "-l", "scripts/check_lua.lua", *names]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [f"{finding['file']}:{finding['line']}: {finding['message']}" for finding in json.loads(output)]


def check_requires() -> list[str]:
    """Findings for `require('agentik...')` that no file under lua/ answers."""
    sources = lua_files()
    for folder in ("rplugin", "tests"):
        sources += sorted((ROOT / folder).rglob("*.py"))
    findings = []
    for path in sources:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            for match in REQUIRE.finditer(line):
                module = ROOT / "lua" / match[2].replace(".", "/")
                if not module.with_suffix(".lua").is_file() and not (module / "init.lua").is_file():
                    findings.append(f"{path.relative_to(ROOT)}:{number}: no module {match[2]}")
    return findings


def main() -> int:
    files = lua_files()
    findings = check_inside_neovim(files) + check_requires()
    for finding in findings:
        print(finding)
    if not findings:
        print(f"{len(files)} Lua files are fine")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
