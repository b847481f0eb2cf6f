"""Dictation with everything real: a virtual microphone, the speech model, the server, Neovim, an agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.driving import FAST
from tests.e2e.kit import Editor
from tests.voice.conftest import shared_virtual_microphone, speaker, voice_extra  # noqa: F401 - fixtures
from tests.voice.scoring import word_errors
from tests.voice.speech import Sentence, say, write_wav
from tests.voice.virtual_microphone import VirtualMicrophone

pytestmark = pytest.mark.voice

FIRST = Sentence("The method {next_page} should return an empty list.")
SECOND = Sentence("Please write a test that calls {remove_session} two times.")
CODE = "def next_page(self):\n    return []\n\n\ndef remove_session(session):\n    session.close()\n"


def finals(editor: Editor) -> list[str]:
    return [params["text"] for params in editor.all_events("DictationFinal") if params["text"]]


def is_heard(sentence: Sentence, text: str) -> bool:
    """At most one word in four is wrong, and the identifier is spelt as in the file."""
    errors, words = word_errors(sentence.written, text)
    return errors <= words // 4 and sentence.identifiers[0] in text


def test_spoken_sentences_about_code_reach_the_agent(
    open_editor: Callable[..., Editor],
    shared_virtual_microphone: VirtualMicrophone,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    """In real time: guesses are seen, final texts stand in the compose window, undo takes one of them out again."""
    editor = open_editor(env=FAST | shared_virtual_microphone.environment, width=120)
    (editor.home / "project" / "pages.py").write_text(CODE)
    editor.cmd("edit pages.py")
    editor.cmd("AgentikDictate")
    editor.wait_screen("listening")
    editor.wait_event("Progress")  # of the model
    for number, sentence in enumerate((FIRST, SECOND), 1):
        said = write_wav(tmp_path / f"{number}.wav", say(sentence.spoken))
        speaking = shared_virtual_microphone.speak(said)
        editor.wait_screen("▮")  # the meter shows that the microphone is heard
        partials = len(editor.all_events("DictationPartial"))
        editor.wait_event("DictationPartial", partials + 1)
        assert speaking.poll() is None, "no guess came while it was spoken"
        guess = editor.all_events("DictationPartial")[-1]["text"]
        editor.until("the guess on the screen", lambda guess=guess: guess.split()[0] in editor.screen.text)
        editor.until("the final text", lambda number=number: len(finals(editor)) >= number)
    editor.cmd("AgentikDictate")
    editor.until("the end", lambda: editor.all_events("DictationState")[-1]["state"] == "stopped")
    first, second = finals(editor)
    assert is_heard(FIRST, first), first
    assert is_heard(SECOND, second), second
    assert editor.compose == f"{first} {second}"
    editor.lua("require('agentik').open()")
    editor.keys("<Esc>u")
    editor.until("one utterance", lambda: editor.compose == first)
    editor.keys("<C-r>")
    editor.until("both", lambda: editor.compose == f"{first} {second}")
    editor.keys("<C-s>")
    editor.wait_event("TurnEnded")
    assert f"\n{first} {second}\n" in editor.chat
    assert f"Your message arrived in full: {len(first) + len(second) + 1} characters" in editor.chat
