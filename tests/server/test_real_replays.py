"""Replays of real agents after a restart add nothing and lose nothing (B52, B54). `make real` names the agents."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.real.endpoint import model_endpoint, rig_folder, wanted_agents
from tests.server.harness import server, until
from tests.stdio_client import Params

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with model_endpoint(tmp_path_factory.mktemp("endpoint")) as url:
        yield url


def settings(agent: str, endpoint: str, home: Path) -> Params:
    rig_home = os.environ.get("RIG_HOME") or str(Path.home() / ".cache" / "agentik-rig")
    (home / "agent").mkdir(parents=True, exist_ok=True)
    env = {"FAKE_LLM_URL": endpoint, "RIG_HOME": rig_home, "ACP_HOME": str(home / "agent")}
    return {
        "defaultAgent": agent,
        "agents": {agent: {"command": str(rig_folder() / "agents" / f"{agent}.sh"), "env": env}},
    }


@pytest.mark.skipif(not wanted_agents(), reason="AGENTIK_REAL_AGENTS names none")
@pytest.mark.parametrize("agent", wanted_agents() or ["none"])
async def test_a_replay_changes_nothing(endpoint: str, agent: str, tmp_path: Path) -> None:
    """The transcript after the agent continued its session is the transcript before."""
    chosen = settings(agent, endpoint, tmp_path)
    async with server(tmp_path, chosen, limit_s=90) as talk:
        await talk.new_session()
        for count, text in enumerate(("#say one", "#think hm && #say two"), 1):
            await talk.send(text)
            await talk.ended(count)
        before = [(m["messageId"], m["text"], m["status"]) for m in (await talk.open())["messages"]]
    minute = time.time() // 60
    await until(lambda: time.time() // 60 > minute, limit_s=90)  # gemini names its files by the minute (AGENTS.md 4)
    async with server(tmp_path, chosen, limit_s=90) as again:
        await again.open(talk.session_id)
        await again.connected()
        await again.send("#say three")
        await again.ended()
        after = [(m["messageId"], m["text"], m["status"]) for m in (await again.open())["messages"]]
    assert after[: len(before)] == before
    new = [text for _, text, _ in after[len(before) :]]
    assert [text for text in new if text.startswith("#")] == ["#say three"]
    assert len([text for text in new if text.endswith("three")]) == 2  # codex puts a warning before its answer
