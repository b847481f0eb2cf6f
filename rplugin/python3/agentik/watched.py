"""A session that the editor shows or follows: its mirror, its document, and what of it Lua has not been told yet.

Must not do any I/O: the front asks the server and sends the frames.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from agentik.mirror import Change, Changed, Gap, Grown, Mirror, Removed, StateChanged
from agentik.render.document import Document
from agentik.render.look import Scene

ROOM = 32 * 1024
"""Characters of new messages in one frame: more would hold the editor for longer than a frame of the screen."""
PARTS = ("session", "pending", "permissions", "questions", "turn", "more")


class Watched:
    """`absorb` takes the mirror's changes; `take_patches` and `take_state` give what a frame has to say."""

    def __init__(self, session_id: str, scene: Scene) -> None:
        self.mirror = Mirror(session_id)
        self.document = Document(scene, self.mirror.messages)
        self.turn: dict[str, Any] | None = None
        """{ turnId, startedAt (milliseconds since the epoch) } while a turn runs."""
        self.opening = asyncio.Lock()
        """Held by whoever asks for the newest page."""
        self.paging = asyncio.Lock()
        """Held by whoever loads older messages."""
        self._stale = set(PARTS)
        self._redraw = True

    @property
    def session_id(self) -> str:
        return self.mirror.session_id

    def absorb(self, changes: Iterable[Change]) -> bool:
        """Takes in what changed; True when text is missing and the session has to be asked for again."""
        gap = False
        for change in changes:
            match change:
                case Grown(message_id, text):
                    self.document.grown(message_id, text)
                case Changed(message_id) | Removed(message_id):
                    self.document.changed(message_id)
                case StateChanged(part):
                    self._stale.add(part)
                case Gap():
                    gap = True
        if self._stale & {"permissions", "questions"}:
            self.document.asked(self.mirror.permissions, self.mirror.questions)
        if "more" in self._stale:
            self.document.older(self.mirror.more)
        return gap

    def turn_started(self, turn_id: str, started_at: int) -> None:
        self.turn = {"turnId": turn_id, "startedAt": started_at}
        self._stale.add("turn")

    def turn_ended(self, turn_id: str) -> None:
        if self.turn and self.turn["turnId"] == turn_id:
            self.turn = None
            self._stale.add("turn")

    def guess_turn(self) -> None:
        """After a load: a session that is busy has a turn that began with the last message of the user."""
        if self.mirror.session.get("state") == "idle":
            self.turn = None
        elif self.turn is None:
            users = [message for message in self.mirror.transcript() if message.kind == "user"]
            if users:
                self.turn = {"turnId": users[-1].turn_id or "", "startedAt": users[-1].created_at}
        self._stale.add("turn")

    def redraw(self) -> None:
        """The buffer is empty, or not what it was: the next frame has all of it."""
        self._redraw = True
        self._stale = set(PARTS)

    @property
    def is_stale(self) -> bool:
        return bool(self._stale) or self._redraw or self.document.is_dirty

    def take_patches(self) -> dict[str, Any] | None:
        """`reset`: the patches are for an empty buffer, each below the one before it."""
        patches = self.document.redraw(ROOM) if self._redraw else self.document.take(ROOM)
        reset, self._redraw = self._redraw, False
        return {"reset": reset, "patches": patches} if patches or reset else None

    def take_state(self) -> dict[str, Any]:
        """The parts that changed, each whole."""
        stale, self._stale = self._stale, set()
        return {part: self._part(part) for part in PARTS if part in stale}

    def _part(self, part: str) -> Any:
        mirror = self.mirror
        match part:
            case "session":
                return mirror.session
            case "pending":
                return {
                    "items": mirror.pending(),
                    "paused": mirror.paused,
                    "reason": mirror.pause_reason,
                    "detail": mirror.pause_detail,
                }
            case "permissions":
                return list(mirror.permissions.values())
            case "questions":
                return list(mirror.questions.values())
            case "turn":
                return self.turn or {}
            case _:
                return mirror.more
