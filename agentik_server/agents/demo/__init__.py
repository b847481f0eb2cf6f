"""The demo agent: an ACP agent without a model and without a key, to try Agentik with (`agentik-demo-agent`).

A program of its own: standard library only, quick to start, and nothing of the server is imported. It must say plainly
that no model is behind it, and must change nothing but one scratch file, which it names and asks for first.
`AGENTIK_DEMO_RATE`: words a second (default 25; 0 = as fast as possible).
"""

from __future__ import annotations


def main() -> None:
    """Serve ACP on stdin and stdout until stdin ends."""
    from agentik_server.agents.demo.agent import DemoAgent

    DemoAgent().serve()
