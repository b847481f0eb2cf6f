"""Real agents of the rig from Neovim: a full turn, a queued message, a cancel. `make real` names the agents."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.agents.real.endpoint import model_endpoint, rig_folder, wanted_agents
from tests.e2e.kit import Editor

pytestmark = [pytest.mark.real_agent, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with model_endpoint(tmp_path_factory.mktemp("endpoint")) as url:
        yield url


@pytest.mark.skipif(not wanted_agents(), reason="AGENTIK_REAL_AGENTS names none")
@pytest.mark.parametrize("agent", wanted_agents() or ["none"])
def test_turn_queue_and_cancel_from_neovim(open_editor: Callable[..., Editor], endpoint: str, agent: str) -> None:
    """B2, B21, B32: sent at once, queued while it works, delivered in order; stopped on demand, and it goes on."""
    command = str(rig_folder() / "agents" / f"{agent}.sh")
    rig_home = os.environ.get("RIG_HOME") or str(Path.home() / ".cache" / "agentik-rig")
    env = {"FAKE_LLM_URL": endpoint, "RIG_HOME": rig_home}
    settings = {"agents": {agent: {"command": command, "env": env}}}
    options = f"{{ agent = '{agent}', settings = vim.json.decode([==[{json.dumps(settings)}]==]) }}"
    editor = open_editor(options=options)
    editor.type("#slow 8 200")
    editor.until("the answer begins", lambda: "tick 0" in editor.chat, 60)
    editor.type("#say the queued one")
    editor.until("it waits", lambda: editor.waiting == ["#say the queued one"], 60)
    editor.until("it is answered", lambda: editor.chat.count("the queued one") == 2, 60)
    assert editor.chat.index("tick 7") < editor.chat.index("the queued one")
    editor.type("#slow 100 200")
    editor.until("the long answer", lambda: editor.chat.count("tick 3") == 2, 60)
    editor.cmd("AgentikStop")
    editor.until("it stopped", lambda: editor.state("session")["state"] == "idle", 60)
    editor.type("#say still here")
    editor.until("it goes on", lambda: editor.chat.count("still here") == 2, 60)
