"""Session control of an agent: modes, options, login, sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentik_server.domain.happenings import CallAnswered, ControlsChanged, StartFailed

from .rig import Rig

MODELS = {"currentModelId": "m1", "availableModels": [{"modelId": "m1"}, {"modelId": "m2", "name": "Two"}]}
OPTIONS = [{"id": "b", "name": "B", "type": "boolean", "currentValue": False}]


async def call(rig: Rig, method: str, **params: Any) -> CallAnswered:
    count = len(rig.all(CallAnswered)) + 1
    rig.link.call(str(count), method, params)
    return await rig.next(CallAnswered, count)


async def test_a_mode_is_set_and_shown_though_the_agent_does_not_say_so(tmp_path: Path) -> None:
    async with Rig(
        tmp_path, new={"modes": {"currentModeId": "a", "availableModes": [{"id": "a"}, {"id": "b"}]}}
    ) as rig:
        ready = await rig.ready()
        assert ready.controls.modes == [{"id": "a", "name": "a"}, {"id": "b", "name": "b"}]
        assert (await call(rig, "set_mode", modeId="b")).error is None
        assert rig.all(ControlsChanged)[-1].controls.mode_id == "b"


async def test_models_of_older_agents_are_an_option_that_is_set_by_their_own_method(tmp_path: Path) -> None:
    async with Rig(tmp_path, new={"models": MODELS}) as rig:
        ready = await rig.ready()
        (option,) = ready.controls.config_options  # type: ignore[misc]  # a list of one
        assert (option["category"], option["currentValue"]) == ("model", "m1")
        assert (await call(rig, "set_config_option", configId=option["id"], value="m2")).error is None
        assert rig.received("session/set_model")[0]["modelId"] == "m2"
        assert rig.all(ControlsChanged)[-1].controls.config_options[0]["currentValue"] == "m2"  # type: ignore[index]


async def test_a_model_option_of_the_schema_goes_before_the_older_way(tmp_path: Path) -> None:
    option = {"id": "model", "category": "model", "type": "select", "currentValue": "x", "options": []}
    async with Rig(tmp_path, new={"models": MODELS, "configOptions": [option]}) as rig:
        assert (await rig.ready()).controls.config_options == [option]


async def test_a_boolean_option_is_set_as_one(tmp_path: Path) -> None:
    async with Rig(tmp_path, new={"configOptions": OPTIONS}) as rig:
        await rig.ready()
        answer = await call(rig, "set_config_option", configId="b", value=True)
        assert answer.error == '"Method not found": session/set_config_option (-32601)'
        sent = rig.received("session/set_config_option")[0]
        assert (sent["configId"], sent["value"], sent["type"]) == ("b", True, "boolean")


@pytest.mark.parametrize("method", ["delete", "close", "list"])
async def test_what_the_agent_does_not_offer_is_not_asked_of_it(tmp_path: Path, method: str) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        assert "does not support" in ((await call(rig, method)).error or "")
        assert rig.received(f"session/{method}") == []


async def test_calls_without_an_agent_and_unknown_ones_are_errors(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        assert (await call(rig, "set_mode", modeId="x")).error == "the agent is not running"
        await rig.ready()
        assert (await call(rig, "fly")).error == "there is no call fly"


async def test_a_login_in_a_terminal_is_not_asked_of_the_agent_but_told_to_the_person(tmp_path: Path) -> None:
    methods = [{"id": "t", "name": "T", "type": "terminal", "args": ["login"]}]
    async with Rig(tmp_path, init={"authMethods": methods}, new_error=[-32000, "auth"]) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        answer = await call(rig, "authenticate", methodId="t")
        assert "login" in (answer.error or "")
        assert rig.received("authenticate") == []


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ([-32603, '{"error":{"code":400,"message":"bad key"}}'], "bad key (-32603)"),
        ([-32603, "Internal error", {"details": "no route"}], "Internal error: no route (-32603)"),
        ([1001, "app-server died"], "app-server died (1001)"),
        ([401, "401 Unauthorized"], "401 Unauthorized"),
        ([-32000, "a\nb"], "a b (-32000)"),
    ],
)
async def test_an_error_of_the_agent_is_one_readable_line(tmp_path: Path, error: list[Any], line: str) -> None:
    async with Rig(tmp_path, new_error=error) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert line in failed.detail
        assert failed.reason == ("authRequired" if error[0] in (401, -32000) else "failed")


async def test_frames_are_kept_where_the_settings_want_it(tmp_path: Path) -> None:
    from dataclasses import replace

    async with Rig(tmp_path) as rig:
        rig.policy = replace(rig.policy, trace=True, log_dir=str(tmp_path / "log"))
        await rig.ready()
        await rig.ask("traced")
    (path,) = (tmp_path / "log").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    lines = [line.split(" ", 2) for line in path.read_text().splitlines()]
    assert {direction for _, direction, _ in lines} == {"<", ">"}
    assert any(json.loads(frame).get("method") == "session/prompt" for _, _, frame in lines)
