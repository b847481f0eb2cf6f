"""One scenario with one real agent, in folders of its own."""

from __future__ import annotations

import os
from pathlib import Path

from agentik_server.ports import AgentPolicy, AgentSpec
from tests.agents.rig import Rig

from .endpoint import rig_folder
from .scenarios import SCENARIOS


async def run(agent: str, scenario: str, endpoint: str, folder: Path) -> str:
    """What was seen, in a few words. Raises AssertionError."""
    home = folder / "home"
    home.mkdir()
    env = {"FAKE_LLM_URL": endpoint, "ACP_HOME": str(home)}
    if "RIG_HOME" in os.environ:
        env["RIG_HOME"] = os.environ["RIG_HOME"]
    spec = AgentSpec(agent, agent, (str(rig_folder() / "agents" / f"{agent}.sh"),), env)
    policy = AgentPolicy(trace=True, log_dir=str(folder / "log"))
    async with Rig(folder, spec=spec, policy=policy) as rig:
        await rig.ready()
        return await SCENARIOS[scenario](rig)
