"""What an editor that does not own a session wishes of the process that does (B59). Pure.

A letter is JSON in the database: {"kind": "cancel" | "steer" | "restart"}, {"kind": "answerPermission", "permissionId",
"optionId"}, {"kind": "answerQuestion", "questionId", "action", "content"}.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentik_server.domain.effects import Effect
from agentik_server.domain.refusal import Refused
from agentik_server.domain.session import Session


def read_mail(session: Session, mail: Mapping[str, object], now: int) -> list[Effect]:
    """Carry out one wish. Raises Refused for one that came too late, or that a newer version wrote."""
    match mail.get("kind"):
        case "cancel":
            return session.cancel(None, now)
        case "steer":
            return session.cancel(None, now, "steer")
        case "answerPermission":
            option = mail.get("optionId")
            option_id = None if option is None else str(option)
            return session.answer_permission(str(mail["permissionId"]), option_id, None, now)
        case "answerQuestion":
            question_id, action = str(mail["questionId"]), str(mail["action"])
            return session.answer_question(question_id, action, mail.get("content"), None, now)
        case "restart":
            return session.restart_agent(None, now)
        case kind:
            raise Refused("internal", f"a wish of an unknown kind: {kind}")
