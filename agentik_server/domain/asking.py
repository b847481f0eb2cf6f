"""Open permission requests and questions of one session (B7, B48), and the policy that answers some by itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from agentik_server.domain.message import Permission, PermissionOption, Question
from agentik_server.domain.refusal import Refused

_ONCE = {"allow": "allow_once", "deny": "reject_once"}


class Asks:
    """What the agent asked and nobody answered yet, in the order of asking."""

    def __init__(self, policy: Mapping[str, str]) -> None:
        self._policy = policy
        self._open: dict[str, Permission | Question] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, ask_id: str) -> bool:
        return ask_id in self._open

    @property
    def open(self) -> tuple[Permission | Question, ...]:
        return tuple(self._open.values())

    def add(self, ask: Permission | Question) -> None:
        self._open[ask.permission_id if isinstance(ask, Permission) else ask.question_id] = ask

    def decided(self, permission: Permission) -> str | None:
        """The option, of those offered, that `permissions.tools.KIND` chooses; None: a person is asked."""
        wanted = _ONCE.get(self._policy.get(permission.tool_call.tool_kind, "ask"))
        for option in permission.options:
            if option.kind == wanted:
                return option.option_id
        return None

    def permission(self, permission_id: str) -> Permission:
        """Raises Refused when it is not open (any more): the first answer wins."""
        ask = self._open.get(permission_id)
        if not isinstance(ask, Permission):
            raise Refused("unknownPermission", "this request is not open any more")
        return ask

    def question(self, question_id: str) -> Question:
        ask = self._open.get(question_id)
        if not isinstance(ask, Question):
            raise Refused("unknownPermission", "this question is not open any more")
        return ask

    def option(self, permission_id: str, option_id: str) -> PermissionOption:
        """Raises Refused for an option that was not offered."""
        for option in self.permission(permission_id).options:
            if option.option_id == option_id:
                return option
        raise Refused("unknownOption", "the agent did not offer this option")

    def close(self, ask_id: str) -> Permission | Question | None:
        return self._open.pop(ask_id, None)

    def close_all(self) -> tuple[Permission | Question, ...]:
        asks = self.open
        self._open.clear()
        return asks
