#!/usr/bin/env python3
"""The scripted agent with two more abilities: it forks sessions, and lists one that was begun elsewhere."""

from __future__ import annotations

import os
import sys
from typing import Any

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "agents"))

import scripted

ELSEWHERE = "begun-elsewhere"


class ForkingAgent(scripted.Agent):
    def on_initialize(self, request_id: object, params: dict[str, Any]) -> dict[str, Any] | None:
        answer = super().on_initialize(request_id, params)
        assert answer is not None
        able = answer["result"]["agentCapabilities"]
        able |= {"loadSession": True, "sessionCapabilities": {"fork": {}, "list": {}}}
        self.sessions.add(ELSEWHERE)
        return answer

    def on_session_fork(self, _id: object, params: dict[str, Any]) -> dict[str, Any]:
        forked = f"fork-of-{params['sessionId']}"
        self.sessions.add(forked)
        return {"result": {"sessionId": forked}}

    def on_session_list(self, _id: object, params: dict[str, Any]) -> dict[str, Any]:
        known = {"sessionId": ELSEWHERE, "cwd": params.get("cwd"), "title": "Begun in a terminal"}
        return {"result": {"sessions": [known]}}


if __name__ == "__main__":
    ForkingAgent({}).run()
