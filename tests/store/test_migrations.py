"""Every schema version that ever landed is brought up to date with its data (B58)."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from agentik_server.domain import saves
from agentik_server.store import migrations, opening
from agentik_server.store.migrations import SCHEMA_VERSION, NewerSchema, migrate, schema_version
from tests.store.desk import memory
from tests.store.old.make import FOLDER, seen
from tests.store.running import Running

VERSIONS = range(1, SCHEMA_VERSION + 1)


def _schema(db: sqlite3.Connection) -> list[tuple[str, str]]:
    rows = db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()
    return [(name, " ".join(sql.split())) for name, sql in rows]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_database_shows_what_it_showed_and_has_todays_schema(version: int, tmp_path: Path) -> None:  # B58
    path = tmp_path / "old.db"
    shutil.copy(FOLDER / f"v{version}.db", path)
    db = opening.connect(path)
    assert migrate(db) == version
    assert schema_version(db) == SCHEMA_VERSION
    assert seen(db) == json.loads((FOLDER / f"v{version}.json").read_text())
    assert _schema(db) == _schema(memory())
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.execute("INSERT INTO search (search, rank) VALUES ('integrity-check', 1)")
    db.close()


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_old_home_is_opened_and_its_session_goes_on(version: int, tmp_path: Path) -> None:  # B58 B60
    shutil.copy(FOLDER / f"v{version}.db", tmp_path / opening.FILE)
    running = await Running.open(tmp_path)
    assert running.opened.notices == ()
    taken = await running.do(saves.TakeSession("s", running.opened.server_id, True, 9999))
    assert isinstance(taken, saves.Taken)
    assert taken.interrupted
    assert [item.message_id for item in taken.queue.items] == ["claimed", "waits"]
    page = await running.page()
    status = {message.message_id: message.status for message in page.messages}
    assert (status["back"], status["half"]) == ("unknown", "interrupted")
    await running.close()


def test_each_version_has_its_old_file() -> None:
    """A step that landed without one: run `python -m tests.store.old.make`."""
    assert sorted(path.name for path in FOLDER.glob("*.db")) == sorted(f"v{version}.db" for version in VERSIONS)


def test_a_newer_schema_is_not_touched() -> None:  # B58
    db = memory()
    db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(NewerSchema):
        migrate(db)
    assert schema_version(db) == SCHEMA_VERSION + 1


def test_a_step_that_fails_leaves_the_version_before(monkeypatch: pytest.MonkeyPatch) -> None:  # B58
    db = memory()

    def step(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half (x)")
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(migrations, "_STEPS", (*migrations._STEPS, step))
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    before = _schema(db)
    with pytest.raises(sqlite3.OperationalError):
        migrate(db)
    assert (schema_version(db), _schema(db)) == (SCHEMA_VERSION, before)


def test_each_database_has_its_own_id() -> None:
    ids = {memory().execute("SELECT database_id FROM meta").fetchone()[0] for _ in range(3)}
    assert len(ids) == 3
    assert {len(one) for one in ids} == {32}
