"""The tests that doc/comparison.md names for what Agentik has: they exist. Parses files, imports none of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "doc" / "comparison.md").read_text()
TEST_ID = re.compile(r"`(tests/[^`]*?)::([^`]*)`")
ROW = re.compile(r"^\| (\d+) \|.*\| ([ypn]) \|$", re.MULTILINE)
EVIDENCE = re.compile(r"^- \*\*(\d+)\*\* ([ypn])\b(.*?)(?=^- |^$)", re.MULTILINE | re.DOTALL)


def functions_of(path: Path) -> set[str]:
    """Names of the test functions of a module."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, functions)}


def named() -> dict[str, set[str]]:
    """Tests that the document names, by their file."""
    found: dict[str, set[str]] = {}
    for path, name in TEST_ID.findall(TEXT):
        found.setdefault(path, set()).add(name)
    return found


@pytest.mark.parametrize(("path", "names"), sorted(named().items()))
def test_every_named_test_exists(path: str, names: set[str]) -> None:
    assert names - functions_of(ROOT / path) == set()
    assert all(name.startswith("test_") for name in names)


def test_every_row_has_its_answer_and_its_tests_once() -> None:
    """The answer is that of the table; what Agentik has in whole or in part is shown by a test."""
    rows, evidence = ROW.findall(TEXT), EVIDENCE.findall(TEXT)
    assert [int(number) for number, _ in rows] == list(range(1, len(rows) + 1))
    assert [(number, answer) for number, answer, _ in evidence] == rows
    without = [number for number, _, text in evidence if not TEST_ID.search(text)]
    assert without == [number for number, answer in rows if answer == "n"]
