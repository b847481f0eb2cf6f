"""Known agents, the user's own over them, and which can start here."""

from __future__ import annotations

import sys

import pytest

from agentik_server.agents.catalogue import DEMO, KNOWN, Catalogue, UserAgent, quirks_of
from agentik_server.agents.handshake import mcp_servers, read_facts
from agentik_server.domain.refusal import Refused
from agentik_server.ports import AgentSpec


def catalogue(*installed: str, mine: dict[str, UserAgent] | None = None, default: str | None = None) -> Catalogue:
    return Catalogue(mine or {}, default, lambda program: f"/bin/{program}" if program in installed else None)


def test_every_known_agent_has_its_own_id_a_command_and_a_way_to_get_it() -> None:
    assert len({known.agent_id for known in KNOWN}) == len(KNOWN) >= 38
    assert all(known.command and known.name and known.install for known in KNOWN)


def test_without_any_agent_the_demo_is_the_default() -> None:
    assert catalogue("npx", "uvx").spec(None).agent_id == DEMO


def test_the_first_installed_program_is_the_default_and_a_runner_never_is() -> None:
    assert catalogue("npx", "gemini", "codex-acp").default_id() == "codex"


def test_the_configured_default_wins_even_when_it_is_not_there() -> None:
    assert catalogue("gemini", default="claude").default_id() == "claude"


def test_an_agent_of_the_user_is_a_default_before_the_known_ones() -> None:
    mine = {"own": UserAgent(command=("my-agent", "--acp"))}
    assert catalogue("my-agent", "gemini", mine=mine).default_id() == "own"
    assert catalogue("gemini", mine=mine).default_id() == "gemini"


def test_the_installed_program_is_preferred_to_the_runner() -> None:
    assert catalogue("gemini", "npx").spec("gemini").command == ("gemini", "--acp")
    fetched = catalogue("npx").spec("gemini")
    assert fetched.command == ("npx", "-y", "@google/gemini-cli", "--acp")
    assert "fetched" in fetched.quirks
    assert "fetched" not in catalogue("gemini", "npx").spec("gemini").quirks
    assert catalogue().spec("gemini").command == ("gemini", "--acp")


def test_the_users_words_go_over_the_catalogues() -> None:
    mine = {"gemini": UserAgent(name="G", env={"GEMINI_API_KEY": "k"}), "auggie": UserAgent(env={"X": "1"})}
    spec = catalogue("gemini", mine=mine).spec("gemini")
    assert (spec.name, spec.command, spec.env) == ("G", ("gemini", "--acp"), {"GEMINI_API_KEY": "k"})
    assert catalogue(mine=mine).spec("auggie").env == {"AUGMENT_DISABLE_AUTO_UPDATE": "1", "X": "1"}


@pytest.mark.parametrize("agent_id", ["nonsense", "only-env"])
def test_an_agent_that_is_not_known_and_has_no_command_is_refused(agent_id: str) -> None:
    with pytest.raises(Refused) as refused:
        catalogue(mine={"only-env": UserAgent(env={"A": "1"})}).spec(agent_id)
    assert refused.value.reason == "unknownAgent"


def test_the_list_says_which_can_start_and_how_to_get_the_others() -> None:
    rows = {row.agent_id: row for row in catalogue("codex-acp", sys.executable).listed()}
    assert rows["codex"].available
    assert rows["codex"].is_default
    assert rows["gemini"].reason == "gemini is not installed"
    assert rows["gemini"].install_hint == "npm i -g @google/gemini-cli"
    assert rows[DEMO].available
    assert len(rows) == len(KNOWN) + 1


def test_those_that_can_start_come_first() -> None:
    rows = catalogue("gemini", sys.executable).listed()
    assert {row.agent_id for row in rows[:2]} == {"gemini", DEMO}


def test_quirks_go_by_the_name_that_an_agent_gives_itself() -> None:
    assert "missing_reads_empty" in quirks_of("gemini-cli")
    assert quirks_of("something else") == frozenset()


SPEC = AgentSpec("a", "A", ("a",))


def test_mcp_servers_get_the_shape_of_the_schema() -> None:
    facts = read_facts({"agentCapabilities": {"mcpCapabilities": {"http": True}}}, SPEC)
    servers = (
        {"command": "/bin/mcp", "env": {"K": "v"}},
        {"type": "stdio", "name": "n", "command": "m", "args": ["x"]},
        {"url": "http://x", "headers": {"H": "1"}},
        {"type": "sse", "url": "http://y", "name": "not taken by this agent"},
    )
    assert mcp_servers(servers, facts) == [
        {"name": "mcp", "args": [], "env": [{"name": "K", "value": "v"}], "command": "/bin/mcp"},
        {"name": "n", "args": ["x"], "env": [], "command": "m"},
        {"name": "http://x", "headers": [{"name": "H", "value": "1"}], "url": "http://x", "type": "http"},
    ]


def test_what_an_agent_says_of_itself_may_be_anything() -> None:
    for odd in ({}, {"agentCapabilities": 7, "agentInfo": [], "authMethods": {}}, {"authMethods": [7, {"name": "x"}]}):
        facts = read_facts(odd, SPEC)
        assert (facts.name, facts.load, facts.auth_methods) == ("A", False, ())


def test_a_login_in_a_terminal_is_given_as_the_command_to_run() -> None:
    methods = [
        {"id": "t", "name": "T", "type": "terminal", "args": ["login"]},
        {"id": "o", "name": "O", "_meta": {"terminal-auth": {"command": "/x/claude", "args": ["/login"]}}},
        {"id": "k", "name": "K", "type": "env_var", "vars": [{"name": "KEY"}]},
    ]
    facts = read_facts({"authMethods": methods}, SPEC)
    assert [method.get("command") for method in facts.auth_methods] == [["a", "login"], ["/x/claude", "/login"], None]
    assert facts.auth_methods[2]["vars"] == [{"name": "KEY"}]
