"""A server that does as it is told, for what the real one cannot easily do: die at an instant, answer nothing, lie.

Run as `server.py FOLDER`. Each request is logged to FOLDER/requests.jsonl before it is answered. What it does with a
method is read from FOLDER/script.json: { METHOD: [ACTION, ...] }, one action a call, the last for good. An ACTION is
{"die": SIGNAL}, {"exit": CODE, "stderr": TEXT}, {"mute": true}, {"error": {...}}, {"result": {...}}, and may have
"notify": [[METHOD, PARAMS], ...] and "ask": [[ID, METHOD, PARAMS], ...] that go out before the answer. The script's
progress survives a restart.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

FOLDER = Path(sys.argv[1])
DEFAULTS: dict[str, Any] = {
    "initialize": {"capabilities": {"experimental": {"agentik": {"protocolVersion": 1, "databaseId": "fake"}}}},
    "agentik/listAgents": {"agents": []},
}


def read(stream: BinaryIO) -> dict[str, Any] | None:
    length = 0
    while line := stream.readline().strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    body = stream.read(length)
    return json.loads(body) if length and len(body) == length else None


def write(message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0"} | message).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
    sys.stdout.buffer.flush()


def action(method: str) -> dict[str, Any]:
    script_file, progress_file = FOLDER / "script.json", FOLDER / "progress.json"
    script = json.loads(script_file.read_text()) if script_file.exists() else {}
    progress = json.loads(progress_file.read_text()) if progress_file.exists() else {}
    actions = script.get(method) or [{"result": DEFAULTS.get(method, {})}]
    done = progress.get(method, 0)
    progress_file.write_text(json.dumps(progress | {method: done + 1}))
    chosen: dict[str, Any] = actions[min(done, len(actions) - 1)]
    return chosen


def serve(message: dict[str, Any]) -> None:
    with (FOLDER / "requests.jsonl").open("a") as log:
        log.write(json.dumps({"pid": os.getpid(), "sid": os.getsid(0)} | message) + "\n")
    if "id" not in message or "method" not in message:
        return
    act = action(message["method"])
    for method, params in act.get("notify", ()):
        write({"method": method, "params": params})
    for number, method, params in act.get("ask", ()):
        write({"id": number, "method": method, "params": params})
    if "die" in act:
        os.kill(os.getpid(), act["die"])
    if "exit" in act:
        sys.stderr.write(act.get("stderr", "") + "\n")
        sys.stderr.flush()
        os._exit(act["exit"])
    if act.get("mute"):
        return
    if "error" in act:
        write({"id": message["id"], "error": act["error"]})
    else:
        write({"id": message["id"], "result": act.get("result", DEFAULTS.get(message["method"], {}))})


def main() -> None:
    while (message := read(sys.stdin.buffer)) is not None:
        serve(message)


if __name__ == "__main__":
    main()
