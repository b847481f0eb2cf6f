"""Agent processes under their guard, with real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentik_server.agents.exits import Exit
from agentik_server.agents.process import AgentProcess

from .waiting import eventually, group_members, is_alive

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")


class Watched:
    """An agent process and what was heard of it."""

    def __init__(self, script: str, *, env: dict[str, str] | None = None, argv: list[str] | None = None) -> None:
        self.output = bytearray()
        self.news = asyncio.Event()
        self.exits: list[Exit] = []
        self.process = AgentProcess(
            argv or [sys.executable, "-c", script],
            cwd="/",
            env=dict(os.environ) if env is None else env,
            on_data=self._on_data,
            on_exit=self.exits.append,
        )

    def _on_data(self, data: bytes) -> None:
        self.output += data
        self.news.set()

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(15):
            while text not in self.output:
                self.news.clear()
                await self.news.wait()

    async def ended(self) -> Exit:
        async with asyncio.timeout(15):
            await self.process.wait_ended()
        (exit_,) = self.exits
        return exit_


FORKS = (
    "import os,sys,time\n"
    "child = os.fork()\n"
    "if child == 0: time.sleep(60); os._exit(0)\n"
    "print('ready', child, flush=True)\n"
)


async def test_bytes_go_both_ways_and_the_exit_code_comes_through() -> None:
    watched = Watched("import sys; print(sys.stdin.readline().upper(), flush=True); sys.exit(3)")
    watched.process.write("grüße\n".encode())
    await watched.until("GRÜSSE".encode())
    assert await watched.ended() == Exit(code=3)
    assert not watched.process.running


async def test_the_signal_that_killed_the_agent_comes_through() -> None:
    watched = Watched("import os,signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert str(await watched.ended()) == "killed by SIGSEGV"


async def test_a_command_that_does_not_exist_is_an_exit_with_the_reason() -> None:  # B45
    watched = Watched("", argv=["/does/not/exist"])
    assert await watched.ended() == Exit(spawn_error="No such file or directory")


async def test_a_file_that_is_not_executable_is_an_exit_with_the_reason(tmp_path: Path) -> None:  # B45
    file = tmp_path / "agent"
    file.write_text("#!/bin/sh\n")
    watched = Watched("", argv=[str(file)])
    assert await watched.ended() == Exit(spawn_error="Permission denied")


async def test_the_environment_is_passed_on_exactly() -> None:  # B47
    env = {"PATH": os.environ["PATH"], "API_KEY": "k é", "PYTHONDONTWRITEBYTECODE": "1", "EMPTY": ""}
    watched = Watched("", env=env, argv=["env", "-0"])
    await watched.ended()
    assert set(bytes(watched.output).decode().strip("\0").split("\0")) == {f"{k}={v}" for k, v in env.items()}


async def test_the_agent_starts_with_default_signals_and_no_foreign_descriptor() -> None:
    watched = Watched("", argv=["sh", "-c", "ls /proc/self/fd | wc -l; grep SigIgn /proc/self/status"])
    await watched.ended()
    count, ignored = watched.output.decode().splitlines()
    assert int(count) <= 4  # 0, 1, 2 and ls's own folder
    assert int(ignored.split()[1], 16) & ((1 << 12) | (1 << 24)) == 0  # SIGPIPE, SIGXFSZ


async def test_a_grandchild_that_holds_stdout_does_not_hide_the_death_of_the_agent() -> None:  # B42
    watched = Watched(FORKS + "time.sleep(60)")
    await watched.until(b"\n")
    agent = watched.process.agent_pid
    assert agent is not None
    killed = time.monotonic()
    os.kill(agent, signal.SIGKILL)
    assert str(await watched.ended()) == "killed by SIGKILL"
    assert time.monotonic() - killed < 1.0
    await eventually(lambda: not group_members(agent), "the group is gone", 1.0)


async def test_what_the_agent_wrote_before_it_died_is_still_heard() -> None:
    watched = Watched("import os; os.write(1, b'x' * 60000); os.abort()")
    await watched.ended()
    assert len(watched.output) == 60000


async def test_a_grandchild_that_ignores_term_is_killed_when_the_agent_ends() -> None:  # B47
    watched = Watched("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + FORKS + "sys.exit(0)")
    assert await watched.ended() == Exit(code=0)
    grandchild = int(watched.output.split()[1])
    await eventually(lambda: not is_alive(grandchild), "the grandchild is gone", 1.0)


async def test_stop_closes_stdin_first_and_a_good_agent_ends_by_itself() -> None:  # B47
    watched = Watched("import sys; sys.stdin.read(); sys.exit(7)")
    watched.process.stop()
    assert await watched.ended() == Exit(code=7)


async def test_stop_sends_term_to_an_agent_that_ignores_the_end_of_stdin() -> None:  # B47
    watched = Watched("import time; print('up', flush=True); time.sleep(60)")
    await watched.until(b"up")
    watched.process.stop(stdin_s=0.05)
    assert await watched.ended() == Exit(signal="SIGTERM")


async def test_stop_kills_an_agent_that_ignores_term() -> None:  # B47
    watched = Watched(
        "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    )
    await watched.until(b"up")
    watched.process.stop(stdin_s=0.01, term_s=0.1)
    assert await watched.ended() == Exit(signal="SIGKILL")


async def test_kill_leaves_nothing_of_the_group() -> None:
    watched = Watched(FORKS + "time.sleep(60)")
    await watched.until(b"\n")
    group = watched.process.agent_pid
    assert group is not None
    watched.process.kill()
    assert await watched.ended() == Exit(signal="SIGKILL")
    await eventually(lambda: not group_members(group), "the group is gone", 1.0)


async def test_an_agent_whose_guard_was_killed_is_killed_by_us() -> None:  # B47
    watched = Watched(FORKS + "time.sleep(60)")
    await watched.until(b"\n")
    group = watched.process.agent_pid
    assert group is not None
    os.kill(watched.process.guard_pid, signal.SIGKILL)
    await watched.ended()
    await eventually(lambda: not group_members(group), "the group is gone", 1.0)


async def test_kill_9_of_the_server_leaves_nothing_of_the_group() -> None:  # B47, B60
    server = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import asyncio, os, sys\n"
            "from agentik_server.agents.process import AgentProcess\n"
            "script = ('import os,signal,time; signal.signal(15, signal.SIG_IGN); os.fork(); '\n"
            "          'os.write(1, b\\'%d\\\\n\\' % os.getpid())')\n"
            "async def main():\n"
            "    AgentProcess([sys.executable, '-c', script + '; time.sleep(60)'], cwd='/', env=os.environ,\n"
            "        on_data=lambda data: (sys.stdout.write(data.decode()), sys.stdout.flush()), on_exit=print)\n"
            "    await asyncio.sleep(60)\n"
            "asyncio.run(main())\n",
        ],
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    group = os.getpgid(int(server.stdout.readline()))
    assert group_members(group)
    server.kill()
    server.wait()
    server.stdout.close()
    await eventually(lambda: not group_members(group), "the group is gone", 5.0)


async def test_a_flood_on_stderr_blocks_nothing_and_its_end_is_kept() -> None:  # B46
    watched = Watched(
        "import sys\n"
        "for i in range(20000): sys.stderr.write('\\x1b[31mline %d of a long story about nothing\\x1b[0m\\n' % i)\n"
        "sys.stderr.write('fatal: no key')\nprint('done', flush=True)"
    )
    await watched.ended()
    assert b"done" in watched.output
    assert watched.process.stderr.text(2) == "line 19999 of a long story about nothing\nfatal: no key"


async def test_an_agent_that_does_not_read_its_stdin_blocks_nothing() -> None:  # B46
    watched = Watched("import time; print('up', flush=True); time.sleep(60)")
    await watched.until(b"up")
    begun = watched.process.write(b"x" * 3_000_000)
    waiting = watched.process.write(b"y")
    assert begun.started
    assert not waiting.started
    assert not watched.process.discard(begun)
    assert watched.process.discard(waiting)
    watched.process.stop(stdin_s=0.05)
    await watched.ended()
    assert begun.failed


async def test_megabytes_arrive_whole_at_a_slow_reader() -> None:
    watched = Watched(
        "import sys,hashlib; print(hashlib.sha256(sys.stdin.buffer.read(5000000)).hexdigest(), flush=True)"
    )
    import hashlib

    data = os.urandom(5_000_000)
    watched.process.write(data)
    await watched.until(hashlib.sha256(data).hexdigest().encode())
    assert watched.process.queued_bytes == 0
    await watched.ended()


async def test_writing_to_an_agent_that_closed_its_stdin_fails_and_raises_nothing() -> None:
    watched = Watched("import os,time; os.close(0); print('up', flush=True); time.sleep(60)")
    await watched.until(b"up")
    assert watched.process.write(b"x").failed
    assert watched.process.write(b"x").failed
    watched.process.kill()
    await watched.ended()


async def test_a_paused_reader_lets_the_agent_wait_and_loses_nothing() -> None:
    watched = Watched("import sys; sys.stdout.write('x' * 1000000); sys.stdout.flush()")
    watched.process.pause_reading()
    watched.process.resume_reading()
    await watched.ended()
    assert len(watched.output) == 1_000_000
