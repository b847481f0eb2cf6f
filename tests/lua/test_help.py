"""The help file: every link leads somewhere, every command, option and key is in it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from .conftest import ROOT, Editor

HELP = ROOT / "doc/agentik.txt"
LINK = re.compile(r"(?<!\S)\(?\|([^|\s]+)\|")


@pytest.fixture
def tags(editor: Editor, tmp_path: Path) -> set[str]:
    """The tags of our help file and of Neovim's own."""
    shutil.copy(HELP, tmp_path)
    editor.cmd(f"helptags {tmp_path}")  # fails when a tag is there twice
    own = (tmp_path / "tags").read_text().splitlines()
    neovims = Path(editor.lua("return vim.env.VIMRUNTIME")) / "doc/tags"
    return {line.split("\t")[0] for line in [*own, *neovims.read_text().splitlines()]}


def test_every_link_leads_somewhere(tags: set[str]) -> None:
    links = set(LINK.findall(HELP.read_text()))
    assert links - tags == set()
    assert len(links) > 20


def test_every_section_of_the_contents_is_there_in_that_order() -> None:
    text = HELP.read_text()
    contents = re.findall(r"\.\.\. \|(agentik-[\w-]+)\|", text)
    headers = re.findall(r"^={78}\n.*\*(agentik-[\w-]+)\*$", text, re.MULTILINE)
    assert contents == headers


def test_lines_written_by_hand_fit_the_width() -> None:
    generated = False
    for line in HELP.read_text().splitlines():
        generated = "(generated)" in line or (generated and not line.startswith("===="))
        assert generated or len(line) <= 79, line


def test_code_in_the_help_compiles(editor: Editor) -> None:
    """The examples are Lua that a person copies."""
    blocks = re.findall(r">lua\n\n(.*?)^<$", HELP.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    for block in blocks:
        body = block if block.strip().startswith(("vim.", "require")) else f"return {{ {block} }}"
        assert editor.lua("local chunk, problem = loadstring(...) return problem", body) is None, block


def test_examples_of_options_are_valid(editor: Editor) -> None:
    blocks = re.findall(r"require\('agentik'\)\.setup\((\{.*?\n    \})\)", HELP.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    for block in blocks:
        assert editor.lua(f"local _, problems = require('agentik.config').merge({block}) return problems") == [], block
