"""The guard of one agent (B47): runs the agent in its own process group and ends that group when the server is gone.

    python -I -S guard.py SOCKET_FD KEEP_LC_CTYPE COMMAND [ARGUMENT...]

A script of its own, run without the package: it must import nothing but what the interpreter starts fast with, must
never read or write the agent's pipes, and must not end before the group has ended.

On the socket it says `run PID`, `fail ERRNO` (nothing was started) and `exit STATUS` (as `waitpid` has it), one line
each; it hears `t` (TERM to the group) and `k` (KILL). The end of the socket is the end of the server.
"""

from __future__ import annotations

import os
import select
import sys
import time
from typing import Protocol

SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ = 9, 13, 15, 25  # the same on Linux and macOS; `signal` costs 4 ms to import
VOLUNTARY_S = 0.5  # after the end of the server: the agent sees the end of its stdin and may go by itself
TERM_S = 2.0
REST_S = 0.3  # what an agent left behind has so long after TERM


class Readable(Protocol):
    """What `select` takes."""

    def fileno(self) -> int: ...


def main() -> None:
    """Start the agent, stay until its group is gone, and end with its exit code (128 + signal)."""
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    environment = dict(os.environ)
    if sys.argv[2] == "0":
        environment.pop("LC_CTYPE", None)  # the interpreter sets it for itself in a C locale (PEP 538)
    argv = sys.argv[3:]
    try:
        agent = os.posix_spawnp(argv[0], argv, environment, setpgroup=0, setsigdef=(SIGPIPE, SIGXFSZ))
    except OSError as error:
        say(control, f"fail {error.errno}\n")
        os._exit(127)
    leave_pipes()
    say(control, f"run {agent}\n")
    status = watch(control, agent)
    say(control, f"exit {status}\n")
    end_group(agent, REST_S)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def leave_pipes() -> None:
    """Give up our copies of the agent's stdin, stdout and stderr: only the agent may hold them open."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def watch(control: int, agent: int) -> int:
    """Serve the socket until the agent has ended; its wait status."""
    death = exit_notice(agent)
    while True:
        timeout = None if death is not None else 0.05
        ready = select.select([control] if death is None else [control, death], [], [], timeout)[0]
        ended, status = os.waitpid(agent, os.WNOHANG)
        if ended:
            return status
        if control in ready and not serve(control, agent):
            return outlive_server(agent, death)


def exit_notice(pid: int) -> int | Readable | None:
    """Something that becomes readable when `pid` ends; None where the system has neither pidfd nor kqueue."""
    if sys.platform == "linux":
        try:
            return os.pidfd_open(pid)
        except OSError:
            return None  # an old kernel or a sandbox without it
    if sys.platform == "darwin":
        queue = select.kqueue()
        event = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
        try:
            queue.control([event], 0)
        except OSError:
            return None  # it has ended already
        return queue
    return None


def serve(control: int, agent: int) -> bool:
    """Carry out what the server says; False at the end of the socket."""
    try:
        orders = os.read(control, 64)
    except ConnectionError:
        return False
    for order in orders:
        signal_group(agent, SIGKILL if order == ord("k") else SIGTERM)
    return bool(orders)


def outlive_server(agent: int, death: int | Readable | None) -> int:
    """The server is gone: let the agent go, then TERM, then KILL; its wait status."""
    for signal, limit in ((0, VOLUNTARY_S), (SIGTERM, TERM_S), (SIGKILL, None)):
        if signal:
            signal_group(agent, signal)
        deadline = None if limit is None else time.monotonic() + limit
        while deadline is None or time.monotonic() < deadline:
            ended, status = os.waitpid(agent, os.WNOHANG)
            if ended:
                return status
            rest = 0.05 if deadline is None or death is None else max(0.0, deadline - time.monotonic())
            select.select([] if death is None else [death], [], [], rest)
    raise AssertionError("unreachable: the last step has no limit")


def end_group(group: int, limit: float) -> None:
    """TERM, then KILL, for what the agent left behind. Its number is not given out anew while the group has members."""
    deadline = time.monotonic() + limit
    alive = signal_group(group, SIGTERM)
    while alive and time.monotonic() < deadline:
        time.sleep(0.01)
        alive = signal_group(group, 0)
    if alive:
        signal_group(group, SIGKILL)


def signal_group(group: int, signal: int) -> bool:
    """Send `signal` (0: only ask) to the group; False when nobody is there."""
    try:
        os.killpg(group, signal)
    except ProcessLookupError:
        return False
    except PermissionError:
        return signal == 0 and sys.platform != "darwin"  # macOS says so of a group of zombies
    return True


def say(control: int, line: str) -> None:
    """Tell the server; a server that is gone is noticed by the socket's end."""
    try:
        os.write(control, line.encode("ascii"))
    except OSError:
        return


if __name__ == "__main__":
    main()
