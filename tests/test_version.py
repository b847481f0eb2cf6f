"""The version stands in two places; they say the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

from agentik_server import __version__


def test_version_of_the_package_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert project["project"]["version"] == __version__
