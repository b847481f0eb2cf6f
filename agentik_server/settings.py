"""The settings file: JSON with comments, edited by hand, checked key by key. The source of doc/settings.md.

A broken file or value never stops the server: it is reported in one line and the default holds. Must not know adapters.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

Place = tuple[str, ...]
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

    Problems are lines for a person: where (file and line), which key, and what. A bad value is as if it were not there:
    below an override stands the file's value, below that the default. Never raises for bad content.
    """
    problems: list[str] = []
    text = _read(path, problems)
    below = _checked(
        _parsed(text, path.name, problems), lambda place: f"{path.name} line {_line_of(text, place)}", problems
    )
    above = _checked(overrides, lambda _: "settings of the editor", problems)
    return Settings.model_validate(_merge(below, above)), problems


def _read(path: Path, problems: list[str]) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        problems.append(f"{path.name} cannot be read and is ignored: {error}")
        return ""


def _parsed(text: str, name: str, problems: list[str]) -> dict[str, Any]:
    if not text.strip():
        return {}
    import json5  # most people have no such file, and start-up is short

    try:
        data = json5.loads(text, allow_duplicate_keys=False)
    except (ValueError, RecursionError) as error:
        problems.append(f"{name} is broken and ignored: {_broken(str(error), text)}")
        return {}
    if not isinstance(data, dict):
        problems.append(f"{name} is ignored: it must hold one object {{ ... }}")
        return {}
    return data


def _broken(error: str, text: str) -> str:
    """json5's words with the key that stands before the place: "line 3, after maxItems: unexpected ..."."""
    place = re.match(r"<string>:(\d+) (.*)", error, re.DOTALL)
    if place is None:
        return " ".join(error.split())
    before = "\n".join(_without_comments(text).split("\n")[: int(place[1])])
    keys = re.findall(r"""["']?([\w.$-]+)["']?\s*:""", before)
    after = f", at or after {keys[-1]}" if keys else ""
    return f"line {place[1]}{after}: {' '.join(place[2].split())}"


def _without_comments(text: str) -> str:
    """Comments become blanks, line ends stay; a text that looks like one is left alone."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0][0] in "\"'" else re.sub(r"[^\n]", " ", found[0])

    return re.sub(r""""(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/""", blank, text, flags=re.DOTALL)


def _line_of(text: str, place: Sequence[str]) -> int:
    """The line where the key stands, as far as it can be found by its words in their order."""
    clean = _without_comments(text)
    position = 0
    for part in place:
        found = re.compile(rf"(?<![\w-]){re.escape(part)}(?![\w-])").search(clean, position)
        if found is None:
            break
        position = found.start() if part == place[-1] else found.end()
    return clean.count("\n", 0, position) + 1


def _checked(data: Mapping[str, Any], where: Callable[[Sequence[str]], str], problems: list[str]) -> dict[str, Any]:
    """What of `data` is known and valid; the rest is reported."""
    known = _numbers(_merge({}, data))
    unknown = list(_unknown(known))
    agents = known.get("agents")
    if isinstance(agents, dict) and isinstance(agents.get("trace"), bool):
        known["trace"] = agents.pop("trace")  # a switch among the agents' ids
    for place in unknown:
        problems.append(f"{where(place)}: unknown key {'.'.join(place)}")
        _take_out(known, place)
    while True:
        try:
            Settings.model_validate(known)
        except ValidationError as error:
            for bad, reason in _faults(error, known).items():
                problems.append(f"{where(bad)}: {'.'.join(bad)}: {reason}; it is ignored")
                _take_out(known, bad)
        else:
            return known


def _faults(error: ValidationError, data: Mapping[str, Any]) -> dict[tuple[str, ...], str]:
    """The key of each bad value that is there, and what is wrong with it."""
    faults: dict[tuple[str, ...], str] = {}
    for fault in error.errors(include_url=False):
        place: list[str] = []
        inner: Any = data
        for part in fault["loc"]:  # beyond the data stand pydantic's own words
            if not isinstance(inner, dict) or part not in inner:
                break
            place.append(str(part))
            inner = inner[part]
        faults.setdefault(tuple(place), _reason(place, fault, inner))
    return faults


def _reason(place: Sequence[str], fault: Mapping[str, Any], value: Any) -> str:
    words = str(fault["msg"]).removeprefix("Input ")
    if fault["type"] in {"model_type", "dict_type"} and not isinstance(value, list):
        words = "should be an object { ... }"
    if place[-1] == "command":
        words = "should be a text or a list of texts"
    return f"{words}, not {json.dumps(value, ensure_ascii=False, default=str)[:60]}"


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` wins key by key; nested objects are merged. A dotted key is a nested object; null is as if not there."""
    merged: dict[str, Any] = {}
    for source in (below, above):
        for key, value in source.items():
            head, _, rest = key.partition(".")
            new = {rest: value} if rest else value
            old = merged.get(head)
            if isinstance(new, Mapping):
                merged[head] = _merge(old if isinstance(old, Mapping) else {}, new)
            elif new is not None:
                merged[head] = copy.deepcopy(new)
    return merged


def _numbers(data: dict[str, Any]) -> dict[str, Any]:
    """A whole number is fine where seconds are asked; json gives an int there, and strict types would refuse it."""

    def walk(value: Any, seconds: bool) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, seconds or key in {"timeouts", "syncInterval"}) for key, item in value.items()}
        return float(value) if seconds and isinstance(value, int) and not isinstance(value, bool) else value

    walked: dict[str, Any] = walk(data, seconds=False)
    return walked


def _take_out(data: dict[str, Any], place: Sequence[str]) -> None:
    inner: Any = data
    for part in place[:-1]:
        inner = inner[part]
    del inner[place[-1]]


def _unknown(data: Mapping[str, Any], model: type[BaseModel] = Settings, above: Place = ()) -> Iterator[Place]:
    """Each key that nothing reads: a slip of the pen would else be silent."""
    fields = {to_camel(name): field for name, field in model.model_fields.items() if name != "trace"}
    for key, value in data.items():
        if key not in fields:
            yield (*above, key)
            continue
        inner = fields[key].annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and isinstance(value, Mapping):
            yield from _unknown(value, inner, (*above, key))
        elif key == "agents" and not above and isinstance(value, Mapping):
            for agent_id, agent in value.items():
                if isinstance(agent, Mapping):
                    yield from _unknown(agent, AgentSettings, ("agents", agent_id))


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
        "unless the name says otherwise. What is wrong is reported in one line with its place, and then it is as if it",
        "were not there. Made from `agentik_server/settings.py` by `make generate`.",
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
