"""`python -m agentik_server.agents.demo`."""

from __future__ import annotations

from agentik_server.agents.demo import main

main()
