"""An agent on the Python SDK: an independent peer that checks every frame of ours against the schema.

The prompt names what it does: "all" uses every client method once and says what came of it; else it echoes the blocks.
"""

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp import schema

OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class SdkAgent:
    def __init__(self) -> None:
        self.client: Any = None
        self.cwd = ""
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, client_capabilities: Any = None, **_: Any) -> Any:
        assert client_capabilities.fs.read_text_file
        assert client_capabilities.terminal
        able = schema.AgentCapabilities(
            load_session=False,
            prompt_capabilities=schema.PromptCapabilities(embedded_context=True, image=True),
            session_capabilities=schema.SessionCapabilities(list=schema.SessionListCapabilities()),
        )
        info = schema.Implementation(name="sdk", version="1")
        return acp.InitializeResponse(protocol_version=protocol_version, agent_capabilities=able, agent_info=info)

    async def new_session(self, cwd: str, mcp_servers: Any = None, **_: Any) -> Any:
        self.cwd = cwd
        mode = schema.SessionMode(id="m", name="M")
        modes = schema.SessionModeState(current_mode_id="m", available_modes=[mode])
        return acp.NewSessionResponse(session_id="sdk-1", modes=modes)

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> Any:
        return schema.ListSessionsResponse(sessions=[schema.SessionInfo(session_id="sdk-1", cwd=self.cwd)])

    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> Any:
        assert mode_id == "m"
        return acp.SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> Any:
        self.cancelled.clear()
        if prompt[0].text == "all":
            await self.use_all(session_id)
        elif prompt[0].text == "wait":
            await self.say(session_id, "waiting")
            await self.cancelled.wait()
            return acp.PromptResponse(stop_reason="cancelled")
        else:
            await self.say(session_id, " ".join(block.type for block in prompt))
        return acp.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.cancelled.set()

    async def use_all(self, session_id: str) -> None:
        ask = self.client
        start = acp.start_tool_call("t", "Edit", kind="edit", status="pending")
        await ask.session_update(session_id, start)
        tool = schema.ToolCallUpdate(tool_call_id="t", title="Edit")
        allowed = await ask.request_permission(session_id=session_id, tool_call=tool, options=OPTIONS)
        await self.say(session_id, f"chosen {allowed.outcome.option_id};")
        path = f"{self.cwd}/sdk.txt"
        await ask.write_text_file(session_id=session_id, path=path, content="one\ntwo\n")
        read = await ask.read_text_file(session_id=session_id, path=path, line=2, limit=1)
        await self.say(session_id, f"read {read.content!r};")
        terminal = await ask.create_terminal(session_id=session_id, command="echo", args=["hi"], output_byte_limit=100)
        ended = await ask.wait_for_terminal_exit(session_id=session_id, terminal_id=terminal.terminal_id)
        output = await ask.terminal_output(session_id=session_id, terminal_id=terminal.terminal_id)
        await ask.kill_terminal(session_id=session_id, terminal_id=terminal.terminal_id)
        await ask.release_terminal(session_id=session_id, terminal_id=terminal.terminal_id)
        await self.say(session_id, f"terminal {ended.exit_code} {output.output!r} {output.truncated};")
        form = schema.ElicitationFormSessionMode(
            session_id=session_id, requested_schema=schema.ElicitationSchema(properties={}), mode="form"
        )
        answer = await ask.create_elicitation(message="Your name?", mode=form)
        await self.say(session_id, f"form {answer.action} {answer.content}")

    async def say(self, session_id: str, text: str) -> None:
        await self.client.session_update(session_id, acp.update_agent_message_text(text))


if __name__ == "__main__":
    asyncio.run(acp.run_agent(SdkAgent(), use_unstable_protocol=True))  # type: ignore[arg-type]  # it has what is used
