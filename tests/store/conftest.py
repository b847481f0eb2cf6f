"""A desk with one session that we own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.desk import Desk


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    desk.session()
    yield desk
    # Whatever a test did: the full-text index is exactly what the messages say.
    desk.db.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
    desk.db.close()
