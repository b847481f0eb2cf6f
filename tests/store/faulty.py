"""A connection on which any statement can fail, or be the last one before the process dies.

Must not know a rule of the product; which statements there are is SQLite's business.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any, ClassVar


class Killed(BaseException):
    """The process died here: nothing after this statement was carried out."""


class FaultyConnection(sqlite3.Connection):
    """`before(sql)` is called before every statement of every connection of this class; it may raise."""

    before: ClassVar[Callable[[str], None]] = staticmethod(lambda sql: None)

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        type(self).before(sql)
        return super().execute(sql, *args)

    def executemany(self, sql: str, *args: Any) -> sqlite3.Cursor:
        type(self).before(sql)
        return super().executemany(sql, *args)


def fail_on(words: str, error: Exception, times: int = 1) -> Callable[[str], None]:
    """Raise `error` before the first `times` statements that contain `words`."""
    left = times

    def before(sql: str) -> None:
        nonlocal left
        if words in sql and left:
            left -= 1
            raise error

    return before
