"""Options: defaults without setup(), clear one-line messages, nothing breaks the start."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Editor


def setup(editor: Editor, options: str) -> tuple[list[str], list[str]]:
    """(problems, notifications) of setup() with a Lua expression."""
    problems, notes = editor.lua(f"""
      local notes = {{}}
      vim.notify = function(text) table.insert(notes, text) end
      return {{ require('agentik.config').setup({options}), notes }}
    """)
    return problems, notes


def get(editor: Editor, name: str) -> Any:
    return editor.lua(f"return require('agentik.config').get().{name}")


def test_works_without_setup(editor: Editor) -> None:
    assert get(editor, "layout.position") == "right"
    assert get(editor, "agent") is None
    assert get(editor, "keys.chat.close") == "q"


def test_every_default_fits_its_own_type_and_limits(editor: Editor) -> None:
    assert setup(editor, "require('agentik.config').defaults()") == ([], [])


def test_given_options_lie_over_the_defaults(editor: Editor) -> None:
    problems, _ = setup(
        editor, "{ layout = { position = 'float', width = 100 }, settings = { queue = { drain = 'all' } } }"
    )
    assert problems == []
    assert get(editor, "layout.position") == "float"
    assert get(editor, "layout.height") == 0.4
    assert get(editor, "settings.queue.drain") == "all"


def test_setup_again_starts_from_the_defaults(editor: Editor) -> None:
    setup(editor, "{ agent = 'gemini' }")
    setup(editor, "{ notify = false }")
    assert get(editor, "agent") is None
    assert get(editor, "notify") is False


def test_table_of_the_user_is_not_kept(editor: Editor) -> None:
    """Changing the table after setup() changes nothing."""
    editor.lua("Mine = { dictation = { hotwords = { 'a' } } }")
    setup(editor, "Mine")
    editor.lua("Mine.dictation.hotwords[1] = 'b'")
    assert get(editor, "dictation.hotwords") == ["a"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{ lyout = {} }", "unknown option lyout (did you mean layout?)"),
        ("{ layout = { postion = 'left' } }", "unknown option layout.postion (did you mean layout.position?)"),
        ("{ zzz = 1 }", "unknown option zzz"),
        ("{ 'agent' }", "unknown option 1"),
        ("{ keys = { chats = {} } }", "unknown option keys.chats (did you mean keys.chat?)"),
        (
            "{ keys = { compose = { sned = '<CR>' } } }",
            "unknown option keys.compose.sned (did you mean keys.compose.send?)",
        ),
        (
            "{ layout = { position = 'middle' } }",
            'layout.position must be "right", "left", "bottom", "top", "tab" or "float", got "middle"',
        ),
        ("{ layout = { width = 'wide' } }", 'layout.width must be a number, got "wide"'),
        ("{ layout = { width = 0 } }", "layout.width must be between 0.1 and 500, got 0"),
        ("{ layout = { pending_height = 2.5 } }", "layout.pending_height must be a whole number, got 2.5"),
        ("{ layout = 3 }", "layout must be a table, got 3"),
        ("{ notify = 'yes' }", 'notify must be true or false, got "yes"'),
        ("{ agent = 3 }", "agent must be a string, got 3"),
        ("{ dictation = { hotwords = { 'a', 3 } } }", 'dictation.hotwords must be a list of strings, got { "a", 3 }'),
        ("{ settings = 'fast' }", 'settings must be a table, got "fast"'),
        ("{ keys = { chat = true } }", "keys.chat must be a table or false, got true"),
        (
            "{ keys = { chat = { close = 3 } } }",
            'keys.chat.close must be a key such as "gx" or { "<C-x>", mode = "i" }, a list of these, or false, got 3',
        ),
        ("{ icons = 'fancy' }", 'icons must be "unicode", "ascii" or a table, got "fancy"'),
        ("{ icons = { usr = 'x' } }", "unknown icon icons.usr (did you mean icons.user?)"),
        ("{ icons = { user = 'a\\nb' } }", 'icons.user must be a string of one line, got "a\\nb"'),
        (
            "{ layout = { compose_max_height = 2 } }",
            "layout.compose_max_height must not be below layout.compose_min_height (3)",
        ),
        ("'fast'", 'setup() takes a table, got "fast"'),
    ],
)
def test_wrong_option_is_one_clear_line_and_the_default_holds(editor: Editor, options: str, message: str) -> None:
    problems, notes = setup(editor, options)
    assert problems == [message]
    assert notes == [f"agentik: {message}"]
    same = "vim.deep_equal(config.get(), config.defaults())"
    if "icons = {" not in options and "compose_max_height" not in options:
        assert editor.lua(f"local config = require('agentik.config') return {same}")


def test_several_problems_are_one_line_too(editor: Editor) -> None:
    """More than one line would raise the hit-enter prompt while Neovim starts."""
    problems, notes = setup(editor, "{ a1 = 1, b2 = 2, notify = 3 }")
    assert len(problems) == 3
    assert notes == ["agentik: unknown option a1 (and 2 more: :checkhealth agentik)"]
    assert editor.lua("return require('agentik.config').problems()") == problems


def test_long_value_is_shortened_in_its_message(editor: Editor) -> None:
    [problem], _ = setup(editor, "{ agent = { ('x'):rep(500) } }")
    assert len(problem) < 100


def test_mappings_follow_the_options(editor: Editor) -> None:
    send = "{ '<CR>', { '<CR>', mode = { 'i', 'n' } } }"
    setup(editor, f"{{ keys = {{ compose = {{ send = {send}, send_now = false }}, diff = false }} }}")
    mappings = editor.lua("return require('agentik.config').mappings('compose')")
    sends = [(mapping["lhs"], mapping["mode"]) for mapping in mappings if mapping["action"] == "send"]
    assert sends == [("<CR>", ["n"]), ("<CR>", ["i", "n"])]
    assert [mapping for mapping in mappings if mapping["action"] == "send_now"] == []
    assert editor.lua("return require('agentik.config').mappings('diff')") == []
    assert all(mapping["desc"] for mapping in mappings)


def test_no_two_actions_of_a_view_share_a_key(editor: Editor) -> None:
    for view in ("chat", "compose", "pending", "diff"):
        mappings = editor.lua("return require('agentik.config').mappings(...)", view)
        if view in ("chat", "compose"):
            mappings += editor.lua("return require('agentik.config').mappings('permission')")
        keys = [(mapping["lhs"], mode) for mapping in mappings for mode in mapping["mode"]]
        assert len(keys) == len(set(keys)), view


def test_icons_by_name(editor: Editor) -> None:
    setup(editor, "{ icons = 'ascii' }")
    icons = editor.lua("return require('agentik.config').icons()")
    assert all(icon.isascii() for icon in icons.values())
    setup(editor, "{ icons = { user = 'Me' } }")
    icons = editor.lua("return require('agentik.config').icons()")
    assert icons["user"] == "Me"
    assert icons["done"] == "✓"


def test_every_icon_but_the_ellipsis_is_one_cell_wide(editor: Editor) -> None:
    for choice in ("unicode", "ascii"):
        setup(editor, f"{{ icons = '{choice}' }}")
        for name, icon in editor.lua("return require('agentik.config').icons()").items():
            assert name == "ellipsis" or editor.lua("return vim.fn.strdisplaywidth(...)", icon) == 1
