"""Editors for the tests; a failed test shows what each of them showed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kit import Editor


@pytest.fixture
def open_editor(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Editor]]:
    """Makes editors; several share the home folder unless they get another."""
    editors: list[Editor] = []

    def make(home: Path | None = None, **arguments: Any) -> Editor:
        editor = Editor(home or tmp_path, **arguments)
        editors.append(editor)
        return editor

    yield make
    failed = request.node.stash.get(FAILED, False)
    for editor in editors:
        if failed:
            print(editor.report())
        editor.close()


@pytest.fixture
def editor(open_editor: Callable[..., Editor]) -> Editor:
    """One editor of the usual size."""
    return open_editor()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report
