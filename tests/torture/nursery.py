"""Servers by fork: a process that has imported everything and forks one server each time it is asked.

Such a server starts in a twentieth of the time and is the real one from its first line on: hundreds of deaths fit into
a minute. Run as a script it is the nursery; imported, it is the client of it. Must not change how a server behaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.stdio_client import StdioClient

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Order:
    """What a server is to be. `die_after` and `armed_by`: see crashing_server; 0 = it is not told to die."""

    env: dict[str, str] = field(default_factory=dict)
    die_after: int = 0
    armed_by: str = ""


# ------------------------------------------------------------------------------------------- the nursery itself


def main(control: socket.socket) -> None:
    """Fork servers until the other side is gone."""
    from tests.torture import crashing_server

    _import_all()
    wakeup, alarm = os.pipe()
    os.set_blocking(alarm, False)
    signal.set_wakeup_fd(alarm)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        readable = select.select([control.fileno(), wakeup], [], [])[0]
        if wakeup in readable:
            os.read(wakeup, 4096)
            _report_ends(control)
        if control.fileno() in readable:
            data, fds, _, _ = socket.recv_fds(control, 65536, 3)
            if not data:
                return
            order = json.loads(data)
            pid = os.fork()
            if pid == 0:
                os._exit(_become_server(control, fds, order, crashing_server.serve))
            for fd in fds:
                os.close(fd)
            control.sendall(json.dumps({"born": pid}).encode() + b"\n")


def _import_all() -> None:
    """Everything that a server imports sooner or later."""
    import agentik_server.agents.service
    import agentik_server.dictating
    import agentik_server.editor.server
    import agentik_server.program
    import agentik_server.protocol.registry
    import agentik_server.store.database  # noqa: F401


def _report_ends(control: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        control.sendall(json.dumps({"dead": pid, "code": os.waitstatus_to_exitcode(status)}).encode() + b"\n")


def _become_server(control: socket.socket, fds: list[int], order: dict[str, Any], serve: Any) -> int:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()  # as the plugin's host starts it
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    control.close()
    os.environ.update(order["env"])
    code = 1
    with contextlib.suppress(SystemExit):
        code = serve([], order["die_after"], order["armed_by"])
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code)


# --------------------------------------------------------------------------------------------------- its client


class Child:
    """A server that was forked."""

    def __init__(self) -> None:
        self.pid = 0
        self.code: int | None = None
        self.born = asyncio.Event()
        self.dead = asyncio.Event()


class Nursery:
    """`async with Nursery() as nursery`: from then on `await nursery.fork(...)` costs some 50 ms."""

    async def __aenter__(self) -> Nursery:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.torture.nursery", str(theirs.fileno())]
        self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
        theirs.close()
        ours.setblocking(True)
        self._socket = ours
        self._words = b""
        self._one_at_a_time = asyncio.Lock()
        self._unborn: list[Child] = []
        self._children: dict[int, Child] = {}
        asyncio.get_running_loop().add_reader(ours, self._hear)
        return self

    async def __aexit__(self, *_: object) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        await asyncio.to_thread(self._process.wait)

    async def fork(self, order: Order, fds: list[int]) -> Child:
        """`fds`: its stdin, stdout and stderr; they may be closed afterwards."""
        child = Child()
        body = json.dumps({"env": order.env, "die_after": order.die_after, "armed_by": order.armed_by})
        async with self._one_at_a_time:
            self._unborn.append(child)
            socket.send_fds(self._socket, [body.encode()], fds)
            await child.born.wait()
        return child

    def _hear(self) -> None:
        data = self._socket.recv(65536)
        if not data:
            asyncio.get_running_loop().remove_reader(self._socket)
            return
        *lines, self._words = (self._words + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            if "born" in word:
                child = self._unborn.pop(0)
                child.pid = word["born"]
                self._children[child.pid] = child
                child.born.set()
            else:
                child = self._children.pop(word["dead"])
                child.code = word["code"]
                child.dead.set()


class ForkedClient(StdioClient):
    """StdioClient at a server of the nursery. Its end is told after everything that it had written was heard."""

    def __init__(self, nursery: Nursery, order: Order, *, log: Path, limit_s: float, check: bool = True) -> None:
        super().__init__(["a server of the nursery"], log=log, limit_s=limit_s, check=check)
        self._nursery = nursery
        self._order = order

    async def start(self) -> ForkedClient:
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        theirs = [stdin[0], stdout[1], stderr[1]]
        child = await self._nursery.fork(self._order, theirs)
        for fd in theirs:
            os.close(fd)
        transport = _ChildTransport(child)
        await transport.connect(self, stdin[1], stdout[0], stderr[0])
        self._transport = transport  # type: ignore[assignment]  # what StdioClient needs of one
        return self


class _ChildTransport:
    """What StdioClient uses of asyncio.SubprocessTransport."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self._pipes: dict[int, asyncio.BaseTransport] = {}
        self._end: asyncio.Task[None]

    async def connect(self, client: StdioClient, stdin: int, stdout: int, stderr: int) -> None:
        loop = asyncio.get_running_loop()
        writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(stdin, "wb", 0))
        out, said = await loop.connect_read_pipe(lambda: _Pipe(client, 1), os.fdopen(stdout, "rb", 0))
        err, _ = await loop.connect_read_pipe(lambda: _Pipe(client, 2), os.fdopen(stderr, "rb", 0))
        self._pipes = {0: writing, 1: out, 2: err}
        self._end = asyncio.create_task(self._wait(client, said))

    async def _wait(self, client: StdioClient, said: _Pipe) -> None:
        await self._child.dead.wait()
        await said.ended.wait()
        client.process_exited()

    def get_pid(self) -> int:
        return self._child.pid

    def get_returncode(self) -> int | None:
        return self._child.code

    def get_pipe_transport(self, fd: int) -> asyncio.BaseTransport:
        return self._pipes[fd]

    def kill(self) -> None:
        if not self._child.dead.is_set():
            os.kill(self._child.pid, signal.SIGKILL)

    def close(self) -> None:
        for pipe in self._pipes.values():
            pipe.close()


class _Pipe(asyncio.Protocol):
    def __init__(self, client: StdioClient, fd: int) -> None:
        self._client = client
        self._fd = fd
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self._client.pipe_data_received(self._fd, data)

    def connection_lost(self, error: Exception | None) -> None:
        self.ended.set()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
