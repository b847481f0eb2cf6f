"""Sections of doc/agentik.txt that come from Python and from comments: events, settings, Lua functions.

Must not write anything; scripts/generate.py puts the text into the file.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

WIDTH = 78
# Streaming text is drawn and never handed to autocommands; a lost connection is mended by the host itself.
NOT_EVENTS = {"streamingToken", "resync"}
RULES = re.compile(r" \(B\d+(?:[,–] ?B\d+)*\)")
SETTING = re.compile(r"^\| `(?P<key>[^`]+)` \| (?P<default>.*?) \| (?P<meaning>.*) \|$")
FUNCTION = re.compile(r"^function M\.(?P<name>[a-z]\w*)\((?P<arguments>[^)]*)\)")


def tagged(left: str, tag: str) -> str:
    """`left`, and a help tag at the right margin or, where there is no room, above."""
    gap = WIDTH - len(left) - len(tag) - 2
    if gap < 2:
        return f"*{tag}*".rjust(WIDTH) + "\n" + left
    return left + " " * gap + f"*{tag}*"


def wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)


def events() -> str:
    """One User autocommand for each notification of the server."""
    from agentik_server.protocol.registry import NOTIFICATIONS

    blocks = []
    for method, kind in NOTIFICATIONS.items():
        name = method.removeprefix("agentik/")
        if name in NOT_EVENTS:
            continue
        pattern = "Agentik" + name[0].upper() + name[1:]
        fields = [field.alias or key for key, field in kind.params_model.model_fields.items()]
        blocks.append(f"{tagged(pattern, pattern)}\n{wrapped(kind.doc)}\n{wrapped('data: ' + ', '.join(fields))}\n")
    return "\n".join(blocks)


def settings() -> str:
    """The rows of doc/settings.md."""
    from agentik_server.settings import render_markdown

    blocks = []
    for line in render_markdown().splitlines():
        if match := SETTING.match(line):
            meaning = RULES.sub("", match["meaning"]).replace("\\|", "|")
            head = tagged(f"`{match['key']}`", f"agentik-setting-{match['key']}")
            default = wrapped(f"default: {match['default']}")
            blocks.append(f"{head}\n{default}\n{wrapped(meaning)}\n")
    return "\n".join(blocks)


def functions(source: Path, module: str) -> str:
    """The public functions of a Lua module with their comments."""
    blocks = []
    for name, arguments, comment in _documented(source.read_text(encoding="utf-8").splitlines()):
        blocks.append(f"{tagged(f'`{name}({arguments})`', f'{module}.{name}()')}\n{comment}\n")
    return "\n".join(blocks)


def _documented(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    """(name, arguments, comment as help text) of each function M.name."""
    comment: list[str] = []
    for line in lines:
        if line.startswith("---"):
            comment.append(line[3:].strip())
        else:
            if match := FUNCTION.match(line):
                yield match["name"], match["arguments"], _comment(comment)
            comment = []


def _comment(lines: list[str]) -> str:
    """The sentences, then parameters and results, as help text."""
    text = " ".join(line for line in lines if line and not line.startswith("@"))
    parts = [wrapped(text)] if text else []
    annotations = (line for line in lines if line.startswith(("@param ", "@return ")))
    parts.extend(wrapped(line[1:].replace("param ", "", 1).replace("return ", "returns ", 1)) for line in annotations)
    return "\n".join(parts)
