"""Which of the news of all sessions this editor is told: everything of the sessions it shows, little of the others.

Pure. Of a session that is not open only that it changed or was deleted is told (B19: it goes on), and of what is sent
to it what became of that message (B1: a send never just disappears).
"""

from __future__ import annotations

from agentik_server.domain import news


class Audience:
    """One editor."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._sent: dict[str, set[str]] = {}  # closed session → messages that were sent to it and not yet received

    def opened(self, session_id: str) -> None:
        self._open.add(session_id)
        self._sent.pop(session_id, None)

    def closed(self, session_id: str) -> None:
        self._open.discard(session_id)
        self._sent.pop(session_id, None)

    def shows(self, session_id: str) -> bool:
        return session_id in self._open

    def sent(self, session_id: str, message_id: str) -> None:
        """The editor sends this message."""
        if session_id not in self._open:
            self._sent.setdefault(session_id, set()).add(message_id)

    def hears(self, item: news.News) -> bool:
        session_id = item.facts.session_id if isinstance(item, news.SessionChanged) else item.session_id
        if session_id is None or session_id in self._open:
            return True
        match item:
            case news.SessionChanged():
                return True
            case news.SessionDeleted():
                self._sent.pop(session_id, None)
                return True
            case news.MessageQueued():
                return item.message_id in self._sent.get(session_id, ())
            case news.MessageReceived(message=message):
                if message.message_id not in self._sent.get(session_id, ()):
                    return False
                self._sent[session_id].discard(message.message_id)
                return True
            case _:
                return False
