"""session/update → happenings, without a process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentik_server.agents.clean import clean_json, clean_text, one_line
from agentik_server.agents.telling import merge_changes
from agentik_server.agents.tool_outputs import ToolOutputs
from agentik_server.agents.updates import MAX_REMARKS, Updates
from agentik_server.domain.happenings import (
    Activity,
    ControlsChanged,
    Happening,
    PlanChanged,
    Remark,
    TextArrived,
    TitleSuggested,
    ToolCallChanged,
)
from agentik_server.domain.message import Diff, Location, PlanEntry, ToolChange


def told_of(*updates: dict[str, Any], replayed: bool = False) -> list[Happening]:
    told: list[Happening] = []
    translator = Updates(told.append, ToolOutputs({"ours": "from our terminal"}.get))
    for update in updates:
        translator.apply(update, replayed=replayed)
    translator.turn_ended()
    return told


def chunk(text: object, kind: str = "agent_message_chunk", **more: object) -> dict[str, Any]:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}, **more}


def tool(**fields: Any) -> ToolChange:
    (happening,) = told_of({"sessionUpdate": "tool_call_update", "toolCallId": "t", **fields})
    assert isinstance(happening, ToolCallChanged)
    return happening.change


def test_a_character_whose_halves_come_in_two_chunks_is_joined() -> None:  # B46
    told = told_of(chunk("a\ud83d"), chunk("\ude00b"))
    assert [h.text for h in told if isinstance(h, TextArrived)] == ["a", "😀b"]


@pytest.mark.parametrize(
    "other", [chunk("x", "agent_thought_chunk"), chunk("x", messageId="2"), {"sessionUpdate": "plan"}]
)
def test_half_a_character_that_stays_alone_is_replaced_in_its_own_text(other: dict[str, Any]) -> None:  # B46
    told = told_of(chunk("a\ud83d"), other, chunk("\ude00"))
    texts = [(h.kind, h.text) for h in told if isinstance(h, TextArrived)]
    assert texts[:2] == [("agent", "a"), ("agent", "\ufffd")]
    assert texts[-1] == ("agent", "\ufffd")


@given(
    st.lists(st.text(alphabet=st.characters(codec="utf-16", min_codepoint=0xFF00, max_codepoint=0x10FFFF)), max_size=6)
)
def test_whole_texts_come_through_unchanged(parts: list[str]) -> None:  # B10
    told = told_of(*(chunk(part) for part in parts))
    assert "".join(h.text for h in told if isinstance(h, TextArrived)) == "".join(parts)


@given(st.text(alphabet=st.characters(min_codepoint=0xD700, max_codepoint=0xE100) | st.just("\0")))
def test_clean_text_can_be_encoded_and_has_no_nul(text: str) -> None:
    assert b"\0" not in clean_text(text).encode()


def test_clean_json_passes_what_other_encoders_refuse() -> None:
    deep: object = "x"
    for _ in range(200):
        deep = [deep]
    value = clean_json({"a\ud83d": "\ud83d", "big": 10**30, "inf": float("inf"), "deep": deep, "n": None, "t": True})
    assert json.loads(json.dumps(value))["big"] == str(10**30)
    assert "\ud83d" not in json.dumps(value, ensure_ascii=False)
    assert isinstance(value, dict)
    assert (value["inf"], value["n"], value["t"]) == (None, None, True)


def test_one_line_is_one_line() -> None:
    assert one_line("a\n b\t c" + "x" * 600) == ("a b c" + "x" * 600)[:499] + "…"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ({"type": "image", "mimeType": "image/png", "data": "AAAA"}, "[image/png, 3 bytes]"),
        ({"type": "resource_link", "uri": "file:///x", "name": "x"}, "[x](file:///x)"),
        ({"type": "resource", "resource": {"uri": "u", "text": "T"}}, "T"),
        ({"type": "hologram"}, "[hologram]"),
        ({"text": "untyped"}, "untyped"),
    ],
)
def test_every_content_block_has_a_text(content: object, text: str) -> None:
    assert told_of({"sessionUpdate": "agent_message_chunk", "content": content}) == [TextArrived("agent", text)]


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"sessionUpdate": None},
        {"sessionUpdate": 5},
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": {"x": 1}}},
        {"sessionUpdate": "agent_message_chunk", "content": 7, "messageId": []},
        {"sessionUpdate": "tool_call"},
        {"sessionUpdate": "tool_call", "toolCallId": {}},
        {"sessionUpdate": "current_mode_update", "currentModeId": 5},
        {"sessionUpdate": "config_option_update"},
        {"sessionUpdate": "session_info_update", "title": None},
        {"sessionUpdate": "usage_update", "used": "many"},
        {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "echo"}},
    ],
)
def test_an_update_that_shows_nothing_is_still_a_sign_of_life(update: dict[str, Any]) -> None:  # B41, B46
    assert told_of(update) == [Activity()]


def test_an_unknown_kind_is_kept_as_a_remark_and_a_flood_of_them_is_not() -> None:  # B46
    told = told_of(*({"sessionUpdate": f"new_thing_{i % 50}"} for i in range(1000)))
    assert len([h for h in told if isinstance(h, Remark)]) == MAX_REMARKS
    assert "new_thing_0" in next(h.text for h in told if isinstance(h, Remark))


def test_a_tool_call_is_made_of_its_fields() -> None:
    change = tool(
        title="Edit",
        kind="edit",
        status="completed",
        rawInput={"p": "\ud83d"},
        locations=[{"path": "/a", "line": 3.0}, {"path": None}, 7],
        content=[
            {"type": "content", "content": {"type": "text", "text": "done"}},
            {"type": "diff", "path": "/a", "oldText": None, "newText": "x"},
            {"type": "diff", "path": "/a"},
            "nonsense",
        ],
    )
    assert change == ToolChange(
        "t", "Edit", "edit", "completed", (Location("/a", 3),), (Diff("/a", "x", None),), "done", None, {"p": "\ufffd"}
    )


def test_odd_kinds_and_states_of_tools_are_other_and_unchanged() -> None:
    change = tool(kind="teleport", status="half done", title=7, locations={})
    assert change == ToolChange("t", tool_kind="other")


def test_a_number_as_tool_call_id_is_an_id() -> None:
    (happening,) = told_of({"sessionUpdate": "tool_call", "toolCallId": 7})
    assert isinstance(happening, ToolCallChanged)
    assert happening.change.tool_call_id == "7"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("out", "out"),
        ({"output": "o"}, "o"),
        ({"stdout": "s", "x": 1}, "s"),
        ({"x": 1}, '{\n "x": 1\n}'),
        ({}, None),
        ([{"type": "text", "text": "b"}], "b"),
    ],
)
def test_a_raw_output_is_shown_where_there_is_no_content(raw: object, text: str | None) -> None:
    assert tool(rawOutput=raw).output == text


def test_a_raw_output_does_not_replace_content_that_came_before() -> None:
    content = [{"type": "content", "content": {"type": "text", "text": "nice"}}]
    first, second = told_of(
        {"sessionUpdate": "tool_call", "toolCallId": "t", "content": content},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "rawOutput": {"x": 1}},
    )
    assert isinstance(first, ToolCallChanged)
    assert isinstance(second, ToolCallChanged)
    assert (first.change.output, second.change.output) == ("nice", None)


def test_the_output_of_a_terminal_that_the_agent_made_itself_is_shown() -> None:  # AGENTS.md 5.14
    told = told_of(
        {"sessionUpdate": "tool_call", "toolCallId": "t", "content": [{"type": "terminal", "terminalId": "t"}],
         "_meta": {"terminal_info": {"terminal_id": "t", "cwd": "/"}}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": {"terminal_output": {"data": "one\n"}}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": {"terminal_output_delta": {"data": "two"}}},
        {"sessionUpdate": "tool_call_update", "toolCallId": "t", "_meta": {"terminal_exit": {"exit_code": 1}}},
    )  # fmt: skip
    changes = [h.change for h in told if isinstance(h, ToolCallChanged)]
    assert [change.output for change in changes] == ["", None, None, None]
    assert [change.output_delta for change in changes] == [None, "one\n", "two", None]
    assert changes[-1].status == "failed"


def test_what_was_shown_when_the_agent_asked_gives_way_to_the_output() -> None:  # zed-codex-acp
    tools = ToolOutputs(lambda _terminal: None)
    asked = [{"type": "content", "content": {"type": "text", "text": "Proposed"}}]
    first = tools.change({"toolCallId": "t", "content": asked}, asked=True)
    second = tools.change({"toolCallId": "t", "content": [{"type": "terminal", "terminalId": "t"}]})
    third = tools.change({"toolCallId": "t", "rawOutput": {"formatted_output": "hi"}})
    assert [change and change.output for change in (first, second, third)] == ["Proposed", "", "hi"]


def test_a_terminal_of_ours_is_shown_with_what_it_has_put_out_already() -> None:
    assert tool(content=[{"type": "terminal", "terminalId": "ours"}]).output == "from our terminal"


def test_plans_drop_what_has_no_content() -> None:
    entries = [{"content": "a", "status": "completed", "priority": "high"}, {"status": "pending"}, 7, {"content": "b"}]
    assert told_of({"sessionUpdate": "plan", "entries": entries}) == [
        PlanChanged((PlanEntry("a", "completed", "high"), PlanEntry("b")))
    ]


def test_plan_updates_of_the_unstable_schema_are_plans() -> None:
    update = {"sessionUpdate": "plan_update", "plan": {"type": "items", "entries": [{"content": "a"}]}}
    assert told_of(update, {"sessionUpdate": "plan_removed"}) == [PlanChanged((PlanEntry("a"),)), PlanChanged(())]


def test_what_the_session_offers_is_told() -> None:
    told = told_of(
        {"sessionUpdate": "current_mode_update", "currentModeId": "m"},
        {"sessionUpdate": "config_option_update", "configOptions": [{"id": "b", "type": "boolean"}, {"name": "no id"}]},
        {"sessionUpdate": "session_info_update", "title": " My\ntitle "},
        {"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": {"amount": 1}},
        {"sessionUpdate": "usage_update", "used": 6},
    )
    controls = [h.controls for h in told if isinstance(h, ControlsChanged)]
    assert controls[0].mode_id == "m"
    assert controls[1].config_options == [{"id": "b", "type": "boolean"}]
    assert controls[-1].usage == {"used": 6, "size": 10, "cost": {"amount": 1}}
    assert TitleSuggested("My title") in told


def test_of_a_replay_only_what_the_session_offers_is_taken() -> None:  # B40
    told = told_of(
        chunk("old"),
        {"sessionUpdate": "tool_call", "toolCallId": "t"},
        {"sessionUpdate": "plan", "entries": []},
        {"sessionUpdate": "current_mode_update", "currentModeId": "m"},
        replayed=True,
    )
    assert [type(h) for h in told] == [ControlsChanged]


CHANGES = st.builds(
    ToolChange,
    st.just("t"),
    title=st.none() | st.text(max_size=2),
    status=st.none() | st.sampled_from(["pending", "completed"]),
    output=st.none() | st.text(max_size=3),
    output_delta=st.none() | st.text(min_size=1, max_size=3),
)


def replay(output: str, change: ToolChange) -> str:
    return (output if change.output is None else change.output) + (change.output_delta or "")


@given(CHANGES, CHANGES, st.text(max_size=3))
def test_two_changes_merged_are_the_two_one_after_the_other(first: ToolChange, second: ToolChange, output: str) -> None:
    merged = merge_changes(first, second)
    assert replay(output, merged) == replay(replay(output, first), second)
    assert merged.title == (first.title if second.title is None else second.title)
