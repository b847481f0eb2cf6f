"""A session's row in memory: what is known of it beside its messages, and when that is saved. Pure.

One save is under way at a time; what changes meanwhile goes with the next. Must not decide anything about turns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentik_server.domain import happenings as told
from agentik_server.domain import news, saves
from agentik_server.domain.effects import Answer, Effect, Save, Show
from agentik_server.domain.message import Message

TITLE_LENGTH = 60  # characters of the first message that name a session without a title


class SessionRow:
    """`out` is the session's list of effects, to which this adds its own."""

    def __init__(self, facts: saves.SessionFacts, owner: saves.Owner, out: list[Effect]) -> None:
        self.facts = replace(facts, state="idle", connection="disconnected", owner=owner)
        self._owner = owner
        self._out = out
        self._dirty: set[str] = set()
        self._saving = False
        self._renames = 0  # that are under way

    def set(self, **changes: object) -> None:
        self.facts = replace(self.facts, **changes)  # type: ignore[arg-type]  # fields of SessionFacts
        self._dirty.update(changes)

    def merge_controls(self, controls: told.Controls, **more: object) -> None:
        """What an agent tells of its modes, options, commands and usage replaces what it told before, name by name."""
        named = {
            "modes": controls.modes,
            "modeId": controls.mode_id,
            "configOptions": controls.config_options,
            "commands": controls.commands,
            "usage": controls.usage,
            **more,
        }
        merged = {**self.facts.controls, **{key: value for key, value in named.items() if value is not None}}
        if merged != self.facts.controls:
            self.set(controls=merged)

    def forget_control(self, name: str) -> None:
        """What an agent told once, and what does not hold any more."""
        if name in self.facts.controls:
            self.set(controls={key: value for key, value in self.facts.controls.items() if key != name})

    def name_after(self, messages: tuple[Message, ...]) -> None:
        """A session without a title is called by its first words."""
        if not self.facts.title and messages:
            words = " ".join(messages[0].text.split())
            self.set(title=words[:TITLE_LENGTH] + ("…" if len(words) > TITLE_LENGTH else ""))

    def suggest_title(self, title: str) -> None:
        """The agent's title, unless the user gave one."""
        if not self.facts.title_by_user and title.strip():
            self.set(title=title.strip())

    def notice(self, level: saves.NoticeLevel, text: str) -> None:
        """Something the person should read, in whatever editor (B59)."""
        session_id = self.facts.session_id
        self._out.append(Show(news.Notice(level, text, session_id)))
        self._out.append(Save(saves.SaveNotice(session_id, self._owner, level, text)))

    def seen(self, facts: saves.SessionFacts) -> None:
        """The row as it was committed: another process may have given it a title."""
        if facts.title_by_user and facts.revision > self.facts.revision and not self._renames:
            self.facts = replace(self.facts, title=facts.title, title_by_user=True)

    def rename(self, title: str, request: int | None, now: int) -> None:
        self.facts = replace(self.facts, title=title, title_by_user=True)
        self._renames += 1
        changes: Mapping[str, object] = {"title": title, "title_by_user": True}
        self._out.append(Save(saves.SaveSession(self.facts.session_id, self._owner, changes, now, request)))

    def save(self, now: int) -> None:
        if self._saving or not self._dirty:
            return
        changes = {name: getattr(self.facts, name) for name in sorted(self._dirty)}
        self._dirty.clear()
        self._saving = True
        self._out.append(Save(saves.SaveSession(self.facts.session_id, self._owner, changes, now)))

    def saved(self, write: saves.SaveSession, outcome: saves.Outcome) -> None:
        if write.request is None:
            self._saving = False
        else:
            self._renames -= 1
        if not isinstance(outcome, saves.Done):
            return
        if outcome.facts is not None:
            self.facts = replace(self.facts, revision=outcome.facts.revision, updated_at=outcome.facts.updated_at)
        if write.request is not None:
            self._out.append(Answer(write.request, {}))
            self._out.append(Show(news.SessionChanged(self.facts, owned=True)))
