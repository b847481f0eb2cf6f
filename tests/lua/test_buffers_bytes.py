"""The agent writes a file that is open: what lands on disk is what it wrote, byte for byte (B50)."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import Editor

BOM = b"\xef\xbb\xbf"

TEXTS = {
    "empty": "",
    "a line end only": "\n",
    "two line ends": "\n\n",
    "final newline": "a\nb\n",
    "no final newline": "a\nb",
    "one word": "a",
    "CRLF": "a\r\nb\r\n",
    "CRLF without the last": "a\r\nb",
    "CRLF line end only": "\r\n",
    "mixed line ends": "a\r\nb\nc\r\n",
    "mixed, other way": "a\nb\r\n",
    "stray CR": "a\rb\n",
    "CR at the end": "a\r\nb\r",
    "CR only": "a\rb\r",
    "CTRL-Z at the end": "a\r\n\x1a",
    "NUL": "a\0b\n",
    "blank lines at the end": "a\n\n\n",
    "wide characters": "naïve – 日本語 😀\u2028é\n",
    "long": "x" * 20000 + "\n" + "y" * 20000 + "\n",
}

DISKS = {
    "empty file": b"",
    "unix": b"one\ntwo\nthree\n",
    "unix without final newline": b"one\ntwo",
    "dos": b"one\r\ntwo\r\n",
    "dos without final newline": b"one\r\ntwo",
    "dos with CTRL-Z": b"one\r\ntwo\r\n\x1a",
    "BOM": BOM + b"one\ntwo\n",
    "BOM and dos": BOM + b"one\r\ntwo\r\n",
    "mac line ends": b"one\rtwo\r",
    "new file": None,
}


def write(editor: Editor, path: Path, text: str) -> dict[str, Any]:
    return dict(editor.lua("return require('agentik.buffers').write(...)", str(path), text))


def read(editor: Editor, path: Path) -> dict[str, Any]:
    return dict(editor.lua("return require('agentik.buffers').read(...)", str(path)))


@pytest.mark.parametrize(("disk", "text"), list(itertools.product(DISKS, TEXTS)))
def test_disk_holds_exactly_what_the_agent_wrote(editor: Editor, tmp_path: Path, disk: str, text: str) -> None:  # B50
    path = tmp_path / "file.txt"
    before = DISKS[disk]
    if before is not None:
        path.write_bytes(before)
    editor.edit(path)
    if disk == "mac line ends":
        editor.cmd("edit ++ff=mac")
    assert write(editor, path, TEXTS[text]) == {"applied": True, "loaded": True}
    kept_mark = BOM if before is not None and before.startswith(BOM) else b""
    assert path.read_bytes() == kept_mark + TEXTS[text].encode()
    assert not editor.options["modified"]


@pytest.mark.parametrize(("disk", "text"), list(itertools.product(["unix", "dos", "BOM"], TEXTS)))
def test_unsaved_text_is_read_as_it_would_be_written(
    editor: Editor, tmp_path: Path, disk: str, text: str
) -> None:  # B50
    """Write, read, write: a text survives the way through the buffer and back."""
    path = tmp_path / "file.txt"
    path.write_bytes(DISKS[disk] or b"")
    buffer = editor.edit(path)
    write(editor, path, TEXTS[text])
    editor.call("nvim_buf_set_lines", buffer, 0, 0, True, ["unsaved"])
    answer = read(editor, path)
    assert answer["loaded"]
    assert answer["modified"]
    line_end = {"dos": "\r\n", "unix": "\n", "mac": "\r"}[editor.options["fileformat"]]
    if TEXTS[text]:
        assert answer["text"] == "unsaved" + line_end + TEXTS[text]
    assert write(editor, path, answer["text"])["applied"]
    assert path.read_bytes().removeprefix(BOM) == answer["text"].encode()


def test_text_with_a_byte_order_mark_sets_one(editor: Editor, tmp_path: Path) -> None:  # B50
    path = tmp_path / "file.txt"
    path.write_bytes(b"one\n")
    editor.edit(path)
    assert write(editor, path, "\ufefftwo\n")["applied"]
    assert path.read_bytes() == BOM + b"two\n"
    assert editor.lines() == ["two"]


@pytest.mark.parametrize(
    ("encoding", "name", "words"),
    [
        ("latin-1", "latin1", "naïve café ÿ"),
        ("cp1251", "cp1251", "привет мир"),
        ("euc-jp", "euc-jp", "日本語のテキスト"),
        ("utf-16-le", "utf-16le", "日本語 😀 naïve"),
        ("utf-16-be", "utf-16", "日本語 😀 naïve"),
        ("utf-32-le", "ucs-4le", "日本語 😀 naïve"),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_encoding_of_the_file_is_kept(
    editor: Editor, tmp_path: Path, encoding: str, name: str, words: str, line_end: str
) -> None:  # B50
    path = tmp_path / "file.txt"
    path.write_bytes(f"{words}{line_end}old{line_end}".encode(encoding))
    editor.cmd(f"edit ++enc={name} {path}")
    assert editor.lines() == [words, "old"]
    text = f"{words} – new{line_end}more" if encoding.startswith("utf") else f"{words} new{line_end}more"
    assert write(editor, path, text)["applied"]
    assert path.read_bytes() == text.encode(encoding)


def test_file_with_byte_order_mark_in_utf16_stays_that(editor: Editor, tmp_path: Path) -> None:  # B50
    path = tmp_path / "file.txt"
    path.write_bytes("\ufeffone\r\ntwo\r\n".encode("utf-16-le"))
    editor.edit(path)
    assert write(editor, path, "one\r\nzwei ß\r\n")["applied"]
    assert path.read_bytes() == "\ufeffone\r\nzwei ß\r\n".encode("utf-16-le")


def test_text_that_the_encoding_cannot_hold_is_refused_and_changes_nothing(
    editor: Editor, tmp_path: Path
) -> None:  # B50
    path = tmp_path / "file.txt"
    path.write_bytes("naïve\n".encode("latin-1"))
    editor.edit(path)
    answer = write(editor, path, "smile 😀\n")
    assert not answer["applied"]
    assert "latin1" in answer["reason"]
    assert path.read_bytes() == "naïve\n".encode("latin-1")
    assert editor.lines() == ["naïve"]
    assert not editor.options["modified"]


@pytest.mark.parametrize("mode", [0o644, 0o755, 0o600, 0o664])
def test_mode_bits_are_kept(editor: Editor, tmp_path: Path, mode: int) -> None:  # B50
    path = tmp_path / "run.sh"
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    editor.edit(path)
    assert write(editor, path, "#!/bin/sh\necho\n")["applied"]
    assert path.stat().st_mode & 0o777 == mode


def test_binary_buffer_is_written_byte_by_byte(editor: Editor, tmp_path: Path) -> None:  # B50
    path = tmp_path / "data.bin"
    path.write_bytes(b"a\r\nb\nc")
    editor.cmd(f"edit ++bin {path}")
    assert write(editor, path, "x\r\ny\r\nz")["applied"]
    assert path.read_bytes() == b"x\r\ny\r\nz"


@pytest.mark.parametrize(
    "name", ["with space.txt", "$HOME.txt", "a#b%c.txt", "ünïcode 日本.txt", "[a]*{b}.txt", "-x|y'z\".txt"]
)
def test_paths_with_odd_characters(editor: Editor, tmp_path: Path, name: str) -> None:  # B51
    path = tmp_path / name
    path.write_text("one\n")
    editor.edit(path)
    assert write(editor, path, "two\n")["applied"]
    assert path.read_text() == "two\n"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_path_through_a_link_finds_the_buffer_and_the_link_stays(editor: Editor, tmp_path: Path) -> None:  # B50
    target = tmp_path / "real" / "file.txt"
    target.parent.mkdir()
    target.write_text("one\n")
    (tmp_path / "folder").symlink_to(target.parent)
    link = tmp_path / "link.txt"
    link.symlink_to(target)
    editor.edit(target)
    assert write(editor, tmp_path / "folder" / "file.txt", "two\n")["applied"]
    assert write(editor, link, "three\n")["applied"]
    assert target.read_text() == "three\n"
    editor.reset()
    editor.edit(link)
    assert write(editor, target, "four\n")["applied"]
    assert link.is_symlink()
    assert target.read_text() == "four\n"


def test_file_that_is_not_open_is_left_to_the_server(editor: Editor, tmp_path: Path) -> None:  # B50
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    assert read(editor, path) == {"loaded": False, "modified": False}
    assert write(editor, path, "two\n") == {"applied": False, "loaded": False}
    editor.edit(path)
    editor.cmd("enew | bdelete #")
    assert write(editor, path, "two\n") == {"applied": False, "loaded": False}
    assert path.read_text() == "one\n"


def test_new_file_in_a_new_folder(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "file.txt"
    editor.edit(path)
    assert write(editor, path, "one")["applied"]
    assert path.read_bytes() == b"one"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_read_only_file_is_refused(editor: Editor, tmp_path: Path) -> None:  # B49
    path = tmp_path / "file.txt"
    path.write_text("one\n")
    path.chmod(0o444)
    editor.edit(path)
    assert write(editor, path, "two\n")["reason"] == "the file may not be written"
    assert path.read_text() == "one\n"


def test_disk_that_refuses_leaves_the_buffer_as_it_was(editor: Editor, tmp_path: Path) -> None:  # B50
    """The path of the buffer is a folder meanwhile: nothing is written, nothing changes, the reason is one line."""
    path = tmp_path / "file.txt"
    path.write_text("one\r\ntwo", newline="")
    editor.edit(path)
    path.unlink()
    path.mkdir()
    answer = write(editor, path, "three\n")
    assert not answer["applied"]
    assert answer["reason"]
    assert "\n" not in answer["reason"]
    assert editor.lines() == ["one", "two"]
    options = editor.options
    assert (options["fileformat"], options["endofline"], options["modified"]) == ("dos", False, False)


def test_users_own_fixendofline_is_untouched(editor: Editor, tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("one")
    editor.edit(path)
    write(editor, path, "two")
    assert editor.options["fixendofline"] is True
    editor.cmd("write")
    assert path.read_text() == "two\n"
