"""`:checkhealth agentik` says for each problem what to do; `:AgentikReport` holds no secret."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Editor

PYTHON = str(ROOT / ".venv/bin/python")


@pytest.fixture
def fake_host(editor: Editor) -> Editor:
    """A host that answers from the table Answers: method → result, or { error = ... }."""
    editor.lua("""
      Answers = {
        status = {
          version = '1.2.3',
          folders = { data = '/nowhere/agentik', log = '/nowhere/agentik.log', settings = '/nowhere/settings.json' },
          store = { schemaVersion = 3, sessions = 2, messages = 40, pending = 1, bytes = 1500000 },
          sessions = { { agentId = 'demo', state = 'idle', connection = 'connected', title = 'my private plan' } },
        },
        listAgents = { agents = {
          { agentId = 'demo', name = 'Demo', command = { 'agentik-demo-agent' }, available = true, isDefault = true },
          { agentId = 'gemini', name = 'Gemini', command = { 'gemini' }, available = false, isDefault = false,
            reason = 'gemini is not found', installHint = 'npm install -g @google/gemini-cli' },
        } },
        checkAgent = { ok = true, detail = 'demo 1.0' },
      }
      package.loaded['agentik.host'] = {
        state = 'ready',
        server = { version = '1.2.3', protocolVersion = 1 },
        start = function() return true end,
        python = function() return vim.g.agentik_python, 'the Python environment is missing: run :AgentikInstall' end,
        call = function(method, _, answer)
          local result = Answers[method]
          vim.schedule(function() answer(result.error, not result.error and result or nil) end)
        end,
      }
    """)
    editor.lua("Dictation = require('agentik.diagnosis').dictation")
    editor.lua("require('agentik.diagnosis').dictation = function() return { { 'ok', 'not looked at' } } end")
    editor.call("nvim_set_var", "agentik_python", PYTHON)
    return editor


def checkhealth(editor: Editor) -> str:
    editor.cmd("checkhealth agentik")
    text = "\n".join(editor.lines())
    editor.cmd("bwipeout!")
    return text


def test_all_parts_are_checked(fake_host: Editor) -> None:
    text = checkhealth(fake_host)
    version = ".".join(map(str, sys.version_info[:3]))
    for line in (
        "options are fine",
        f"Python {version}",
        "packages: agent-client-protocol",
        "agentik-server 1.2.3 answers",
        "2 sessions, 40 messages, 1 waiting, 1.5 MB",
        "log: /nowhere/agentik.log",
        "new sessions use Demo (demo)",
        "Demo speaks ACP: demo 1.0",
        "Gemini (gemini) is not here: gemini is not found; npm install -g @google/gemini-cli",
    ):
        assert line in text, text
    assert "ERROR" not in text
    assert "WARNING" not in text


def test_dictation_is_checked_by_the_server_s_own_code(fake_host: Editor) -> None:
    fake_host.lua("require('agentik.diagnosis').dictation = Dictation")
    text = checkhealth(fake_host).split("Dictation")[1]
    assert "the extra `voice` is installed" in text or "dictation is not installed" in text


def test_no_environment_says_how_to_install_it(fake_host: Editor) -> None:
    fake_host.lua("vim.g.agentik_python = nil")
    text = checkhealth(fake_host)
    assert "the Python environment is missing" in text
    assert "run :AgentikInstall" in text
    assert "Server" not in text


def test_missing_packages_are_named(fake_host: Editor, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("""#!/bin/sh
echo '{"version": "3.11.2", "packages": {"pynvim": "0.6.0"}}'
""")
    program.chmod(0o755)
    fake_host.call("nvim_set_var", "agentik_python", str(program))
    text = checkhealth(fake_host)
    assert "missing packages: agent-client-protocol, aiosqlite" in text
    assert "run :AgentikInstall" in text


def test_old_python_is_named(fake_host: Editor, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("""#!/bin/sh\necho '{"version": "3.9.2", "packages": {}}'\n""")
    program.chmod(0o755)
    fake_host.call("nvim_set_var", "agentik_python", str(program))
    assert "is Python 3.9.2; 3.11 or newer is needed" in checkhealth(fake_host)


def test_wrong_options_are_all_listed(fake_host: Editor) -> None:
    fake_host.lua("require('agentik.config').setup({ a1 = 1, notify = 3 })")
    text = checkhealth(fake_host)
    assert "setup(): unknown option a1" in text
    assert "setup(): notify must be true or false, got 3" in text


def test_server_that_does_not_answer(fake_host: Editor) -> None:
    fake_host.lua("Answers.status = { error = { code = -32099, message = 'the database may not be written' } }")
    text = checkhealth(fake_host)
    assert "the server does not answer: the database may not be written" in text
    assert "see :AgentikLog" in text


def test_database_that_may_not_be_written(fake_host: Editor, tmp_path: Path) -> None:
    """As root everything may be written, so the question is answered for us."""
    (tmp_path / "agentik.db").write_text("")
    fake_host.lua("Answers.status.folders.data = ...", str(tmp_path))
    fake_host.lua("Real = vim.uv.fs_access; vim.uv.fs_access = function() return false end")
    text = checkhealth(fake_host)
    fake_host.lua("vim.uv.fs_access = Real")
    assert "may not be written: no message can be kept" in text
    assert "choose another folder with the option 'home'" in text


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("{ ok = false, detail = 'exit code 1: not logged in' }", "Demo does not start: exit code 1: not logged in"),
        ("{ error = { code = -32601, message = 'x' } }", "Demo was not tried: the server has no agentik/checkAgent"),
        ("{ error = { code = 4000, message = 'no such agent' } }", "Demo: no such agent"),
    ],
)
def test_handshake_that_fails(fake_host: Editor, answer: str, line: str) -> None:
    fake_host.lua(f"Answers.checkAgent = {answer}")
    assert line in checkhealth(fake_host)


def test_agent_of_the_options_is_tried_or_unknown(fake_host: Editor) -> None:
    fake_host.lua("require('agentik.config').setup({ agent = 'gemini' })")
    assert "new sessions use Gemini (gemini)" in checkhealth(fake_host)
    fake_host.lua("require('agentik.config').setup({ agent = 'nobody' })")
    assert "there is no agent 'nobody' (option 'agent')" in checkhealth(fake_host)


def test_settings_problems_name_the_file(fake_host: Editor) -> None:
    fake_host.lua("Answers.status.settingsProblems = { 'line 3: unknown key quue' }")
    text = checkhealth(fake_host)
    assert "settings: line 3: unknown key quue" in text
    assert "correct it in /nowhere/settings.json" in text


def test_real_server_and_a_real_handshake(tmp_path: Path) -> None:
    """Nothing stands for anything: host, server, database and the demo agent are started."""
    editor = Editor(tmp_path)
    try:
        editor.call("nvim_set_var", "agentik_python", PYTHON)
        editor.lua("require('agentik').setup({ agent = 'demo', home = ... })", str(tmp_path / "kept"))
        text = checkhealth(editor)
        assert "agentik-server" in text
        assert "messages are kept in ~/kept" in text
        assert "Demo agent (no model) speaks ACP" in text
        assert "ERROR" not in text.split("Dictation")[0]
        assert "- state: ready" in report(editor)
    finally:
        editor.close()


# --- the report


def report(editor: Editor) -> str:
    """What the command shows when all have answered; the editor is not held meanwhile."""
    editor.lua("require('agentik.report').open()")
    assert editor.lua("return vim.wait(20000, function() return vim.bo.filetype == 'markdown' end, 5)")
    text = "\n".join(editor.lines())
    editor.cmd("tabclose")
    return text


def test_report_holds_what_is_needed(fake_host: Editor) -> None:
    fake_host.lua("require('agentik.config').setup({ layout = { position = 'left' }, follow = true })")
    text = report(fake_host)
    for line in (
        "- Neovim: ",
        "- version: 1.2.3, protocol 1",
        "- store: schema 3, 2 sessions, 40 messages, 1 waiting",
        "- session: demo, idle, connected, 0 waiting",
        "- demo (default)",
        "- `follow`: true",
        "- `layout.position`: left",
    ):
        assert line in text, text
    assert "buffers.autocmds" not in text


def test_report_holds_no_secret_and_no_text_of_a_message(fake_host: Editor, tmp_path: Path) -> None:
    home = fake_host.lua("return vim.uv.os_homedir()")
    log = tmp_path / "agentik.log"
    log.write_text(
        "2026-01-02 03:04:05,678 12 INFO agentik: started\n"
        "2026-01-02 03:04:05,678 12 DEBUG agentik: text my secret plan\n"
        f"2026-01-02 03:04:06,678 12 ERROR agentik: token=abc123 for joe@example.org in {home}/work\n"
        "ValueError: my other secret plan\n"
    )
    fake_host.lua(
        """
        Answers.status.folders.log = ...
        vim.env.MY_API_KEY = 'sk-test-abcdefghijklmnopqrstuvwxyz0123456789'
        require('agentik.hub').log('agent said: sk-test-abcdefghijklmnopqrstuvwxyz0123456789')
        require('agentik.config').setup({
          home = '/private/place',
          settings = { agents = { mine = { env = { TOKEN = 'hunter2hunter2' } } } },
        })
        """,
        str(log),
    )
    text = report(fake_host)
    assert "agentik: started" in text
    assert "- `settings.agents.mine.env.TOKEN` is set" in text
    secrets = ("secret plan", "abc123", "joe@", home, "sk-test", "hunter2", "private", "MY_API_KEY")
    assert [secret for secret in secrets if secret in text] == [], text


@pytest.mark.parametrize(
    ("line", "redacted"),
    [
        ("api_key=abc", "api_key=[removed]"),
        ('{"apiKey": "abc"}', '{"apiKey": "[removed]"}'),
        ("OPENAI_API_KEY: abc next", "OPENAI_API_KEY: [removed] next"),
        ("Authorization: Bearer", "Authorization: [removed]"),
        ("bearer abcdef", "bearer [removed]"),
        ("ghp_abcdefghijklmnopqrstuvwxyz012345", "[removed]"),
        ("/home/joe/x and /Users/jane/y", "/home/USER/x and /Users/USER/y"),
        ("mail joe.doe@example.org now", "mail [mail address] now"),
        ("a plain line with turn 12 and monkey business", "a plain line with turn 12 and monkey business"),
        ("- `keys.chat.close` is set", "- `keys.chat.close` is set"),
    ],
)
def test_redaction(editor: Editor, line: str, redacted: str) -> None:
    assert editor.lua("return require('agentik.report').redact(...)", line) == redacted
