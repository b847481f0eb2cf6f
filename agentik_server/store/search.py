"""Full-text search over every session: any input becomes a safe FTS5 query (no syntax of it can fail).

Called inside a transaction; reads only.
"""

from __future__ import annotations

import re
import sqlite3

from agentik_server.domain.saves import Match, Matches, SearchMessages
from agentik_server.store.rows import need_session

_TERM = re.compile(r'"([^"]*)"|([^\s"]+)')
_TERMS_AT_MOST = 32
_MATCHES_AT_MOST = 1000
_FINDS_AT_MOST = 5000  # messages that are looked at for the sessions they are of
_SNIPPET_WORDS = 16


def search_messages(db: sqlite3.Connection, read: SearchMessages) -> Matches:
    """The newest matches first. Raises Refused (unknownSession)."""
    session = need_session(db, read.session_id) if read.session_id is not None else None
    expression = fts_expression(read.query)
    if expression is None:
        return Matches(())
    if session is not None:
        expression = f'{expression} AND {{session}} : "s{session.number}"'
    rows = db.execute(
        f"SELECT s.session_id, m.message_id, snippet(search, 1, '', '', '…', {_SNIPPET_WORDS}), m.created_at"
        " FROM search JOIN messages AS m ON m.number = search.rowid JOIN sessions AS s ON s.number = m.session"
        " WHERE search MATCH ? ORDER BY search.rowid DESC LIMIT ?",
        (expression, max(1, min(read.limit, _MATCHES_AT_MOST))),
    ).fetchall()
    return Matches(tuple(Match(row[0], row[1], " ".join(row[2].split()), row[3]) for row in rows))


def sessions_with(db: sqlite3.Connection, query: str) -> frozenset[int]:
    """Numbers of the sessions in whose messages it is found, as far as the newest finds go."""
    expression = fts_expression(query)
    if expression is None:
        return frozenset()
    rows = db.execute(
        "SELECT DISTINCT session FROM messages WHERE number IN"
        " (SELECT rowid FROM search WHERE search MATCH ? ORDER BY rowid DESC LIMIT ?)",
        (expression, _FINDS_AT_MOST),
    )
    return frozenset(number for (number,) in rows)


def fts_expression(query: str) -> str | None:
    """All words must occur; "quoted words" in this order; a word with `*`, and the last one, begins a word.

    None when nothing in it can be searched for.
    """
    query = query.replace("\0", " ").encode(errors="ignore").decode()
    found = list(_TERM.finditer(query))[:_TERMS_AT_MOST]
    terms = []
    for index, term in enumerate(found):
        phrase, word = term.groups()
        text = phrase if word is None else word.rstrip("*")
        if not any(character.isalnum() for character in text):
            continue
        is_prefix = word is not None and (word.endswith("*") or (index == len(found) - 1 and _is_worth_a_prefix(word)))
        terms.append(f'"{text}"' + ("*" if is_prefix else ""))
    return f"{{text}} : ({' AND '.join(terms)})" if terms else None


def _is_worth_a_prefix(word: str) -> bool:
    """One Latin letter begins a twentieth of all words: as a prefix it costs much and finds nothing."""
    return len(word) > 1 or not word.isascii()
