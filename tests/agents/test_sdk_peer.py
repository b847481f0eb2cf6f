"""Our link with an agent on the Python SDK, which checks every frame of ours against the schema."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentik_server.domain.happenings import (
    CallAnswered,
    Happening,
    PermissionAsked,
    PromptAnswered,
    QuestionAsked,
    TextArrived,
)
from agentik_server.domain.message import Attachment, Position, Range
from agentik_server.ports import AgentPolicy

from .rig import Rig

pytest.importorskip("acp")
SDK = (sys.executable, str(Path(__file__).with_name("sdk_agent.py")))


async def test_every_client_method_is_served_as_the_schema_has_it(tmp_path: Path) -> None:
    async with Rig(tmp_path, command=SDK, policy=AgentPolicy(terminal="allow")) as rig:
        ready = await rig.ready()
        assert ready.agent_name == "sdk 1"
        assert ready.controls.mode_id == "m"

        def react(happening: Happening) -> None:
            if isinstance(happening, PermissionAsked):
                rig.link.answer_permission(happening.permission_id, "yes")
            if isinstance(happening, QuestionAsked):
                rig.link.answer_question(happening.question_id, "accept", {"name": "Ada"})

        rig.react = react
        assert (await rig.ask("all")).stop_reason == "end_turn"
        assert rig.text == "chosen yes;read 'two\\n';terminal 0 'hi\\n' False;form accept {'name': 'Ada'}"
        assert (rig.cwd / "sdk.txt").read_text() == "one\ntwo\n"


async def test_every_kind_of_block_is_one_of_the_schema(tmp_path: Path) -> None:
    image = tmp_path / "i.png"
    image.write_bytes(b"\x89PNG")
    binary = tmp_path / "b.bin"
    binary.write_bytes(b"\0\1")
    part = Range(Position(0, 0), Position(1, 0))
    async with Rig(tmp_path, command=SDK) as rig:
        await rig.ready()
        attachments = (Attachment("/a.py", range=part, text="x"), Attachment(str(image)), Attachment(str(binary)))
        await rig.ask("look", *attachments)
        assert rig.text == "text resource image resource_link"


async def test_cancel_mode_and_list_are_understood(tmp_path: Path) -> None:
    async with Rig(tmp_path, command=SDK) as rig:
        await rig.ready()
        rig.link.call("1", "set_mode", {"modeId": "m"})
        rig.link.call("2", "list", {})
        listed = await rig.next(CallAnswered, 2)
        assert [answer.error for answer in rig.all(CallAnswered)] == [None, None]
        assert listed.result["sessions"][0]["sessionId"] == "sdk-1"  # type: ignore[index]
        turn = rig.send("wait")
        await rig.next(TextArrived)
        rig.link.cancel(turn)
        end = await rig.ended(turn)
        assert isinstance(end, PromptAnswered)
        assert end.stop_reason == "cancelled"
