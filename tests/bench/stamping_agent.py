"""The scripted agent with a clock: what it writes bears the time of writing, so that readers know how old it is.

More steps of a prompt (`@NS;` is `time.monotonic_ns()`, which Neovim's `uv.hrtime()` and other processes share):

    #stamps N RATE       N chunks `@NS;`, RATE a second      #burst N       N chunks "word ", the ends with a stamp
    #pace RATE SECONDS   RATE chunks "word " a second        #hears FILE    takes the time when a cancel is heard

With `--bare STEP` it needs no client: the step is carried out at once, for a bare reader of the pipe.
"""

from __future__ import annotations

import json
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.agents.scripted import Agent, Turn  # the path must be known first

BATCH = 500
WORDS_A_LINE = 16


class StampingTurn(Turn):
    """A turn that can say when."""

    def do_stamps(self, argument: str) -> None:
        count, rate = map(int, argument.split())
        start = time.monotonic()
        for number in range(count):
            if self.cancelled.wait(max(0.0, start + number / rate - time.monotonic())):
                return
            self.say(f"@{time.monotonic_ns()};" + ("\n" if number % 8 == 7 else " "))

    def do_burst(self, argument: str) -> None:
        count = int(argument)
        self.say(f"\n@{time.monotonic_ns()};")
        self._words(count)
        self.say(f"@{time.monotonic_ns()};\n")

    def do_pace(self, argument: str) -> None:
        rate, seconds = argument.split()
        start = time.monotonic()
        done = 0
        while (passed := time.monotonic() - start) < float(seconds) and not self.cancelled.is_set():
            due = int(passed * int(rate)) - done
            self._words(due)
            done += due
            self.cancelled.wait(0.005)

    def do_hears(self, path: str) -> None:
        self.agent.hears = path  # type: ignore[attr-defined]

    def _words(self, count: int) -> None:
        """As fast as the pipe takes them; in pieces, so that a cancel is heard between them."""
        data, ends = words(self.session_id)
        while count > 0 and not self.cancelled.is_set():
            self.wire.raw(data[: ends[min(count, BATCH) - 1]])
            count -= BATCH


@cache
def words(session_id: str) -> tuple[bytes, list[int]]:
    """`BATCH` chunks, and where each ends."""
    data, ends = bytearray(), []
    for number in range(1, BATCH + 1):
        text = "word " if number % WORDS_A_LINE else "word\n"
        chunk = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        params = {"sessionId": session_id, "update": chunk}
        data += json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"
        ends.append(len(data))
    return bytes(data), ends


class StampingAgent(Agent):
    """Runs stamping turns, and notes when it hears a cancel."""

    hears: str | None = None
    turn_type = StampingTurn

    def on_session_cancel(self, id_: object, params: dict[str, Any]) -> dict[str, Any] | None:
        if self.hears:
            Path(self.hears).write_text(str(time.monotonic_ns()))
        return super().on_session_cancel(id_, params)


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["--bare"]:
        turn = StampingTurn(StampingAgent({}), 1, "bare", words[1])
        word, _, argument = words[1].removeprefix("#").partition(" ")
        turn.step(word, argument)
        return
    StampingAgent({name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}).run()


if __name__ == "__main__":
    main()
