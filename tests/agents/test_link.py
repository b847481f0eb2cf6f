"""One link with a scripted agent process: start, turns, cancel, end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from agentik_server.domain.happenings import (
    AgentExited,
    AgentReady,
    AskWithdrawn,
    ConnectionChanged,
    ControlsChanged,
    PermissionAsked,
    PlanChanged,
    PromptAnswered,
    PromptNotWritten,
    StartFailed,
    TextArrived,
    TitleSuggested,
    ToolCallChanged,
)
from agentik_server.ports import AgentPolicy, AgentSpec, PromptBlock

from .rig import Rig


async def test_a_start_is_told_step_by_step(tmp_path: Path) -> None:  # B38
    async with Rig(tmp_path) as rig:
        ready = await rig.ready()
        assert rig.states == ["connecting", "initializing", "connected", "has_session"]
        assert ready.how == "new"
        assert not ready.context_reset
        assert ready.agent_name == "scripted 1"


async def test_a_turn_is_streaming_from_its_prompt_to_its_answer(tmp_path: Path) -> None:  # B38
    async with Rig(tmp_path) as rig:
        await rig.ready()
        assert (await rig.ask("hello")).stop_reason == "end_turn"
        assert rig.text == "echo: hello"
        assert rig.states[-2:] == ["streaming", "has_session"]


TEXTS = [
    "a\r\nb",
    "  lead",
    "😀 e\u0301",
    "x\u2028y\u2029z\u0085",
    "tab\t",
    '{"jsonrpc":"2.0"}',
    "\\u0000",
    "ü" * 500_000,
]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
async def test_a_text_reaches_the_agent_byte_for_byte(tmp_path: Path, text: str) -> None:  # B10
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask(text)
        assert rig.received("session/prompt")[0]["prompt"] == [{"type": "text", "text": text}]
        assert rig.text == "echo: " + text


async def test_several_messages_of_one_prompt_are_blocks_of_their_own(tmp_path: Path) -> None:  # B17
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.link.prompt("t", [PromptBlock("one"), PromptBlock("two")], quiet=False)
        await rig.ended("t")
        assert [block["text"] for block in rig.received("session/prompt")[0]["prompt"]] == ["one", "two"]


async def test_everything_of_a_turn_arrives_in_wire_order(tmp_path: Path) -> None:  # B46
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask("#think t\n#say a\n#tool x read pending Read\n#say b\n#plan p;q\n#say c\n#title Title\n#mode m")
        kinds = (TextArrived, ToolCallChanged, PlanChanged, TitleSuggested, ControlsChanged, PromptAnswered)
        told = [type(h).__name__ for h in rig.told if isinstance(h, kinds)]
        assert told == [
            "TextArrived",
            "TextArrived",
            "ToolCallChanged",
            "TextArrived",
            "PlanChanged",
            "TextArrived",
            "TitleSuggested",
            "ControlsChanged",
            "PromptAnswered",
        ]


async def test_a_cancel_is_one_notification_and_the_answer_ends_the_turn(tmp_path: Path) -> None:  # B32
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#say begun\n#hang")
        await rig.next(TextArrived)
        rig.link.cancel(turn)
        rig.link.cancel(turn)
        end = await rig.ended(turn)
        assert isinstance(end, PromptAnswered)
        assert end.stop_reason == "cancelled"
        assert len(rig.received("session/cancel")) == 1


async def test_a_cancel_of_another_turn_or_of_none_sends_nothing(tmp_path: Path) -> None:  # B34
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.link.cancel("none")
        turn = rig.send("#say x")
        rig.link.cancel("other")
        await rig.ended(turn)
        assert rig.received("session/cancel") == []


async def test_a_cancel_answers_open_permissions_as_cancelled(tmp_path: Path) -> None:  # B32
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#ignore_cancel\n#requests 3")
        await rig.next(PermissionAsked, 3)
        rig.link.cancel(turn)
        await rig.ended(turn)
        assert rig.text == "permissions: cancelled cancelled cancelled"
        assert len(rig.all(AskWithdrawn)) == 3


async def test_a_permission_that_comes_after_the_cancel_is_answered_at_once(tmp_path: Path) -> None:  # B32
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#ignore_cancel\n#say begun\n#wait_cancel\n#permission t")
        await rig.next(TextArrived)
        rig.link.cancel(turn)
        await rig.ended(turn)
        assert rig.text == "begunpermission: cancelled\n"
        assert rig.all(PermissionAsked) == []


async def test_a_prompt_that_waits_for_quiet_can_still_be_dropped(tmp_path: Path) -> None:  # B34, B37
    async with Rig(tmp_path, policy=AgentPolicy(quiet_s=30, quiet_limit_s=30)) as rig:
        await rig.ready()
        await rig.ask("one")
        turn = rig.send("two", quiet=True)
        rig.link.cancel(turn)
        assert isinstance(await rig.ended(turn), PromptNotWritten)
        assert len(rig.received("session/prompt")) == 1


async def test_after_a_cancel_the_next_prompt_waits_until_late_chunks_are_through(tmp_path: Path) -> None:  # B37
    async with Rig(tmp_path, policy=AgentPolicy(quiet_s=0.2, quiet_limit_s=5)) as rig:
        await rig.ready()
        await rig.ask("#late one\n#late two\n#say x")
        await rig.ask("next", quiet=True)
        streaming = [
            i for i, h in enumerate(rig.told) if isinstance(h, ConnectionChanged) and h.connection == "streaming"
        ]
        texts = [h.text for h in rig.told[: streaming[1]] if isinstance(h, TextArrived)]
        assert "".join(texts) == "xonetwo"


async def test_a_second_prompt_beside_an_open_one_is_never_written(tmp_path: Path) -> None:  # B3
    async with Rig(tmp_path) as rig:
        await rig.ready()
        first = rig.send("#hang")
        second = rig.send("two")
        assert isinstance(await rig.ended(second), PromptNotWritten)
        rig.link.cancel(first)
        await rig.ended(first)
        assert len(rig.received("session/prompt")) == 1


async def test_a_prompt_without_an_agent_is_not_written(tmp_path: Path) -> None:  # B26
    async with Rig(tmp_path) as rig:
        assert isinstance(await rig.ended(rig.send("x")), PromptNotWritten)


async def test_only_offered_options_are_sent_and_the_first_answer_counts(tmp_path: Path) -> None:  # B48
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#permission t1 Edit a file")
        asked = await rig.next(PermissionAsked)
        assert [option.kind for option in asked.options] == ["allow_once", "allow_always", "reject_once"]
        assert asked.tool.title == "Edit a file"
        rig.link.answer_permission(asked.permission_id, "no")
        rig.link.answer_permission(asked.permission_id, "yes")
        await rig.ended(turn)
        assert rig.text == "permission: no\n"


async def test_several_permissions_are_answerable_in_any_order(tmp_path: Path) -> None:  # B48
    async with Rig(tmp_path) as rig:
        await rig.ready()
        turn = rig.send("#requests 3")
        await rig.next(PermissionAsked, 3)
        asked = rig.all(PermissionAsked)
        for permission, option in ((asked[2], "always"), (asked[0], "yes"), (asked[1], None)):
            rig.link.answer_permission(permission.permission_id, option)
        await rig.ended(turn)
        assert rig.text == "permissions: yes cancelled always"


async def test_the_death_of_the_agent_ends_the_turn_with_code_and_stderr(tmp_path: Path) -> None:  # B42
    async with Rig(tmp_path) as rig:
        await rig.ready()
        end = await rig.ended(rig.send("#say partial\n#stderr out of luck\n#exit 7"))
        assert isinstance(end, AgentExited)
        assert not end.wanted
        assert "exit code 7; stderr: out of luck" in end.detail
        assert rig.states[-1] == "disconnected"
        assert rig.text == "partial"


async def test_a_grandchild_that_holds_the_pipes_does_not_hide_the_death(tmp_path: Path) -> None:  # B42
    async with Rig(tmp_path) as rig:
        await rig.ready()
        end = await rig.ended(rig.send("#fork\n#crash"))
        assert isinstance(end, AgentExited)
        assert "SIGKILL" in end.detail


async def test_an_open_permission_is_withdrawn_when_the_agent_dies(tmp_path: Path) -> None:  # B48
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.send("#permission t1")
        asked = await rig.next(PermissionAsked)
        rig.link.kill()
        exited = await rig.next(AgentExited)
        assert exited.wanted
        assert rig.all(AskWithdrawn) == [AskWithdrawn(asked.permission_id)]


async def test_after_its_end_an_agent_can_be_started_again(tmp_path: Path) -> None:  # B44
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.link.stop()
        assert (await rig.next(AgentExited)).wanted
        await rig.ready()
        await rig.ask("again")
        assert rig.text == "echo: again"


async def test_a_start_during_the_end_is_carried_out_after_it(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.link.stop()
        rig.link.start(rig.launch, 1)
        await rig.next(AgentReady, 2)
        assert len(rig.all(AgentExited)) == 1


async def test_stop_during_the_start_ends_it(tmp_path: Path) -> None:
    async with Rig(tmp_path, no_init=True) as rig:
        rig.link.start(rig.launch, 1)
        await rig.until(lambda: "initializing" in rig.states)
        rig.link.stop()
        assert (await rig.next(AgentExited)).wanted
        assert rig.all(StartFailed) == []


async def test_a_missing_command_is_named_with_how_to_install_it(tmp_path: Path) -> None:  # B45
    spec = AgentSpec("nope", "Nope", ("no-such-agent-anywhere",), install_hint="npm i -g nope")
    async with Rig(tmp_path, spec=spec) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert failed.reason == "missing"
        assert failed.detail == "Nope: the command no-such-agent-anywhere was not found; install it: npm i -g nope"
        assert rig.states == ["error_startup", "disconnected"]


async def test_a_death_at_the_start_shows_code_and_stderr(tmp_path: Path) -> None:  # B45
    async with Rig(tmp_path, exit_at="initialize", code=4, stderr="no key\nset API_KEY") as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert failed.reason == "failed"
        assert "ended at its start: exit code 4; stderr: no key set API_KEY" in failed.detail
        assert f"(command: {sys.executable})" in failed.detail
        assert rig.states == ["connecting", "initializing", "error_startup", "disconnected"]


async def test_no_answer_to_initialize_is_a_timeout_and_nothing_is_left(tmp_path: Path) -> None:  # B39
    async with Rig(tmp_path, no_init=True, policy=AgentPolicy(startup_s=0.3)) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert failed.reason == "timeout"
        assert "did not answer to initialize in 0.3 s" in failed.detail


async def test_a_login_that_is_needed_keeps_the_agent_and_a_start_after_it_goes_on(tmp_path: Path) -> None:  # B29
    methods = [{"id": "key", "name": "API key"}]
    async with Rig(tmp_path, new_error=[-32000, "Authentication required"], init={"authMethods": methods}) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert failed.reason == "authRequired"
        assert failed.auth_methods == methods
        rig.link.call("1", "authenticate", {"methodId": "key"})
        await rig.ready()
        await rig.ask("in")
        assert rig.text == "echo: in"
        assert len(rig.received("initialize")) == 1


async def test_an_earlier_session_is_resumed_where_the_agent_can(tmp_path: Path) -> None:  # B40
    async with Rig(tmp_path, resume=True, load=True) as rig:
        first = await rig.ready()
        rig.link.stop()
        await rig.next(AgentExited)
        rig.continued(first.agent_session_id)
        again = await rig.ready()
        assert (again.how, again.context_reset) == ("resumed", False)
        assert again.agent_session_id == first.agent_session_id
        assert rig.received("session/load") == []


@pytest.mark.parametrize("late", [0, 40])
async def test_a_session_is_loaded_and_the_replay_is_not_shown(tmp_path: Path, late: int) -> None:  # B40
    async with Rig(tmp_path, load=True, replay=50, replay_late=late) as rig:
        first = await rig.ready()
        rig.link.stop()
        await rig.next(AgentExited)
        rig.continued(first.agent_session_id)
        assert (await rig.ready()).how == "loaded"
        await rig.ask("new")
        assert rig.text == "echo: new"


async def test_a_replay_on_resume_is_not_shown(tmp_path: Path) -> None:  # B40
    async with Rig(tmp_path, resume="replays", replay=50) as rig:
        first = await rig.ready()
        rig.link.stop()
        await rig.next(AgentExited)
        rig.continued(first.agent_session_id)
        assert (await rig.ready()).how == "resumed"
        await rig.ask("new")
        assert rig.text == "echo: new"


LOST = [
    [-32002, "Resource not found"],
    [-32601, "Method not found"],
    [-32602, "Unknown session: x"],
    [-32603, "Internal error", {"details": "No previous sessions found for this project."}],
    [-32603, "Internal error", "no rollout found for thread id x"],
    [-32600, "session x does not exist"],
]


@pytest.mark.parametrize("error", LOST, ids=lambda error: str(error[0]) + error[1][:9])
async def test_an_unknown_session_is_begun_anew_with_a_notice(tmp_path: Path, error: list[object]) -> None:  # B40
    async with Rig(tmp_path, load=True, load_error=error, agent_session_id="old") as rig:
        ready = await rig.ready()
        assert (ready.how, ready.context_reset) == ("new", True)
        assert ready.agent_session_id != "old"


async def test_another_error_of_load_fails_the_start_and_opens_nothing(tmp_path: Path) -> None:  # B40
    async with Rig(tmp_path, load=True, load_error=[-32603, "disk on fire"], agent_session_id="old") as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert "disk on fire" in failed.detail
        assert rig.received("session/new") == []


async def test_a_session_that_cannot_be_continued_at_all_is_begun_anew(tmp_path: Path) -> None:  # B40
    async with Rig(tmp_path, agent_session_id="old") as rig:
        assert (await rig.ready()).context_reset


async def test_updates_before_the_answer_to_session_new_are_kept(tmp_path: Path) -> None:
    early = [{"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "/go", "description": "d"}]}]
    async with Rig(tmp_path, early=early) as rig:
        await rig.ready()
        changed = await rig.next(ControlsChanged)
        assert changed.controls.commands == [{"name": "go", "description": "d"}]
        assert rig.told.index(changed) > rig.told.index(rig.all(AgentReady)[0])


async def test_the_whole_environment_and_the_settings_reach_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # B47
    monkeypatch.setenv("AGENTIK_TEST_OF_EDITOR", "from the editor")
    command = ("/bin/sh", "-c", 'echo "$AGENTIK_TEST_OF_EDITOR, $KEY, $PWD" >&2; exit 3')
    async with Rig(tmp_path, command=command, env={"KEY": "from settings"}) as rig:
        failed = await rig.start()
        assert isinstance(failed, StartFailed)
        assert f"from the editor, from settings, {os.path.realpath(rig.cwd)}" in failed.detail
