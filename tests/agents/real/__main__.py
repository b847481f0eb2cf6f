"""Prints the table of doc/agents.md: `.venv/bin/python -m tests.agents.real zed-codex-acp gemini`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import traceback
from pathlib import Path

from .endpoint import model_endpoint
from .run import run
from .scenarios import SCENARIOS


async def cell(agent: str, scenario: str, endpoint: str) -> str:
    with tempfile.TemporaryDirectory(prefix="agentik-real-", ignore_cleanup_errors=True) as folder:
        try:
            async with asyncio.timeout(170):
                return await run(agent, scenario, endpoint, Path(folder))
        except (AssertionError, TimeoutError, OSError):
            print(f"{agent}, {scenario}:\n{traceback.format_exc()}", file=sys.stderr)
            return "**fails**"


async def main(agents: list[str]) -> None:
    print("| | " + " | ".join(agents) + " |")
    print("|---" * (len(agents) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder, model_endpoint(Path(folder)) as endpoint:
        for scenario in SCENARIOS:
            cells = [await cell(agent, scenario, endpoint) for agent in agents]
            print(f"| {scenario} | " + " | ".join(cells) + " |", flush=True)


asyncio.run(main(sys.argv[1:]))
