"""Domain values as the JSON shapes of PROTOCOL.md ("Values"), and back. Pure; knows neither editors nor stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, assert_never

from agentik_server.domain import news
from agentik_server.domain.message import (
    Attachment,
    Location,
    Message,
    Permission,
    PlanEntry,
    Position,
    Question,
    Range,
    ToolCall,
)
from agentik_server.domain.pending import PendingItem, QueueView
from agentik_server.domain.saves import Match, SessionFacts

Json = dict[str, Any]


def _given(**fields: object) -> Json:
    """Only what is there: absent optional fields are left out, not sent as null."""
    return {key: value for key, value in fields.items() if value is not None}


def attachment(value: Attachment) -> Json:
    span = value.range
    return _given(
        path=value.path,
        name=value.name,
        range=None if span is None else {"start": _position(span.start), "end": _position(span.end)},
        text=value.text,
        languageId=value.language_id,
        mimeType=value.mime_type,
    )


def _position(value: Position) -> Json:
    return {"line": value.line, "character": value.character}


def attachment_from(data: Mapping[str, Any]) -> Attachment:
    """`data` as validated by the editor adapter."""
    span = data.get("range")
    return Attachment(
        path=data["path"],
        name=data.get("name"),
        range=None if span is None else Range(Position(**span["start"]), Position(**span["end"])),
        text=data.get("text"),
        language_id=data.get("languageId"),
        mime_type=data.get("mimeType"),
    )


def location(value: Location) -> Json:
    return _given(path=value.path, line=value.line)


def tool(value: ToolCall) -> Json:
    return _given(
        toolCallId=value.tool_call_id,
        title=value.title,
        toolKind=value.tool_kind,
        status=value.status,
        locations=[location(place) for place in value.locations] or None,
        diffs=[_given(path=d.path, oldText=d.old_text, newText=d.new_text) for d in value.diffs] or None,
        output=value.output or None,
        input=value.input,
    )


def plan_entry(value: PlanEntry) -> Json:
    return {"content": value.content, "status": value.status, "priority": value.priority}


def message(value: Message) -> Json:
    shape = _given(
        messageId=value.message_id,
        sessionId=value.session_id,
        seq=value.seq,
        kind=value.kind,
        text=value.text,
        status=value.status,
        createdAt=value.created_at,
        revision=value.revision,
        attachments=[attachment(item) for item in value.attachments] or None,
        tool=None if value.tool is None else tool(value.tool),
        plan=None if value.plan is None else [plan_entry(entry) for entry in value.plan],
        sendKind=None if value.send_kind == "text" else value.send_kind,
        deleted=True if value.deleted else None,
    )
    shape["turnId"] = value.turn_id
    return shape


def pending_item(value: PendingItem) -> Json:
    return {
        "messageId": value.message_id,
        "sessionId": value.session_id,
        "text": value.text,
        "attachments": [attachment(item) for item in value.attachments],
        "files": [item.stored or item.path for item in value.attachments],
        "createdAt": value.created_at,
        "position": value.position,
        "state": "pending",
    }


def queue(session_id: str, value: QueueView) -> Json:
    """The params of agentik/pendingChanged. `pauseDetail` says more than the reason's word, where there is more."""
    pause = value.pause
    return _given(
        sessionId=session_id,
        pending=[pending_item(item) for item in value.items],
        paused=pause is not None,
        pauseReason=None if pause is None else pause.reason,
        pauseDetail=None if pause is None or not pause.detail else pause.detail,
        heldUntil=value.held_until or None,
        revision=value.revision,
    )


def session(value: SessionFacts, *, owned: bool) -> Json:
    """`controls` (modes, modeId, configOptions, commands, usage, authMethods) are passed on as the agent told them."""
    shape: Json = dict(value.controls)
    shape.update(
        sessionId=value.session_id,
        agentId=value.agent_id,
        agentSessionId=value.agent_session_id,
        title=value.title,
        cwd=value.cwd,
        createdAt=value.created_at,
        updatedAt=value.updated_at,
        state=value.state,
        connection=value.connection,
        owned=owned,
        pendingCount=value.pending_count,
        paused=value.paused,
        revision=value.revision,
        **_given(pauseReason=value.pause_reason, pauseDetail=value.pause_detail),
    )
    return shape


def permission(value: Permission) -> Json:
    return {
        "permissionId": value.permission_id,
        "sessionId": value.session_id,
        "toolCall": tool(value.tool_call),
        "options": [{"optionId": o.option_id, "name": o.name, "kind": o.kind} for o in value.options],
        "createdAt": value.created_at,
    }


def question(value: Question) -> Json:
    return _given(
        questionId=value.question_id,
        sessionId=value.session_id,
        message=value.message,
        schema=value.schema,
        url=value.url,
        createdAt=value.created_at,
    )


def match(value: Match) -> Json:
    return {
        "sessionId": value.session_id,
        "messageId": value.message_id,
        "snippet": value.snippet,
        "createdAt": value.created_at,
    }


def edit_results(results: Iterable[tuple[str, str | None]]) -> list[Json]:
    """The results of agentik/applyPendingEdits."""
    return [
        {"messageId": message_id, "applied": reason is None, **({"reason": reason} if reason else {})}
        for message_id, reason in results
    ]


def notification(item: news.News) -> tuple[str, Json]:  # noqa: PLR0912 -- a table
    """Method and params."""
    match item:
        case news.MessageQueued():
            return "agentik/messageQueued", {
                "sessionId": item.session_id,
                "messageId": item.message_id,
                "display": item.display,
                "position": item.position,
                "revision": item.revision,
            }
        case news.MessageReceived():
            return "agentik/messageReceived", {
                "sessionId": item.session_id,
                "messageId": item.message.message_id,
                "message": message(item.message),
                "revision": item.message.revision,
            }
        case news.TurnStarted():
            return "agentik/turnStarted", {
                "sessionId": item.session_id,
                "turnId": item.turn_id,
                "messageId": item.message_id,
            }
        case news.StreamingToken():
            return "agentik/streamingToken", {
                "sessionId": item.session_id,
                "turnId": item.turn_id,
                "messageId": item.message_id,
                "kind": item.kind,
                "offset": item.offset,
                "text": item.text,
                "seq": item.seq,
            }
        case news.MessageUpdated():
            return "agentik/messageUpdated", {
                "sessionId": item.session_id,
                "message": message(item.message),
                "revision": item.message.revision,
            }
        case news.TurnEnded():
            return "agentik/turnEnded", _given(
                sessionId=item.session_id,
                turnId=item.turn_id,
                stopReason=item.stop_reason,
                error=item.error,
                detail=item.detail,
            )
        case news.PendingChanged():
            return "agentik/pendingChanged", queue(item.session_id, item.queue)
        case news.PermissionRequested():
            return "agentik/permissionRequested", {
                "sessionId": item.session_id,
                "permission": permission(item.permission),
            }
        case news.PermissionResolved():
            return "agentik/permissionResolved", {
                "sessionId": item.session_id,
                "permissionId": item.permission_id,
                "outcome": item.outcome,
            }
        case news.QuestionPosed():
            return "agentik/questionAsked", {"sessionId": item.session_id, "question": question(item.question)}
        case news.QuestionResolved():
            return "agentik/questionResolved", {
                "sessionId": item.session_id,
                "questionId": item.question_id,
                "outcome": item.outcome,
            }
        case news.SessionChanged():
            return "agentik/sessionChanged", {"session": session(item.facts, owned=item.owned)}
        case news.SessionDeleted():
            return "agentik/sessionDeleted", {"sessionId": item.session_id}
        case news.ConnectionStep():
            return "agentik/connectionChanged", _given(
                sessionId=item.session_id, connection=item.connection, detail=item.detail, attempt=item.attempt
            )
        case news.Notice():
            return "agentik/notice", _given(sessionId=item.session_id, level=item.level, text=item.text)
        case _:
            assert_never(item)
