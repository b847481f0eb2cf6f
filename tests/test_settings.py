"""settings.json: what is wrong in it is said in one line, and never stops anything (B56)."""

from __future__ import annotations

from pathlib import Path

import json5
import pytest

from agentik_server.settings import Settings, load, render_markdown, template


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "settings.json"


def test_no_file_means_the_defaults(file: Path) -> None:
    assert load(file, {}) == (Settings(), [])


def test_comments_dotted_keys_and_nested_objects(file: Path) -> None:
    """A dotted key is a nested object; comments are allowed."""
    file.write_text('// mine\n{"queue.drain": "all", "queue": {"maxItems": 3}, /* s */ "timeouts.startup": 5}')
    settings, problems = load(file, {})
    assert problems == []
    assert (settings.queue.drain, settings.queue.max_items, settings.timeouts.startup) == ("all", 3, 5.0)


def test_overrides_win_key_by_key(file: Path) -> None:
    file.write_text('{"queue": {"maxItems": 3, "maxFiles": 4}}')
    settings, _ = load(file, {"queue": {"maxItems": 7}, "permissions.tools.edit": "allow"})
    assert (settings.queue.max_items, settings.queue.max_files) == (7, 4)
    assert settings.permissions.tools == {"edit": "allow"}


def test_a_broken_file_is_reported_with_its_line(file: Path) -> None:
    """# B56"""
    file.write_text('{\n  "queue": {},\n  oops here\n}')
    settings, problems = load(file, {})
    assert settings == Settings()
    assert len(problems) == 1
    assert problems[0].startswith("settings.json is broken and ignored: line 3, at or after queue: ")


def test_a_key_that_stands_twice_is_told(file: Path) -> None:
    """Which one counts would be a guess."""
    file.write_text('{"queue": {}, "queue": {}}')
    assert "queue" in load(file, {})[1][0]


def test_the_line_of_a_wrong_value_is_told(file: Path) -> None:
    """# B56: line and key, comments and texts with the same words notwithstanding."""
    file.write_text(
        """// maxItems of the queue
{
  "defaultAgent": "queue // no comment",
  /* "queue":
     { */
  queue: {
    'drain': "one", // maxItems
    "maxItems": "many",
  },
  "timeouts.prompt": -1,
  "agents": {"mine": {"comand": "x", "command": [1]}},
}"""
    )
    settings, problems = load(file, {})
    assert [problem.rsplit(", not", 1)[0] for problem in problems] == [
        "settings.json line 11: unknown key agents.mine.comand",
        "settings.json line 11: agents.mine.command: should be a text or a list of texts",
        "settings.json line 8: queue.maxItems: should be a valid integer",
        "settings.json line 10: timeouts.prompt: should be greater than or equal to 0",
    ]
    assert settings.queue.drain == "one"


def test_below_a_wrong_override_stands_the_file(file: Path) -> None:
    """A bad value is as if it were not there."""
    file.write_text('{"queue": {"maxItems": 7}, "syncInterval": null}')
    settings, problems = load(file, {"queue.maxItems": "x", "nothing": 1, "log": 5})
    assert (settings.queue.max_items, settings.sync_interval, settings.log.level) == (7, 2.0, "info")
    assert problems == [
        "settings of the editor: unknown key nothing",
        'settings of the editor: queue.maxItems: should be a valid integer, not "x"; it is ignored',
        "settings of the editor: log: should be an object { ... }, not 5; it is ignored",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"agents": {"mine": 5}}', "agents.mine"),
        ('{"agents": {"trace": 1}}', "agents.trace"),
        ('{"queue": {"maxItems": "many"}}', "queue.maxItems"),
        ('{"queue": {"maxItems": true}}', "queue.maxItems"),
        ('{"queue": {"maxItems": 0}}', "queue.maxItems"),
        ('{"queue": []}', "queue"),
        ('{"queue": {"drain": "some"}}', "queue.drain"),
        ('{"timeouts": {"prompt": -1}}', "timeouts.prompt"),
        ('{"permissions": {"tools": {"edit": "maybe"}}}', "permissions.tools.edit"),
        ('{"agents": {"mine": {"env": {"A": 1}}}}', "agents.mine.env.A"),
    ],
)
def test_a_wrong_value_is_reported_by_key_and_the_default_holds(file: Path, text: str, words: str) -> None:
    """The other settings of the file are kept."""
    file.write_text(text[:-1] + ', "retentionDays": 5}')
    settings, problems = load(file, {})
    assert len(problems) == 1
    assert problems[0].startswith(f"settings.json line 1: {words}: ")
    assert settings.retention_days == 5
    assert settings.queue == Settings().queue


@pytest.mark.parametrize("text", ["[]", "7", '"x"', "null", "\ufeff", "  "])
def test_a_file_that_is_no_object_is_no_end(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert load(file, {})[0] == Settings()


def test_unknown_keys_are_reported_and_harmless(file: Path) -> None:
    file.write_text('{"queue": {"drian": "all"}, "agents": {"mine": {"comand": "x"}}, "future": {"a": 1}}')
    _, problems = load(file, {})
    assert [p.rsplit(" ", 1)[1] for p in problems] == ["queue.drian", "agents.mine.comand", "future"]


def test_an_agent_of_the_user(file: Path) -> None:
    file.write_text('{"agents": {"mine": {"command": ["a", "b"], "env": {"K": "v"}}, "trace": true}}')
    settings, problems = load(file, {})
    assert problems == []
    assert settings.agents["mine"].command == ["a", "b"]
    assert settings.trace


def test_a_number_too_deep_is_no_end(file: Path) -> None:
    """A file of nothing but brackets."""
    file.write_text("[" * 100_000)
    assert load(file, {})[0] == Settings()


def test_the_template_is_a_valid_file_that_changes_nothing(file: Path) -> None:
    file.write_text(template())
    assert json5.loads(template()) == {}
    assert load(file, {}) == (Settings(), [])


def test_every_setting_stands_in_the_table() -> None:
    table = render_markdown()
    for key in ("defaultAgent", "queue.maxItems", "agents.ID.command", "agents.trace", "dictation.endOfSpeechMs"):
        assert f"| `{key}` |" in table
