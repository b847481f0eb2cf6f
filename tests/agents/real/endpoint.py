"""The scripted model endpoint of the rig on loopback, and the agents that are asked for by name."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agents.waiting import eventually_sync

PROJECT = Path(__file__).resolve().parents[3]


def rig_folder() -> Path:
    """AGENTIK_RIG, else the folder beside the project."""
    return Path(os.environ.get("AGENTIK_RIG") or PROJECT.parent / "shared" / "rig")


def wanted_agents() -> list[str]:
    """AGENTIK_REAL_AGENTS=zed-codex-acp,gemini; empty: none."""
    return [name for name in os.environ.get("AGENTIK_REAL_AGENTS", "").split(",") if name]


@contextmanager
def model_endpoint(folder: Path) -> Iterator[str]:
    """The URL of a running endpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with open(folder / "endpoint.log", "wb") as log:
        command = [sys.executable, str(rig_folder() / "fake_llm.py"), "--port", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            eventually_sync(lambda: _answers(url), "the model endpoint answers")
            yield url
        finally:
            process.terminate()
            process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_log", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
