"""The mirror of a session: after any schedule it equals a fresh read (B25, B52–B55)."""

from __future__ import annotations

from typing import Any

import msgspec
from agentik.mirror import Changed, Gap, Grown, Message, Mirror, PendingNews, Removed, Snapshot, Token
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rplugin.model import SESSION, ModelServer, Note


def tell(mirror: Mirror, note: Note) -> list[Any]:
    """What the host does with a notification."""
    name, params = note
    match name:
        case "messageQueued":
            return mirror.queued(params["messageId"], params["display"], params["revision"])
        case "messageReceived" | "messageUpdated":
            return mirror.put(msgspec.convert(params["message"], Message), params["revision"])
        case "pendingChanged":
            return mirror.pending_changed(msgspec.convert(params, PendingNews))
        case "streamingToken":
            return mirror.grow(msgspec.convert(params, Token))
        case "permissionRequested":
            return mirror.permission_requested(params["permission"])
        case "permissionResolved":
            return mirror.permission_resolved(params["permissionId"])
    raise AssertionError(name)


def loaded(server: ModelServer) -> Mirror:
    mirror = Mirror(SESSION)
    load(mirror, server)
    return mirror


def load(mirror: Mirror, server: ModelServer) -> list[Any]:
    after = mirror.revision
    mirror.loading()
    return mirror.load(msgspec.convert(server.open(after), Snapshot), after=after)


def view(mirror: Mirror) -> Any:
    transcript = [(message.message_id, message.kind, message.text, message.status) for message in mirror.transcript()]
    pending = [(item["messageId"], item["text"]) for item in mirror.pending()]
    return transcript, pending, sorted(mirror.permissions)


OPERATIONS = [
    st.tuples(st.sampled_from(["enqueue", "deliver", "put_back", "remove", "save", "finish", "ask", "resolve"])),
    st.tuples(st.sampled_from(["edit", "speak"]), st.text("ab\n", min_size=1, max_size=3)),
    st.tuples(st.sampled_from(["crash", "reload", "late reload", "lose", "listen"])),
]


class Schedule:
    """A mirror and a server with a wire between them that may be cut, read late and out of order."""

    def __init__(self, shuffle: st.DataObject) -> None:
        self.server = ModelServer()
        self.mirror = loaded(self.server)
        self.data = shuffle

    def listen(self, *, shuffled: bool) -> None:
        """Reads what is on the wire. Tokens keep their order among themselves (one pipe), the rest may be mixed."""
        notes, self.server.notes = self.server.notes, []
        if shuffled and notes:
            tokens = iter([note for note in notes if note[0] == "streamingToken"])
            notes = self.data.draw(st.permutations(notes))
            notes = [next(tokens) if note[0] == "streamingToken" else note for note in notes]
        for note in notes:
            if any(isinstance(change, Gap) for change in tell(self.mirror, note)):
                load(self.mirror, self.server)

    def step(self, operation: tuple[str, ...]) -> None:
        match operation:
            case ("crash",):
                self.mirror.disconnected()
                self.server.crash()
                load(self.mirror, self.server)
            case ("reload",):
                self.listen(shuffled=False)
                load(self.mirror, self.server)
            case ("late reload",):  # the answer is older than what is heard while it travels
                after = self.mirror.revision
                self.listen(shuffled=False)
                self.mirror.loading()
                answer = msgspec.convert(self.server.open(after), Snapshot)
                self.server.enqueue()
                self.server.deliver()
                self.server.speak("late")
                self.server.ask()
                self.listen(shuffled=False)
                self.mirror.load(answer, after=after)
            case ("lose",):
                self.server.notes.clear()
                load(self.mirror, self.server)
            case ("listen",):
                self.listen(shuffled=True)
            case (name, *arguments):
                getattr(self.server, name)(*arguments)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(OPERATIONS), max_size=40), st.data())
def test_after_any_schedule_the_mirror_equals_a_fresh_read(
    operations: list[tuple[str, ...]], data: st.DataObject
) -> None:
    """B55, B54, B25: cut, late and mixed-up news leave no gap and no duplicate."""
    schedule = Schedule(data)
    for operation in operations:
        schedule.step(operation)
    schedule.listen(shuffled=False)
    load(schedule.mirror, schedule.server)
    assert view(schedule.mirror) == view(loaded(schedule.server))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(OPERATIONS[:2]), max_size=40), st.data())
def test_news_alone_keep_the_mirror_equal_to_a_fresh_read(
    operations: list[tuple[str, ...]], data: st.DataObject
) -> None:
    """B25: with nothing lost, whatever the order in which news of one moment arrive."""
    schedule = Schedule(data)
    for operation in operations:
        schedule.step(operation)
    schedule.listen(shuffled=False)
    assert view(schedule.mirror) == view(loaded(schedule.server))


def user(message_id: str, seq: int, revision: int, **fields: Any) -> Message:
    return Message(
        message_id=message_id, session_id=SESSION, seq=seq, kind="user", text="hi", revision=revision, **fields
    )


def token(offset: int, text: str) -> Token:
    return Token(session_id=SESSION, message_id="a", kind="agent", offset=offset, text=text, seq=1)


def test_overlapping_text_is_cut() -> None:
    """A client that holds more than `offset` cuts the overlap, counted in code points."""
    mirror = Mirror(SESSION)
    mirror.grow(token(0, "añ👍b"))
    assert mirror.grow(token(2, "👍bc")) == [Grown("a", "c")]
    assert mirror.messages["a"].text == "añ👍bc"


def test_missing_text_is_told_once_and_closed_by_the_load() -> None:
    """B55: the token that showed the gap is kept and applied after the load."""
    mirror = Mirror(SESSION)
    mirror.grow(token(0, "one "))
    assert mirror.grow(token(8, "three")) == [Gap()]
    mirror.loading()
    assert mirror.grow(token(13, "!")) == []
    live = Message(
        message_id="a", session_id=SESSION, seq=1, kind="agent", text="one two ", status="streaming", revision=3
    )
    mirror.load(Snapshot(session={}, messages=[live], revision=3), after=None)
    assert mirror.messages["a"].text == "one two three!"


def test_received_drops_the_pending_item_whatever_comes_first() -> None:
    """B25: an older list that arrives late brings nothing back."""
    mirror = Mirror(SESSION)
    mirror.put(user("m", 1, revision=7))
    mirror.pending_changed(PendingNews(session_id=SESSION, pending=[{"messageId": "m", "text": "hi"}], revision=6))
    assert mirror.pending() == []


def test_a_message_put_back_is_queued_again_and_leaves_the_transcript() -> None:
    """B25, B26."""
    mirror = Mirror(SESSION)
    mirror.put(user("m", 1, revision=7))
    mirror.pending_changed(PendingNews(session_id=SESSION, pending=[{"messageId": "m", "text": "hi"}], revision=8))
    assert mirror.put(user("m", 1, revision=8, deleted=True))[0] == Removed("m")
    assert [item["messageId"] for item in mirror.pending()] == ["m"]
    assert mirror.put(user("m", 1, revision=7)) == []  # an old echo


def test_the_store_behind_the_stream_takes_no_text_away() -> None:
    """Streaming text is saved four times a second: a row that lags does not shorten what is on the screen."""
    mirror = Mirror(SESSION)
    mirror.grow(token(0, "all of it"))
    row = Message(message_id="a", session_id=SESSION, seq=1, kind="agent", text="all", status="streaming", revision=2)
    assert mirror.put(row) == [Changed("a")]
    assert mirror.messages["a"].text == "all of it"


def test_changes_of_pages_that_are_not_loaded_are_left_alone() -> None:
    """B52: `after` tells of old rows too; one above the first page would stand there with a hole below it."""
    mirror = Mirror(SESSION)
    mirror.load(Snapshot(session={}, messages=[user("m", 500, 9)], revision=9, more=True), after=None)
    assert mirror.put(user("old", 3, revision=10)) == []
    mirror.page([user("old", 3, revision=10)], more=False, revision=10)
    assert [message.message_id for message in mirror.transcript()] == ["old", "m"]


def test_nothing_new_changes_nothing() -> None:
    """B52: an empty answer draws nothing."""
    mirror = Mirror(SESSION)
    mirror.load(Snapshot(session={"sessionId": SESSION}, messages=[user("m", 1, 1)], revision=1), after=None)
    mirror.loading()
    changes = mirror.load(Snapshot(session={"sessionId": SESSION}, messages=[], revision=1), after=1)
    assert not [change for change in changes if isinstance(change, Changed | Grown | Removed)]
