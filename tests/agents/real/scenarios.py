"""What every real agent is taken through: each scenario drives our link and says in a few words what it saw.

The model is scripted: the lines of a prompt that begin with `#` are what it answers (see the rig's fake_llm.py).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Awaitable, Callable

from agentik_server.domain.happenings import (
    AgentExited,
    AgentReady,
    HistoryReplayed,
    PermissionAsked,
    PromptAnswered,
    PromptNotWritten,
    TextArrived,
    ToolCallChanged,
)
from tests.agents.rig import Rig
from tests.agents.waiting import eventually, group_members

Scenario = Callable[[Rig], Awaitable[str]]
LIMIT_S = 60.0
GRACE_S = 5.0  # timeouts.cancelGrace


def allow(rig: Rig, kind: str = "allow_once") -> None:
    """Answer permissions from now on with the first option of a kind; without one, cancelled."""

    def react(happening: object) -> None:
        if isinstance(happening, PermissionAsked):
            fitting = [option.option_id for option in happening.options if option.kind == kind]
            rig.link.answer_permission(happening.permission_id, fitting[0] if fitting else None)

    rig.react = react


async def finish(rig: Rig, turn: str) -> PromptAnswered:
    end = await rig.ended(turn, LIMIT_S)
    assert isinstance(end, PromptAnswered), end
    return end


async def ask(rig: Rig, text: str, *, quiet: bool = False) -> PromptAnswered:
    return await finish(rig, rig.send(text, quiet=quiet))


async def still_answers(rig: Rig) -> None:
    """The agent is usable after what was done to it."""
    before = len(rig.text)
    end = await ask(rig, "#begin\n#say quite well", quiet=True)
    assert end.error is None, end
    assert "quite well" in rig.text[before:]


async def say(rig: Rig) -> str:
    end = await ask(rig, "#say hello from the model")
    assert end.stop_reason == "end_turn", end
    assert "hello from the model" in rig.text
    await still_answers(rig)
    return "end_turn"


async def command(rig: Rig) -> str:
    """A shell command that is allowed: it ran, and its output is in the tool call."""
    allow(rig)
    end = await ask(rig, "#shell echo out42 > made.txt; cat made.txt\n#say done")
    assert end.error is None, end
    assert (rig.cwd / "made.txt").exists(), (end, rig.told[-30:])
    assert (rig.cwd / "made.txt").read_text() == "out42\n"
    shown = "".join((h.change.output or "") + (h.change.output_delta or "") for h in rig.all(ToolCallChanged))
    status = [h.change.status for h in rig.all(ToolCallChanged) if h.change.status][-1]
    output = "output shown" if "out42" in shown else "no output sent"
    return f"{len(rig.all(PermissionAsked))} asked, {status}, {output}"


async def rejected(rig: Rig) -> str:
    allow(rig, "reject_once")
    end = await ask(rig, "#shell touch made.txt\n#say done")
    assert not (rig.cwd / "made.txt").exists()
    await still_answers(rig)
    return f"{end.stop_reason or end.error}"


async def files(rig: Rig) -> str:
    """A new file, an edit of it, and a read."""
    allow(rig)
    path = rig.cwd / "new.txt"
    if "codex" in rig.launch.spec.name:
        return "edits by shell only"  # its model tools have no write or edit that the endpoint can call
    await ask(rig, f"#write {path} alpha\n#say written")
    assert path.read_text().rstrip("\n") == "alpha"
    await ask(rig, f"#begin\n#read {path}\n#say read")
    await ask(rig, f"#begin\n#edit {path} alpha=>beta\n#say edited")
    assert path.read_text().rstrip("\n") == "beta"
    diffs = [h.change.diffs for h in rig.all(ToolCallChanged) if h.change.diffs]
    return f"written and edited, {'with' if diffs else 'without'} diff"


async def cancel_text(rig: Rig) -> str:
    turn = rig.send("#slow 200 50")
    await rig.until(lambda: "tick 2" in rig.text, LIMIT_S)
    return await _cancel(rig, turn)


async def cancel_silence(rig: Rig) -> str:
    turn = rig.send("#hangmid 60")
    await rig.next(TextArrived, limit_s=LIMIT_S)
    return await _cancel(rig, turn)


async def cancel_permission(rig: Rig) -> str:
    turn = rig.send("#shell touch made.txt\n#say done")
    await rig.until(lambda: rig.all(PermissionAsked) or rig.all(PromptAnswered), LIMIT_S)
    assert rig.all(PermissionAsked), "it asks for nothing"
    note = await _cancel(rig, turn)
    assert not (rig.cwd / "made.txt").exists()
    return note


async def cancel_command(rig: Rig) -> str:
    allow(rig)
    turn = rig.send("#shell touch started; sleep 50; touch made.txt\n#say done")
    await eventually((rig.cwd / "started").exists, "the command runs", LIMIT_S)
    note = await _cancel(rig, turn)
    assert not (rig.cwd / "made.txt").exists()
    return note


async def _cancel(rig: Rig, turn: str) -> str:
    """As the application does it: an agent that does not end its turn in time is killed and continued (B32)."""
    begun = time.monotonic()
    rig.link.cancel(turn)
    try:
        end = await rig.ended(turn, GRACE_S)
    except AssertionError:
        rig.link.kill()
        await rig.next(AgentExited)
        (ready,) = rig.all(AgentReady)
        rig.continued(ready.agent_session_id)
        await rig.ready()
        await still_answers(rig)
        return f"not in {GRACE_S:g} s: killed and continued"
    assert isinstance(end, PromptAnswered), end
    seconds = time.monotonic() - begun
    await still_answers(rig)
    return f"{end.stop_reason or 'error'} after {seconds:.1f} s"


async def http_error(rig: Rig) -> str:
    end = await ask(rig, "#error 400 no such model")
    await still_answers(rig)
    return "error" if end.error else f"{end.stop_reason}, {'with' if rig.text else 'no'} text"


async def cut_stream(rig: Rig) -> str:
    end = await ask(rig, "#cut\n#say recovered")
    await still_answers(rig)
    return "error" if end.error else f"{end.stop_reason}"


async def flood(rig: Rig) -> str:
    begun = time.monotonic()
    end = await ask(rig, "#flood 2000")
    seconds = time.monotonic() - begun
    assert end.error is None, end
    return f"{len(rig.text.split())} words in {len(rig.all(TextArrived))} pieces, {seconds:.1f} s"


async def crash(rig: Rig) -> str:
    """SIGKILL of the direct child in the middle of a turn: it ends within a second, nothing of the group is left."""
    turn = rig.send("#slow 200 50")
    await rig.until(lambda: "tick 2" in rig.text, LIMIT_S)
    agent = rig.link.pids[1]
    count = len(group_members(agent))
    killed = time.monotonic()
    os.kill(agent, signal.SIGKILL)
    end = await rig.ended(turn)
    seconds = time.monotonic() - killed
    assert isinstance(end, AgentExited)
    assert seconds < 1.0
    await eventually(lambda: not group_members(agent), "the group is gone", 1.0)
    return f"{count} processes, told after {seconds:.2f} s"


async def again(rig: Rig) -> str:
    """Stopped and started again with its session: the history is not shown twice, and it answers."""
    await ask(rig, "#say remember the word heliotrope")
    (ready,) = rig.all(AgentReady)
    rig.link.stop()
    await rig.next(AgentExited, limit_s=LIMIT_S)
    rig.continued(ready.agent_session_id)
    again_ready = await rig.ready()
    text = rig.text
    await still_answers(rig)
    assert "heliotrope" not in rig.text[len(text) :]
    how = "context reset" if again_ready.context_reset else again_ready.how
    entries = sum(len(h.entries) for h in rig.all(HistoryReplayed))
    return f"{how}, {entries} replayed" if entries else how


async def orderly_end(rig: Rig) -> str:
    await ask(rig, "#say bye")
    agent = rig.link.pids[1]
    begun = time.monotonic()
    rig.link.stop()
    exited = await rig.next(AgentExited, limit_s=LIMIT_S)
    seconds = time.monotonic() - begun
    assert exited.wanted
    await eventually(lambda: not group_members(agent), "the group is gone", 1.0)
    return f"{seconds:.1f} s"


async def unwritten(rig: Rig) -> str:
    """A prompt that is cancelled while it waits for quiet never reaches the agent."""
    await ask(rig, "#say one")
    turn = rig.send("#say two", quiet=True)
    rig.link.cancel(turn)
    end = await rig.ended(turn)
    assert isinstance(end, PromptNotWritten)
    await still_answers(rig)
    return "not written"


SCENARIOS: dict[str, Scenario] = {
    "say": say,
    "command, allowed": command,
    "command, rejected": rejected,
    "files": files,
    "cancel while it talks": cancel_text,
    "cancel while the model is silent": cancel_silence,
    "cancel at a permission": cancel_permission,
    "cancel during a command": cancel_command,
    "cancel before it is sent": unwritten,
    "HTTP 400": http_error,
    "stream cut": cut_stream,
    "flood of 2000 words": flood,
    "killed": crash,
    "stopped and started again": again,
    "orderly end": orderly_end,
}
