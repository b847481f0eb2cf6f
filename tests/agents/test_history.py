"""What an agent replays while a session is loaded (B54)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentik_server.agents import replays
from agentik_server.agents.replays import ReplayedHistory
from agentik_server.domain.happenings import AgentExited, AgentReady, HistoryReplayed, Replayed
from agentik_server.domain.message import PlanEntry, ToolChange

from .rig import Rig


def chunk(kind: str, text: str, **more: object) -> dict[str, Any]:
    return {"sessionUpdate": f"{kind}_chunk", "content": {"type": "text", "text": text}, **more}


def history_of(*updates: dict[str, Any]) -> tuple[Replayed, ...]:
    history = ReplayedHistory()
    for update in updates:
        history.apply(update)
    return history.entries()


def test_consecutive_chunks_of_one_kind_are_one_entry() -> None:
    assert history_of(
        chunk("user_message", "a"),
        chunk("user_message", "b"),
        chunk("agent_thought", "t"),
        chunk("agent_message", "c\ud83d"),
        chunk("agent_message", "\ude00d"),
        chunk("agent_message", "e", messageId="2"),
    ) == (Replayed("user", "ab"), Replayed("thought", "t"), Replayed("agent", "c😀d"), Replayed("agent", "e"))


def test_a_tool_call_is_one_entry_as_it_ended_where_it_began() -> None:
    assert history_of(
        {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "T", "status": "pending"},
        chunk("agent_message", "x"),
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"},
        {"sessionUpdate": "plan", "entries": [{"content": "p"}]},
    ) == (
        Replayed("tool", tool=ToolChange("t", title="T", status="completed")),
        Replayed("agent", "x"),
        Replayed("plan", plan=(PlanEntry("p"),)),
    )


def test_other_updates_and_broken_ones_are_no_history() -> None:
    assert history_of({}, {"sessionUpdate": "usage_update", "used": 1}, {"sessionUpdate": "user_message_chunk"}) == ()


def test_a_history_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "MAX_ENTRIES", 10)
    assert len(history_of(*(chunk("agent_message", "x", messageId=str(i)) for i in range(100)))) <= 11


@pytest.mark.parametrize("late", [0, 10])
async def test_the_history_is_told_once_when_the_session_is_loaded(tmp_path: Path, late: int) -> None:
    async with Rig(tmp_path, load=True, replay=4, replay_late=late) as rig:
        first = await rig.ready()
        rig.link.stop()
        await rig.next(AgentExited)
        rig.continued(first.agent_session_id)
        await rig.ready()
        told = await rig.next(HistoryReplayed)
        kinds = [entry.kind for entry in told.entries]
        assert kinds == ["user", "agent"] * ((4 + late) // 2)
        assert told.entries[1].text == "replayed 1"
        assert rig.told.index(told) > rig.told.index(rig.all(AgentReady)[1])


async def test_a_resumed_session_tells_no_history(tmp_path: Path) -> None:
    async with Rig(tmp_path, resume="replays", replay=4) as rig:
        first = await rig.ready()
        rig.link.stop()
        await rig.next(AgentExited)
        rig.continued(first.agent_session_id)
        await rig.ready()
        await rig.ask("x")
        assert rig.all(HistoryReplayed) == []
