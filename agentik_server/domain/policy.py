"""The settings that a session obeys. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agentik_server.domain.pending import QueueLimits


@dataclass(frozen=True, slots=True)
class SessionPolicy:
    """Times in seconds. `tools`: ACP tool kind → "ask" | "allow" | "deny"."""

    limits: QueueLimits = field(default_factory=QueueLimits)
    drain_all: bool = False
    pause_on_cancel: bool = True
    prompt_s: float = 300.0
    retry_delay_s: float = 0.3
    cancel_grace_s: float = 5.0
    idle_agent_s: float = 900.0
    save_s: float = 0.25
    sync_s: float = 2.0
    tools: Mapping[str, str] = field(default_factory=dict)
