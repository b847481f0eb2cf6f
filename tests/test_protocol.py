"""The wire models: what is accepted, what the application gets, and that the document tells all of it."""

from __future__ import annotations

from typing import Any

import pytest

from agentik_server.protocol import (
    CLIENT_REQUESTS,
    NOTIFICATIONS,
    REASONS,
    REQUESTS,
    InvalidParams,
    Wire,
    render_markdown,
    validated,
)

DESIGNED_REQUESTS = [
    "listAgents",
    "newSession",
    "listSessions",
    "openSession",
    "closeSession",
    "deleteSession",
    "renameSession",
    "listMessages",
    "searchMessages",
    "exportSession",
    "sendMessage",
    "editPending",
    "movePending",
    "removePending",
    "clearPending",
    "sendPendingNow",
    "applyPendingEdits",
    "holdPending",
    "pauseQueue",
    "resumeQueue",
    "cancelTurn",
    "resendMessage",
    "answerPermission",
    "answerQuestion",
    "setMode",
    "setConfigOption",
    "authenticate",
    "restartAgent",
    "startDictation",
    "stopDictation",
    "cancelDictation",
    "listMicrophones",
    "status",
    "checkAgent",
    "forkSession",
    "importSessions",
]
DESIGNED_NOTIFICATIONS = [
    "messageQueued",
    "messageReceived",
    "turnStarted",
    "streamingToken",
    "messageUpdated",
    "turnEnded",
    "pendingChanged",
    "permissionRequested",
    "permissionResolved",
    "questionAsked",
    "questionResolved",
    "sessionDeleted",
    "sessionChanged",
    "connectionChanged",
    "notice",
    "dictationState",
    "dictationPartial",
    "dictationFinal",
    "dictationLevel",
]
SEND = {"sessionId": "s", "messageId": "m", "text": "hello"}


def params_of(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return validated(REQUESTS[f"agentik/{method}"].params_model, params)


def problem_of(method: str, params: dict[str, Any]) -> InvalidParams:
    with pytest.raises(InvalidParams) as caught:
        params_of(method, params)
    return caught.value


def test_every_designed_method_is_in_the_tables() -> None:
    """Names of the design are fixed."""
    assert {f"agentik/{name}" for name in DESIGNED_REQUESTS} == set(REQUESTS)
    assert {f"agentik/{name}" for name in DESIGNED_NOTIFICATIONS} <= set(NOTIFICATIONS)
    assert set(CLIENT_REQUESTS) == {"agentik/readBuffer", "agentik/writeBuffer"}


def test_every_refusal_is_documented() -> None:
    """A reason that a request names is explained in the table of reasons."""
    for method, request in REQUESTS.items():
        assert set(request.refusals) <= set(REASONS), method


def test_the_application_gets_camel_case_keys_and_defaults() -> None:
    """Defaults are filled in, unknown fields dropped, optional ones stay absent."""
    assert params_of("sendMessage", {**SEND, "other": 1}) == {**SEND, "kind": "text", "now": False}
    assert params_of("openSession", {"sessionId": "s"}) == {"sessionId": "s", "limit": 200}
    assert params_of("answerPermission", {"sessionId": "s", "permissionId": "p", "optionId": None})["optionId"] is None


def test_nested_json_is_data() -> None:
    """A value that holds odd keys passes through unchanged."""
    content = {"jsonrpc": "2.0", "type_name": "x", "camel_case": [{"id": 1, "method": "exit"}], "": None}
    params = {"sessionId": "s", "questionId": "q", "action": "accept", "content": content}
    assert params_of("answerQuestion", params)["content"] == content


def test_attachments_keep_their_range() -> None:
    """A selection reaches the application with lines and characters."""
    selection = {
        "path": "/tmp/a b.py",
        "range": {"start": {"line": 1, "character": 0}, "end": {"line": 3, "character": 4}},
        "text": "x\r\n",
        "languageId": "python",
    }
    assert params_of("sendMessage", {**SEND, "attachments": [selection]})["attachments"] == [selection]


@pytest.mark.parametrize("size", [1, 128])
def test_message_ids_of_1_to_128_characters_are_accepted(size: int) -> None:
    """The client makes the id; characters count, not bytes."""
    assert params_of("sendMessage", {**SEND, "messageId": "é" * size})["messageId"] == "é" * size


@pytest.mark.parametrize(
    ("method", "params", "field"),
    [
        ("sendMessage", {**SEND, "messageId": ""}, "messageId"),
        ("sendMessage", {**SEND, "messageId": "x" * 129}, "messageId"),
        ("sendMessage", {**SEND, "messageId": 7}, "messageId"),
        ("sendMessage", {"sessionId": "s", "messageId": "m"}, "text"),
        ("sendMessage", {**SEND, "now": 1}, "now"),
        ("sendMessage", {**SEND, "kind": "shout"}, "kind"),
        ("sendMessage", {**SEND, "attachments": [{"path": "/a"}, {"name": "x"}]}, "attachments[1].path"),
        ("movePending", {"sessionId": "s", "messageId": "m", "position": True}, "position"),
        ("movePending", {"sessionId": "s", "messageId": "m", "position": 1.0}, "position"),
        ("movePending", {"sessionId": "s", "messageId": "m", "position": 2**70}, "position"),
        ("openSession", {"sessionId": "s", "after": -1}, "after"),
        ("openSession", {"sessionId": "s", "limit": 0}, "limit"),
        ("newSession", {"cwd": "relative"}, "cwd"),
        ("newSession", {"cwd": "/a\0b"}, "cwd"),
        ("applyPendingEdits", {"sessionId": "s", "edits": [{"op": "edit", "messageId": "m"}]}, "edits[0]"),
        ("answerPermission", {"sessionId": "s", "permissionId": "p"}, "optionId"),
    ],
)
def test_what_does_not_validate_names_the_field(method: str, params: dict[str, Any], field: str) -> None:
    """The first bad field and the reason are told, never the value."""
    problem = problem_of(method, params)
    assert problem.field == field
    assert problem.reason
    assert problem.problems[0] == {"field": field, "reason": problem.reason}


def test_all_problems_are_listed() -> None:
    """A caller sees everything that is wrong at once."""
    assert [each["field"] for each in problem_of("sendMessage", {}).problems] == ["sessionId", "messageId", "text"]


def test_the_document_has_every_method_field_and_reason() -> None:
    """doc/protocol.md is made from the models and leaves nothing out."""
    document = render_markdown()
    for method in (*REQUESTS, *NOTIFICATIONS, *CLIENT_REQUESTS):
        assert f"### `{method}`\n" in document
    models: list[type[Wire]] = [each.params_model for each in NOTIFICATIONS.values()]
    for request in (*REQUESTS.values(), *CLIENT_REQUESTS.values()):
        models += [request.params_model, request.result_model]
    for model in models:
        for info in model.model_fields.values():
            assert f"| `{info.alias}`" in document, (model, info.alias)
    for reason in REASONS:
        assert f"| `{reason}` |" in document
    assert "| `limit`? | integer (1 to 10000) | `200` |" in document
