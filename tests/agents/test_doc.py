"""doc/agents.md says what is true."""

from __future__ import annotations

from pathlib import Path

from agentik_server.agents.catalogue import _BY_PROGRAM, KNOWN

from .real.scenarios import SCENARIOS

DOC = (Path(__file__).resolve().parents[2] / "doc" / "agents.md").read_text(encoding="utf-8")


def test_every_known_agent_has_its_row() -> None:
    for known in KNOWN:
        fallback = f"`{' '.join(known.fallback)}`" if known.fallback else ""
        cells = (known.agent_id, known.name, f"`{' '.join(known.command)}`", fallback, known.install, known.login)
        assert f"| {' | '.join(cells)} |" in DOC


def test_every_quirk_and_scenario_is_named() -> None:
    for quirk in frozenset().union(*_BY_PROGRAM.values()):
        assert f"| `{quirk}` |" in DOC
    for scenario in SCENARIOS:
        assert f"| {scenario} |" in DOC
