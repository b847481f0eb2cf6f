"""What the agent asks a person: permission requests, elicitations, and agents' own ask_user (B48, ACP "Elicitation").

Each ask is open until somebody answers it, the agent takes it back, the turn ends or the agent dies; then the agent has
got exactly one answer. Must not decide anything, and must not time out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentik_server.agents.clean import as_dict, as_list, as_text, clean_json, one_line
from agentik_server.agents.peer import INVALID_PARAMS, Call
from agentik_server.domain.happenings import AskWithdrawn, Happening, PermissionAsked, QuestionAsked
from agentik_server.domain.message import PermissionOption, ToolChange


@dataclass(slots=True)
class _Ask:
    cancel: Callable[[], None]
    choose: Callable[[str], None] | None = None  # of a permission: an option id
    reply: Callable[[str, object], None] | None = None  # of a question: action and content
    taken_back: Callable[[], None] | None = None  # the agent does not want the answer any more
    url_id: str | None = None


class OpenAsks:
    """The open asks of one connection. `name` makes their ids unique over all connections."""

    def __init__(self, tell: Callable[[Happening], None], name: str) -> None:
        self._tell = tell
        self._name = name
        self._numbers = itertools.count(1)
        self._open: dict[str, _Ask] = {}

    def __len__(self) -> int:
        return len(self._open)

    def permission(
        self, tool: ToolChange, offered: object, call: Call, allowed: Callable[[str], None] | None = None
    ) -> None:
        """session/request_permission. `allowed` hears the kind of the option when one is chosen."""
        options, given = read_options(offered)
        if not options:
            call.result({"outcome": {"outcome": "cancelled"}})
            return

        def choose(option_id: str) -> None:
            if option_id not in given:
                raise ValueError(option_id)  # a caller's bug: only offered options are sent (B48)
            call.result({"outcome": {"outcome": "selected", "optionId": given[option_id]}})
            if allowed is not None:
                allowed(next(option.kind for option in options if option.option_id == option_id))

        ask_id = self._add(_Ask(lambda: call.result({"outcome": {"outcome": "cancelled"}}), choose=choose), call)
        self._tell(PermissionAsked(ask_id, tool, options))

    def own_permission(
        self, tool: ToolChange, options: tuple[PermissionOption, ...], call: Call, then: Callable[[str | None], None]
    ) -> None:
        """A permission that our own settings want for `call`; `then` hears the option id, None = cancelled."""
        ask_id = self._add(_Ask(lambda: then(None), choose=then, taken_back=lambda: then(None)), call)
        self._tell(PermissionAsked(ask_id, tool, options, ours=True))

    def elicitation(self, params: Mapping[str, object], call: Call) -> None:
        """elicitation/create in form or url mode."""
        message = as_text(params.get("message")) or "The agent asks for input."
        url = as_text(params.get("url"))
        schema = params.get("requestedSchema")
        if url is None and not isinstance(schema, dict):
            call.error(INVALID_PARAMS, "elicitation/create needs requestedSchema or url")
            return

        def reply(action: str, content: object) -> None:
            accepted = {"content": content} if action == "accept" and isinstance(content, dict) else {}
            call.result({"action": action, **accepted})

        ask = _Ask(lambda: call.result({"action": "cancel"}), reply=reply, url_id=as_text(params.get("elicitationId")))
        ask_id = self._add(ask, call)
        self._tell(QuestionAsked(ask_id, message, clean_json(schema), url))

    def elicitation_done(self, params: object) -> None:
        """elicitation/complete: what was to be done at the url is done."""
        url_id = as_dict(params).get("elicitationId")
        for ask_id, ask in list(self._open.items()):
            if ask.url_id is not None and ask.url_id == url_id and ask.reply is not None:
                del self._open[ask_id]
                ask.reply("accept", None)
                self._tell(AskWithdrawn(ask_id))

    def ask_user(self, params: Mapping[str, object], call: Call) -> None:
        """A question by an agent's own method: one text, perhaps with a choice (AGENTS.md section 5.13)."""
        names = ("question", "prompt", "message", "text", "title")
        message = next((text for name in names if (text := as_text(params.get(name)))), "The agent asks for input.")

        def reply(action: str, content: object) -> None:
            if action == "accept":
                answer = as_text(as_dict(content).get("answer")) or ""
                call.result({"outcome": "answered", "text": answer, "answer": answer, "response": answer})
            else:
                call.result({"outcome": "cancelled"})

        ask_id = self._add(_Ask(lambda: call.result({"outcome": "cancelled"}), reply=reply), call)
        self._tell(QuestionAsked(ask_id, message, answer_schema(params.get("options") or params.get("choices"))))

    def choose(self, ask_id: str, option_id: str | None) -> None:
        """Answer a permission. An ask that is not open (any more) is nothing: somebody was faster."""
        ask = self._open.get(ask_id)
        if ask is None or (option_id is not None and ask.choose is None):
            return
        del self._open[ask_id]
        if option_id is None or ask.choose is None:
            ask.cancel()
        else:
            ask.choose(option_id)

    def reply(self, ask_id: str, action: str, content: object) -> None:
        """Answer a question: accept (with content), decline or cancel."""
        ask = self._open.get(ask_id)
        if ask is not None and ask.reply is not None:
            del self._open[ask_id]
            ask.reply(action, content)

    def cancel_all(self) -> None:
        """Every open ask is answered as cancelled and withdrawn from the person."""
        asks, self._open = self._open, {}
        for ask_id, ask in asks.items():
            ask.cancel()
            self._tell(AskWithdrawn(ask_id))

    def _add(self, ask: _Ask, call: Call) -> str:
        ask_id = f"{self._name}.{next(self._numbers)}"
        self._open[ask_id] = ask

        def taken_back() -> None:
            if self._open.pop(ask_id, None) is not None:
                self._tell(AskWithdrawn(ask_id))
                if ask.taken_back is not None:
                    ask.taken_back()

        call.on_cancel = taken_back
        return ask_id


def read_options(offered: object) -> tuple[tuple[PermissionOption, ...], dict[str, object]]:
    """The options of a permission request, and what to answer for each: the agent's id as it gave it."""
    options: list[PermissionOption] = []
    given: dict[str, object] = {}
    for item in as_list(offered):
        fields = as_dict(item)
        raw = fields.get("optionId")
        if raw is None or isinstance(raw, dict | list | bool):
            continue
        option_id = one_line(str(raw), 300)
        if option_id in given:
            continue
        given[option_id] = raw
        name = as_text(fields.get("name")) or option_id
        options.append(PermissionOption(option_id, name, as_text(fields.get("kind")) or "other"))
    return tuple(options), given


def answer_schema(choices: object) -> dict[str, object]:
    """The form of one text, or of one choice."""
    answer: dict[str, object] = {"type": "string", "title": "Answer"}
    labels = [
        label
        for choice in as_list(choices)
        if (label := as_text(choice) or as_text(as_dict(choice).get("label")) or as_text(as_dict(choice).get("name")))
    ]
    if labels:
        answer["enum"] = labels
    return {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
