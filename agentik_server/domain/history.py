"""Holds a history that an agent replayed against our own record (B54). Pure.

Replays carry no ids that can be trusted and no times; what can be compared are the user's texts, in their order. Our
record is never changed by a replay: only whole turns after the last one that both know are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from agentik_server.domain.happenings import Replayed
from agentik_server.domain.message import Message

# Agents replay what they told their model in the user's name (AGENTS.md section 4).
_NOT_THE_USER = ("<system-reminder>", "<session_context>", "<environment_context>", "[Function Response", "<user_info>")
_COMPARED = 200  # characters of a text; attachments that an agent pasted behind it are not part of what we sent


def missing(ours: Sequence[Message], replay: Sequence[Replayed]) -> list[Replayed]:
    """The entries of `replay` that our record lacks: everything for an empty record, else the turns behind the last
    one that both have. A replay that shares nothing with a record that is not empty is another conversation: nothing.
    """
    turns = _turns(replay)
    known = [_key(message.text) for message in ours if message.kind == "user" and not message.deleted]
    if not known:
        return [] if ours else [entry for turn in turns for entry in turn]
    told = [_key(turn[0].text) if turn[0].kind == "user" else "" for turn in turns]
    matcher = SequenceMatcher(None, known, _as_known(told, known), autojunk=False)
    both = [block for block in matcher.get_matching_blocks() if block.size]
    if not both:
        return []
    last = both[-1]
    return [entry for turn in turns[last.b + last.size :] for entry in turn]


def _turns(replay: Sequence[Replayed]) -> list[list[Replayed]]:
    """Cut before each text of the user; what an agent hid in the user's name is left out."""
    turns: list[list[Replayed]] = []
    for entry in replay:
        if entry.kind == "user":
            if not entry.text.lstrip().startswith(_NOT_THE_USER):
                turns.append([entry])
        elif turns:
            turns[-1].append(entry)
        else:
            turns.append([entry])
    return turns


def _key(text: str) -> str:
    """A text as it is compared: agents fold white space and append attachments."""
    return " ".join(text.split())[:_COMPARED]


def _as_known(told: Sequence[str], known: Sequence[str]) -> list[str]:
    """Each replayed text by the name of the known text that it begins with, where there is one."""
    exact = set(known)
    longest_first = sorted(exact, key=len, reverse=True)

    def name(text: str) -> str:
        if text in exact:
            return text
        return next((key for key in longest_first if key and text.startswith(key)), text)

    return [name(text) for text in told]
