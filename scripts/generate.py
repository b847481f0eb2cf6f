"""Writes the files and sections that have their source elsewhere: generate.py [--check]

  lua/agentik/types.lua                    from lua/agentik/config/schema.lua
  doc/agentik.txt: options, keys, icons    from the same
    commands, maps, highlight groups       from plugin/agentik.lua and lua/agentik/highlight.lua
    functions                              from the comments in lua/agentik/init.lua
    events, settings                       from agentik_server/protocol/ and agentik_server/settings.py
  doc/protocol.md                          from agentik_server/protocol/
  doc/settings.md                          from agentik_server/settings.py

With --check nothing is written; a file that would change is shown as a diff and ends the program with 1.
Must not write anything that differs between machines or from one run to the next.
"""

from __future__ import annotations

import difflib
import importlib
import json
import subprocess
import sys
from pathlib import Path

import help_sections

ROOT = Path(__file__).resolve().parent.parent
HELP = Path("doc/agentik.txt")
# Tag on the header line of a help section -> name of the text for it
HELP_SECTIONS = {
    "agentik-commands": "commands",
    "agentik-maps": "plugs",
    "agentik-options": "options",
    "agentik-keys": "keys",
    "agentik-icons": "icons",
    "agentik-highlights": "highlights",
    "agentik-functions": "functions",
    "agentik-events": "events",
    "agentik-settings": "settings",
}


def from_neovim(script: str) -> dict[str, str]:
    """The JSON object that a script of this folder prints when Neovim runs it."""
    neovim = subprocess.run([ROOT / "scripts/nvim.sh"], check=True, capture_output=True, text=True).stdout.strip()
    command = [neovim, "--clean", "-l", f"scripts/{script}"]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(output))


def put_section(text: str, tag: str, body: str) -> str:
    """Help text whose section `*tag*` has `body` between its line with "(generated)" and the next ruler.

    What stands before that line is written by hand and stays. Raises ValueError when section or line is missing.
    """
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if f"*{tag}*" in line), None)
    if start is None:
        raise ValueError(f"{HELP} has no section *{tag}*")
    end = next(i for i in range(start, len(lines)) if lines[i].startswith(("====", "----")))
    marker = next((i for i in range(start, end) if "(generated)" in lines[i]), None)
    if marker is None:
        raise ValueError(f"{HELP}: the section *{tag}* has no line with (generated)")
    return "\n".join([*lines[: marker + 1], "", *body.rstrip("\n").split("\n"), "", *lines[end:]])


def render_help(sections: dict[str, str]) -> str:
    """The help file with all its generated sections anew."""
    text = (ROOT / HELP).read_text(encoding="utf-8")
    for tag, name in HELP_SECTIONS.items():
        text = put_section(text, tag, sections[name])
    return text


def render_module(name: str) -> str:
    """The Markdown that a module of the server writes about itself."""
    return str(importlib.import_module(name).render_markdown())


def wanted() -> dict[Path, str]:
    """Every generated file with the text that it should have."""
    config = from_neovim("render_config.lua")
    sections = {
        **config,
        **from_neovim("render_help.lua"),
        "functions": help_sections.functions(ROOT / "lua/agentik/init.lua", "agentik"),
        "events": help_sections.events(),
        "settings": help_sections.settings(),
    }
    return {
        Path("lua/agentik/types.lua"): config["types"],
        HELP: render_help(sections),
        Path("doc/protocol.md"): render_module("agentik_server.protocol"),
        Path("doc/settings.md"): render_module("agentik_server.settings"),
    }


def main(check: bool) -> int:
    stale = 0
    for path, text in wanted().items():
        target = ROOT / path
        old = target.read_text(encoding="utf-8") if target.exists() else ""
        if old == text:
            continue
        stale += 1
        if check:
            lines = difflib.unified_diff(old.splitlines(), text.splitlines(), str(path), "generated", lineterm="")
            print("\n".join(lines))
        else:
            target.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    if check and stale:
        print("run `make generate`")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main("--check" in sys.argv[1:]))
