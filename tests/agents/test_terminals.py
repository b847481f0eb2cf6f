"""terminal/* of an agent: commands under guards, limits, and nothing that stays behind."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentik_server.agents.terminals import argv_of, command_line, cut_point, env_of
from agentik_server.domain.happenings import PermissionAsked, Remark, TextArrived, ToolCallChanged
from agentik_server.ports import AgentPolicy

from .rig import Rig
from .waiting import eventually, is_alive

ALLOW = AgentPolicy(terminal="allow")


def output_of(rig: Rig) -> tuple[dict[str, object], dict[str, object]]:
    """(exit status, output) as the agent got them."""
    status, output = json.loads(rig.text.partition("terminal -> ")[2])
    return status, output


async def test_a_command_runs_and_its_output_and_end_are_told(tmp_path: Path) -> None:
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ask('#terminal echo "$PWD"; echo grüße >&2; exit 3')
        status, output = output_of(rig)
        assert status == {"exitCode": 3, "signal": None}
        assert output["output"] == f"{os.path.realpath(rig.cwd)}\ngrüße\n"
        assert output["truncated"] is False


async def test_the_output_is_shown_in_the_tool_call_that_names_the_terminal(tmp_path: Path) -> None:
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ask("#terminal sleep 0.1; echo one; sleep 0.1; echo two")
        shown = ""
        for h in rig.all(ToolCallChanged):
            shown = (shown if h.change.output is None else h.change.output) + (h.change.output_delta or "")
        assert shown == "one\ntwo\n"


async def test_a_terminal_that_the_agent_leaves_is_killed_when_the_turn_ends(tmp_path: Path) -> None:  # B32
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ask('#request terminal/create {"command": "echo $$ > pid; sleep 600"}\n#sleep 300')
        pid = int((rig.cwd / "pid").read_text())
        await eventually(lambda: not is_alive(pid), "the command is gone")


async def test_a_cancel_kills_the_terminals_of_the_turn(tmp_path: Path) -> None:  # B32
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        turn = rig.send("#ignore_cancel\n#terminal echo $$ > pid; echo up; sleep 600")
        await rig.until(lambda: any(h.change.output_delta or h.change.output for h in rig.all(ToolCallChanged)))
        rig.link.cancel(turn)
        await rig.ended(turn)
        assert output_of(rig)[0]["signal"] == "SIGTERM"


async def test_release_kills_too(tmp_path: Path) -> None:
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ask(
            '#request terminal/create {"command": "echo $$ > pid; sleep 600"}\n#sleep 300\n'
            '#request terminal/release {"terminalId": "agentik-1"}\n'
            '#request terminal/output {"terminalId": "agentik-1"}\n'
        )
        assert "there is no terminal agentik-1" in rig.text
        pid = int((rig.cwd / "pid").read_text())
        await eventually(lambda: not is_alive(pid), "the command is gone")


async def test_kill_keeps_the_output_and_answers_who_waits(tmp_path: Path) -> None:
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ask(
            '#request terminal/create {"command": "trap \'\' TERM; echo up; sleep 600"}\n#sleep 300\n'
            '#request terminal/kill {"terminalId": "agentik-1"}\n'
            '#request terminal/wait_for_exit {"terminalId": "agentik-1"}\n'
            '#request terminal/output {"terminalId": "agentik-1"}\n'
        )
        assert '"signal": "SIGKILL"' in rig.text
        assert '"output": "up\\n"' in rig.text


async def test_the_end_of_the_agent_kills_its_terminals(tmp_path: Path) -> None:  # B47
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ended(
            rig.send('#request terminal/create {"command": "echo $$ > pid; sleep 600"}\n#sleep 300\n#crash')
        )
        assert not is_alive(int((rig.cwd / "pid").read_text()))


@pytest.mark.parametrize("limit", [0, 1, 5, 7, 100])
async def test_output_is_cut_from_the_start_at_a_character(tmp_path: Path, limit: int) -> None:
    text = "äöü€😀x"
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        create = {"command": "printf", "args": [text], "outputByteLimit": limit}
        await rig.ask(
            f"#request terminal/create {json.dumps(create)}\n"
            '#request terminal/wait_for_exit {"terminalId": "agentik-1"}\n'
            '#request terminal/output {"terminalId": "agentik-1"}'
        )
        reply = json.loads(rig.text.strip().rpartition("terminal/output -> ")[2])["result"]
        assert text.endswith(reply["output"])
        assert len(reply["output"].encode()) <= limit
        assert reply["truncated"] is (limit < len(text.encode()))


async def test_a_flood_of_output_is_bounded_and_its_end_is_shown(tmp_path: Path) -> None:
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ask("#terminal seq 1 400000")
        _, output = output_of(rig)
        assert output["truncated"] is True
        assert str(output["output"]).endswith("399999\n400000\n")
        shown = sum(len(h.change.output_delta or "") + len(h.change.output or "") for h in rig.all(ToolCallChanged))
        assert shown < 400_000
        assert (rig.all(ToolCallChanged)[-1].change.output or "").endswith("400000\n")


async def test_a_command_that_the_agent_did_not_ask_for_is_asked_by_us(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.answer_all("allow")
        await rig.ask("#terminal echo hi")
        asked = await rig.next(PermissionAsked)
        assert (asked.tool.title, asked.tool.tool_kind) == ("echo hi", "execute")
        assert output_of(rig)[1]["output"] == "hi\n"


async def test_a_rejected_command_is_not_run_and_the_agent_hears_why(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.answer_all("reject")
        await rig.ask("#terminal touch made")
        assert "the user said no" in rig.text
        assert not (rig.cwd / "made").exists()
        assert len(rig.all(Remark)) == 1


async def test_a_denied_terminal_is_refused_without_asking(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path, policy=AgentPolicy(terminal="deny")) as rig:
        await rig.ready()
        await rig.ask("#terminal touch made")
        assert "the settings deny it" in rig.text
        assert rig.all(PermissionAsked) == []
        assert rig.received("initialize")[0]["clientCapabilities"]["terminal"] is False


async def test_a_command_that_the_user_allowed_the_agent_is_not_asked_twice(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path) as rig:
        await rig.ready()
        rig.answer_all("yes")
        await rig.ask("#permission t1 `echo hi`\n#terminal echo hi")
        assert len(rig.all(PermissionAsked)) == 1
        rig.answer_all("reject")
        await rig.ask("#terminal echo other")
        assert len(rig.all(PermissionAsked)) == 2


async def test_our_own_question_that_the_agent_takes_back_is_withdrawn(tmp_path: Path) -> None:  # B48
    async with Rig(tmp_path) as rig:
        await rig.ready()
        cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 77}}
        create = {"jsonrpc": "2.0", "id": 77, "method": "terminal/create", "params": {"command": "touch made"}}
        await rig.ask(f"#raw {json.dumps(create)}\n#sleep 100\n#raw {json.dumps(cancel)}\n#say end")
        asked = await rig.next(PermissionAsked)
        rig.link.answer_permission(asked.permission_id, "allow")
        await rig.ask("again")
        assert not (rig.cwd / "made").exists()


ELSEWHERE = ["/etc", "relative", "/does/not/exist", "{cwd}/file"]


@pytest.mark.parametrize("cwd", ELSEWHERE)
async def test_a_folder_elsewhere_is_refused(tmp_path: Path, cwd: str) -> None:  # B49
    async with Rig(tmp_path, policy=ALLOW) as rig:
        (rig.cwd / "file").touch()
        await rig.ready()
        params = {"command": "touch made", "cwd": cwd.format(cwd=rig.cwd)}
        await rig.ask(f"#request terminal/create {json.dumps(params)}")
        assert "-32602" in rig.text


async def test_an_agent_that_releases_nothing_can_go_on(tmp_path: Path) -> None:
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        wait = '#request terminal/wait_for_exit {"terminalId": "agentik-%d"}\n'
        steps = "".join('#request terminal/create {"command": "true"}\n' + wait % n for n in range(1, 56))
        await rig.ask(steps)
        assert rig.text.count('"terminalId"') == 55


def test_both_shapes_of_a_command_are_run(tmp_path: Path) -> None:  # AGENTS.md 5.5
    env = {"PATH": os.environ["PATH"]}
    (tmp_path / "run me").write_text("")
    (tmp_path / "run me").chmod(0o755)
    cwd = str(tmp_path)
    assert argv_of({"command": "echo", "args": ["a b"]}, cwd, env)[1:] == ["a b"]
    assert argv_of({"command": "echo a | cat"}, cwd, env)[1:] == ["-c", "echo a | cat"]
    assert argv_of({"command": "echo", "args": []}, cwd, env)[0].endswith("/echo")
    assert argv_of({"command": "no-such x", "args": ["y z"]}, cwd, env)[1:] == ["-c", "no-such x 'y z'"]
    assert argv_of({"command": "./run me", "args": ["x"]}, cwd, env) == [f"{cwd}/./run me", "x"]


def test_a_command_is_shown_as_a_person_would_type_it() -> None:
    assert command_line({"command": "/bin/bash", "args": ["-c", "ls | wc"]}) == "ls | wc"
    assert command_line({"command": "git", "args": ["commit", "-m", "a b"]}) == "git commit -m 'a b'"


def test_variables_come_in_both_shapes_and_broken_ones_are_left_out() -> None:
    assert env_of([{"name": "A", "value": "1"}, {"name": "B=", "value": "2"}, {"name": "C", "value": 3}, 4]) == {
        "A": "1"
    }
    assert env_of({"A": "1", "": "2", "D": "x\0"}) == {"A": "1"}


@pytest.mark.parametrize("limit", range(9))
def test_a_cut_never_halves_a_character(limit: int) -> None:
    data = "aä€😀"[::-1].encode()
    data[cut_point(data, min(limit, len(data))) :].decode()


async def test_text_that_arrives_meanwhile_is_not_disturbed(tmp_path: Path) -> None:
    async with Rig(tmp_path, policy=ALLOW) as rig:
        await rig.ready()
        await rig.ask("#say a\n#terminal echo x\n#say b")
        assert rig.all(TextArrived)[0].text == "a"
