"""Dictation in the editor: where the words go, what is seen of it, how it ends.

The first tests play the server's part, so that they need no sound; the last speaks into a virtual microphone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.driving import FAST
from tests.e2e.kit import Editor

LISTEN = """
Said = {}
local host = require('agentik.host')
local call = host.call
host.call = function(method, params, answer)
  if not method:match('Dictation$') then
    return call(method, params, answer)
  end
  table.insert(Said, { method, params })
  vim.schedule(function()
    if method == 'startDictation' and Refuse then
      answer({ code = 4000, message = Refuse })
    elseif method == 'startDictation' then
      answer(nil, { dictationId = 'd' .. #Said })
    end -- the other answers come after the last news, which are what counts
  end)
end
"""
# No process at all: a session that is there, and nothing else.
ALONE = """
local host = require('agentik.host')
host.state = 'ready'
host.server = { agents = { demo = 'Demo agent' } }
local session = { sessionId = 's', agentId = 'demo', title = '', state = 'idle', connection = 'has_session' }
local answers = { listSessions = { sessions = {} }, newSession = { session = session } }
host.call = function(method, _, answer)
  vim.schedule(function() answer(nil, answers[method] or {}) end)
end
host.watch = function(_, answer) vim.schedule(answer) end
"""
TELL = "local name, params = ...; require('agentik.host').frame({ events = { { name, params } } })"


class Server:
    """Tells the editor what the server would tell of a dictation."""

    def __init__(self, editor: Editor, *, alone: bool = True) -> None:
        """`alone`: the real server is not started either; it does nothing for these tests but take its time."""
        self._editor = editor
        if alone:
            editor.lua(ALONE)
        editor.lua("require('agentik').open()")
        editor.until("the session", lambda: editor.state("session_id") is not None)
        editor.lua(LISTEN)

    @property
    def calls(self) -> list[str]:
        return [method.removesuffix("Dictation") for method, _ in self._editor.lua("return Said")]

    def params(self, index: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = self._editor.lua("return Said[... + 1][2]", index)
        return found

    def start(self, keys: str = "<M-d>") -> None:
        """The person starts it, and the server listens."""
        before = len(self.calls)
        self._editor.keys(keys)
        self._editor.until("the start", lambda: len(self.calls) > before)
        self.id = f"d{len(self.calls)}"
        self.tell("State", state="listening")

    def tell(self, name: str, **params: Any) -> None:
        self._editor.lua(TELL, f"dictation{name}", {"dictationId": self.id, **params})

    def say(self, text: str, command: str | None = None) -> None:
        """A final text."""
        self.tell("Final", text=text, **({"command": command} if command else {}))

    def wait_for(self, call: str) -> None:
        self._editor.until(f"the call {call}", lambda: call in self.calls)


@pytest.fixture
def editor(open_editor: Callable[..., Editor]) -> Editor:
    return open_editor(env=FAST)


@pytest.fixture
def server(editor: Editor) -> Server:
    return Server(editor)


def mode(editor: Editor) -> str:
    return str(editor.call("nvim_get_mode")["mode"])


# Where the words go


def test_a_guess_is_seen_and_is_not_text(editor: Editor, server: Server) -> None:
    server.start()
    editor.wait_screen("speak now")
    server.tell("State", state="speech")
    server.tell("Partial", text="fix the bug in", stable="fix the")
    editor.wait_screen("fix the bug in")
    assert editor.compose == ""
    server.say("Fix the bug in the parser.")
    assert editor.compose == "Fix the bug in the parser."
    editor.wait_gone("fix the bug in")


def test_utterances_are_put_in_with_blanks_and_each_is_one_undo_step(editor: Editor, server: Server) -> None:
    editor.keys("iPlease: <Esc>")
    server.start()
    server.say("Fix the parser.")
    server.say("And the tests.")
    assert editor.compose == "Please: Fix the parser. And the tests."
    editor.keys("u")
    editor.until("one utterance less", lambda: editor.compose == "Please: Fix the parser.")
    editor.keys("u")
    editor.until("two less", lambda: editor.compose == "Please: ")
    editor.keys("<C-r><C-r>")
    editor.until("both", lambda: editor.compose == "Please: Fix the parser. And the tests.")


def test_words_go_where_dictation_began_while_the_person_types_elsewhere(editor: Editor, server: Server) -> None:
    editor.keys("ifirst line<CR>second line<Esc>gg0")
    editor.keys("i")
    server.start()
    editor.keys("<Down><End> typed")
    editor.until("typed", lambda: editor.compose == "first line\nsecond line typed")
    server.say("Dictated.")
    assert editor.compose == "Dictated. first line\nsecond line typed"
    editor.keys(" on")
    server.say("More.")
    editor.until("all", lambda: editor.compose == "Dictated. More. first line\nsecond line typed on")
    assert mode(editor) == "i"


def test_typing_and_speaking_by_turns_undo_one_by_one(editor: Editor, server: Server) -> None:
    editor.keys("iab")
    server.start()
    server.say("spoken")
    editor.keys(" cd")
    editor.until("typed", lambda: editor.compose == "ab spoken cd")
    server.say("again")
    editor.until("all", lambda: editor.compose == "ab spoken cd again")
    editor.keys("<Esc>")
    for left in ("ab spoken cd", "ab spoken", "ab", ""):
        editor.keys("u")
        editor.until(repr(left), lambda left=left: editor.compose == left)


def test_it_works_from_any_buffer(editor: Editor, server: Server) -> None:
    editor.cmd("wincmd h")
    editor.cmd("edit notes.txt")
    server.start(":AgentikDictate<CR>")
    server.say("Hello.")
    assert editor.compose == "Hello."
    assert editor.lua("return vim.fs.basename(vim.api.nvim_buf_get_name(0))") == "notes.txt"


def test_identifiers_in_view_are_sent_once_at_the_start(editor: Editor, server: Server) -> None:
    (editor.home / "project/parser.py").write_text("def parse_config(path): return ConfigFile(path).load2json()\n")
    editor.cmd("wincmd h")
    editor.cmd("edit parser.py")
    editor.lua("require('agentik').attach({ path = '/x/other.py', text = 'save_draft = 1' })")
    server.start(":AgentikDictate<CR>")
    words = server.params()["hotwords"]
    assert words[:4] == ["parser.py", "parse_config", "ConfigFile", "load2json"]
    assert "save_draft" in words
    assert "def" not in words
    assert "path" not in words


def test_the_options_of_setup_are_sent(open_editor: Callable[..., Editor]) -> None:
    options = "{ dictation = { language = 'de', device = 'Mic', identifiers = false, hotwords = { 'Agentik' } } }"
    editor = open_editor(env=FAST, options=options)
    server = Server(editor)
    server.start()
    assert server.params() == {"language": "de", "device": "Mic", "hotwords": ["Agentik"]}


# Spoken commands


def test_new_line_scratch_that_and_send_it(editor: Editor) -> None:
    server = Server(editor, alone=False)
    server.start()
    server.say("One.")
    server.say("", command="newline")
    server.say("Two.")
    server.say("Wrong.")
    assert editor.compose == "One.\nTwo. Wrong."
    server.say("", command="scratch")
    assert editor.compose == "One.\nTwo."
    server.say("", command="send")
    editor.wait_event("TurnEnded")
    editor.wait_chat("\nOne.\nTwo.\n")
    assert editor.compose == ""
    server.say("Next message.")
    assert editor.compose == "Next message."


def test_scratching_leaves_what_was_changed_by_hand(editor: Editor, server: Server) -> None:
    server.start()
    server.say("One two.")
    editor.keys("0cwMine<Esc>")
    editor.until("the change", lambda: editor.compose == "Mine two.")
    server.say("", command="scratch")
    assert editor.compose == "Mine two."


# The end


def test_the_key_starts_and_stops_and_the_last_words_come(editor: Editor, server: Server) -> None:
    server.start()
    editor.wait_screen("listening")
    editor.keys("<M-d>")
    server.wait_for("stop")
    server.say("Last words.")
    server.tell("State", state="stopped")
    assert editor.compose == "Last words."
    editor.wait_gone("finishing")
    editor.wait_gone("◉")


def test_cancelling_takes_out_what_was_said_as_one_step(editor: Editor, server: Server) -> None:
    editor.keys("ikept<Esc>")
    server.start()
    server.say("One.")
    server.say("Two.")
    editor.cmd("AgentikDictate!")
    server.wait_for("cancel")
    server.say("Too late.")
    server.tell("State", state="stopped")
    assert editor.compose == "kept"
    editor.keys("u")
    editor.until("undone", lambda: editor.compose == "kept One. Two.")


def test_the_microphone_is_not_open_out_of_sight(editor: Editor, server: Server) -> None:
    server.start()
    assert "dictating" in editor.lua("return require('agentik').statusline()")
    editor.cmd("AgentikToggle")
    server.wait_for("stop")
    server.tell("State", state="stopped")
    editor.cmd("AgentikToggle")
    server.start()
    editor.cmd("tabnew")
    editor.until("the second stop", lambda: server.calls.count("stop") == 2)


def test_a_refusal_is_one_line(editor: Editor, server: Server) -> None:
    editor.lua("Refuse = 'no microphone was found'")
    editor.keys("<M-d>")
    editor.wait_screen("agentik: no microphone was found")
    editor.wait_gone("speak now")
    assert editor.all_events("DictationState") == []


def test_a_failure_keeps_what_was_said(editor: Editor, server: Server) -> None:
    server.start()
    server.say("Said before.")
    server.tell("Partial", text="and now", stable="")
    server.tell("State", state="failed", detail="the microphone was unplugged; the text so far is kept")
    editor.wait_screen("agentik: the microphone was unplugged")
    editor.wait_gone("and now")
    assert editor.compose == "Said before."


def test_a_server_that_is_gone_ends_it(editor: Editor) -> None:
    server = Server(editor, alone=False)
    server.start()
    server.say("Said before.")
    editor.lua("require('agentik.host').restart()")
    editor.wait_screen("dictation ended")
    assert editor.compose == "Said before."


# Push to talk


def test_a_held_key_talks_until_it_comes_up(editor: Editor, server: Server) -> None:
    """A held key repeats; nothing is typed by it."""
    editor.cmd("imap <F8> <Plug>(agentik-talk)")
    editor.keys("i")
    server.start("<F8>")
    for _ in range(5):
        editor.keys("<F8>")
    server.wait_for("stop")
    assert server.calls == ["start", "stop"]


def test_a_touched_key_talks_until_the_next_key_which_does_what_it_does(editor: Editor, server: Server) -> None:
    editor.cmd("imap <F8> <Plug>(agentik-talk)")
    editor.keys("i")
    server.start("<F8>")
    editor.keys("x")
    server.wait_for("stop")
    editor.until("the letter", lambda: editor.compose == "x")


def test_a_touched_key_talks_until_silence(editor: Editor, server: Server) -> None:
    editor.cmd("nmap <F8> <Plug>(agentik-talk)")
    server.start("<F8>")
    server.tell("State", state="speech")
    server.say("All I had to say.")
    server.wait_for("stop")


# Looks


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_how_it_looks(open_editor: Callable[..., Editor], width: int) -> None:
    editor = open_editor(env=FAST, width=width, height=16)
    server = Server(editor)
    server.start()
    server.say("Fix the bug in parse_config.")
    server.tell("State", state="speech")
    server.tell("Partial", text="and add a test for the empty file", stable="and add a test")
    server.tell("Level", level=0.6)
    editor.wait_screen("▮▮▮▮▮▯▯▯")
    editor.snapshot(f"dictation-{width}")


def test_the_download_of_a_model_shows_how_far_it_is(editor: Editor, server: Server) -> None:
    server.start()
    server.tell("State", state="loading")
    editor.lua(TELL, "progress", {"kind": "report", "message": "downloading the speech model base", "percentage": 34})
    editor.wait_screen("downloading the speech model")


def test_how_it_looks_in_ascii_while_the_model_is_loaded(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor(env=FAST, width=80, height=16, options="{ icons = 'ascii' }")
    server = Server(editor)
    server.start()
    server.tell("State", state="loading")
    server.tell("Level", level=0.3)
    editor.wait_screen("O ##------ loading the speech model")
    editor.snapshot("dictation-loading-ascii")
