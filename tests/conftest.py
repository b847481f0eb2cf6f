"""How the tests share a machine: they run side by side, but those that speak in real time do so one after the other."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real sound needs a processor for itself; two recognizers at once would measure each other."""
    for item in items:
        if item.nodeid.startswith("tests/voice/") or item.get_closest_marker("voice"):
            item.add_marker(pytest.mark.xdist_group("voice"))
