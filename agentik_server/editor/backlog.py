"""What has been said to the editor and not yet written: in order, bounded, newer words in place of older ones.

Pure: no pipe, no clock. Three rules keep the order sane:
- streaming text joins only text of the same message that ends where it begins, with no turn border, no other news of
  that message and no response in between (a response may hold a snapshot of the text);
- a newer state replaces an older one only while the pipe is full, and stands at the newer one's place: revisions never
  fall;
- a message that is told whole replaces the queued text that it contains, and no other.
Above the limit the news of sessions are dropped, and each session gets one `agentik/resync` instead; responses stay.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from agentik_server.editor.codec import frame

logger = logging.getLogger(__name__)

LIMIT: Final = 32 * 1024 * 1024
LONGEST_TEXT: Final = 256 * 1024  # code points of one streamingToken; more goes into a second frame

TOKEN: Final = "agentik/streamingToken"
UPDATED: Final = "agentik/messageUpdated"
RESYNC: Final = "agentik/resync"
_TURN_BORDERS: Final = frozenset({"agentik/turnStarted", "agentik/turnEnded"})
_OF_MESSAGE: Final = frozenset({"agentik/messageQueued", "agentik/messageReceived"})
# What `openSession` tells as well: may be dropped for a resync.
_RELOADABLE: Final = frozenset(
    f"agentik/{name}"
    for name in (
        "messageQueued",
        "messageReceived",
        "turnStarted",
        "streamingToken",
        "messageUpdated",
        "turnEnded",
        "pendingChanged",
        "permissionRequested",
        "permissionResolved",
        "questionAsked",
        "questionResolved",
        "sessionChanged",
        "connectionChanged",
    )
)
# Of the moment: when there is no room, they go too.
_PASSING: Final = frozenset({"agentik/notice", "$/progress", *(f"agentik/dictation{x}" for x in ("Level", "Partial"))})
# A newer one with the same key replaces an older one.
_STATES: Final[Mapping[str, str]] = {
    "agentik/pendingChanged": "sessionId",
    "agentik/sessionChanged": "sessionId",
    "agentik/connectionChanged": "sessionId",
    "agentik/dictationLevel": "dictationId",
    "agentik/dictationPartial": "dictationId",
}
_ENTRY: Final = 200  # bytes that an entry costs besides its text

_Key = tuple[str, str]
_Params = Mapping[str, Any]


class _Frame:
    """Bytes, ready to go."""

    __slots__ = ("data", "number", "size")

    def __init__(self, number: int, data: bytes) -> None:
        self.number = number
        self.data = data
        self.size = len(data)


class _News:
    """A notification, not yet encoded: a newer one may replace it."""

    __slots__ = ("key", "method", "number", "params", "session", "size")

    def __init__(self, number: int, method: str, params: _Params, key: _Key | None, session: str | None) -> None:
        self.number = number
        self.method = method
        self.params = params
        self.key = key
        self.session = session
        self.size = _ENTRY + weight(params)


class _Text:
    """Streaming text of one message; grows while it is open."""

    __slots__ = ("end", "message", "number", "params", "parts", "session", "size", "start")

    def __init__(self, number: int, params: _Params) -> None:
        text: str = params["text"]
        self.number = number
        self.params = params
        self.session: str = params["sessionId"]
        self.message: _Key = (self.session, params["messageId"])
        self.parts = [text]
        self.start: int = params["offset"]
        self.end = self.start + len(text)
        self.size = _ENTRY + len(text)

    def joins(self, params: _Params) -> bool:
        if (params["offset"], params.get("turnId")) != (self.end, self.params.get("turnId")):
            return False
        length: int = self.end - self.start + len(params["text"])
        return length <= LONGEST_TEXT

    def append(self, text: str) -> int:
        """Returns by how much the entry grew."""
        self.parts.append(text)
        self.end += len(text)
        grown = len(text) + 16
        self.size += grown
        return grown


_Entry = _Frame | _News | _Text


class Backlog:
    """`add...` what is said, `take` the next frame. `full`: set by the owner while the pipe takes no more."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.full = False
        self.size = 0  # bytes, roughly
        self._limit = limit
        self._count = 0
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._open_text: dict[_Key, _Text] = {}  # text that may still grow
        self._texts: dict[_Key, list[_Text]] = {}  # all queued text of a message
        self._latest: dict[_Key, _News] = {}  # the queued states that a newer one may replace
        self._to_reload: set[str] = set()  # sessions whose resync is queued

    def __len__(self) -> int:
        return len(self._entries)

    def add_frame(self, data: bytes) -> None:
        """A response or a request: keeps its place, whatever comes later."""
        self._open_text.clear()
        self._put(_Frame(self._next(), data))

    def add(self, method: str, params: _Params) -> None:
        """A notification."""
        session = _session_of(params)
        if session in self._to_reload and method in _RELOADABLE:
            return  # the client is about to ask for all of it
        if method == TOKEN:
            self._add_text(params)
        else:
            self._close_text(method, session, params)
            self._put(self._news(method, params, session))
        if self.size > self._limit:
            self._shed()

    def take(self) -> bytes | None:
        """The next frame, or None."""
        while self._entries:
            _, entry = self._entries.popitem(last=False)
            self._forget(entry)
            if isinstance(entry, _Frame):
                return entry.data
            if (data := _encoded(entry)) is not None:
                return data
        return None

    def clear(self) -> None:
        for index in (self._entries, self._open_text, self._texts, self._latest, self._to_reload):
            index.clear()
        self.size = 0

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _put(self, entry: _Entry) -> None:
        self._entries[entry.number] = entry
        self.size += entry.size

    def _drop(self, entry: _Entry) -> None:
        del self._entries[entry.number]
        self._forget(entry)

    def _forget(self, entry: _Entry) -> None:
        """Out of the indexes; it has left the queue."""
        self.size -= entry.size
        if isinstance(entry, _Text):
            if self._open_text.get(entry.message) is entry:
                del self._open_text[entry.message]
            texts = self._texts[entry.message]
            texts.remove(entry)
            if not texts:
                del self._texts[entry.message]
        elif isinstance(entry, _News):
            if entry.key is not None and self._latest.get(entry.key) is entry:
                del self._latest[entry.key]
            if entry.method == RESYNC and entry.session is not None:
                self._to_reload.discard(entry.session)

    def _add_text(self, params: _Params) -> None:
        message = (params["sessionId"], params["messageId"])
        text = self._open_text.get(message)
        if text is not None and text.joins(params):
            self.size += text.append(params["text"])
            return
        text = _Text(self._next(), params)
        self._open_text[message] = text
        self._texts.setdefault(message, []).append(text)
        self._put(text)

    def _close_text(self, method: str, session: str | None, params: _Params) -> None:
        """No text may grow over this notification that must not."""
        if method in _TURN_BORDERS:
            self._open_text = {key: text for key, text in self._open_text.items() if key[0] != session}
        elif session is not None and (method == UPDATED or method in _OF_MESSAGE):
            message = _message_of(params)
            self._open_text.pop((session, message), None)
            if method in _OF_MESSAGE:  # queued and received are steps: a later update must not reach over them
                self._latest.pop((UPDATED, message), None)

    def _news(self, method: str, params: _Params, session: str | None) -> _News:
        key = _key_of(method, params)
        news = _News(self._next(), method, params, key, session)
        if key is not None:
            older = self._latest.get(key)
            if method == UPDATED:
                self._replace_message(older, params, session)
            elif older is not None and self.full:
                self._drop(older)
            self._latest[key] = news
        return news

    def _replace_message(self, older: _News | None, params: _Params, session: str | None) -> None:
        """Drop what the message told whole makes needless, if it contains all of it."""
        if not self.full or session is None:
            return
        message = params["message"]
        texts = self._texts.get((session, message["messageId"]), [])
        told = len(message["text"])
        if message.get("status") == "streaming" and older is not None and len(older.params["message"]["text"]) > told:
            return
        if message.get("deleted") or all(text.end <= told for text in texts):
            for text in list(texts):
                self._drop(text)
            if older is not None:
                self._drop(older)

    def _shed(self) -> None:
        """Give up what the client can load anew."""
        dropped = [
            entry
            for entry in self._entries.values()
            if isinstance(entry, _Text) or (isinstance(entry, _News) and entry.method in _RELOADABLE)
        ]
        sessions = dict.fromkeys(entry.session for entry in dropped if entry.session is not None)
        for entry in dropped:
            self._drop(entry)
        logger.warning(
            "the editor does not read: %d notifications of %d sessions dropped, to be loaded anew",
            len(dropped),
            len(sessions),
        )
        for session in sessions:
            self._to_reload.add(session)
            self._put(_News(self._next(), RESYNC, {"sessionId": session}, None, session))
        if self.size > self._limit:
            for passing in list(self._entries.values()):
                if isinstance(passing, _News) and passing.method in _PASSING:
                    self._drop(passing)


def _session_of(params: _Params) -> str | None:
    session = params.get("sessionId")
    if session is None and isinstance(inner := params.get("session"), Mapping):
        session = inner.get("sessionId")
    return session if isinstance(session, str) else None


def _message_of(params: _Params) -> str:
    message = params.get("message")
    return str(message["messageId"] if isinstance(message, Mapping) else params["messageId"])


def _key_of(method: str, params: _Params) -> _Key | None:
    if method == UPDATED:
        return method, _message_of(params)
    if method in _STATES:
        subject = _session_of(params) if _STATES[method] == "sessionId" else params.get("dictationId")
        return None if subject is None else (method, str(subject))
    if method == "$/progress" and params["value"].get("kind") == "report":
        return method, str(params["token"])
    return None


def _encoded(entry: _News | _Text) -> bytes | None:
    if isinstance(entry, _Text):
        method, params = TOKEN, {**entry.params, "text": "".join(entry.parts)}
    else:
        method, params = entry.method, dict(entry.params)
    try:
        return frame({"jsonrpc": "2.0", "method": method, "params": params})
    except (TypeError, ValueError, RecursionError):
        logger.exception("%s cannot be sent: its params are no JSON", method)
        return None


def weight(value: object) -> int:
    """About how many bytes a JSON value holds in memory."""
    total = 0
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            total += 50 + len(item)
        elif isinstance(item, dict):
            total += 64 + 50 * len(item)
            left.extend(item.values())
        elif isinstance(item, list | tuple):
            total += 56 + 8 * len(item)
            left.extend(item)
        else:
            total += 28
    return total
