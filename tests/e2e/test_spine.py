"""The main job: a message, an answer, a second message that waits for its turn (seed 000)."""

from __future__ import annotations

from tests.e2e.kit import Editor


def test_a_free_session_answers_at_once(editor: Editor) -> None:
    """Scenario 1 of seed 000 (B1, B2): the message is drawn when it is received, then the answer streams."""
    editor.cmd("AgentikToggle")
    editor.type("hello")
    editor.wait_event("TurnEnded")
    names = [name for name, _ in editor.events]
    assert "MessageQueued" not in names
    assert names.index("MessageReceived") < names.index("TurnStarted") < names.index("TurnEnded")
    assert "hello" in editor.chat
    assert editor.compose == ""
