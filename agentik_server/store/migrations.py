"""The schema, as numbered steps; `migrate` brings a database of any landed version up to date (B58).

A landed step is never changed: add a new one. Must not read or write anything but the database it is given.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

APPLICATION_ID = 0x41676E74  # "Agnt": tells our file from another program's


class NewerSchema(Exception):  # noqa: N818 -- says what it is
    """The file was written by a newer version of Agentik."""

    def __init__(self, found: int) -> None:
        super().__init__(f"schema version {found}, this program knows {SCHEMA_VERSION}")
        self.found = found


# Version 1. What the columns mean:
#   meta      one row. `revision`: the counter of PROTOCOL.md. `index_state`, and the table `doomed`: see purging.py.
#   sessions  `number` stands for the session in the other tables and is never used twice. `owner_server` NULL: nobody
#             runs its turns. `generation` grows with each owner (B59). `queue_revision`: last change of the queue.
#   messages  the transcript; `deleted` rows are tombstones. `unfinished`: streaming, or a tool call that is open.
#             `indexed`: `search` has an entry of it, made of its row in `searchable`; set before the entry is made,
#             cleared after it is deleted. `words`: of a plan, to be found by (FTS5 may not use json_each for it).
#   pending   waiting ("pending") and taken ("claimed") items; `place` orders them, whatever the clock says (B12).
#   turns     open while `ended_at` is NULL; `journaled`: its prompt may have reached the agent (B6); `message_id`: the
#             first message of the user in it.
#   submissions  the ledger of B4; outlives its messages and sessions.
#   attachment_uses / trash  who needs a kept file; files that may be deleted once nobody does (B51).
_VERSION_1 = """
CREATE TABLE meta (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  database_id TEXT NOT NULL,
  revision INTEGER NOT NULL,
  index_state INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO meta (one, database_id, revision) VALUES (1, lower(hex(randomblob(16))), 0);
CREATE TABLE doomed (session INTEGER PRIMARY KEY) STRICT;

CREATE TABLE sessions (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL UNIQUE,
  agent_id TEXT NOT NULL,
  cwd TEXT NOT NULL,
  title TEXT NOT NULL,
  title_by_user INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  agent_session_id TEXT,
  controls TEXT NOT NULL,
  state TEXT NOT NULL,
  connection TEXT NOT NULL,
  owner_server TEXT,
  generation INTEGER NOT NULL,
  pause_reason TEXT,
  pause_detail TEXT NOT NULL DEFAULT '',
  held_until INTEGER NOT NULL DEFAULT 0,
  queue_revision INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_newest ON sessions (updated_at, session_id);

CREATE TABLE messages (
  number INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  turn_id TEXT,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  attachments TEXT,
  tool TEXT,
  plan TEXT,
  words TEXT,
  send_kind TEXT NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0,
  unfinished INTEGER NOT NULL,
  indexed INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL,
  UNIQUE (session, message_id)
) STRICT;
CREATE INDEX messages_by_seq ON messages (session, seq);
CREATE INDEX messages_by_revision ON messages (session, revision);
CREATE INDEX messages_of_user ON messages (session, turn_id) WHERE kind = 'user';
CREATE INDEX messages_unfinished ON messages (session) WHERE unfinished = 1;

CREATE TABLE pending (
  session INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'claimed')),
  turn_id TEXT,
  text TEXT NOT NULL,
  text_bytes INTEGER NOT NULL,
  attachments TEXT,
  send_kind TEXT NOT NULL,
  urgent INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  PRIMARY KEY (session, message_id)
) STRICT;
CREATE INDEX pending_in_order ON pending (session, state, place);

CREATE TABLE turns (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  turn_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  journaled INTEGER NOT NULL DEFAULT 0,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  stop_reason TEXT,
  error TEXT,
  UNIQUE (session, turn_id)
) STRICT;
CREATE INDEX turns_newest ON turns (session, number);
CREATE INDEX turns_open ON turns (session) WHERE ended_at IS NULL;

CREATE TABLE submissions (
  message_id TEXT PRIMARY KEY,
  session_id TEXT NOT NULL,
  text_hash BLOB NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('started', 'queued', 'removed'))
) STRICT, WITHOUT ROWID;

CREATE TABLE asks (
  session INTEGER NOT NULL,
  ask_id TEXT NOT NULL,
  body TEXT NOT NULL,
  outcome TEXT,
  PRIMARY KEY (session, ask_id)
) STRICT;

CREATE TABLE mail (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  body TEXT NOT NULL,
  posted_at INTEGER NOT NULL
) STRICT;
CREATE INDEX mail_of_session ON mail (session, number);

CREATE TABLE attachment_uses (
  stored TEXT NOT NULL,
  session INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  PRIMARY KEY (stored, session, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachment_uses_of_message ON attachment_uses (session, message_id);
CREATE TABLE trash (stored TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

CREATE VIEW searchable (number, session, text) AS
  SELECT m.number, 's' || m.session,
    substr(CASE m.kind
      WHEN 'tool' THEN m.text || ' ' || coalesce(json_extract(m.tool, '$.title'), '')
                              || ' ' || substr(coalesce(json_extract(m.tool, '$.output'), ''), 1, 16000)
      WHEN 'plan' THEN m.text || ' ' || coalesce(m.words, '')
      ELSE m.text END, 1, 200000)
  FROM messages AS m WHERE m.indexed = 1;
CREATE VIRTUAL TABLE search USING fts5 (session, text, content = 'searchable', content_rowid = 'number');
"""

# Version 2. `notices`: what the owner told the person, for other editors; only the last of each session stay.
_VERSION_2 = """
CREATE TABLE notices (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  session INTEGER NOT NULL,
  level TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;
CREATE INDEX notices_of_session ON notices (session, number);
"""

_STEPS: tuple[str | Callable[[sqlite3.Connection], None], ...] = (_VERSION_1, _VERSION_2)
SCHEMA_VERSION = len(_STEPS)


def schema_version(db: sqlite3.Connection) -> int:
    """0 for a new, empty file."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def refuse_newer(db: sqlite3.Connection) -> int:
    """The version found. Raises NewerSchema."""
    found = schema_version(db)
    if found > SCHEMA_VERSION:
        raise NewerSchema(found)
    return found


def migrate(db: sqlite3.Connection) -> int:
    """Bring `db` to `SCHEMA_VERSION`, each step in its own transaction; returns the version found.

    The connection must not open transactions by itself (`isolation_level=None`). Raises NewerSchema, sqlite3.Error.
    """
    found = refuse_newer(db)
    for version in range(found, SCHEMA_VERSION):
        db.execute("BEGIN IMMEDIATE")
        try:
            if schema_version(db) == version:  # another process may have come first
                _carry_out(db, _STEPS[version])
                db.execute(f"PRAGMA user_version = {version + 1}")
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
    return found


def _carry_out(db: sqlite3.Connection, step: str | Callable[[sqlite3.Connection], None]) -> None:
    if callable(step):
        step(db)
        return
    statement = ""
    for line in step.splitlines(keepends=True):  # not executescript: it would commit before it starts
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
