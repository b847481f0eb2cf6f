"""Permission requests and questions: answered where the person is, with the agent's own words (B7, B48)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.e2e.driving import FAST
from tests.e2e.kit import Editor

pytestmark = pytest.mark.xdist_group("e2e-permission")


@pytest.fixture
def editor(share_editor: Callable[..., Editor]) -> Editor:
    """The demo agent asks whether it may write its file; the person is in the compose window."""
    editor = share_editor(env=FAST)
    editor.type("/edit")
    editor.wait_event("PermissionRequested")
    editor.until("the request", lambda: editor.state("permissions"))
    return editor


def scratch(editor: Editor) -> bool:
    return (editor.home / "project" / "agentik-demo.txt").exists()


def focus(editor: Editor, part: str) -> None:
    editor.lua(
        "vim.api.nvim_set_current_win(vim.fn.win_findbuf(require('agentik').current().bufs[...])[1])",
        part,
    )


def test_the_request_stands_in_the_chat_with_the_agents_own_labels(editor: Editor) -> None:
    """Numbered as the keys that answer; the bar says that somebody waits."""
    editor.wait_screen("waits for you")
    options = [option["name"] for option in editor.state("permissions")[0]["options"]]
    for number, name in enumerate(options, 1):
        assert f"{number}  {name}" in editor.chat
    assert editor.chat.count("asks: Write agentik-demo.txt") == 1


@pytest.mark.parametrize("part", ["chat", "compose"])
def test_a_number_answers_from_chat_and_compose(editor: Editor, part: str) -> None:
    """The file is written only then; afterwards the request is gone and the keys are the person's own again."""
    assert not scratch(editor)
    focus(editor, part)
    editor.keys("<Esc>1")
    editor.wait_event("TurnEnded")  # which may be the end of a session before, in a shared editor
    editor.wait_chat("is written")
    assert scratch(editor)
    assert "asks:" not in editor.chat
    assert editor.lua("return vim.fn.maparg('1', 'n', false, true).buffer or 0") == 0


def test_alt_and_a_number_answer_while_typing(editor: Editor) -> None:
    """Digits that are typed into a message are text."""
    editor.lua("require('agentik').compose()")
    editor.keys("a 2 b")
    editor.until("the text", lambda: editor.compose == "a 2 b")
    editor.keys("<M-2>")
    editor.wait_event("PermissionResolved")
    assert editor.compose == "a 2 b"


def test_enter_on_an_option_in_the_chat_answers(editor: Editor) -> None:
    focus(editor, "chat")
    option = editor.state("permissions")[0]["options"][-1]["name"]
    editor.keys("<Esc>gg")
    editor.lua("vim.fn.search('\\\\V' .. ..., 'w')", option)
    editor.keys("<CR>")
    editor.wait_event("TurnEnded")
    editor.wait_chat("was not touched")
    assert not scratch(editor)


def test_stopping_the_turn_closes_the_request(editor: Editor) -> None:
    """B32: open permissions are answered as cancelled."""
    editor.cmd("AgentikStop")
    assert editor.wait_event("TurnEnded")["stopReason"] == "cancelled"
    editor.until("no request", lambda: not editor.state("permissions"))
    assert "asks:" not in editor.chat


def test_a_request_out_of_sight_is_told_in_one_line(open_editor: Callable[..., Editor]) -> None:
    editor = open_editor(env={"AGENTIK_DEMO_RATE": "60"})
    editor.type("/tour")
    editor.wait_event("TurnStarted")
    editor.cmd("AgentikToggle")
    editor.wait_screen("the agent asks: Write agentik-demo.txt")
    assert editor.mode() == "n"


def test_an_answer_that_does_not_exist_is_told(editor: Editor) -> None:
    editor.keys("<Esc>9")
    editor.wait_screen("there are only")
    assert editor.state("permissions")


def test_a_question_is_asked_as_a_form_when_the_person_wants(open_editor: Callable[..., Editor]) -> None:
    """Nothing takes the keyboard by itself; `<CR>` on the question asks field by field (B7)."""
    editor = open_editor(env=FAST)
    editor.lua("""
      vim.ui.input = function(options, done) done(options.prompt:find('call you') and 'Ada' or 'x') end
      vim.ui.select = function(items, options, done) done(items[1], 1) end
    """)
    editor.type("/ask")
    editor.wait_event("QuestionAsked")
    editor.wait_chat("asks: Two things about you")
    focus(editor, "chat")
    editor.keys("<Esc>G<CR>")
    editor.wait_event("TurnEnded")
    editor.wait_chat("Nice to meet you, Ada! Colour: blue.")
    assert "asks:" not in editor.chat
