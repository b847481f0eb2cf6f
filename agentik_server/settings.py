"""The settings file: JSON with comments, edited by hand, checked key by key. The source of doc/settings.md.

A broken file or value never stops the server: it is reported in one line and the default holds. Must not know adapters.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import json5
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

Rule = Literal["allow", "ask", "deny"]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


def _setting(default: Any, meaning: str) -> Any:
    """A field with its row of the table in doc/settings.md."""
    return Field(default=default, description=meaning)


class _Section(BaseModel):
    """Part of the file: camelCase keys, exact types, immutable."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, strict=True, extra="ignore")


class AgentSettings(_Section):
    name: str | None = _setting(None, "shown to people")
    command: str | list[str] = _setting("", "program, or program and arguments")
    args: list[str] = Field(default_factory=list, description="further arguments")
    env: dict[str, str] = Field(default_factory=dict, description="added to the environment of the editor")
    mcp_servers: list[dict[str, Any]] = Field(default_factory=list, description="passed to the agent's sessions")


class QueueSettings(_Section):
    enabled: bool = _setting(True, "false: a busy session refuses instead of queueing (B8)")
    drain: Literal["one", "all"] = _setting("one", "one waiting message a turn, or all in one prompt (B17)")
    max_items: Count = _setting(100, "waiting messages of a session (B11)")
    max_text_bytes: Count = _setting(1 << 20, "UTF-8 bytes of one message")
    max_files: Count = _setting(50, "attachments of one message")
    max_total_bytes: Count = _setting(16 << 20, "bytes of all waiting texts of a session")
    on_cancel: Literal["pause", "continue"] = _setting("pause", "what a cancel does to the queue (B32)")
    on_restore: Literal["pause", "run"] = _setting("pause", "what waits after a restart (B31)")


class TimeoutSettings(_Section):
    startup: Seconds = _setting(60.0, "for the agent's initialize (B39)")
    prompt: Seconds = _setting(300.0, "without any update of the agent before a turn is given up (B41)")
    keepalive: Seconds = _setting(60.0, "between looks whether the agent process lives")
    retry_delay: Seconds = _setting(0.3, "before a failed start is tried once more (B39)")
    cancel_grace: Seconds = _setting(5.0, "for the agent to answer a cancel before it is killed (B32)")
    idle_agent: Seconds = _setting(900.0, "before an idle agent is stopped; 0 = never")


class FilePermissions(_Section):
    read: Rule = _setting("allow", "the agent reads files of the session's folders through the editor")
    write: Rule = _setting("allow", "the agent writes them")


class PermissionSettings(_Section):
    files: FilePermissions = Field(default_factory=FilePermissions)
    tools: dict[str, Rule] = Field(
        default_factory=dict, description="by ACP tool kind (edit, execute, ...): answers the agent's requests"
    )
    terminal: Rule = _setting("ask", "commands that the agent runs through Agentik and did not ask for")


class DictationOptions(_Section):
    model: str = _setting("", 'name or folder of a Whisper model; "" = the one of the extra `voice`')
    language: str = _setting("", 'language code; "" = what the model hears')
    device: str = _setting("", 'microphone, or part of its name; "" = the system\'s default')
    style: str | None = _setting(None, "a sentence in the style of what will be said")
    end_of_speech_ms: Annotated[int, Field(ge=100, le=5000)] = _setting(400, "silence that ends an utterance")
    partial_ms: Annotated[int, Field(ge=0, le=10_000)] = _setting(500, "between running guesses; 0 = none")
    beam: Annotated[int, Field(ge=1, le=5)] = _setting(2, "beam of the final text")
    commands: bool = _setting(False, '"new line", "scratch that", "send it", said alone, are commands')
    max_seconds: Annotated[int, Field(ge=1, le=3600)] = _setting(300, "the longest dictation")
    idle_seconds: Annotated[int, Field(ge=1)] = _setting(300, "the model is unloaded after so long")
    debug_audio_folder: str | None = _setting(None, "utterances are kept there as WAV files; unset = never")


class LogSettings(_Section):
    level: Literal["debug", "info", "warning", "error"] = _setting("info", "of agentik.log")


class Settings(_Section):
    """The whole file."""

    default_agent: str | None = _setting(None, "agent of a new session; unset = the first that can start")
    agents: dict[str, AgentSettings] = Field(default_factory=dict, description="adds agents or changes known ones")
    queue: QueueSettings = Field(default_factory=QueueSettings)
    timeouts: TimeoutSettings = Field(default_factory=TimeoutSettings)
    sync_interval: Annotated[float, Field(ge=0.1, le=3600)] = _setting(2.0, "of the sync tick (B23)")
    permissions: PermissionSettings = Field(default_factory=PermissionSettings)
    retention_days: Annotated[int, Field(ge=0)] = _setting(
        90, "sessions untouched for so long are deleted; 0 = never (B57)"
    )
    dictation: DictationOptions = Field(default_factory=DictationOptions)
    log: LogSettings = Field(default_factory=LogSettings)
    trace: bool = _setting(False, "`agents.trace`: raw ACP frames go to a file beside the log")


def load(path: Path, overrides: Mapping[str, Any]) -> tuple[Settings, list[str]]:
    """The settings of the file with `overrides` (of initializationOptions) key by key over them, and what is wrong.

    Problems are lines for a person: where (file, line and column, or key) and what. Never raises for bad content.
    """
    problems: list[str] = []
    merged = _merge(_read(path, problems), overrides)
    _lift_trace(merged)
    problems.extend(_unknown(merged))
    return _validated(merged, problems), problems


def _read(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path.name} cannot be read and is ignored: {error}")
        return {}
    if not text.strip():
        return {}
    try:
        data = json5.loads(text, allow_duplicate_keys=False)
    except (ValueError, RecursionError) as error:
        detail = " ".join(str(error).split()).removeprefix("<string>:")
        problems.append(f"{path.name} is broken and ignored: line {detail}")
        return {}
    if not isinstance(data, dict):
        problems.append(f"{path.name} is ignored: it must hold one object {{ ... }}")
        return {}
    return data


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` wins key by key; nested objects are merged. A dotted key is a nested object."""
    merged: dict[str, Any] = {}
    for source in (below, above):
        for key, value in source.items():
            head, _, rest = key.partition(".")
            new = {rest: value} if rest else value
            old = merged.get(head)
            if isinstance(new, Mapping):
                merged[head] = _merge(old if isinstance(old, Mapping) else {}, new)
            else:
                merged[head] = copy.deepcopy(new)
    return merged


def _lift_trace(data: dict[str, Any]) -> None:
    """`agents.trace` is a switch among the agents' ids."""
    agents = data.get("agents")
    if isinstance(agents, dict) and isinstance(agents.get("trace"), bool):
        data["trace"] = agents.pop("trace")


def _validated(data: dict[str, Any], problems: list[str]) -> Settings:
    """Each bad value is reported and taken out, until what is left is valid."""
    while True:
        try:
            return Settings.model_validate(_numbers(data))
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                place = [part for part in fault["loc"] if isinstance(part, str)]
                problems.append(f"settings: {_dotted(place)}: {_reason(fault)}; the default is used")
                if not _take_out(data, place):
                    return Settings()


def _numbers(data: dict[str, Any]) -> dict[str, Any]:
    """A whole number is fine where seconds are asked; json gives an int there, and strict types would refuse it."""

    def walk(value: Any, seconds: bool) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, seconds or key in {"timeouts", "syncInterval"}) for key, item in value.items()}
        return float(value) if seconds and isinstance(value, int) and not isinstance(value, bool) else value

    walked: dict[str, Any] = walk(data, seconds=False)
    return walked


def _take_out(data: dict[str, Any], place: list[str]) -> bool:
    """Remove the innermost key of `place` that is there."""
    for depth in range(len(place), 0, -1):
        parent: Any = data
        for part in place[: depth - 1]:
            parent = parent.get(part) if isinstance(parent, dict) else None
        if isinstance(parent, dict) and place[depth - 1] in parent:
            del parent[place[depth - 1]]
            return True
    return False


def _reason(fault: Mapping[str, Any]) -> str:
    value = json.dumps(fault["input"], ensure_ascii=False, default=str)
    return f"{str(fault['msg'])[:1].lower()}{str(fault['msg'])[1:]}, not {value[:60]}"


def _dotted(place: list[str]) -> str:
    return ".".join(place) or "the file"


def _unknown(data: Mapping[str, Any], model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[str]:
    """A line for each key that nothing reads: a slip of the pen would else be silent."""
    fields = {to_camel(name): field for name, field in model.model_fields.items()}
    for key, value in data.items():
        if key not in fields:
            yield f"settings: unknown key {prefix}{key}"
            continue
        inner = fields[key].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(value, Mapping):
            yield from _unknown(value, inner, f"{prefix}{key}.")
        elif key == "agents" and not prefix and isinstance(value, Mapping):
            for agent_id, agent in value.items():
                if isinstance(agent, Mapping):
                    yield from _unknown(agent, AgentSettings, f"agents.{agent_id}.")


def _rows(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """(key, default as JSON, meaning) of every setting."""
    for name, field in model.model_fields.items():
        key = f"{prefix}{to_camel(name)}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _rows(inner, f"{key}.")
        elif key == "agents":
            yield from _rows(AgentSettings, "agents.ID.")
        else:
            default = field.get_default(call_default_factory=True)
            shown = "agents.trace" if key == "trace" else key
            yield shown, json.dumps(default), field.description or ""


def render_markdown() -> str:
    """doc/settings.md."""
    lines = [
        "# Settings",
        "",
        "One JSON file, edited by hand; comments are allowed, and a dotted key is the same as a nested object. Where",
        "it is: `:checkhealth agentik`. `setup{ settings = { ... } }` overrides it key by key. Times are seconds",
        "unless the name says otherwise. What is wrong is reported in one line, and the default is used. Made from",
        "`agentik_server/settings.py` by `make generate`.",
        "",
        "| key | default | meaning |",
        "|---|---|---|",
        *(f"| `{key}` | `{default}` | {meaning} |" for key, default, meaning in _rows()),
        "",
    ]
    return "\n".join(lines)


def template() -> str:
    """A settings file in which everything is a comment, to begin with."""
    body = "".join(f'  // "{key}": {default},  // {meaning}\n' for key, default, meaning in _rows())
    return "{\n" + body + "}\n"
