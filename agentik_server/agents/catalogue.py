"""The agents that are known by name, how each is run, and which can start here; the user's own agents over them.

Sources: AGENTS.md section 7 (the ACP registry, and what was run). Starts nothing; must be the only place that knows
agents by name: whatever is odd about one of them is a quirk here and a rule elsewhere.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentik_server.domain.refusal import Refused
from agentik_server.ports import AgentListing, AgentSpec

DEMO = "demo"


@dataclass(frozen=True, slots=True)
class UserAgent:
    """`agents.ID` of the settings; empty = as in the catalogue."""

    name: str = ""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    mcp_servers: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class Known:
    """A row of the catalogue. `command`: the installed program; `fallback`: a runner that fetches it."""

    agent_id: str
    name: str
    command: tuple[str, ...]
    install: str
    login: str = ""
    fallback: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    quirks: frozenset[str] = frozenset()


def _npx(package: str, *args: str) -> tuple[str, ...]:
    return ("npx", "-y", package, *args)


KNOWN: tuple[Known, ...] = (
    Known(
        "claude",
        "Claude Code",
        ("claude-agent-acp",),
        "npm i -g @agentclientprotocol/claude-agent-acp (Node 22 or newer)",
        "log in with `claude`, or set ANTHROPIC_API_KEY",
        _npx("@agentclientprotocol/claude-agent-acp"),
    ),
    Known(
        "codex",
        "Codex",
        ("codex-acp",),
        "npm i -g @agentclientprotocol/codex-acp",
        "log in with `codex login`, or set OPENAI_API_KEY",
        _npx("@agentclientprotocol/codex-acp"),
    ),
    Known(
        "gemini",
        "Gemini CLI",
        ("gemini", "--acp"),
        "npm i -g @google/gemini-cli",
        "run `gemini` once to log in, or set GEMINI_API_KEY",
        _npx("@google/gemini-cli", "--acp"),
    ),
    Known(
        "opencode",
        "OpenCode",
        ("opencode", "acp"),
        "npm i -g opencode-ai",
        "run `opencode auth login`",
        _npx("opencode-ai", "acp"),
    ),
    Known(
        "qwen",
        "Qwen Code",
        ("qwen", "--acp"),
        "npm i -g @qwen-code/qwen-code",
        "set OPENAI_API_KEY and OPENAI_BASE_URL, or run `qwen` once",
        _npx("@qwen-code/qwen-code", "--acp"),
    ),
    Known(
        "kimi",
        "Kimi Code",
        ("kimi", "acp"),
        "npm i -g @moonshot-ai/kimi-code (Node 22.19 or newer)",
        "run `kimi login`",
        _npx("@moonshot-ai/kimi-code", "acp"),
    ),
    Known(
        "copilot",
        "GitHub Copilot",
        ("copilot", "--acp", "--stdio"),
        "npm i -g @github/copilot",
        "run `copilot login`",
        _npx("@github/copilot", "--acp", "--stdio"),
    ),
    Known("cline", "Cline", ("cline", "--acp"), "npm i -g cline", "run `cline auth`", _npx("cline", "--acp")),
    Known(
        "vibe",
        "Mistral Vibe",
        ("vibe-acp",),
        "uv tool install mistral-vibe",
        "set MISTRAL_API_KEY",
        ("uvx", "--from", "mistral-vibe", "vibe-acp"),
    ),
    Known("pi", "Pi", ("pi-acp",), "npm i -g pi-acp @earendil-works/pi-coding-agent", "run `pi` once to log in"),
    Known(
        "fast-agent",
        "fast-agent",
        ("fast-agent-acp", "-x"),
        "uv tool install fast-agent-mcp (Python 3.13 or newer)",
        "set the key of your model provider",
        ("uvx", "--python", ">=3.13", "--from", "fast-agent-mcp", "fast-agent-acp", "-x"),
    ),
    Known(
        "hermes",
        "Hermes Agent",
        ("hermes", "acp"),
        "uv tool install 'hermes-agent[acp]'",
        "run `hermes acp --setup`",
    ),
    Known(
        "openhands",
        "OpenHands",
        ("openhands", "acp"),
        "uv tool install openhands --python 3.12",
        "run `openhands` once",
        quirks=frozenset({"ignores_eof"}),
    ),
    Known(
        "agentao",
        "Agentao",
        ("agentao", "--acp", "--stdio"),
        "pip install 'agentao[full]'",
        "set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL",
    ),
    Known(
        "auggie",
        "Auggie CLI",
        ("auggie", "--acp"),
        "npm i -g @augmentcode/auggie",
        "run `auggie login`",
        env={"AUGMENT_DISABLE_AUTO_UPDATE": "1"},
    ),
    Known("qoder", "Qoder CLI", ("qodercli", "--acp"), "npm i -g @qoder-ai/qodercli", "run `qodercli` once"),
    Known("goose", "Goose", ("goose", "acp"), "see the Goose documentation", "run `goose configure`"),
    Known(
        "cursor",
        "Cursor",
        ("cursor-agent", "acp"),
        "see the Cursor CLI documentation",
        "run `agent login`",
        quirks=frozenset({"ignores_eof"}),
    ),
    Known(
        "droid",
        "Factory Droid",
        ("droid", "exec", "--output-format", "acp"),
        "npm i -g droid",
        "run `droid` once",
        env={"DROID_DISABLE_AUTO_UPDATE": "true"},
    ),
    Known("junie", "Junie", ("junie", "--acp=true"), "see the Junie documentation"),
    Known("amp", "Amp", ("amp-acp",), "npm i -g amp-acp", "run `amp login`"),
    Known("kilo", "Kilo", ("kilo", "acp"), "npm i -g @kilocode/cli", "run `kilo auth`"),
    Known("kiro", "Kiro CLI", ("kiro-cli", "acp"), "see the Kiro documentation"),
    Known("stakpak", "Stakpak", ("stakpak", "acp"), "cargo install stakpak"),
    Known("vtcode", "VT Code", ("vtcode", "acp"), "cargo install vtcode"),
    Known("cagent", "Docker cagent", ("cagent", "acp"), "comes with Docker Desktop 4.49 or newer"),
    Known("code-assistant", "Code Assistant", ("code-assistant", "acp"), "see the project's releases"),
    Known("crow", "crow-cli", ("crow-cli", "acp"), "uv tool install crow-cli"),
    Known("minion", "Minion Code", ("mcode", "acp"), "pip install minion-code"),
    Known("openclaw", "OpenClaw", ("openclaw", "acp"), "npm i -g openclaw"),
    Known("hf", "Hugging Face", ("hf-inference-acp", "-x"), "uv tool install hf-inference-acp", "set HF_TOKEN"),
    Known("deepagents", "DeepAgents", ("deepagents-acp",), "npm i -g deepagents-acp", "", _npx("deepagents-acp")),
    Known("devin", "Devin", ("devin", "acp"), "see the Devin CLI documentation"),
    Known("grok", "Grok Build", ("grok", "agent", "stdio"), "see the Grok CLI documentation"),
    Known("poolside", "Poolside", ("pool", "acp"), "see the Poolside documentation"),
    Known("iflow", "iFlow", ("iflow", "--experimental-acp"), "npm i -g @iflow-ai/iflow-cli"),
    Known("mux", "Mux", ("mux", "acp"), "npm i -g mux", "", _npx("mux", "acp")),
    Known("trae", "Trae", ("traecli", "acp", "serve"), "see the Trae documentation"),
    Known("glm", "GLM Agent", ("glm-acp-agent",), "npm i -g glm-acp-agent", "set Z_AI_API_KEY", _npx("glm-acp-agent")),
    Known("claude-zed", "Claude Code (Zed, legacy)", ("claude-code-acp",), "npm i -g @zed-industries/claude-code-acp"),
)

_DEMO = Known(
    DEMO,
    "Demo agent (no model)",
    # -P: the folder that the agent is started in must not be searched for modules.
    (sys.executable, "-P", "-m", "agentik_server.agents.demo"),
    "comes with Agentik",
    # The plugin's Python has only what we depend on; we ourselves are found by our folder.
    env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
)

# Quirks by the name that an agent gives in initialize, however it was started:
#   load_replays_late    answers session/load before its replay
#   missing_reads_empty  makes no new file when we answer "not found" (0.61 takes the error for an object without text)
#   ignores_eof          does not end when its stdin does: TERM need not wait
# By how it is run:
#   fetched              a runner (npx, uvx) may have to download it first: initialize may take longer
_BY_PROGRAM: Mapping[str, frozenset[str]] = {
    "gemini-cli": frozenset({"load_replays_late", "missing_reads_empty"}),
    "codex-acp": frozenset({"ignores_eof"}),
    "@zed-industries/claude-code-acp": frozenset({"ignores_eof"}),
}


def quirks_of(program: str) -> frozenset[str]:
    """What is known to be odd about the agent that calls itself `program`."""
    return _BY_PROGRAM.get(program, frozenset())


class Catalogue:
    """`mine`: the user's agents by id; `default`: the setting `defaultAgent`; `which`: finds a program on PATH."""

    def __init__(
        self,
        mine: Mapping[str, UserAgent],
        default: str | None,
        which: Callable[[str], str | None] = shutil.which,
    ) -> None:
        self._mine = mine
        self._default = default
        self._which = which
        self._known = {known.agent_id: known for known in (*KNOWN, _DEMO)}

    def spec(self, agent_id: str | None) -> AgentSpec:
        """How to run the agent; None = the default one. Raises Refused("unknownAgent")."""
        agent_id = agent_id or self.default_id()
        known, mine = self._known.get(agent_id), self._mine.get(agent_id)
        if known is None and (mine is None or not mine.command):
            raise Refused("unknownAgent", f"there is no agent named {agent_id}: see :AgentikNew <Tab> and the settings")
        spec = _merged(agent_id, known, mine, self._argv(known) if known is not None else ())
        is_fetched = known is not None and bool(known.fallback) and spec.command == known.fallback
        return replace(spec, quirks=spec.quirks | {"fetched"}) if is_fetched else spec

    def default_id(self) -> str:
        """The configured one, else the first program that is installed (the user's own first), else the demo."""
        if self._default:
            return self._default
        for agent_id, mine in self._mine.items():
            if mine.command and self._is_there(mine.command[0]):
                return agent_id
        for known in KNOWN:
            if self._is_there(known.command[0]):
                return known.agent_id
        return DEMO

    def listed(self) -> Sequence[AgentListing]:
        """The user's own first, then those that can start, then the others; each with why not and how to get it."""
        default = self.default_id()
        ids = [*self._mine, *(agent_id for agent_id in self._known if agent_id not in self._mine)]
        rows = [row for agent_id in ids if (row := self._row(agent_id, default)) is not None]
        return sorted(rows, key=lambda row: (row.agent_id not in self._mine, not row.available))

    def _row(self, agent_id: str, default: str) -> AgentListing | None:
        try:
            spec = self.spec(agent_id)
        except Refused:
            return None  # only environment for an id that is not known
        available = self._is_there(spec.command[0])
        return AgentListing(
            agent_id=agent_id,
            name=spec.name,
            command=spec.command,
            available=available,
            is_default=agent_id == default,
            reason=None if available else f"{spec.command[0]} is not installed",
            install_hint=None if available else spec.install_hint or None,
        )

    def _argv(self, known: Known) -> tuple[str, ...]:
        """The installed program, else the runner that fetches it, where that is installed."""
        if not self._is_there(known.command[0]) and known.fallback and self._is_there(known.fallback[0]):
            return known.fallback
        return known.command

    def _is_there(self, program: str) -> bool:
        return self._which(program) is not None


def _merged(agent_id: str, known: Known | None, mine: UserAgent | None, argv: tuple[str, ...]) -> AgentSpec:
    """The user's words over the catalogue's."""
    mine = mine or UserAgent()
    return AgentSpec(
        agent_id=agent_id,
        name=mine.name or (known.name if known else agent_id),
        command=mine.command or argv,
        env={**(known.env if known else {}), **mine.env},
        mcp_servers=mine.mcp_servers,
        install_hint=known.install if known else "",
        login_hint=known.login if known else "",
        quirks=known.quirks if known else frozenset(),
    )
