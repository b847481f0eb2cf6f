"""The wiring of one server process: folders, settings, store, agents, dictation and the application over them.

Implements ports.Application. With `__main__` the only module that knows every adapter; holds no rule of its own.
Heavy adapters are imported when they are needed: a server must answer `initialize` at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from agentik_server import __version__
from agentik_server.app import App, AppSettings, Ports
from agentik_server.domain.news import Notice
from agentik_server.domain.pending import QueueLimits
from agentik_server.domain.policy import SessionPolicy
from agentik_server.domain.saves import ForgetOld
from agentik_server.folders import Folders, find_folders
from agentik_server.logfile import log_to, recent_errors
from agentik_server.ports import AgentPolicy, Editor, InitializeOptions, OpenBuffers, Progresses, Reply, StartupError
from agentik_server.requests import Requests
from agentik_server.settings import Settings, load
from agentik_server.timers import LoopTimers

if TYPE_CHECKING:
    from agentik_server.agents.catalogue import UserAgent
    from agentik_server.agents.service import AgentService
    from agentik_server.dictating import Dictating
    from agentik_server.store.database import SqliteStore
    from agentik_server.voice.settings import DictationSettings

log = logging.getLogger(__name__)

DAY_MS = 24 * 60 * 60 * 1000
AGENTS_END_S = 3.0  # B61: what does not end in this time is the guards' work


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a started server holds."""

    app: App
    requests: Requests
    store: SqliteStore
    agents: AgentService
    timers: LoopTimers
    dictating: Dictating
    tick: asyncio.Task[None]


class Program:
    """`editor`: where notifications go; `buffers`: files that are open there; `progresses`: where long work is shown.

    `home`: from the command line; what the editor says at initialize is stronger.
    """

    def __init__(self, editor: Editor, buffers: OpenBuffers, progresses: Progresses, home: str | None) -> None:
        self._editor = editor
        self._buffers = buffers
        self._progresses = progresses
        self._home = home
        self._parts: _Parts | None = None

    async def start(self, options: InitializeOptions) -> str:
        """See ports.Application."""
        from agentik_server.store.database import SqliteStore
        from agentik_server.store.opening import StoreUnavailable

        folders = find_folders(options.home or self._home)
        settings, problems = load(folders.settings, options.settings)
        try:
            log_to(folders.log, settings.log.level)
        except OSError as error:
            line = f"cannot write the log {folders.log}: {error.strerror or error}"
            raise StartupError(line, "storeFailed") from error
        try:
            opened = await SqliteStore.open(folders.data)
        except StoreUnavailable as error:
            raise StartupError(str(error), "storeFailed") from error
        self._parts = self._wire(settings, problems, folders, opened.store, opened.server_id)
        for text in (*opened.notices, *problems):
            log.warning("%s", text)
            self._parts.app.show(Notice("warning", text))
        if settings.retention_days > 0:
            self._parts.app.write(ForgetOld(_now_ms() - settings.retention_days * DAY_MS), lambda _: None)
        log.info("started in %s as %s", folders.data, opened.server_id)
        return opened.database_id

    def request(self, method: str, params: Mapping[str, object], reply: Reply) -> None:
        """See ports.Application."""
        parts = self._parts
        assert parts is not None, "requests come after start"
        if method in parts.dictating.methods:
            parts.dictating.request(method, params, reply)
        else:
            parts.requests.request(method, params, reply)

    async def close(self) -> None:
        """See ports.Application."""
        parts = self._parts
        if parts is None:
            return
        parts.tick.cancel()
        await asyncio.wait([parts.tick])
        parts.app.close()
        parts.timers.close()
        await parts.dictating.close()
        if not await parts.agents.close(AGENTS_END_S):
            log.warning("some agents had not ended when the server did")
        await parts.store.close()
        parts.app.closed()
        log.info("ended")

    def _wire(
        self, settings: Settings, problems: Sequence[str], folders: Folders, store: SqliteStore, server_id: str
    ) -> _Parts:
        from agentik_server.agents.catalogue import Catalogue
        from agentik_server.agents.service import AgentService
        from agentik_server.dictating import Dictating

        timers = LoopTimers()
        catalogue = Catalogue(user_agents(settings), settings.default_agent)
        agents = AgentService(lambda: agent_policy(settings, folders), catalogue, self._buffers)
        ports = Ports(
            store=store,
            editor=self._editor,
            agents=agents,
            timers=timers,
            clock=_now_ms,
            new_id=lambda: str(uuid.uuid4()),
            server_id=server_id,
        )
        app = App(ports, app_settings(settings, folders, problems))
        timers.listen(app.timer_fired)
        store.watch(app.foreign_commit)
        return _Parts(
            app=app,
            requests=Requests(app),
            store=store,
            agents=agents,
            timers=timers,
            dictating=Dictating(self._editor, dictation_settings(settings), self._progresses),
            tick=asyncio.create_task(_tick(app, settings.sync_interval), name="sync tick"),
        )


async def _tick(app: App, seconds: float) -> None:
    """B23. After a suspend of an hour: one tick."""
    while True:
        await asyncio.sleep(seconds)
        app.tick()


def app_settings(settings: Settings, folders: Folders, problems: Sequence[str]) -> AppSettings:
    """The part of the settings that the application and its sessions obey."""
    queue, timeouts = settings.queue, settings.timeouts
    limits = QueueLimits(
        enabled=queue.enabled,
        max_items=queue.max_items,
        max_text_bytes=queue.max_text_bytes,
        max_files=queue.max_files,
        max_total_bytes=queue.max_total_bytes,
    )
    policy = SessionPolicy(
        limits=limits,
        drain_all=queue.drain == "all",
        pause_on_cancel=queue.on_cancel == "pause",
        prompt_s=timeouts.prompt,
        retry_delay_s=timeouts.retry_delay,
        cancel_grace_s=timeouts.cancel_grace,
        idle_agent_s=timeouts.idle_agent,
        sync_s=settings.sync_interval,
        tools=settings.permissions.tools,
    )
    return AppSettings(
        policy=policy,
        pause_restored=queue.on_restore == "pause",
        attachments_dir=str(folders.attachments),
        about=lambda: about(folders, problems),
    )


def user_agents(settings: Settings) -> Mapping[str, UserAgent]:
    """`agents.ID` of the settings; a command may be one word or a list, arguments follow it."""
    from agentik_server.agents.catalogue import UserAgent

    agents = {}
    for agent_id, agent in settings.agents.items():
        command = agent.command if isinstance(agent.command, list) else [agent.command] if agent.command else []
        argv = tuple(os.path.expanduser(part) for part in [*command, *agent.args]) if command else ()
        agents[agent_id] = UserAgent(agent.name or "", argv, agent.env, tuple(agent.mcp_servers))
    return agents


def agent_policy(settings: Settings, folders: Folders) -> AgentPolicy:
    """The part of the settings that agent links obey."""
    permissions = settings.permissions
    return AgentPolicy(
        startup_s=settings.timeouts.startup,
        keepalive_s=settings.timeouts.keepalive,
        files_read=permissions.files.read,
        files_write=permissions.files.write,
        terminal=permissions.terminal,
        trace=settings.trace,
        log_dir=str(folders.log.parent),
    )


def dictation_settings(settings: Settings) -> DictationSettings:
    from agentik_server.voice.settings import DEFAULT_STYLE, DictationSettings

    chosen = settings.dictation
    return DictationSettings(
        model=chosen.model,
        language=chosen.language,
        device=chosen.device,
        style=DEFAULT_STYLE if chosen.style is None else chosen.style,
        end_of_speech_ms=chosen.end_of_speech_ms,
        partial_ms=chosen.partial_ms,
        beam=chosen.beam,
        commands=chosen.commands,
        max_seconds=chosen.max_seconds,
        idle_seconds=chosen.idle_seconds,
        debug_audio_folder=None if chosen.debug_audio_folder is None else Path(chosen.debug_audio_folder).expanduser(),
    )


def about(folders: Folders, problems: Sequence[str]) -> Mapping[str, object]:
    """The part of agentik/status that is not about sessions; nothing secret."""
    libraries = ("pygls", "pydantic", "aiosqlite", "agent-client-protocol")
    return {
        "versions": {
            "agentik": __version__,
            **{name: metadata.version(name) for name in libraries},
            "python": platform.python_version(),
            "platform": platform.platform(),
        },
        "folders": {
            "data": str(folders.data),
            "attachments": str(folders.attachments),
            "log": str(folders.log),
            "settings": str(folders.settings),
        },
        "lastErrors": recent_errors(),
        "settingsProblems": list(problems),
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
