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
    bugs = [bug for editor in editors for bug in editor.bugs()]
    for editor in editors:
        if failed or bugs:
            print(editor.report())
        editor.close()
    assert not bugs


@pytest.fixture(scope="module")
def kept_editors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Editor]]:
    """Editors that a module's tests use one after another: starting one costs more than most tests."""
    editors: dict[str, Editor] = {}
    yield editors
    for editor in editors.values():
        editor.close()


@pytest.fixture
def share_editor(
    kept_editors: dict[str, Editor], tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Editor]]:
    """An editor with a fresh session; the same process for all tests of the module that want the same arguments.

    For tests that leave host, server and options as they are. One that failed takes its editor with it. Modules that
    use it are an xdist_group.
    """
    used: list[str] = []

    def make(**arguments: Any) -> Editor:
        key = repr(sorted(arguments.items()))
        if key not in kept_editors:
            kept_editors[key] = Editor(tmp_path_factory.mktemp("shared"), **arguments)
        used.append(key)
        kept_editors[key].start_afresh()
        return kept_editors[key]

    yield make
    bugs = [bug for key in used for bug in kept_editors[key].bugs()]
    if bugs or request.node.stash.get(FAILED, False):
        for key in used:
            editor = kept_editors.pop(key)
            print(editor.report())
            editor.close()
    assert not bugs


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
