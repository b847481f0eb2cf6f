"""From an edited list to edits: whatever was done to the text, the edits lead to what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.e2e.kit import Editor

Items = list[tuple[str, str]]


@pytest.fixture(scope="module")
def neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """Pure Lua needs one Neovim for all."""
    editor = Editor(Path(tmp_path_factory.mktemp("plan")))
    yield editor
    editor.close()


def plan(editor: Editor, base: Items, segments: Items) -> list[dict[str, Any]]:
    def wire(items: Items) -> list[dict[str, Any]]:
        return [{"id": each, "lines": text.split("\n")} for each, text in items]

    code = "return require('agentik.view.pending_plan').plan(...)"
    return list(editor.lua(code, wire(base), wire(segments)))


def applied(base: Items, edits: list[dict[str, Any]]) -> Items:
    """What the server makes of them, one after another."""
    items = list(base)
    for edit in edits:
        index = next(at for at, (each, _) in enumerate(items) if each == edit["messageId"])
        message_id, text = items.pop(index)
        if edit["op"] == "edit":
            items.insert(index, (message_id, edit["text"]))
        elif edit["op"] == "move":
            items.insert(edit["position"], (message_id, text))
    return items


TEXTS = st.lists(st.sampled_from(["a", "b", "c", "a\nb", "---", ""]), max_size=6)


@settings(max_examples=150, deadline=None)
@given(texts=TEXTS, data=st.data())
def test_edits_lead_from_the_list_to_the_buffer(neovim: Editor, texts: list[str], data: st.DataObject) -> None:
    """Removed, changed and moved in any mixture; and no more moves than needed."""
    base = [(str(index), text) for index, text in enumerate(texts)]
    kept = data.draw(st.permutations(base))[: data.draw(st.integers(0, len(base)))]
    # New texts that no removed item had: those are the next test's.
    wanted = [(each, data.draw(st.sampled_from([text, f"new {each}"]))) for each, text in kept]
    edits = plan(neovim, base, wanted)
    assert applied(base, edits) == wanted
    moves = [edit for edit in edits if edit["op"] == "move"]
    assert len(moves) <= max(len(wanted) - 1, 0)


def test_lines_put_elsewhere_are_a_move(neovim: Editor) -> None:
    """`dd`, `p`: the lines of the missing message stand below another's; also above the first, and of several lines."""
    base = [("1", "a"), ("2", "b\nb2"), ("3", "c")]
    move = {"op": "move", "messageId": "1", "position": 2}
    assert plan(neovim, base, [("2", "b\nb2"), ("3", "c\na")]) == [move]
    edits = plan(neovim, base, [("1", "b\nb2\na"), ("3", "c")])
    assert applied(base, edits) == [("2", "b\nb2"), ("1", "a"), ("3", "c")]
    edits = plan(neovim, base, [("1", "a"), ("3", "c\nb\nb2")])
    assert applied(base, edits) == [("1", "a"), ("3", "c"), ("2", "b\nb2")]


def test_an_item_that_is_gone_for_good_is_nobodys(neovim: Editor) -> None:
    """`u` between the removal and its answer: nothing is edited, and nothing is glued to the item above."""
    base = [("1", "a"), ("2", "b")]
    assert plan(neovim, base, [("1", "a"), ("gone", "x"), ("2", "b")]) == []


def test_an_unchanged_list_needs_nothing(neovim: Editor) -> None:
    base = [("1", "a"), ("2", "a")]
    assert plan(neovim, base, base) == []
