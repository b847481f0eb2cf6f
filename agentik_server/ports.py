"""The ports: what the application needs of the world, as protocols. Real adapters and the tests' fakes implement them.

Holds no behaviour. Nothing here may be awaited by `app.py` or the domain: what takes time is answered by a happening.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentik_server.domain.happenings import Happening
from agentik_server.domain.message import Attachment
from agentik_server.domain.saves import Outcome, Page, Read, Write


class Reply(Protocol):
    """The answer to one request of an editor: one of the two is called, once. A second call is logged as a bug."""

    def result(self, value: object) -> None:
        """Answer with a JSON-able value (camelCase keys, as PROTOCOL.md has it)."""

    def refuse(self, reason: str, message: str, data: Mapping[str, object] | None = None) -> None:
        """Answer with error 4000 and `data.reason`."""


@dataclass(frozen=True, slots=True)
class InitializeOptions:
    """What the client said at `initialize`. `settings` override the settings file key by key (nested objects)."""

    home: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


class StartupError(Exception):
    """The application cannot start. `str()`: one line for a person; `reason`: data.reason of error 4000."""

    def __init__(self, line: str, reason: str = "startFailed") -> None:
        super().__init__(line)
        self.reason = reason


class Application(Protocol):
    """What the editor side talks to. All calls come from the event loop's thread, in the order of the wire."""

    async def start(self, options: InitializeOptions) -> str:
        """Open everything; returns the database's id. Called again after a StartupError if the client tries again.

        Raises StartupError.
        """

    def request(self, method: str, params: Mapping[str, object], reply: Reply) -> None:
        """One request, by its short name ("sendMessage"), with validated params: camelCase keys, unknown ones dropped,
        optional ones that were not given absent, documented defaults filled in.

        Answers through `reply`, now or later. May raise Refused instead; any other exception is logged as a bug and
        answered with -32603. Never called before `start` has returned or after `close`.
        """

    async def close(self) -> None:
        """Save and stop everything in order (B61), after a StartupError too. Called once, the last call."""


class Editor(Protocol):
    """The client at the other end of stdio. Calls return at once; order is kept."""

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        """Send a notification ("agentik/..."); `params` must not be changed afterwards.

        Frames may be merged while the pipe is full (see editor/outbox).
        """


class Progress(Protocol):
    """A piece of long work as the editor's user sees it (LSP `$/progress`); nothing is sent where it cannot be seen."""

    def report(self, message: str, percentage: int | None = None) -> None:
        """`percentage` 0 to 100, where known."""

    def end(self, message: str | None = None) -> None:
        """Once, at the end."""


class Progresses(Protocol):
    """Where long work is reported."""

    def progress(self, title: str) -> Progress:
        """Long work begins."""


@dataclass(frozen=True, slots=True)
class BufferState:
    """Answer to agentik/readBuffer. `text` only when `modified`."""

    loaded: bool
    modified: bool
    text: str | None = None


class OpenBuffers(Protocol):
    """Files that are open in the editor (B50). Raises TimeoutError when the editor does not answer in 2 s."""

    async def read(self, path: str) -> BufferState | None:
        """State of the buffer of the absolute `path`; None where the editor has no such buffers."""

    async def write(self, path: str, text: str) -> tuple[bool, str | None] | None:
        """(applied, reason) of writing through the buffer; None where the editor has no such buffers: use the disk."""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """How to run one agent (a row of the catalogue, or the user's own). `command` is argv."""

    agent_id: str
    name: str
    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    mcp_servers: tuple[object, ...] = ()
    install_hint: str = ""
    login_hint: str = ""
    quirks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Launch:
    """What a link needs to bring up one session's agent."""

    session_id: str
    spec: AgentSpec
    cwd: str
    agent_session_id: str | None  # to be continued by resume or load (B40)
    attachments_dir: str  # readable for the agent besides cwd (B49)
    extra_roots: tuple[str, ...] = ()
    want_history: bool = False  # our record is empty: load rather than resume, for its replay


@dataclass(frozen=True, slots=True)
class AgentPolicy:
    """The settings that an agent link obeys. Times in seconds; permission values "allow" | "ask" | "deny"."""

    startup_s: float = 60.0
    keepalive_s: float = 60.0
    quiet_s: float = 0.08  # B37: no updates for so long before the next prompt
    quiet_limit_s: float = 1.0
    files_read: str = "allow"
    files_write: str = "allow"
    terminal: str = "ask"
    trace: bool = False
    log_dir: str = ""


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """One user message of a prompt (one block each with `queue.drain = "all"`, B17)."""

    text: str
    attachments: Sequence[Attachment] = ()


class AgentLink(Protocol):
    """One session's agent process and its ACP connection. Calls return at once; what happens is told to `tell`.

    The link announces every step of B38 with ConnectionChanged. After AgentExited it may be started again.
    """

    def start(self, launch: Launch, attempt: int) -> None:
        """Spawn, initialize, open the session; ends in AgentReady or StartFailed. No effect while starting or up."""

    def prompt(self, turn_id: str, blocks: Sequence[PromptBlock], *, quiet: bool) -> None:
        """Write session/prompt; ends in PromptAnswered, PromptNotWritten or AgentExited. `quiet`: B37's wait first."""

    def cancel(self, turn_id: str) -> None:
        """session/cancel, or drop a prompt not yet written (then PromptNotWritten). Kills the turn's terminals."""

    def answer_permission(self, permission_id: str, option_id: str | None) -> None:
        """None = cancelled."""

    def answer_question(self, question_id: str, action: str, content: object) -> None: ...

    def call(self, token: str, method: str, params: Mapping[str, object]) -> None:
        """A request of session control ("set_mode" {modeId}, "set_config_option" {configId, value}, "authenticate"
        {methodId}, "delete" {}, "close" {}); ends in CallAnswered(token, ...)."""

    def stop(self) -> None:
        """In order: stdin closed, TERM, KILL of the group (B47); ends in AgentExited(wanted=True)."""

    def kill(self) -> None:
        """KILL of the group at once; ends in AgentExited(wanted=True)."""


@dataclass(frozen=True, slots=True)
class AgentListing:
    """A row of agentik/listAgents. `reason` says why it cannot start."""

    agent_id: str
    name: str
    command: tuple[str, ...]
    available: bool
    is_default: bool
    reason: str | None = None
    install_hint: str | None = None


class Agents(Protocol):
    """Makes links and knows the catalogue."""

    def link(self, session_id: str, tell: Callable[[Happening], None]) -> AgentLink:
        """A new, not started link."""

    def spec(self, agent_id: str | None) -> AgentSpec:
        """How to run the agent; None = the default one. Raises Refused("unknownAgent")."""

    def listed(self) -> Sequence[AgentListing]:
        """The whole catalogue."""

    def check(self, agent_id: str, done: Callable[[bool, str, Mapping[str, object] | None], None]) -> None:
        """A real handshake with an agent of its own, then ended: `done(ok, detail, agent_info)`."""

    def list_sessions(
        self, agent_id: str, cwd: str, done: Callable[[Sequence[Mapping[str, object]] | None, str], None]
    ) -> None:
        """What the agent itself remembers of a folder (ACP session/list): `done(sessions, "")` or `done(None, why)`."""

    def processes(self) -> Sequence[Mapping[str, object]]:
        """What runs now, for agentik/status: [{sessionId, agentId, pid, stderr}]."""


class Timers(Protocol):
    """One-shot timers by name. Setting a name again replaces its timer."""

    def set(self, name: tuple[str, ...], seconds: float) -> None:
        """Ends in `App.timer_fired(name)`."""

    def cancel(self, name: tuple[str, ...]) -> None: ...


class Store(Protocol):
    """The database of one home folder. Calls return at once; writes are carried out in the order of the calls."""

    def write(self, write: Write, done: Callable[[Outcome], None]) -> None:
        """One transaction (several may share a commit). `done` is called in order, after the commit (B5)."""

    def read(self, read: Read, done: Callable[[Page], None]) -> None:
        """Answered from a committed state that holds every write whose `done` was called before."""
