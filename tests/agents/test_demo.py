"""The demo agent, as a process, over the real link."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agentik_server.agents.demo.memory import Memory
from agentik_server.domain.happenings import (
    AgentExited,
    CallAnswered,
    ControlsChanged,
    Happening,
    PermissionAsked,
    PlanChanged,
    PromptAnswered,
    QuestionAsked,
    TextArrived,
    TitleSuggested,
    ToolCallChanged,
)
from agentik_server.domain.message import Attachment

from .rig import Rig

DEMO = (sys.executable, "-P", "-m", "agentik_server.agents.demo")


@pytest.fixture
async def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return Rig(tmp_path, command=DEMO, env={"AGENTIK_DEMO_RATE": "0"})


async def test_it_says_at_once_that_no_model_is_behind_it(demo: Rig) -> None:
    async with demo as rig:
        await rig.ready()
        sent = time.monotonic()
        turn = rig.send("hello there")
        await rig.next(TextArrived)
        assert time.monotonic() - sent < 1.0
        await rig.ended(turn)
        assert "There is no language model behind me" in rig.text
        assert "11 characters, 2 words" in rig.text
        assert "> hello there" in rig.text
        assert (await rig.next(TitleSuggested)).title == "hello there"


async def test_it_offers_modes_options_commands_and_tells_usage(demo: Rig) -> None:
    async with demo as rig:
        ready = await rig.ready()
        assert ready.controls.mode_id == "ask"
        assert [option["id"] for option in ready.controls.config_options] == ["speed", "thoughts"]  # type: ignore[attr-defined]
        commands = await rig.next(ControlsChanged)
        assert "tour" in [command["name"] for command in commands.controls.commands]  # type: ignore[attr-defined]
        await rig.ask("hi")
        assert rig.all(ControlsChanged)[-1].controls.usage["size"] == 32000  # type: ignore[index]


async def test_the_tour_shows_one_of_each_and_writes_its_file_only_when_allowed(demo: Rig) -> None:
    async with demo as rig:
        await rig.ready()
        rig.answer_all("allow")
        assert (await rig.ask("/tour")).stop_reason == "end_turn"
        assert [entry.status for entry in rig.all(PlanChanged)[-1].entries] == ["completed"] * 3
        assert {h.kind for h in rig.all(TextArrived)} == {"agent", "thought"}
        asked = await rig.next(PermissionAsked)
        assert asked.tool.diffs is not None
        assert (rig.cwd / "agentik-demo.txt").read_text() == asked.tool.diffs[0].new_text
        final = {h.change.tool_call_id: h.change.status for h in rig.all(ToolCallChanged)}
        assert list(final.values()) == ["completed", "completed"]


async def test_a_rejected_edit_touches_nothing(demo: Rig) -> None:
    async with demo as rig:
        await rig.ready()
        rig.answer_all("reject")
        await rig.ask("/edit")
        assert list(rig.cwd.iterdir()) == []
        assert "was not touched" in rig.text


async def test_a_file_of_the_user_with_the_name_of_the_scratch_file_is_left_alone(demo: Rig) -> None:
    async with demo as rig:
        (rig.cwd / "agentik-demo.txt").write_text("mine")
        await rig.ready()
        rig.answer_all("allow")
        await rig.ask("/edit")
        assert (rig.cwd / "agentik-demo.txt").read_text() == "mine"
        assert (rig.cwd / "agentik-demo-2.txt").exists()


async def test_the_mode_look_only_writes_and_asks_nothing(demo: Rig) -> None:
    async with demo as rig:
        await rig.ready()
        rig.link.call("1", "set_mode", {"modeId": "look"})
        assert (await rig.next(CallAnswered)).error is None
        await rig.ask("/edit")
        assert rig.all(PermissionAsked) == []
        assert list(rig.cwd.iterdir()) == []


async def test_it_asks_a_question_and_uses_the_answer(demo: Rig) -> None:
    async with demo as rig:
        await rig.ready()

        def react(happening: Happening) -> None:
            if isinstance(happening, QuestionAsked):
                rig.link.answer_question(happening.question_id, "accept", {"name": "Ada", "colour": "blue"})

        rig.react = react
        await rig.ask("/ask")
        assert "Nice to meet you, Ada! Colour: blue." in rig.text


async def test_a_long_answer_can_be_stopped_and_the_next_one_comes(demo: Rig) -> None:
    demo.launch.spec.env["AGENTIK_DEMO_RATE"] = "200"  # type: ignore[index]
    async with demo as rig:
        await rig.ready()
        turn = rig.send("/long")
        await rig.next(TextArrived, 5)
        rig.link.cancel(turn)
        end = await rig.ended(turn)
        assert isinstance(end, PromptAnswered)
        assert end.stop_reason == "cancelled"
        assert (await rig.ask("/help", quiet=True)).stop_reason == "end_turn"


async def test_it_crashes_when_told_to_and_goes_on_with_the_same_session(demo: Rig) -> None:
    async with demo as rig:
        ready = await rig.ready()
        await rig.ask("remember me")
        end = await rig.ended(rig.send("/crash"))
        assert isinstance(end, AgentExited)
        assert "exit code 42; stderr: demo agent: this crash was asked for" in end.detail
        rig.continued(ready.agent_session_id)
        again = await rig.ready()
        assert (again.how, again.context_reset) == ("resumed", False)
        await rig.ask("and again")
        assert rig.text.count("There is no language model") == 1


async def test_a_replay_holds_what_was_said(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m")
    session_id = memory.create()
    memory.add(session_id, [{"role": "user", "text": "a"}])
    memory.add(session_id, [{"role": "agent", "text": "b"}])
    assert [item["text"] for item in memory.recall(session_id) or []] == ["a", "b"]
    assert memory.recall("demo-../../etc/passwd") is None
    memory.forget(session_id)
    assert memory.recall(session_id) is None


async def test_attachments_are_named_with_their_size(demo: Rig) -> None:
    async with demo as rig:
        await rig.ready()
        await rig.ask("look", Attachment("/x/a file.py", text="one\ntwo\n"))
        assert "attached: `file:///x/a%20file.py`: 2 lines of text" in rig.text


async def test_an_unknown_command_is_said_to_be_unknown(demo: Rig) -> None:
    async with demo as rig:
        await rig.ready()
        await rig.ask("/nonsense")
        assert "I do not know the command `/nonsense`" in rig.text


def test_it_starts_without_reading_the_folder_it_is_started_in(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')")
    done = subprocess.run(DEMO, check=False, cwd=tmp_path, input=b"", capture_output=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")


async def test_an_independent_client_can_talk_to_it(tmp_path: Path) -> None:
    """The Python SDK's client, which checks every message against the schema."""
    acp = pytest.importorskip("acp")

    class Client:
        def __init__(self) -> None:
            self.texts: list[str] = []

        async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
            if update.session_update == "agent_message_chunk":
                self.texts.append(update.content.text)

        async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
            return {"outcome": {"outcome": "selected", "optionId": options[1].option_id}}

    client = Client()
    env = {**os.environ, "AGENTIK_DEMO_RATE": "0", "TMPDIR": str(tmp_path)}
    async with acp.spawn_agent_process(client, *DEMO, env=env, cwd=str(tmp_path)) as (agent, _process):
        await agent.initialize(protocol_version=1)
        session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        blocks = [acp.helpers.text_block("/tour")]
        async with asyncio.timeout(30):
            answer = await agent.prompt(session_id=session.session_id, prompt=blocks)
        assert answer.stop_reason == "end_turn"
        assert "was not touched" in "".join(client.texts)
