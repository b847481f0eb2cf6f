"""Real agents of ../shared/rig, if AGENTIK_REAL_AGENTS names any: `make real`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .endpoint import model_endpoint, wanted_agents
from .run import run
from .scenarios import SCENARIOS

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with model_endpoint(tmp_path_factory.mktemp("endpoint")) as url:
        yield url


@pytest.mark.skipif(not wanted_agents(), reason="AGENTIK_REAL_AGENTS names none")
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("agent", wanted_agents() or ["none"])
async def test_a_real_agent_is_driven_through(
    endpoint: str, agent: str, scenario: str, tmp_path: Path
) -> None:  # B32, B40, B42, B47
    assert os.environ.get("AGENTIK_REAL_AGENTS")
    await run(agent, scenario, endpoint, tmp_path)
