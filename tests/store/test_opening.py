"""The database file: private, checked, set aside when it cannot be used, never deleted."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from agentik_server.domain import saves
from agentik_server.store import migrations, opening
from agentik_server.store.locks import ServerLock
from agentik_server.store.migrations import SCHEMA_VERSION
from agentik_server.store.opening import FILE, StoreUnavailable
from tests.store.running import Running


async def _filled(home: Path, *, texts: int = 1) -> str:
    """A home with one session, closed in order; returns the database's id."""
    running = await Running.open(home)
    await running.session()
    for number in range(texts):
        await running.send(f"m{number}", "words " * 200)
    await running.close()
    return running.opened.database_id


def _die(home: Path) -> None:
    """As if a server had been killed."""
    lock = ServerLock(home)
    lock.acquire()
    lock.release(clean=False)


async def _reopened(home: Path) -> tuple[str, tuple[str, ...], int]:
    """(database id, notices, number of sessions)"""
    running = await Running.open(home)
    status = await running.read(saves.ReadStatus())
    await running.close()
    assert isinstance(status, saves.StoreStatus)
    return running.opened.database_id, running.opened.notices, status.sessions


async def test_file_and_folder_are_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        running = await Running.open(tmp_path / "deep" / "home")
        await running.session()
        files = {path.name: path.stat().st_mode & 0o777 for path in running.home.iterdir() if path.is_file()}
        assert files == {FILE: 0o600, FILE + "-wal": 0o600, FILE + "-shm": 0o600}
        assert running.home.stat().st_mode & 0o777 == 0o700
        await running.close()
    finally:
        os.umask(old)


async def test_what_was_there_with_wide_open_modes_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await _filled(home)
    home.chmod(0o755)
    (home / FILE).chmod(0o644)
    await _reopened(home)
    assert (home.stat().st_mode & 0o777, (home / FILE).stat().st_mode & 0o777) == (0o700, 0o600)


async def test_the_database_keeps_its_id_and_its_content(tmp_path: Path) -> None:
    home = tmp_path / "home"
    database_id = await _filled(home)
    assert await _reopened(home) == (database_id, (), 1)


async def test_a_clean_end_leaves_neither_locks_nor_wal(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await _filled(home)
    assert sorted(path.name for path in home.rglob("*")) == [FILE, "locks", "opening.lock"]


@pytest.mark.parametrize("kind", ["file in place of the folder", "folder in place of the file"])
async def test_a_home_that_cannot_be_used_is_one_clear_line(tmp_path: Path, kind: str) -> None:
    home = tmp_path / "home"
    if kind.startswith("file"):
        home.write_text("not a folder")
    else:
        (home / FILE).mkdir(parents=True)
    with pytest.raises(StoreUnavailable) as caught:
        await Running.open(home)
    assert str(home) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_that_is_not_ours_to_write_is_one_clear_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    with pytest.raises(StoreUnavailable, match="Permission denied"):
        await Running.open(home)


@pytest.mark.parametrize("damage", ["no database", "cut off", "overwritten inside"])
async def test_a_damaged_database_is_set_aside_with_a_notice_and_never_deleted(
    tmp_path: Path, damage: str
) -> None:  # B58
    home = tmp_path / "home"
    database_id = await _filled(home, texts=50)
    content = (home / FILE).read_bytes()
    broken = {
        "no database": b"this is no database at all " * 1000,
        "cut off": content[: len(content) // 2],
        "overwritten inside": content[:20000] + b"\xaa" * 80000 + content[100000:],
    }[damage]
    (home / FILE).write_bytes(broken)
    _die(home)
    new_id, notices, sessions = await _reopened(home)
    assert (new_id != database_id, sessions, len(notices)) == (True, 0, 1)
    (aside,) = home.glob(FILE + ".damaged-*")
    assert str(aside) in notices[0]
    assert aside.read_bytes() == broken


async def test_a_newer_database_is_set_aside_whole(tmp_path: Path) -> None:  # B58
    home = tmp_path / "home"
    database_id = await _filled(home)
    with sqlite3.connect(home / FILE) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    _, notices, sessions = await _reopened(home)
    assert (sessions, "newer version" in notices[0]) == (0, True)
    (aside,) = home.glob(FILE + ".newer-*")
    with sqlite3.connect(aside) as db:
        assert db.execute("SELECT database_id FROM meta").fetchone() == (database_id,)
    db.close()


async def test_a_database_of_another_program_is_set_aside(tmp_path: Path) -> None:  # B58
    home = tmp_path / "home"
    home.mkdir()
    with sqlite3.connect(home / FILE) as db:
        db.execute("CREATE TABLE sessions (theirs)")
    db.close()
    _, notices, sessions = await _reopened(home)
    assert (sessions, "no database of Agentik" in notices[0]) == (0, True)


async def test_a_database_that_another_editor_uses_is_not_moved_away(tmp_path: Path) -> None:  # B58
    running = await Running.open(tmp_path / "home")
    await running.session()
    with sqlite3.connect(running.home / FILE) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    db.close()
    with pytest.raises(StoreUnavailable, match="another editor is using it"):
        await Running.open(running.home)
    assert len((await running.page()).messages) == 0
    await running.close()


async def test_the_schema_is_not_changed_under_an_older_editor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # B58
    running = await Running.open(tmp_path)
    monkeypatch.setattr(migrations, "_STEPS", (*migrations._STEPS, "CREATE TABLE more (x);"))
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    with pytest.raises(StoreUnavailable, match="older version"):
        await Running.open(tmp_path)
    await running.close()
    again = await Running.open(tmp_path)
    status = await again.read(saves.ReadStatus())
    assert isinstance(status, saves.StoreStatus)
    assert status.schema_version == SCHEMA_VERSION + 1
    await again.close()


async def test_reading_cannot_write(tmp_path: Path) -> None:
    running = await Running.open(tmp_path)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        await running.store._reader.run(lambda db: db.execute("DELETE FROM meta"))
    await running.close()


async def test_the_whole_file_is_checked_only_after_an_end_in_disorder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    await _filled(home)
    checks: list[bool] = []
    original = opening._check

    def check(db: sqlite3.Connection, path: Path, *, thorough: bool) -> None:
        checks.append(thorough)
        original(db, path, thorough=thorough)

    monkeypatch.setattr(opening, "_check", check)
    await _reopened(home)
    _die(home)
    await _reopened(home)
    await _reopened(home)
    assert checks == [False, True, False]


async def test_two_stores_live_on_one_home(tmp_path: Path) -> None:  # B59
    one, two = await Running.open(tmp_path), await Running.open(tmp_path)
    assert one.opened.database_id == two.opened.database_id
    assert one.opened.server_id != two.opened.server_id
    await one.session()
    assert (await two.page()).facts.owner == one.me
    await one.close()
    await two.session("t")
    await two.close()


async def test_the_switch_to_wal_is_tried_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # B62
    class Busy(sqlite3.Connection):
        fails = 3

        def execute(self, sql: str, *args: object) -> sqlite3.Cursor:
            if "journal_mode" in sql and Busy.fails:
                Busy.fails -= 1
                raise sqlite3.OperationalError("database is locked")
            return super().execute(sql, *args)  # type: ignore[arg-type]

    db = opening.connect(tmp_path / "x.db", Busy)
    opening._use_wal(db)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.close()
