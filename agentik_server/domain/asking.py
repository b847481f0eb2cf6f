"""Open permission requests and questions of one session (B7, B48), and the policy that answers some by itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agentik_server.domain import news, saves
from agentik_server.domain.effects import AnswerPermission, AnswerQuestion, Effect, Save, Show
from agentik_server.domain.message import Permission, Question
from agentik_server.domain.refusal import Refused

_ONCE = {"allow": "allow_once", "deny": "reject_once"}


class Asks:
    """What the agent asked and nobody answered yet, in the order of asking. `out`: the session's list of effects."""

    def __init__(self, session_id: str, owner: saves.Owner, policy: Mapping[str, str], out: list[Effect]) -> None:
        self._session_id = session_id
        self._owner = owner
        self._policy = policy
        self._out = out
        self._open: dict[str, Permission | Question] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def open(self) -> tuple[Permission | Question, ...]:
        return tuple(self._open.values())

    def ask_permission(self, permission: Permission, *, by_policy: bool = True) -> None:
        """Shown to the user, unless `permissions.tools.KIND` decides (`by_policy`)."""
        decided = self._decided(permission) if by_policy else None
        if decided is not None:
            self._out.append(AnswerPermission(permission.permission_id, decided))
            return
        self._open[permission.permission_id] = permission
        self._out.append(Save(saves.SaveAsk(self._session_id, self._owner, permission)))
        self._out.append(Show(news.PermissionRequested(self._session_id, permission)))

    def ask_question(self, question: Question) -> None:
        self._open[question.question_id] = question
        self._out.append(Save(saves.SaveAsk(self._session_id, self._owner, question)))
        self._out.append(Show(news.QuestionPosed(self._session_id, question)))

    def answer_permission(self, permission_id: str, option_id: str | None) -> None:
        """None = cancelled. Raises Refused: only what was offered is sent, and only once."""
        ask = self._open.get(permission_id)
        if not isinstance(ask, Permission):
            raise Refused("unknownPermission", "this request is not open any more")
        if option_id is not None and option_id not in {option.option_id for option in ask.options}:
            raise Refused("unknownOption", "the agent did not offer this option")
        self._out.append(AnswerPermission(permission_id, option_id))
        self.close(permission_id, option_id or "cancelled")

    def answer_question(self, question_id: str, action: str, content: object) -> None:
        """Raises Refused when it is not open any more."""
        if not isinstance(self._open.get(question_id), Question):
            raise Refused("unknownPermission", "this question is not open any more")
        self._out.append(AnswerQuestion(question_id, action, content))
        self.close(question_id, action)

    def close(self, ask_id: str, outcome: str) -> None:
        """It needs no answer any more."""
        ask = self._open.pop(ask_id, None)
        if ask is None:
            return
        if isinstance(ask, Permission):
            self._out.append(Show(news.PermissionResolved(self._session_id, ask_id, outcome)))
        else:
            self._out.append(Show(news.QuestionResolved(self._session_id, ask_id, outcome)))
        self._out.append(Save(saves.CloseAsk(self._session_id, self._owner, ask_id, outcome)))

    def cancel_all(self) -> None:
        """Answered `cancelled` (B32); where the agent is gone, its link drops the answers."""
        for ask_id, ask in list(self._open.items()):
            if isinstance(ask, Permission):
                self._out.append(AnswerPermission(ask_id, None))
            else:
                self._out.append(AnswerQuestion(ask_id, "cancel", None))
            self.close(ask_id, "cancelled")

    def _decided(self, permission: Permission) -> str | None:
        """The option, of those offered, that the settings choose; None: a person is asked."""
        wanted = _ONCE.get(self._policy.get(permission.tool_call.tool_kind, "ask"))
        for option in permission.options:
            if option.kind == wanted:
                return option.option_id
        return None
