"""What an editor would show of its sessions: the plugin's own mirror, fed with what the server says.

After all that happened it must equal a mirror that was made new (B55). Must not talk to the server.
"""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from tests.server.harness import ROOT
from tests.stdio_client import Note, Params

sys.path.insert(0, str(ROOT / "rplugin" / "python3"))

from agentik.mirror import Change, Gap, Mirror, Snapshot, Token
from agentik.news import changes


class Screen:
    """Lives longer than the servers. `gaps`: sessions of which text is missing, to be opened again."""

    def __init__(self) -> None:
        self.mirrors: dict[str, Mirror] = {}
        self.gaps: set[str] = set()

    def mirror(self, session_id: str) -> Mirror:
        return self.mirrors.setdefault(session_id, Mirror(session_id))

    def waiting(self, session_id: str) -> list[str]:
        return [item["messageId"] for item in self.mirror(session_id).pending()]

    def taken(self, session_id: str, last: int) -> list[str]:
        """Messages of the user among the last ones of the transcript."""
        return [m.message_id for m in self.mirror(session_id).transcript()[-last:] if m.kind == "user"]

    def permissions(self, session_id: str) -> list[str]:
        return list(self.mirror(session_id).permissions)

    def rests(self, session_id: str, waiting: int = 0) -> bool:
        """Nothing runs, and so many wait."""
        return self.mirror(session_id).session.get("state") == "idle" and len(self.waiting(session_id)) == waiting

    def heard(self, note: Note) -> None:
        """A notification, at once."""
        params = note.params
        session_id = params["session"]["sessionId"] if "session" in params else params.get("sessionId")
        mirror = self.mirrors.get(session_id or "")
        if mirror is None:
            return
        if note.method == "agentik/streamingToken":
            self._absorb(mirror, mirror.grow(msgspec.convert(params, Token)))
        elif note.method == "agentik/resync":
            self.gaps.add(mirror.session_id)
        else:
            self._absorb(mirror, changes(mirror, note.method, params))

    def opened(self, session_id: str, page: Params, after: int | None) -> None:
        mirror = self.mirror(session_id)
        self._absorb(mirror, mirror.load(msgspec.convert(page, Snapshot), after=after))

    def disconnected(self) -> None:
        for mirror in self.mirrors.values():
            mirror.disconnected()

    def differences(self, session_id: str, page: Params) -> list[str]:
        """Against a mirror that knows nothing but `page`, which is the whole session."""
        fresh = Mirror(session_id)
        fresh.load(msgspec.convert(page, Snapshot), after=None)
        mine, theirs = _view(self.mirror(session_id)), _view(fresh)
        return [
            f"{name} shows {_cut(mine.get(name))} instead of {_cut(theirs.get(name))}"
            for name in sorted(mine.keys() | theirs.keys())
            if mine.get(name) != theirs.get(name)
        ]

    def _absorb(self, mirror: Mirror, found: list[Change]) -> None:
        if any(isinstance(change, Gap) for change in found):
            self.gaps.add(mirror.session_id)


def _view(mirror: Mirror) -> dict[str, Any]:
    view: dict[str, Any] = {
        message.message_id: (message.seq, message.kind, message.status, message.text, message.tool)
        for message in mirror.transcript()
    }
    session = mirror.session
    return {
        **view,
        "the order": [message.message_id for message in mirror.transcript()],
        "the queue": [(item["messageId"], item["text"]) for item in mirror.pending()],
        "the state": (session.get("state"), mirror.paused, mirror.pause_reason, session.get("title")),
        "the permissions": sorted(mirror.permissions),
    }


def _cut(value: object) -> str:
    text = repr(value)
    return text if len(text) < 200 else text[:100] + " ... " + text[-90:]
