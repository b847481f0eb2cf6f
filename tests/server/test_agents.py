"""agentik/listAgents, checkAgent and status: what health checks and bug reports ask."""

from __future__ import annotations

from pathlib import Path

from tests.server.harness import Talk, server, until


async def test_the_demo_is_the_default_where_nothing_is_installed(home: Path) -> None:
    """The configured agent, else the first installed program, else the demo."""
    async with server(home, {"defaultAgent": "demo"}) as talk:
        agents = (await talk.client.request("agentik/listAgents", {}))["agents"]
        by_id = {agent["agentId"]: agent for agent in agents}
        assert [agent["agentId"] for agent in agents if agent["isDefault"]] == ["demo"]
        assert by_id["demo"]["available"]
        assert by_id["scripted"]["available"]
        for agent in agents:
            assert agent["available"] or (agent["reason"] and agent["installHint"])


async def test_a_check_is_a_real_handshake(home: Path) -> None:
    """agentik/checkAgent: one line, good or bad."""
    async with server(home, {"agents": {"broken": {"command": ["false"]}}}) as talk:
        good = await talk.client.request("agentik/checkAgent", {"agentId": "demo"})
        bad = await talk.client.request("agentik/checkAgent", {"agentId": "broken"})
        missing = await talk.client.request("agentik/checkAgent", {"agentId": "nobody"})
    assert good["ok"]
    assert not bad["ok"]
    assert "false" in bad["detail"]
    assert "\n" not in bad["detail"]
    assert not missing["ok"]


async def test_status_tells_versions_folders_and_processes(talk: Talk) -> None:
    status = await talk.client.request("agentik/status", {})
    assert status["versions"]["agentik"]
    assert status["folders"]["data"] == str(talk.home)
    assert status["queues"] == {talk.session_id: 0}
    assert status["agents"][0]["sessionId"] == talk.session_id


async def test_a_deleted_session_is_deleted_at_the_agent_too(home: Path) -> None:
    """ACP session/delete, where it is advertised; the agent ends in any case (B18)."""
    scenario = {"init": {"agentCapabilities": {"sessionCapabilities": {"delete": {}}}}}
    async with server(home, scenario=scenario) as talk:
        await talk.new_session()
        await talk.send("#say hello")
        await talk.ended()
        await talk.call("deleteSession")
        await until(lambda: len(talk.received_by_agent("session/delete")) == 1)
        assert await talk.refusal("openSession") == "unknownSession"
