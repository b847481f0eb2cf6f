"""The demo agent's ACP methods: initialize, sessions, prompts, cancel, modes and options. What it says: `scenes.py`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from agentik_server.agents.demo import scenes
from agentik_server.agents.demo.memory import Memory
from agentik_server.agents.demo.stage import Cancelled, Stage
from agentik_server.agents.demo.wire import Json, Wire

MODES: list[Json] = [
    {"id": "ask", "name": "Ask first", "description": "Asks before it writes its scratch file"},
    {"id": "look", "name": "Look only", "description": "Writes nothing at all"},
]
RATES = {"slow": 12.0, "normal": 25.0, "fast": 200.0}
CONTEXT_SIZE = 32_000


class Session:
    def __init__(self, session_id: str, cwd: str) -> None:
        self.session_id = session_id
        self.cwd = cwd
        self.mode = "ask"
        self.speed = "normal"
        self.thinks = True
        self.used = 0
        self.turns = 0
        self.stage: Stage | None = None


class DemoAgent:
    """Reads in the main thread; each prompt is played in a thread of its own, so that cancel is always heard."""

    def __init__(self) -> None:
        self._wire = Wire()
        self._memory = Memory()
        self._client: Json = {}
        self._sessions: dict[str, Session] = {}
        self._methods: dict[str, Callable[[object, Json], None]] = {
            "initialize": self._initialize,
            "authenticate": lambda request_id, _params: self._wire.answer(request_id, {}),
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
            "session/close": self._close,
            "session/delete": self._delete,
        }

    def serve(self) -> None:
        """Until stdin ends."""
        for message in self._wire.messages():
            self._hear(message)
        os._exit(0)  # a scene may still be played in a thread

    def _hear(self, message: Json) -> None:
        method, request_id = message.get("method"), message.get("id")
        raw = message.get("params")
        params: Json = raw if isinstance(raw, dict) else {}
        if method is None:
            self._wire.hear_answer(message)
        elif method == "session/cancel":
            session = self._sessions.get(str(params.get("sessionId")))
            if session is not None and session.stage is not None:
                session.stage.cancel()
        elif isinstance(method, str) and method in self._methods:
            self._methods[method](request_id, params)
        elif request_id is not None:
            self._wire.refuse(request_id, -32601, f"Method not found: {method}")

    def _initialize(self, request_id: object, params: Json) -> None:
        able = params.get("clientCapabilities")
        self._client = able if isinstance(able, dict) else {}
        self._wire.answer(
            request_id,
            {
                "protocolVersion": 1,
                "agentInfo": {"name": "agentik-demo", "title": "Demo agent", "version": "1"},
                "agentCapabilities": {
                    "loadSession": True,
                    "promptCapabilities": {"embeddedContext": True, "image": True},
                    "sessionCapabilities": {"resume": {}, "close": {}, "delete": {}},
                },
                "authMethods": [],
            },
        )

    def _new(self, request_id: object, params: Json) -> None:
        session = self._open(self._memory.create(), params)
        self._wire.answer(request_id, {"sessionId": session.session_id, **self._offers(session)})
        self._announce(session)

    def _load(self, request_id: object, params: Json) -> None:
        session = self._continue(request_id, params)
        if session is None:
            return
        for item in self._memory.recall(session.session_id) or []:
            kind = "user_message_chunk" if item.get("role") == "user" else "agent_message_chunk"
            content = {"type": "text", "text": item.get("text", "")}
            self._update(session, {"sessionUpdate": kind, "content": content})
        self._wire.answer(request_id, self._offers(session))
        self._announce(session)

    def _resume(self, request_id: object, params: Json) -> None:
        session = self._continue(request_id, params)
        if session is not None:
            self._wire.answer(request_id, self._offers(session))
            self._announce(session)

    def _continue(self, request_id: object, params: Json) -> Session | None:
        session_id = str(params.get("sessionId"))
        said = self._memory.recall(session_id)
        if said is None:
            self._wire.refuse(request_id, -32002, f"Session not found: {session_id}")
            return None
        session = self._open(session_id, params)
        session.turns = len(said) // 2
        return session

    def _open(self, session_id: str, params: Json) -> Session:
        session = Session(session_id, str(params.get("cwd") or os.getcwd()))
        self._sessions[session_id] = session
        return session

    def _prompt(self, request_id: object, params: Json) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        if session is None:
            self._wire.refuse(request_id, -32002, "Session not found")
        elif session.stage is not None:
            self._wire.refuse(request_id, -32600, "A turn is running already")
        else:
            rate = os.environ.get("AGENTIK_DEMO_RATE")
            speed = float(rate) if rate else RATES[session.speed]
            session.stage = Stage(self._wire, session.session_id, session.cwd, speed, self._client)
            blocks = params.get("prompt")
            arguments = (request_id, session, session.stage, blocks if isinstance(blocks, list) else [])
            threading.Thread(target=self._play, args=arguments, daemon=True).start()

    def _play(self, request_id: object, session: Session, stage: Stage, blocks: list[object]) -> None:
        text, attached = scenes.read_prompt(blocks)
        first = session.turns == 0
        session.turns += 1
        reason = "end_turn"
        try:
            if first:
                stage.update({"sessionUpdate": "session_info_update", "title": scenes.title_of(text)})
            scenes.play(
                stage, text, attached, turn=session.turns, may_write=session.mode == "ask", thinks=session.thinks
            )
        except Cancelled:
            reason = "cancelled"
        session.used = min(CONTEXT_SIZE, session.used + stage.words + len(text.split()))
        self._memory.add(
            session.session_id, [{"role": "user", "text": text}, {"role": "agent", "text": "".join(stage.spoken)}]
        )
        self._update(session, {"sessionUpdate": "usage_update", "used": session.used, "size": CONTEXT_SIZE})
        session.stage = None
        self._wire.answer(request_id, {"stopReason": reason})

    def _set_mode(self, request_id: object, params: Json) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        mode = params.get("modeId")
        if session is None or mode not in [item["id"] for item in MODES]:
            self._wire.refuse(request_id, -32602, f"There is no mode {mode}")
            return
        session.mode = str(mode)
        self._wire.answer(request_id, {})
        self._update(session, {"sessionUpdate": "current_mode_update", "currentModeId": session.mode})

    def _set_option(self, request_id: object, params: Json) -> None:
        session = self._sessions.get(str(params.get("sessionId")))
        option, value = params.get("configId"), params.get("value")
        if session is not None and option == "speed" and value in RATES:
            session.speed = str(value)
        elif session is not None and option == "thoughts" and isinstance(value, bool):
            session.thinks = value
        else:
            self._wire.refuse(request_id, -32602, f"{option} cannot be set to {value}")
            return
        self._wire.answer(request_id, {"configOptions": self._options(session)})

    def _close(self, request_id: object, params: Json) -> None:
        session = self._sessions.pop(str(params.get("sessionId")), None)
        if session is not None and session.stage is not None:
            session.stage.cancel()
        self._wire.answer(request_id, {})

    def _delete(self, request_id: object, params: Json) -> None:
        self._memory.forget(str(params.get("sessionId")))
        self._wire.answer(request_id, {})

    def _offers(self, session: Session) -> Json:
        return {
            "modes": {"currentModeId": session.mode, "availableModes": MODES},
            "configOptions": self._options(session),
        }

    def _options(self, session: Session) -> list[Json]:
        speeds = [{"value": name, "name": name.capitalize()} for name in RATES]
        speed: Json = {"id": "speed", "name": "Speed", "type": "select", "currentValue": session.speed}
        thoughts: Json = {"id": "thoughts", "name": "Show thoughts", "type": "boolean", "currentValue": session.thinks}
        return [{**speed, "description": "How fast it talks", "options": speeds}, thoughts]

    def _announce(self, session: Session) -> None:
        self._update(session, {"sessionUpdate": "available_commands_update", "availableCommands": scenes.COMMANDS})

    def _update(self, session: Session, update: Json) -> None:
        self._wire.notify("session/update", {"sessionId": session.session_id, "update": update})
