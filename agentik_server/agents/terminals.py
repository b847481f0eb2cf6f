"""terminal/*: commands that an agent runs through us, each in a process group of its own under a guard (B47, B49).

Output is kept from its end on, cut at a character boundary. Whatever the agent forgets is killed by us when the turn
ends or is cancelled. Must not run anything that was not permitted.
"""

from __future__ import annotations

import asyncio
import codecs
import itertools
import os
import shlex
import shutil
from collections.abc import Callable, Mapping

from agentik_server.agents.clean import as_dict, as_int, as_list, as_text, clean_text
from agentik_server.agents.exits import Exit
from agentik_server.agents.paths import PathRefused, Roots
from agentik_server.agents.peer import INTERNAL_ERROR, INVALID_PARAMS, NOT_FOUND, Call
from agentik_server.agents.permits import Permits
from agentik_server.agents.process import AgentProcess
from agentik_server.domain.message import ToolChange

KEEP_BYTES = 1024 * 1024  # of output where the agent sets no limit
SHOW_CHARACTERS = 64 * 1024  # of output that is shown while it comes; of more, the end is shown when it is over
SHOW_EVERY_S = 0.05
MAX_OPEN = 50
MAX_TEXTS = 20  # released terminals whose output is still known
KILL_S = 0.5  # from TERM to KILL
_SHELL_SIGNS = set(" \t\n|&;<>()$`\\\"'*?[]#~=%{}!")

Grew = Callable[[str, str, bool], None]  # terminal id, text, whether it replaces what was shown


class Terminal:
    """One command. `show` gets its text as it comes, a few times a second."""

    def __init__(
        self, terminal_id: str, argv: list[str], cwd: str, env: Mapping[str, str], limit: int, grew: Grew
    ) -> None:
        self._id = terminal_id
        self._limit = limit
        self._grew = grew
        self._loop = asyncio.get_running_loop()
        self._kept = bytearray()
        self._dropped = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._unshown: list[str] = []
        self._shown = 0
        self._showing: asyncio.TimerHandle | None = None
        self._waiting: list[Call] = []
        self.end: Exit | None = None
        self.process = AgentProcess(
            argv, cwd=cwd, env=env, on_data=self._on_data, on_exit=self._on_exit, merge_stderr=True
        )
        self.process.close_stdin()

    @property
    def awaited(self) -> bool:
        return any(call.is_open for call in self._waiting)

    def output(self) -> dict[str, object]:
        """The answer to terminal/output."""
        answer: dict[str, object] = {"output": self.text(), "truncated": self._dropped}
        if self.end is not None:
            answer["exitStatus"] = exit_status(self.end)
        return answer

    def text(self) -> str:
        """What is kept of the output; a character that is not complete yet is left out."""
        text, used = codecs.utf_8_decode(bytes(self._kept), "replace", self.end is not None)
        del used
        return clean_text(text)

    def wait(self, call: Call) -> None:
        """Answer `call` when the command has ended."""
        if self.end is not None:
            call.result(exit_status(self.end))
        else:
            self._waiting.append(call)

    def kill(self) -> None:
        if self.end is None:
            self.process.stop(stdin_s=0.0, term_s=KILL_S)

    def _on_data(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > self._limit:
            self._dropped = True
            del self._kept[: cut_point(self._kept, self._limit)]
        if self._shown < SHOW_CHARACTERS:
            text = self._decoder.decode(data)
            self._shown += len(text)
            self._unshown.append(text)
            if self._showing is None:
                self._showing = self._loop.call_later(SHOW_EVERY_S, self._show)

    def _show(self) -> None:
        self._showing = None
        text = clean_text("".join(self._unshown))
        self._unshown.clear()
        if text:
            self._grew(self._id, text, False)

    def _on_exit(self, end: Exit) -> None:
        self.end = end
        if self._showing is not None:
            self._showing.cancel()
        if self._shown >= SHOW_CHARACTERS:
            self._grew(self._id, "…" + self.text()[-SHOW_CHARACTERS:], True)
        else:
            self._show()
        for call in self._waiting:
            call.result(exit_status(end))


class Terminals:
    """The terminals of one connection."""

    def __init__(
        self, roots: Roots, cwd: str, env: Mapping[str, str], permits: Permits, remark: Callable[[str], None]
    ) -> None:
        self._roots = roots
        self._cwd = cwd
        self._env = env
        self._permits = permits
        self._remark = remark
        self._numbers = itertools.count(1)
        self._open: dict[str, Terminal] = {}
        self._ending: set[Terminal] = set()  # released, but not ended yet
        self._texts: dict[str, str] = {}  # of released ones: agents show them in a tool call afterwards
        self._refusing = False
        self.grew: Grew = _nobody

    @property
    def awaited(self) -> bool:
        """Whether the agent waits for a command."""
        return any(terminal.awaited for terminal in self._open.values())

    def text(self, terminal_id: str) -> str | None:
        """What a terminal of ours has put out, also after its release; None for an id that is not ours."""
        terminal = self._open.get(terminal_id)
        return self._texts.get(terminal_id) if terminal is None else terminal.text()

    async def create(self, params: Mapping[str, object], call: Call) -> None:
        """Answers {terminalId} once the command runs."""
        try:
            cwd = self._folder(params.get("cwd"))
            argv = argv_of(params, cwd, self._env)
            line = command_line(params)
            tool = ToolChange("agentik-terminal", line, "execute", "pending", input={"command": line, "cwd": cwd})
            if not await self._permits.may("terminal", line, tool, call):
                denied = self._permits.rule("terminal") == "deny"
                raise PathRefused(f"{line}: {'the settings deny it' if denied else 'the user said no'}")
        except PathRefused as refused:
            call.error(INVALID_PARAMS, str(refused))
            self._remark(f"The agent was not let run a command: {refused}")
            return
        if not call.is_open:
            return
        if len(self._open) >= MAX_OPEN:
            self._forget_ended()
        if self._refusing or len(self._open) >= MAX_OPEN:
            why = "the turn is over" if self._refusing else f"{MAX_OPEN} terminals are open"
            call.error(INTERNAL_ERROR, f"no terminal: {why}")
            return
        limit = as_int(params.get("outputByteLimit"))
        keep = KEEP_BYTES if limit is None or limit < 0 else min(limit, KEEP_BYTES)
        terminal_id = f"agentik-{next(self._numbers)}"
        env = {**self._env, **env_of(params.get("env"))}
        try:
            self._open[terminal_id] = Terminal(terminal_id, argv, cwd, env, keep, self._on_grew)
        except (OSError, ValueError) as error:
            call.error(INTERNAL_ERROR, f"{line}: {error}")
            return
        call.result({"terminalId": terminal_id})

    def serve(self, method: str, params: Mapping[str, object], call: Call) -> None:
        """terminal/output, wait_for_exit, kill, release."""
        terminal_id = str(params.get("terminalId"))
        terminal = self._open.get(terminal_id)
        if terminal is None:
            call.error(NOT_FOUND, f"there is no terminal {terminal_id}")
            return
        match method:
            case "output":
                call.result(terminal.output())
            case "wait_for_exit":
                terminal.wait(call)
            case "kill":
                terminal.kill()
                call.result({})
            case _:
                terminal.kill()
                self._forget(terminal_id)
                call.result({})

    def kill_all(self, *, refuse: bool) -> None:
        """End every command; `refuse`: no new one until `turn_begins` (the turn is being cancelled)."""
        self._refusing = refuse
        for terminal in self._open.values():
            terminal.kill()

    def turn_begins(self) -> None:
        self._refusing = False

    async def wait_ended(self) -> None:
        """Kill all and wait until nothing of them is left."""
        for terminal in (*self._open.values(), *self._ending):
            terminal.process.kill()
            await terminal.process.wait_ended()

    def _forget(self, terminal_id: str) -> None:
        terminal = self._open.pop(terminal_id)
        self._ending = {other for other in (*self._ending, terminal) if other.end is None}
        self._texts[terminal_id] = terminal.text()[-SHOW_CHARACTERS:]
        if len(self._texts) > MAX_TEXTS:
            del self._texts[next(iter(self._texts))]

    def _forget_ended(self) -> None:
        """Some agents release nothing: the oldest command that is over makes room."""
        for terminal_id, terminal in self._open.items():
            if terminal.end is not None:
                self._forget(terminal_id)
                return

    def _on_grew(self, terminal_id: str, text: str, replaces: bool) -> None:
        self.grew(terminal_id, text, replaces)

    def _folder(self, cwd: object) -> str:
        """The working folder of a command. Raises PathRefused."""
        if cwd is None:
            return self._cwd
        real = self._roots.resolve(cwd, write=True)
        if not os.path.isdir(real):
            raise PathRefused(f"{real} is no folder")
        return real


def _nobody(_terminal_id: str, _text: str, _replaces: bool) -> None:
    return


def argv_of(params: Mapping[str, object], cwd: str, env: Mapping[str, str]) -> list[str]:
    """What to run: a program with arguments, or a whole shell line (AGENTS.md section 5.5). Raises PathRefused."""
    command = params.get("command")
    args = [str(item) for item in as_list(params.get("args"))]
    if not isinstance(command, str) or not command.strip():
        raise PathRefused("command must be a text")
    if any("\0" in part for part in (command, *args)):
        raise PathRefused("a command must not hold NUL")
    program = os.path.join(cwd, command) if os.sep in command else command
    found = shutil.which(program, path=env.get("PATH"))
    if found is not None and (args or not _SHELL_SIGNS.intersection(command)):
        return [found, *args]
    if args and not any(sign in command for sign in " \t\n"):
        raise PathRefused(f"the command {command} was not found")
    shell = shutil.which("bash", path=env.get("PATH")) or "/bin/sh"
    return [shell, "-c", " ".join([command, shlex.join(args)]) if args else command]


def command_line(params: Mapping[str, object]) -> str:
    """The command as a person reads it; a shell called with -c is left out."""
    command = str(params.get("command"))
    args = [str(item) for item in as_list(params.get("args"))]
    if os.path.basename(command) in ("sh", "bash", "zsh") and len(args) == 2 and args[0] in ("-c", "-lc"):
        return clean_text(args[1])
    return clean_text(" ".join([command, shlex.join(args)]) if args else command)


def env_of(value: object) -> dict[str, str]:
    """[{name, value}] as the schema has it, or an object."""
    if isinstance(value, dict):
        pairs = value.items()
        return {name: text for name, text in pairs if isinstance(text, str) and _is_variable(name, text)}
    found = {}
    for item in as_list(value):
        name, text = as_text(as_dict(item).get("name")), as_dict(item).get("value")
        if name is not None and isinstance(text, str) and _is_variable(name, text):
            found[name] = text
    return found


def _is_variable(name: str, text: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name + text


def exit_status(end: Exit) -> dict[str, object]:
    """{exitCode, signal}; a command that could not be started counts as the shell's 127."""
    if end.spawn_error is not None:
        return {"exitCode": 127, "signal": None}
    return {"exitCode": end.code, "signal": end.signal}


def cut_point(data: bytes | bytearray, limit: int) -> int:
    """Where to cut so that at most `limit` bytes stay and no character is halved."""
    start = len(data) - limit
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start
