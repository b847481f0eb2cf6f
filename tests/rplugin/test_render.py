"""From messages to lines: safe text, marks, and patches that always lead to the buffer of a fresh render (B55)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from agentik.mirror import LIVE, Message
from agentik.render.diff import difference
from agentik.render.document import Document
from agentik.render.flow import Flow
from agentik.render.look import Look, Scene
from agentik.render.markdown import Markdown
from agentik.render.marks import Marks
from agentik.render.text import MAX_LINE_BYTES, chop, one_line, plain, size, visible
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rplugin.buffer import Buffer

ICONS = {"pending": ".", "running": "o", "done": "+", "failed": "x", "cancelled": "-", "ellipsis": "..."}
SCENE = Scene(
    Look(icons=ICONS, keys={"open": "<CR>", "resend": "gr", "diff": "g="}), clock=lambda _: "14:02", cwd="/work/p"
)
TEXT = st.text(st.sampled_from("ab `*#-\n\r\t\x1bé👍|>\0"), max_size=40)


def message(kind: str = "agent", text: str = "", **fields: Any) -> Message:
    fields = {"message_id": "m", "session_id": "s", "seq": 1, "created_at": 1} | fields
    return Message(kind=kind, text=text, **fields)


def drawn(*messages: Message) -> Buffer:
    buffer = Buffer()
    document = Document(SCENE, {each.message_id: each for each in messages})
    buffer.apply(document.redraw())
    return buffer


# Text


@given(st.text())
def test_no_text_leaves_a_control_character_in_a_line(text: str) -> None:
    """ESC, NUL and their like are shown, never sent to the screen."""
    assert not [c for c in visible(text) if (ord(c) < 0x20 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0]


def test_escapes_of_tool_output_are_dropped() -> None:
    """Colours, titles and overwritten progress lines of a command are not text."""
    assert plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07ok\x1b(B") == "red ok"
    assert plain("10%\r50%\r100%\r\ndone\r\n") == "100%\ndone\n"
    assert plain("bo\bold") == "bold"
    assert plain("a\x00b\x1b") == "a^@b^["


@given(st.text(st.sampled_from("aé👍"), max_size=9000), st.integers(0, 4))
@settings(max_examples=30)
def test_long_lines_are_broken_between_characters(text: str, room: int) -> None:
    pieces = chop(text, room)
    assert "".join(pieces) == text
    assert all(size(piece) <= MAX_LINE_BYTES for piece in pieces)
    assert size(pieces[0]) <= max(room, 0) or len(pieces) == 1


def test_titles_are_one_line() -> None:
    assert one_line("a\n\tb\x1b[31m c") == "a b c"
    assert one_line("x" * 50, 10) == "x" * 7 + "..."


# Streaming


@given(TEXT, st.lists(st.integers(0, 40), max_size=8))
def test_text_in_pieces_equals_the_whole(text: str, cuts: list[int]) -> None:
    """Lines and marks do not depend on how the stream was cut."""
    whole, pieces = Flow(markdown=True), Flow(markdown=True)
    expected, marks = Marks(), Marks()
    expected.extend(whole.add(text)[1], 0)
    expected.extend(whole.finish(), 0)
    lines: list[str] = []
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for start, end in pairwise(edges):
        added, new = pieces.add(text[start:end])
        marks.extend(new, 0)
        if added and lines:
            lines[-1] += added[0]
            lines += added[1:]
        else:
            lines += added
    marks.extend(pieces.finish(), 0)
    assert lines == pieces.lines == whole.lines
    assert marks == expected


def test_a_streamed_line_of_a_megabyte_is_broken() -> None:
    flow = Flow(markdown=True)
    for _ in range(1000):
        flow.add("é" * 512)
    assert max(size(line) for line in flow.lines) <= MAX_LINE_BYTES
    assert "".join(flow.lines) == "é" * 512_000


# Markdown


def marks_of(text: str) -> set[tuple[str, str]]:
    marks, markdown, lines = Marks(), Markdown(), text.split("\n")
    for row, line in enumerate(lines):
        markdown.line(row, line, marks)
    found = {(group, lines[row].encode()[first:end].decode()) for row, first, end, group in marks.spans}
    return found | {(group, lines[row]) for row, group in marks.fills}


@pytest.mark.parametrize(
    ("text", "group", "marked"),
    [
        ("## Title", "Heading", "## Title"),
        ("say `code` é", "Code", "`code`"),
        ("é **bold** b", "Strong", "**bold**"),
        ("an *emphasis* here", "Emphasis", "*emphasis*"),
        ("~~gone~~", "Struck", "~~gone~~"),
        ("see [docs](https://x.org/a)", "Link", "[docs](https://x.org/a)"),
        ("at https://x.org/a.", "Link", "https://x.org/a"),
        ("> quoted", "Quote", "> quoted"),
        ("  - item", "ListMark", "  -"),
        ("1. item", "ListMark", "1."),
        ("- [x] done", "ListMark", "- [x]"),
        ("---", "Fence", "---"),
        ("```lua\nlocal x\n```", "CodeBlock", "local x"),
        ("```\n**not bold**\n```", "CodeBlock", "**not bold**"),
    ],
)
def test_markdown_is_marked(text: str, group: str, marked: str) -> None:
    assert (group, marked) in marks_of(text)


def test_the_signs_of_markup_are_told_so_that_they_can_be_hidden() -> None:
    assert ("Markup", "**") in marks_of("a **b** c")
    assert {("Markup", "["), ("Markup", "](https://x.org)")} <= marks_of("see [docs](https://x.org)")


@pytest.mark.parametrize("text", ["snake_case_name", "2 * 3 * 4", "a*b*c", "`open", "**open", "5 > 3"])
def test_what_only_looks_like_markup_is_left_alone(text: str) -> None:
    assert marks_of(text) == set()


def test_a_closed_fence_tells_language_and_lines() -> None:
    marks, markdown = Marks(), Markdown()
    for row, line in enumerate(["````lua", "```", "x = 1", "````", "tail"]):
        markdown.line(row, line, marks)
    assert marks.codes == [(1, 2, "lua")]


# Diffs


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_a_difference_leads_from_old_to_new(old: list[str], new: list[str]) -> None:
    """Counted lines agree, and every shown line stands where it says."""
    found = difference("\n".join(old), "\n".join(new))
    assert len(old) - found.removed == len(new) - found.added or "" in {"\n".join(old), "\n".join(new)}
    for hunk in found.hunks:
        for line in hunk:
            assert (old if line.change == "-" else new)[line.number - 1] == line.text


def test_a_huge_difference_is_shown_as_replaced_at_once() -> None:
    old, new = "\n".join(f"a{n}" for n in range(20_000)), "\n".join(f"b{n}" for n in range(20_000))
    assert difference(old, new).added == 20_000


# Messages


def test_a_conversation_reads_from_top_to_bottom() -> None:
    buffer = drawn(
        message("user", "hello", message_id="1", seq=1),
        message("thought", "hm\nhm", message_id="2", seq=2, turn_id="t", created_at=1000),
        message("agent", "hi **you**\n", message_id="3", seq=3, turn_id="t", created_at=3500),
    )
    assert buffer.lines == ["You  14:02", "hello", "", "Agent  14:02", "Thought  2.5 s", "hm", "hm", "", "hi **you**"]
    assert [meta["kind"] for meta in buffer.blocks.values()] == ["user", "thought", "agent"]
    assert buffer.blocks[2]["fold"] == [2, 4, True]
    assert ("spans", 9, 14, "Time") in buffer.rows[4][1]


@given(st.sampled_from(["agent", "thought", "user", "notice", "tool", "plan"]), TEXT)
def test_no_text_changes_the_structure(kind: str, text: str) -> None:
    """Blocks are told by marks: whatever a text says, each message is one block, and none has a raw escape."""
    tool = {"toolCallId": "t", "title": text, "toolKind": text, "status": text, "output": text}
    tool["diffs"] = [{"path": text, "oldText": text, "newText": text + "x"}]
    one = message(kind, text, message_id="1", tool=tool, plan=[{"content": text, "status": text}])
    buffer = drawn(one, message("agent", "end", message_id="2", seq=2))
    assert [meta["id"] for meta in buffer.blocks.values()] == ["1", "2"]
    assert sum(meta["height"] for meta in buffer.blocks.values()) == len(buffer.lines)
    assert not [c for line in buffer.lines for c in line if ord(c) < 0x20 and c != "\t"]


def test_a_tool_call_shows_status_places_diff_and_the_ends_of_its_output() -> None:
    tool = {
        "toolCallId": "t",
        "title": "Edit a.py",
        "toolKind": "edit",
        "status": "failed",
        "locations": [{"path": "/work/p/b.py", "line": 3}],
        "diffs": [{"path": "/work/p/a.py", "oldText": "x\ny\n", "newText": "x\nz\n"}],
        "output": "\n".join(str(n) for n in range(100)),
    }
    buffer = drawn(message("tool", tool=tool))
    assert buffer.lines[:6] == [
        "Agent  14:02",
        "Edit a.py  edit  +1 -1  100 lines",
        "b.py:3",
        "x",
        "y",
        "z",
    ]
    assert "... 84 more lines: <CR> shows all" in buffer.lines
    assert buffer.lines[-1] == "99"
    assert ("signs", "-", "DiffDeleteSign") in buffer.rows[4][1]


def test_an_attachment_shows_its_lines_as_people_count() -> None:
    part = {"start": {"line": 9, "character": 0}, "end": {"line": 12, "character": 0}}
    buffer = drawn(message("user", "look", attachments=[{"path": "/work/p/a.py", "range": part}]))
    assert buffer.lines == ["You  14:02", "look", "a.py:10-12"]


def test_places_are_found_again() -> None:
    tool = {"title": "Read", "status": "completed", "locations": [{"path": "/x/y.py", "line": 7}]}
    document = Document(SCENE, {"m": message("tool", tool=tool)})
    document.redraw()
    found = document.find(1, 2)
    assert found is not None
    assert found.place is not None
    assert (found.kind, found.item_id, found.place.path, found.place.line) == ("tool", "m", "/x/y.py", 7)


# Documents

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "grow", "grow", "remove", "ask", "answer", "older", "take", "frame", "reset"]),
        st.integers(1, 6),
        st.sampled_from(["user", "agent", "thought", "tool", "notice"]),
        TEXT,
        st.sampled_from([LIVE, "complete", "interrupted"]),
    ),
    max_size=30,
)


class Editing:
    """A document and the buffer that its patches make."""

    def __init__(self) -> None:
        self.messages: dict[str, Message] = {}
        self.asks: dict[str, dict[str, Any]] = {}
        self.document = Document(SCENE, self.messages)
        self.buffer = Buffer()

    def step(self, what: str, number: int, kind: str, text: str, status: str) -> None:
        message_id = f"m{number}"
        match what:
            case "put":
                tool = {"title": text, "status": "pending" if status == LIVE else "completed", "output": text}
                seq = (number * 5) % 7
                fields = {"message_id": message_id, "seq": seq, "status": status, "created_at": number * 1000}
                self.messages[message_id] = message(kind, text, tool=tool if kind == "tool" else None, **fields)
                self.document.changed(message_id)
            case "grow" if message_id in self.messages and self.messages[message_id].status == LIVE:
                self.messages[message_id].text += text
                self.document.grown(message_id, text)
            case "remove" if self.messages.pop(message_id, None):
                self.document.changed(message_id)
            case "ask":
                self.asks[f"p{number}"] = {"toolCall": {"title": text}, "options": [{"name": text}]}
                self.document.asked(self.asks, {})
            case "answer":
                self.asks.pop(f"p{number}", None)
                self.document.asked(dict(self.asks), {})
            case "older":
                self.document.older(number % 2 == 0)
            case "take":
                self.buffer.apply(self.document.take())
            case "frame":
                self.buffer.apply(self.document.take(room=number * 5))
            case "reset":
                self.buffer = Buffer()
                self.buffer.apply(self.document.redraw(room=number * 5))


@settings(max_examples=400, deadline=None)
@given(STEPS)
def test_patches_lead_to_the_buffer_of_a_fresh_render(steps: list[Any]) -> None:
    """B55: lines, marks and blocks, whatever changed in whatever order, whenever frames were taken, with what room."""
    editing = Editing()
    for step in steps:
        editing.step(*step)
    while editing.document.is_dirty:
        editing.buffer.apply(editing.document.take(room=20))
    fresh = Buffer()
    fresh.apply(editing.document.redraw())
    assert editing.buffer.view() == fresh.view()
    assert [meta["id"] for meta in fresh.blocks.values()] == [
        meta["id"] for _, meta in sorted(editing.buffer.blocks.items(), key=lambda item: _place(fresh, item[1]))
    ]


def _place(buffer: Buffer, meta: dict[str, Any]) -> int:
    return [each["id"] for each in buffer.blocks.values()].index(meta["id"])


@given(STEPS)
def test_a_redraw_is_written_from_top_to_bottom(steps: list[Any]) -> None:
    """No row of it moves later: the editor may put all lines there first, and then the marks."""
    editing = Editing()
    for step in steps:
        editing.step(*step)
    lines: list[str] = []
    for patch in editing.document.redraw(room=50):
        if "lines" in patch:
            assert (patch["row"], patch["del"]) == (len(lines), 0 if lines else 1)
            lines += patch["lines"]
        assert patch["at"] < len(lines)


def test_the_first_line_says_that_there_are_older_messages() -> None:
    """Also in the first drawing, which leaves it for last; it goes when the oldest message is there."""
    editing = Editing()
    editing.step("put", 1, "agent", "one", "complete")
    editing.document.older(True)
    editing.buffer.apply(editing.document.redraw(room=1))
    editing.buffer.apply(editing.document.take(room=1))
    assert editing.buffer.lines[0].startswith("older messages")
    assert editing.buffer.lines[1:] == ["", "one"]
    editing.document.older(False)
    editing.buffer.apply(editing.document.take())
    assert editing.buffer.lines == ["Agent  14:02", "one"]


def test_old_messages_come_after_the_newest_a_frame_at_a_time() -> None:
    """One patch of text a frame, however many messages it holds, and never more than there is room for."""
    messages = {f"m{n}": message(text="x" * 100, message_id=f"m{n}", seq=n) for n in range(100)}
    document, buffer = Document(SCENE, messages), Buffer()
    frames = [document.redraw(room=1000)]
    while document.is_dirty:
        frames.append(document.take(room=1000))
    assert len(frames) == 10
    assert all(sum("lines" in patch for patch in frame) <= 2 for frame in frames)
    for frame in frames:
        buffer.apply(frame)
    assert buffer.view() == drawn(*messages.values()).view()


def test_a_tool_that_changes_its_status_replaces_no_line() -> None:
    """Cursors and folds of the person stay: only the sign is set anew."""
    editing = Editing()
    editing.step("put", 1, "tool", "Run it", LIVE)
    editing.document.take()
    editing.messages["m1"].tool = {"title": "Run it", "status": "in_progress", "output": "Run it"}
    editing.document.changed("m1")
    (patch,) = editing.document.take()
    assert "lines" not in patch
    assert patch["clear"] == [1, 2]


def test_streaming_adds_at_the_end_of_the_message_only() -> None:
    """One small patch a frame: nothing that stands there is replaced."""
    editing = Editing()
    editing.step("put", 1, "agent", "one", LIVE)
    editing.document.take()
    for text in (" two", "\n", "three"):
        editing.step("grow", 1, "agent", text, LIVE)
    (patch,) = editing.document.take()
    assert patch == {"block": 1, "row": 1, "text": [" two", "three"], "height": 3}
