"""`agentik-server --vacuum`: gives space back, alone on the folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agentik_server.domain import saves
from agentik_server.domain.message import Attachment
from agentik_server.store.opening import FILE, StoreUnavailable
from agentik_server.store.upkeep import vacuum
from tests.store.running import Running


async def _filled(home: Path) -> None:
    running = await Running.open(home)
    await running.session()
    await running.session("keep")
    await running.send("a", "x" * 500_000, session_id="s")
    await running.send("b", "kept words", Attachment("/x/kept.txt", text="kept"), session_id="keep")
    await running.done(saves.DeleteSession("s", running.me))
    await running.close()


async def test_free_space_is_given_back_and_everything_is_still_there(tmp_path: Path) -> None:
    await _filled(tmp_path)
    before = (tmp_path / FILE).stat().st_size
    stray = tmp_path / "attachments" / "00" / "stray.txt"
    stray.parent.mkdir()
    stray.write_text("nobody needs it")
    line = await asyncio.to_thread(vacuum, tmp_path)
    assert (tmp_path / FILE).stat().st_size < before - 400_000
    assert "1 unused attachment removed" in line
    assert "\n" not in line
    assert not stray.exists()
    running = await Running.open(tmp_path)
    (item,) = (await running.page("keep")).queue.items
    assert item.attachments[0].stored is not None
    assert Path(item.attachments[0].stored).read_text() == "kept"
    await running.close()


async def test_not_while_an_editor_uses_it(tmp_path: Path) -> None:
    running = await Running.open(tmp_path)
    with pytest.raises(StoreUnavailable, match="in use"):
        await asyncio.to_thread(vacuum, tmp_path)
    await running.close()


def test_no_database_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="there is no database"):
        vacuum(tmp_path)


async def test_a_damaged_database_is_not_vacuumed(tmp_path: Path) -> None:
    await _filled(tmp_path)
    content = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(content[:20000] + b"\xaa" * 60000 + content[80000:])
    with pytest.raises(StoreUnavailable, match="cannot vacuum"):
        await asyncio.to_thread(vacuum, tmp_path)
