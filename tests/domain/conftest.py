"""A world with one session and an agent that is up."""

from __future__ import annotations

import pytest

from tests.domain.world import World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def session_id(world: World) -> str:
    """A session whose agent is connected and idle."""
    session_id = world.new_session()
    world.links[session_id].become_ready()
    world.disk()
    return session_id
