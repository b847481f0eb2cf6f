"""What an agent's session offers (modes, options, commands, usage) in the shape that editors get.

Pure. Knows the legacy ways too: `models` of session/new is shown as a config option (AGENTS.md section 1).
"""

from __future__ import annotations

from collections.abc import Mapping

from agentik_server.agents.clean import as_dict, as_int, as_list, as_text, clean_json
from agentik_server.domain.happenings import Controls

LEGACY_MODEL = "agentik.model"  # id of the config option made of `models`; set by session/set_model


def opened_controls(result: Mapping[str, object]) -> Controls:
    """From the answer to session/new, load or resume."""
    modes = as_dict(result.get("modes"))
    options = config_options(result.get("configOptions"))
    model = legacy_model_option(result.get("models"))
    if model is not None and not any(as_dict(option).get("category") == "model" for option in options or []):
        options = [*(options or []), model]
    return Controls(
        modes=mode_list(modes.get("availableModes")),
        mode_id=as_text(modes.get("currentModeId")),
        config_options=options,
    )


def mode_list(items: object) -> list[object] | None:
    """[{id, name, description?}]; None where there are none."""
    modes: list[object] = []
    for item in as_list(items):
        fields = as_dict(item)
        mode_id = as_text(fields.get("id"))
        if mode_id is None:
            continue
        mode: dict[str, object] = {"id": mode_id, "name": as_text(fields.get("name")) or mode_id}
        description = as_text(fields.get("description"))
        if description:
            mode["description"] = description
        modes.append(mode)
    return modes or None


def config_options(items: object) -> list[object] | None:
    """The agent's options, those with an id, as it sent them (kinds and categories of its own included)."""
    if not isinstance(items, list):
        return None
    return [clean_json(item) for item in items if as_text(as_dict(item).get("id"))]


def legacy_model_option(models: object) -> dict[str, object] | None:
    """`models` {currentModelId, availableModels: [{modelId, name}]} as a select option."""
    fields = as_dict(models)
    choices = []
    for item in as_list(fields.get("availableModels")):
        model = as_dict(item)
        model_id = as_text(model.get("modelId"))
        if model_id:
            choice = {"value": model_id, "name": as_text(model.get("name")) or model_id}
            description = as_text(model.get("description"))
            choices.append({**choice, "description": description} if description else choice)
    if not choices:
        return None
    return {
        "id": LEGACY_MODEL,
        "name": "Model",
        "category": "model",
        "type": "select",
        "currentValue": as_text(fields.get("currentModelId")) or "",
        "options": choices,
    }


def with_value(options: object, option_id: str, value: object) -> list[object] | None:
    """The options after one of them was set, for agents that do not send the new list."""
    if not isinstance(options, list):
        return None
    return [
        {**as_dict(option), "currentValue": value} if as_dict(option).get("id") == option_id else option
        for option in options
    ]


def commands(items: object) -> list[object]:
    """[{name, description, hint?}] of available_commands_update; a leading slash is not part of the name."""
    found: list[object] = []
    for item in as_list(items):
        fields = as_dict(item)
        name = (as_text(fields.get("name")) or "").lstrip("/")
        if not name:
            continue
        command = {"name": name, "description": as_text(fields.get("description")) or ""}
        hint = as_text(as_dict(fields.get("input")).get("hint"))
        found.append({**command, "hint": hint} if hint else command)
    return found


def usage(fields: Mapping[str, object]) -> dict[str, object] | None:
    """From usage_update {used, size, cost} or a prompt's usage {totalTokens, inputTokens, ...}; only what is known."""
    known: dict[str, object] = {}
    for name in ("used", "size", "totalTokens", "inputTokens", "outputTokens", "thoughtTokens",
                 "cachedReadTokens", "cachedWriteTokens"):  # fmt: skip
        count = as_int(fields.get(name))
        if count is not None:
            known[name] = count
    if isinstance(fields.get("cost"), dict):
        known["cost"] = clean_json(fields["cost"])
    return known or None


def prompt_usage(result: Mapping[str, object]) -> dict[str, object] | None:
    """Usage in the answer to a prompt: the standard field, or gemini's `_meta.quota`."""
    found = usage(as_dict(result.get("usage")))
    if found is not None:
        return found
    count = as_dict(as_dict(as_dict(result.get("_meta")).get("quota")).get("token_count"))
    return usage({"inputTokens": count.get("input_tokens"), "outputTokens": count.get("output_tokens")})
