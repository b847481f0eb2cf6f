"""Bringing up an agent's session: initialize, then resume, load or new (B39, B40; ACP "Session Setup").

Knows the order and the words of it, not processes or happenings. Must use only what the agent advertised.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from agentik_server.agents.clean import as_dict, as_int, as_list, as_text, clean_json, one_line
from agentik_server.agents.faults import describe, is_auth, is_lost_session
from agentik_server.agents.peer import Answer, Peer, RequestTimedOut, RpcError
from agentik_server.agents.prompts import Takes
from agentik_server.ports import AgentPolicy, AgentSpec, Launch

PROTOCOL_VERSION = 1


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What the agent said of itself in initialize."""

    name: str  # for people
    program: str  # the name that it goes by on the wire
    takes: Takes
    load: bool
    resume: bool
    delete: bool
    close: bool
    fork: bool
    list_sessions: bool
    directories: bool
    mcp_http: bool
    mcp_sse: bool
    auth_methods: tuple[Mapping[str, object], ...]


@dataclass(frozen=True, slots=True)
class Opened:
    """The agent's session is there. `result`: the raw answer, with modes, configOptions, models."""

    session_id: str
    how: Literal["new", "loaded", "resumed"]
    context_reset: bool
    result: Mapping[str, object]


class NotOpened(Exception):  # noqa: N818 -- a happening
    """No session came up; `detail` is one line for a person."""

    def __init__(self, reason: Literal["failed", "timeout", "authRequired"], detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


async def initialize(peer: Peer, policy: AgentPolicy, spec: AgentSpec, version: str, limit_s: float) -> AgentFacts:
    """The first request. Raises NotOpened, or PeerClosed when the agent died."""
    params = {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": client_capabilities(policy),
        "clientInfo": {"name": "agentik", "title": "Agentik", "version": version},
    }
    try:
        result = as_dict(await peer.ask("initialize", params, limit_s))
    except RequestTimedOut as late:
        detail = f"{spec.name} did not answer to initialize in {limit_s:g} s"
        raise NotOpened("timeout", detail) from late
    except RpcError as error:
        raise NotOpened("failed", f"{spec.name} refused to start: {describe(error)}") from error
    answered = as_int(result.get("protocolVersion"))
    if answered not in (None, PROTOCOL_VERSION):
        detail = f"{spec.name} speaks version {answered} of ACP; Agentik speaks version {PROTOCOL_VERSION}"
        raise NotOpened("failed", detail)
    return read_facts(result, spec)


def client_capabilities(policy: AgentPolicy) -> dict[str, object]:
    """What we do for agents; what the settings deny is not offered."""
    return {
        "fs": {"readTextFile": policy.files_read != "deny", "writeTextFile": policy.files_write != "deny"},
        "terminal": policy.terminal != "deny",
        "session": {"configOptions": {"boolean": {}}},
        "auth": {"terminal": True},
        "elicitation": {"form": {}, "url": {}},
        "_meta": {"terminal_output": True, "terminal-auth": True},
    }


def read_facts(result: Mapping[str, object], spec: AgentSpec) -> AgentFacts:
    """The answer to initialize; what is absent is not supported."""
    able = as_dict(result.get("agentCapabilities"))
    prompt = as_dict(able.get("promptCapabilities"))
    session = as_dict(able.get("sessionCapabilities"))
    mcp = as_dict(able.get("mcpCapabilities"))
    info = as_dict(result.get("agentInfo"))
    title = as_text(info.get("title")) or as_text(info.get("name")) or spec.name
    version = as_text(info.get("version"))
    return AgentFacts(
        name=one_line(f"{title} {version}" if version else title, 100),
        program=as_text(info.get("name")) or "",
        takes=Takes(prompt.get("image") is True, prompt.get("audio") is True, prompt.get("embeddedContext") is True),
        load=able.get("loadSession") is True,
        resume=_has(session, "resume"),
        delete=_has(session, "delete"),
        close=_has(session, "close"),
        fork=_has(session, "fork"),
        list_sessions=_has(session, "list"),
        directories=_has(session, "additionalDirectories"),
        mcp_http=mcp.get("http") is True,
        mcp_sse=mcp.get("sse") is True,
        auth_methods=tuple(auth_methods(result.get("authMethods"), spec)),
    )


def auth_methods(items: object, spec: AgentSpec) -> list[Mapping[str, object]]:
    """[{id, name, description?, type?, command?}]; `command` is what a person runs in a terminal to log in."""
    methods: list[Mapping[str, object]] = []
    for item in as_list(items):
        fields = as_dict(item)
        method_id = as_text(fields.get("id"))
        if not method_id:
            continue
        method = {"id": method_id, "name": as_text(fields.get("name")) or method_id}
        for name in ("description", "type", "vars", "link"):
            if fields.get(name):
                method[name] = clean_json(fields[name])  # type: ignore[assignment]  # JSON of the agent
        command = _login_command(fields, spec)
        if command:
            method["command"] = command  # type: ignore[assignment]
        methods.append(method)
    return methods


def _login_command(fields: Mapping[str, object], spec: AgentSpec) -> list[str]:
    """`type: terminal` runs the agent's own command with other arguments; before that it was `_meta.terminal-auth`."""
    older = as_dict(as_dict(fields.get("_meta")).get("terminal-auth"))
    if as_text(older.get("command")):
        return [str(older["command"]), *(str(item) for item in as_list(older.get("args")))]
    if fields.get("type") == "terminal":
        return [*spec.command[:1], *(str(item) for item in as_list(fields.get("args")))]
    return []


def _has(fields: Mapping[str, object], name: str) -> bool:
    """A capability that is an object when it is there; some agents send true."""
    return fields.get(name) is not None and fields.get(name) is not False


async def open_session(
    peer: Peer, facts: AgentFacts, launch: Launch, limit_s: float, last_sign: Callable[[], float]
) -> Opened:
    """Continue `launch.agent_session_id` where that is possible, else begin anew (B40). Raises NotOpened, PeerClosed.

    `last_sign`: loop time of the last sign of life; the limit counts from there (a replay may be long).
    """
    place = _place(facts, launch)
    wanted = launch.agent_session_id
    try:
        if wanted is not None:
            for method, able, how in _ways(facts, launch):
                if not able:
                    continue
                try:
                    result = await _ask(peer, method, {"sessionId": wanted, **place}, limit_s, last_sign)
                except RpcError as error:
                    if not is_lost_session(error):
                        raise
                else:
                    fields = as_dict(result)
                    return Opened(as_text(fields.get("sessionId")) or wanted, how, False, fields)
        fields = as_dict(await _ask(peer, "session/new", place, limit_s, last_sign))
    except RequestTimedOut as late:
        raise NotOpened("timeout", f"{launch.spec.name}: {late}") from late
    except RpcError as error:
        raise _not_opened(error, launch.spec) from error
    session_id = as_text(fields.get("sessionId"))
    if not session_id:
        raise NotOpened("failed", f"{launch.spec.name} gave no session id")
    return Opened(session_id, "new", wanted is not None, fields)


def _ways(facts: AgentFacts, launch: Launch) -> tuple[tuple[str, bool, Literal["loaded", "resumed"]], ...]:
    """In the order in which they are tried: a resume replays nothing, so it is no way to a history that we lack."""
    resume: tuple[str, bool, Literal["resumed"]] = ("session/resume", facts.resume, "resumed")
    load: tuple[str, bool, Literal["loaded"]] = ("session/load", facts.load, "loaded")
    return (load, resume) if launch.want_history else (resume, load)


def _not_opened(error: RpcError, spec: AgentSpec) -> NotOpened:
    if is_auth(error):
        hint = f" {spec.login_hint}" if spec.login_hint else ""
        return NotOpened("authRequired", f"{spec.name} wants a login: {describe(error)}.{hint}")
    return NotOpened("failed", f"{spec.name} opened no session: {describe(error)}")


def _place(facts: AgentFacts, launch: Launch) -> dict[str, object]:
    place: dict[str, object] = {"cwd": launch.cwd, "mcpServers": mcp_servers(launch.spec.mcp_servers, facts)}
    if launch.extra_roots and facts.directories:
        place["additionalDirectories"] = list(launch.extra_roots)
    return place


def mcp_servers(servers: tuple[object, ...], facts: AgentFacts) -> list[object]:
    """The servers that this agent can use: stdio always, http and sse where it says so."""
    able = {"http": facts.mcp_http, "sse": facts.mcp_sse}
    return [_mcp_server(as_dict(server)) for server in servers if able.get(_transport(as_dict(server)), True)]


def _transport(server: Mapping[str, object]) -> str:
    return str(server.get("type", "http" if "url" in server else "stdio"))


def _mcp_server(server: Mapping[str, object]) -> dict[str, object]:
    """In the schema's shape: environment and headers are lists of {name, value}, and what must be there is there."""
    shaped = {key: value for key, value in server.items() if key != "type"}
    for name in ("env", "headers"):
        pairs = shaped.get(name)
        if isinstance(pairs, dict):
            shaped[name] = [{"name": key, "value": str(value)} for key, value in pairs.items()]
    if _transport(server) == "stdio":
        return {"name": os.path.basename(str(server.get("command", "mcp"))), "args": [], "env": [], **shaped}
    return {"name": str(server.get("url")), "headers": [], **shaped, "type": _transport(server)}


async def _ask(
    peer: Peer, method: str, params: Mapping[str, object], limit_s: float, last_sign: Callable[[], float]
) -> object:
    """A request whose time limit counts from the agent's last sign of life. Raises as Peer.ask."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Answer] = loop.create_future()

    def done(answer: Answer) -> None:
        if not answered.done():
            answered.set_result(answer)

    request = peer.request(method, params, done)
    begun = loop.time()
    try:
        while not answered.done():
            rest = limit_s - (loop.time() - max(begun, last_sign()))
            if rest <= 0:
                raise RequestTimedOut(f"no answer to {method} in {limit_s:g} s")
            await asyncio.wait([answered], timeout=rest)
    finally:
        if not answered.done():
            peer.give_up(request)
    answer = answered.result()
    if answer.error is not None:
        raise answer.error
    return answer.result
