"""One agent process under its guard: spawned with the whole environment, heard, written to, watched, ended (B42, B47).

Knows bytes, not JSON. Its end is noticed by the process and the guard's word, never by the end of a pipe. Must leave
nothing of the agent's group alive.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agentik_server.agents.exits import Exit, exit_of, when_ended
from agentik_server.agents.pipes import PipeReader, PipeWriter, Ticket
from agentik_server.agents.stderr_tail import StderrTail

STDIN_S = 1.0  # from the end of stdin to TERM
TERM_S = 2.0  # from TERM to KILL
DRAIN_LIMIT = 64 * 1024 * 1024  # bytes that may still be read from stdout after the end
GUARD = str(Path(__file__).with_name("guard.py"))

log = logging.getLogger(__name__)


class AgentProcess:
    """A running agent. `on_data(b"")` says that its stdout ended; `on_exit` comes once, when its group is gone."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        on_data: Callable[[bytes], None],
        on_exit: Callable[[Exit], None],
        on_deaf: Callable[[], None] = lambda: None,
        merge_stderr: bool = False,
    ) -> None:
        """Start `argv` (absolute, or found on env's PATH) in `cwd`. Raises OSError when even the guard cannot start.

        `on_deaf`: it has closed its stdin. `merge_stderr`: its stderr goes where its stdout goes, as in a terminal.
        """
        self._loop = asyncio.get_running_loop()
        self._on_data = on_data
        self._on_exit = on_exit
        self._words = b""
        self._reported: Exit | None = None
        self._stopping: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()
        self.agent_pid: int | None = None
        self.stderr = StderrTail()
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._guard = _spawn_guard(theirs, argv, cwd, env, merge_stderr)
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        self._control = ours
        assert self._guard.stdin is not None
        assert self._guard.stdout is not None
        self._stdin = PipeWriter(_detach(self._guard.stdin), self._loop, on_deaf)
        self._stdout = PipeReader(_detach(self._guard.stdout), self._loop, on_data)
        self._stderr: PipeReader | None = None
        if self._guard.stderr is not None:
            self._stderr = PipeReader(_detach(self._guard.stderr), self._loop, self.stderr.feed)
        self._loop.add_reader(ours, self._hear_guard)
        when_ended(self._guard, self._loop, self._guard_ended)

    @property
    def running(self) -> bool:
        """By what the system says of the process, not by what we asked of it (B38)."""
        return self._reported is None and not self._ended.is_set()

    @property
    def guard_pid(self) -> int:
        return self._guard.pid

    @property
    def queued_bytes(self) -> int:
        """What the agent has not yet taken from its stdin."""
        return self._stdin.queued_bytes

    def write(self, data: bytes) -> Ticket:
        return self._stdin.write(data)

    def discard(self, ticket: Ticket) -> bool:
        return self._stdin.discard(ticket)

    def close_stdin(self) -> None:
        """Nothing more is written to it; it lives on."""
        self._stdin.close()

    @property
    def read_size(self) -> int:
        """Bytes of stdout that are read in one turn of the loop."""
        return self._stdout.bite

    @read_size.setter
    def read_size(self, size: int) -> None:
        self._stdout.bite = size

    def pause_reading(self) -> None:
        self._stdout.pause()

    def resume_reading(self) -> None:
        self._stdout.resume()

    def stop(self, stdin_s: float = STDIN_S, term_s: float = TERM_S) -> None:
        """End it in order: stdin closed, TERM after `stdin_s`, KILL after `term_s` more. Returns at once."""
        if self._stopping is None and not self._ended.is_set():
            self._stdin.close()
            self._stopping = self._loop.call_later(stdin_s, self._term, term_s)

    def kill(self) -> None:
        """KILL the whole group now."""
        if self._ended.is_set():
            return
        if self._stopping is not None:
            self._stopping.cancel()
        self._order(b"k")

    async def wait_ended(self) -> None:
        """Until its group is gone and `on_exit` was called."""
        await self._ended.wait()

    def _term(self, term_s: float) -> None:
        self._order(b"t")
        self._stopping = self._loop.call_later(term_s, self.kill)

    def _order(self, order: bytes) -> None:
        try:
            self._control.send(order)
        except OSError:
            self._kill_orphans()  # the guard is gone or deaf: do its work

    def _hear_guard(self) -> None:
        try:
            data = self._control.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._control)
            return
        *lines, self._words = (self._words + data).split(b"\n")
        for line in lines:
            self._hear(line.decode("ascii"))

    def _hear(self, line: str) -> None:
        word, _, number = line.partition(" ")
        if word == "run":
            self.agent_pid = int(number)
        elif word == "fail":
            self._reported = Exit(spawn_error=os.strerror(int(number)))
        elif word == "exit":
            self._reported = exit_of(os.waitstatus_to_exitcode(int(number)))

    def _guard_ended(self) -> None:
        self._hear_guard_out()
        if self._reported is None:
            self._kill_orphans()
        if self._stopping is not None:
            self._stopping.cancel()
        self._stdout.drain(DRAIN_LIMIT)
        if self._stderr is not None:
            self._stderr.drain(DRAIN_LIMIT)
        self._stdin.abort()
        exit_ = self._reported or Exit(code=exit_of(self._guard.returncode).code, signal="a signal to its guard")
        self._ended.set()
        try:
            self._on_exit(exit_)
        except Exception:
            log.exception("bug: the end of an agent was not handled")

    def _hear_guard_out(self) -> None:
        """Read the guard's last words and let go of the socket."""
        self._loop.remove_reader(self._control)
        while True:
            try:
                data = self._control.recv(4096)
            except OSError:
                break
            if not data:
                break
            self._words += data
        for line in self._words.split(b"\n"):
            self._hear(line.decode("ascii"))
        self._control.close()

    def _kill_orphans(self) -> None:
        """The guard was killed: its agent is ours to end."""
        if self.agent_pid is not None and self._reported is None:
            try:
                os.killpg(self.agent_pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                return


def _spawn_guard(
    control: socket.socket, argv: Sequence[str], cwd: str, env: Mapping[str, str], merge_stderr: bool
) -> subprocess.Popen[bytes]:
    keep_locale = "1" if "LC_CTYPE" in env else "0"
    return subprocess.Popen(
        [sys.executable, "-I", "-S", GUARD, str(control.fileno()), keep_locale, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if merge_stderr else subprocess.PIPE,
        bufsize=0,
        cwd=cwd,
        env=env,
        pass_fds=(control.fileno(),),
        start_new_session=True,
    )


def _detach(pipe: object) -> int:
    """The pipe's descriptor, ours alone from now on (Popen must not close it a second time)."""
    fd = os.dup(pipe.fileno())  # type: ignore[attr-defined]
    pipe.close()  # type: ignore[attr-defined]
    return fd
