"""Errors of agents as one line for a person, and what can be told from them (AGENTS.md section 5.16).

Pure. Agents put JSON into messages, HTTP codes into codes, and the truth into `data`.
"""

from __future__ import annotations

import json
import re

from agentik_server.agents.clean import as_dict, as_text, one_line
from agentik_server.agents.peer import AUTH_REQUIRED, METHOD_NOT_FOUND, NOT_FOUND, RpcError

_AUTH = re.compile(
    r"authenticat|unauthor|not logged in|log ?in required|please (run )?.*log ?in|api key", re.IGNORECASE
)
_LOST = re.compile(
    r"(session|conversation|thread|rollout|resource)\b.{0,80}(not[ _]found|unknown|no longer|does not exist|not exist|"
    r"missing|invalid|expired|could not be (found|loaded))"
    r"|(no|unknown|invalid|missing|not found:?) ((such|previous|saved|active|stored|matching) )*"
    r"(session|conversation|thread|rollout)"
    r"|not[ _]found|no such file|enoent",
    re.IGNORECASE | re.DOTALL,
)
_UNSUPPORTED = re.compile(r"not (supported|implemented)|unsupported|method not found", re.IGNORECASE)


def describe(error: RpcError) -> str:
    """Its message, the message inside it, and what `data` adds."""
    parts = [_inner(error.message)]
    for text in _details(error.data):
        if text and text not in parts[0]:
            parts.append(text)
    line = one_line(": ".join(part for part in parts if part))
    if not line:
        line = "an error without a message"
    return line if error.code is None or str(error.code) in line else f"{line} ({error.code})"


def is_auth(error: RpcError) -> bool:
    """Whether the agent wants a login."""
    if error.code in (AUTH_REQUIRED, 401):
        return True
    return "authMethods" in as_dict(error.data) or bool(_AUTH.search(describe(error)))


def is_lost_session(error: RpcError) -> bool:
    """Whether load or resume failed because the agent does not know the session, or cannot continue any (B40)."""
    if error.code in (NOT_FOUND, METHOD_NOT_FOUND):
        return True
    text = describe(error)
    return bool(_LOST.search(text) or _UNSUPPORTED.search(text))


def _inner(message: str) -> str:
    """gemini and codex send a message that is JSON in itself."""
    text = message.strip()
    if not text.startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    while isinstance(value, list) and value:
        value = value[0]
    fields = as_dict(value)
    inner = fields.get("error") if isinstance(fields.get("error"), dict) else fields
    return as_text(as_dict(inner).get("message")) or text


def _details(data: object) -> list[str]:
    if isinstance(data, str):
        return [_inner(data)]
    fields = as_dict(data)
    texts = [as_text(fields.get(name)) for name in ("message", "details", "detail", "error", "reason")]
    return [_inner(text) for text in texts if text]
