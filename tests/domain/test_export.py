"""A transcript as Markdown: everything a person saw, and two exports can be compared."""

from __future__ import annotations

import difflib
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agentik_server.domain.export import markdown
from agentik_server.domain.message import (
    Attachment,
    Diff,
    Location,
    Message,
    PlanEntry,
    Position,
    Range,
    ToolCall,
)
from agentik_server.domain.saves import SessionFacts

FACTS = SessionFacts("s", "claude", "/home/me/project", "Fix the parser", 1_700_000_000_000, 1_700_000_100_000)


def _message(number: int, kind: str, text: str = "", **more: object) -> Message:
    status = more.pop("status", "complete")
    return Message(f"m{number}", "s", number, kind, text, status, 1_700_000_000_000 + number, **more)  # type: ignore[arg-type]


CONVERSATION = (
    _message(
        1,
        "user",
        "Why does it fail?\r\n",
        attachments=(Attachment("/x/a b.py", range=Range(Position(2, 0), Position(4, 1))), Attachment("/x/log")),
    ),
    _message(2, "thought", "I should look.\n\nThen run."),
    _message(3, "plan", plan=(PlanEntry("Read", "completed"), PlanEntry("Fix", "in_progress"), PlanEntry("Test"))),
    _message(
        4,
        "tool",
        tool=ToolCall(
            "c1", "Edit a b.py", "edit", "completed", (Location("/x/a b.py", 3),),
            (Diff("/x/a b.py", "one\nTWO\n", "one\ntwo\n"),), "done, with ```fences``` inside\n",
        ),
    ),
    _message(5, "agent", "Because of **this**.", status="interrupted"),
    _message(6, "notice", "context was reset"),
    _message(7, "user", "gone", deleted=True),
)  # fmt: skip

EXPECTED = """\
# Fix the parser

- Agent: claude
- Folder: `/home/me/project`
- Started: 2023-11-14 22:13 UTC

## You, 2023-11-14 22:13 UTC

Why does it fail?

- Attached: `/x/a b.py`, lines 3 to 5
- Attached: `/x/log`

### Thought

> I should look.
>
> Then run.

### Plan

- [x] Read
- [~] Fix
- [ ] Test

### Tool: Edit a b.py (completed)

- `/x/a b.py:3`

```diff
--- /x/a b.py
+++ /x/a b.py
@@ -1,2 +1,2 @@
 one
-two
+TWO
```

````
done, with ```fences``` inside
````

## Agent (interrupted)

Because of **this**.

> **Notice:** context was reset
"""


def test_a_conversation_with_everything_in_it() -> None:
    assert markdown(FACTS, CONVERSATION) == EXPECTED


def test_the_same_messages_give_the_same_text_whatever_their_revisions() -> None:
    later = tuple(replace(message, revision=message.revision + 100) for message in CONVERSATION)
    assert markdown(replace(FACTS, updated_at=1, revision=9, state="busy"), later) == EXPECTED


def test_a_message_more_only_adds_lines() -> None:
    before = markdown(FACTS, CONVERSATION)
    after = markdown(FACTS, (*CONVERSATION, _message(8, "agent", "More.")))
    changes = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    assert not [line for line in changes if line.startswith("- ") and not line.startswith("- -")]
    assert after.startswith(before.rstrip("\n"))


def test_an_empty_session_without_a_title_has_a_head() -> None:
    assert markdown(replace(FACTS, title=" \n"), ()).startswith("# Untitled session\n\n- Agent: claude\n")


def test_a_code_block_left_open_by_an_interrupted_answer_is_closed() -> None:
    texts = ("```python\nprint(1)", "~~~~\n```\n~~~~", "````\n```\nx")
    ends = [
        markdown(FACTS, (_message(1, "agent", text, status="interrupted"),)).rstrip("\n").rpartition("\n")[2]
        for text in texts
    ]
    assert ends == ["```", "~~~~", "````"]


def test_odd_line_ends_inside_a_line_are_kept_in_a_diff() -> None:
    tool = ToolCall("c", diffs=(Diff("/x", "a\u2028b\nsame\r\n", "a\nsame\n"),))
    assert "-a\n+a\u2028b\n same\n" in markdown(FACTS, (_message(1, "tool", tool=tool),))


def test_a_new_file_is_a_diff_against_nothing() -> None:
    tool = ToolCall("c", "Create", "edit", "completed", diffs=(Diff("/x/new", "one\n"),))
    text = markdown(FACTS, (_message(1, "tool", tool=tool),))
    assert "--- /dev/null\n+++ /x/new\n@@ -0,0 +1 @@\n+one\n" in text


def test_backticks_in_a_path_do_not_end_its_code() -> None:
    text = markdown(FACTS, (_message(1, "user", "look", attachments=(Attachment("/x/`odd`.md"),)),))
    assert "- Attached: `` /x/`odd`.md ``\n" in text


@given(st.text(max_size=200))
def test_no_output_of_a_tool_ends_its_code_block(output: str) -> None:
    tool = ToolCall("c", "Run", "execute", "completed", output=output)
    text = markdown(FACTS, (_message(1, "tool", tool=tool),))
    if not output.strip():
        return
    fence = text.rstrip("\n").rpartition("\n")[2]
    assert set(fence) == {"`"}
    assert fence not in output
