"""The real server, but it kills its own process right after the n-th SQL statement of the writing connection.

    python -m tests.torture.crashing_server [--die-after N] [--armed-by WORD] [--home FOLDER]

Counting begins with the first statement of all, or with the first one that carries a value which begins with WORD (the
ids of the messages whose way is under test). Statements that only read are not counted: a death after one of them
leaves what a death before it leaves (tests/store/test_crash.py dies after those too).
"""

from __future__ import annotations

import argparse
import os
import signal
import sqlite3
import sys
from functools import partial
from typing import Any, ClassVar

from agentik_server.__main__ import main
from agentik_server.store.database import SqliteStore

READING = ("SELECT", "PRAGMA data_version", "SAVEPOINT", "RELEASE")


class MortalConnection(sqlite3.Connection):
    """`die_after` 0 = it lives for ever. The death is kill -9: nothing after the statement is done or said."""

    die_after: ClassVar[int] = 0
    armed_by: ClassVar[str] = ""
    count: ClassVar[int] = 0

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        cursor = super().execute(sql, parameters)
        self._carried_out(sql, parameters)
        return cursor

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:
        cursor = super().executemany(sql, parameters)
        self._carried_out(sql, ())
        return cursor

    def _carried_out(self, sql: str, parameters: Any) -> None:
        kind = MortalConnection
        word = kind.armed_by
        if word and any(isinstance(value, str) and value.startswith(word) for value in parameters):
            kind.armed_by = ""
        if not kind.armed_by and not sql.startswith(READING):
            kind.count += 1
            if kind.count == kind.die_after:
                os.kill(os.getpid(), signal.SIGKILL)


def serve(argv: list[str], die_after: int, armed_by: str) -> int:
    """Run the server; its exit code, should it end in order."""
    if die_after:
        MortalConnection.die_after, MortalConnection.armed_by = die_after, armed_by
        SqliteStore.open = partial(SqliteStore.open, factory=MortalConnection)  # type: ignore[method-assign]
    return main(argv)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--die-after", type=int, default=0)
    parser.add_argument("--armed-by", default="")
    options, rest = parser.parse_known_args()
    sys.exit(serve(rest, options.die_after, options.armed_by))
