"""fs/* of an agent: inside the session's folders, byte-exact, through the editor where it has the file (B49, B50)."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from agentik_server.agents.disk_files import FileRefused, read_text, write_text
from agentik_server.agents.files import cut_lines
from agentik_server.agents.paths import PathRefused, Roots
from agentik_server.domain.happenings import Happening, PermissionAsked, Remark, ToolCallChanged
from agentik_server.ports import AgentPolicy, BufferState

from .rig import Rig


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A project folder with files, an attachments folder, and secrets beside them."""
    for name in ("project/sub", "attachments", "outside", "project-evil"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "project/a.txt").write_text("inside")
    (tmp_path / "attachments/x").write_text("attached")
    (tmp_path / "outside/secret").write_text("secret")
    (tmp_path / "project-evil/secret").write_text("secret")
    (tmp_path / "project/link").symlink_to(tmp_path / "outside/secret")
    (tmp_path / "project/linkdir").symlink_to(tmp_path / "outside")
    (tmp_path / "project/inner").symlink_to(tmp_path / "project/a.txt")
    (tmp_path / "project/loop").symlink_to(tmp_path / "project/loop")
    (tmp_path / "project/procself").symlink_to("/proc/self")
    os.mkfifo(tmp_path / "project/fifo")
    return tmp_path


def roots_of(home: Path) -> Roots:
    return Roots((str(home / "project"),), (str(home / "attachments"),))


ESCAPES = [
    "{p}/../outside/secret",
    "{p}/sub/../../outside/secret",
    "{p}/link",
    "{p}/linkdir/secret",
    "{p}/linkdir/../outside/secret",
    "{p}-evil/secret",
    "/etc/passwd",
    "/",
    "{p}/..",
    "//etc/passwd",
    "/proc/self/root{p}/a.txt",
    "/proc/self/cwd/a.txt",
    "/proc/1/environ",
    "{p}/procself/environ",
    "{p}/procself/root/etc/passwd",
    "/dev/stdin",
    "/dev/fd/0",
    "/sys/kernel/notes",
    "a.txt",
    "./a.txt",
    "../project/a.txt",
    "~/x",
    "file://{p}/a.txt",
    "",
    "{p}/a\0.txt",
    "{p}/\ud83d",
]


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("path", ESCAPES)
def test_a_path_that_leads_out_is_refused(home: Path, path: str, write: bool) -> None:  # B49
    with pytest.raises(PathRefused):
        roots_of(home).resolve(path.format(p=home / "project"), write=write)


@pytest.mark.parametrize("path", [None, 5, ["x"], {}])
def test_what_is_no_path_is_refused(home: Path, path: object) -> None:
    with pytest.raises(PathRefused):
        roots_of(home).resolve(path, write=False)


@pytest.mark.parametrize("path", ["a.txt", "sub/../a.txt", "inner", "linkdir/../project/a.txt", "./sub/.././a.txt"])
def test_a_path_that_stays_inside_is_read(home: Path, path: str) -> None:
    roots = roots_of(home)
    assert read_text(roots, roots.resolve(f"{home}/project/{path}", write=False)) == "inside"


def test_attachments_are_for_reading_only(home: Path) -> None:  # B49
    roots = roots_of(home)
    real = roots.resolve(f"{home}/attachments/x", write=False)
    assert read_text(roots, real) == "attached"
    with pytest.raises(PathRefused):
        roots.resolve(f"{home}/attachments/x", write=True)


def test_a_link_put_in_between_is_noticed(home: Path) -> None:  # B49
    roots = roots_of(home)
    real = roots.resolve(f"{home}/project/sub/secret", write=True)
    (home / "project/sub").rmdir()
    (home / "project/sub").symlink_to(home / "outside")
    with pytest.raises((PathRefused, FileRefused)):
        write_text(roots, real, "overwritten")
    with pytest.raises((PathRefused, FileRefused)):
        read_text(roots, real)
    assert (home / "outside/secret").read_text() == "secret"


@pytest.mark.parametrize("name", ["fifo", "sub", "a.txt/x", "loop"])
def test_what_is_no_regular_file_is_refused_and_nothing_hangs(home: Path, name: str) -> None:
    with pytest.raises(FileRefused):
        read_text(roots_of(home), str(home / "project" / name))


CONTENTS = [
    b"",
    b"x",
    b"x\n",
    b"a\r\nb\r\n",
    b"\xef\xbb\xbfbom\n",
    "ü€😀\n".encode(),
    b"caf\xe9\n",
    "\ufeffh\u00e9\n".encode("utf-16-le"),
]


@pytest.mark.parametrize("data", CONTENTS, ids=range(len(CONTENTS)))
def test_what_is_read_and_written_back_is_the_same_bytes(home: Path, data: bytes) -> None:  # B50
    path = home / "project/f"
    path.write_bytes(data)
    roots = roots_of(home)
    write_text(roots, str(path), read_text(roots, str(path)))
    assert path.read_bytes() == data


def test_the_encoding_and_the_mark_of_a_file_are_kept(home: Path) -> None:  # B50
    path, roots = home / "project/f", roots_of(home)
    for old, text, new in [
        (b"\xef\xbb\xbfx", "y", b"\xef\xbb\xbfy"),
        (b"\xef\xbb\xbfx", "\ufeffy", b"\xef\xbb\xbfy"),
        (b"caf\xe9", "th\u00e9", b"th\xe9"),
        ("\ufeffx".encode("utf-16-be"), "y", "\ufeffy".encode("utf-16-be")),
    ]:
        path.write_bytes(old)
        write_text(roots, str(path), text)
        assert path.read_bytes() == new


def test_a_text_that_does_not_fit_the_encoding_is_refused_and_the_file_stays(home: Path) -> None:  # B50
    path = home / "project/f"
    path.write_bytes(b"caf\xe9")
    with pytest.raises(FileRefused, match="latin-1"):
        write_text(roots_of(home), str(path), "€")
    assert path.read_bytes() == b"caf\xe9"


def test_mode_bits_are_kept_and_nothing_else_is_left(home: Path) -> None:  # B50
    path = home / "project/run.sh"
    path.write_text("old")
    path.chmod(0o751)
    before = set(os.listdir(home / "project"))
    write_text(roots_of(home), str(path), "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert set(os.listdir(home / "project")) == before


def test_a_new_file_is_made_with_its_folders(home: Path) -> None:
    path = home / "project/new/deep/f"
    write_text(roots_of(home), str(path), "x")
    assert path.read_text() == "x"


def test_a_link_inside_the_folder_stays_a_link(home: Path) -> None:
    roots = roots_of(home)
    write_text(roots, roots.resolve(f"{home}/project/inner", write=True), "new")
    assert (home / "project/inner").is_symlink()
    assert (home / "project/a.txt").read_text() == "new"


def test_a_binary_file_is_refused(home: Path) -> None:
    (home / "project/b").write_bytes(b"\x7fELF\0\xff")
    with pytest.raises(FileRefused, match="not a text file"):
        read_text(roots_of(home), str(home / "project/b"))


@pytest.mark.parametrize(
    ("line", "limit", "part"),
    [
        (None, None, "a\nb\nc\n"),
        (2, None, "b\nc\n"),
        (2, 1, "b\n"),
        (3, 9, "c\n"),
        (9, 1, ""),
        (1, 0, ""),
        (0, 1, "a\n"),
    ],
)
def test_lines_are_cut_with_their_ends(line: int | None, limit: int | None, part: str) -> None:
    assert cut_lines("a\nb\nc\n", line, limit) == part


# ---------------------------------------------------------------------------------- over the link


class Editor:
    """An editor with one open file."""

    def __init__(self, path: str, text: str, answer: tuple[bool, str | None] | None = (True, None)) -> None:
        self.path = path
        self.text = text
        self.answer = answer
        self.written: list[str] = []
        self.silent = False

    async def read(self, path: str) -> BufferState | None:
        if self.silent:
            raise TimeoutError("the editor did not answer in 2 s")
        return BufferState(True, True, self.text) if path == self.path else BufferState(False, False)

    async def write(self, path: str, text: str) -> tuple[bool, str | None] | None:
        self.written.append(text)
        return self.answer


async def test_an_agent_reads_and_writes_in_its_folder(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        (rig.cwd / "a b.txt").write_text("x\r\n")
        await rig.ready()
        await rig.ask(
            f"#request fs/read_text_file {json.dumps({'path': str(rig.cwd / 'a b.txt')})}\n#write {rig.cwd}/n new"
        )
        assert '{"result": {"content": "x\\r\\n"}}' in rig.text
        assert (rig.cwd / "n").read_text() == "new"


async def test_an_escape_is_an_error_to_the_agent_and_a_remark_to_the_person(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask("#read /etc/passwd\n#write /etc/agentik-test x")
        assert rig.text.count("is outside the session's folders") == 2
        assert rig.text.count("-32602") == 2
        assert len(rig.all(Remark)) == 2


async def test_a_missing_file_is_not_found_and_no_remark(tmp_path: Path) -> None:
    async with Rig(tmp_path) as rig:
        await rig.ready()
        await rig.ask(f"#read {rig.cwd}/none")
        assert "-32002" in rig.text
        assert rig.all(Remark) == []


async def test_unsaved_text_is_read_from_the_editor_and_a_write_goes_through_it(tmp_path: Path) -> None:  # B50
    editor = Editor(os.path.realpath(tmp_path / "project/open"), "unsaved")
    async with Rig(tmp_path, buffers=editor) as rig:
        (rig.cwd / "open").write_text("saved")
        await rig.ready()
        await rig.ask(f"#read {rig.cwd}/open\n#write {rig.cwd}/open new\n#write {rig.cwd}/closed c")
        assert '"content": "unsaved"' in rig.text
        assert editor.written == ["new"]
        assert (rig.cwd / "open").read_text() == "saved"
        assert (rig.cwd / "closed").read_text() == "c"


async def test_a_write_that_the_editor_refuses_is_an_error_with_its_reason(tmp_path: Path) -> None:  # B50
    editor = Editor(os.path.realpath(tmp_path / "project/open"), "unsaved", (False, "unsaved edits of the user"))
    async with Rig(tmp_path, buffers=editor) as rig:
        (rig.cwd / "open").write_text("saved")
        await rig.ready()
        await rig.ask(f"#write {rig.cwd}/open new")
        assert "unsaved edits of the user" in rig.text
        assert (rig.cwd / "open").read_text() == "saved"


async def test_a_silent_editor_lets_reads_take_the_disk_and_writes_fail(tmp_path: Path) -> None:  # B50
    editor = Editor("", "")
    editor.silent = True
    async with Rig(tmp_path, buffers=editor) as rig:
        (rig.cwd / "f").write_text("disk")
        await rig.ready()
        await rig.ask(f"#read {rig.cwd}/f\n#write {rig.cwd}/f new")
        assert '"content": "disk"' in rig.text
        assert "did not answer in 2 s" in rig.text
        assert (rig.cwd / "f").read_text() == "disk"


async def test_a_denied_kind_is_refused_without_asking(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path, policy=AgentPolicy(files_read="deny", files_write="deny")) as rig:
        (rig.cwd / "f").write_text("x")
        await rig.ready()
        await rig.ask(f"#read {rig.cwd}/f\n#write {rig.cwd}/f y")
        assert rig.text.count("the settings deny it") == 2
        assert rig.received("initialize")[0]["clientCapabilities"]["fs"] == {
            "readTextFile": False,
            "writeTextFile": False,
        }


@pytest.mark.parametrize(("option", "content"), [("allow", "new"), ("reject", "old"), (None, "old")])
async def test_a_write_asks_first_where_the_settings_say_so(
    tmp_path: Path, option: str | None, content: str
) -> None:  # B49
    async with Rig(tmp_path, policy=AgentPolicy(files_write="ask")) as rig:
        (rig.cwd / "f").write_text("old")
        await rig.ready()
        rig.answer_all(option)
        await rig.ask(f"#write {rig.cwd}/f new")
        asked = await rig.next(PermissionAsked)
        assert asked.tool.diffs is not None
        assert (asked.tool.diffs[0].old_text, asked.tool.diffs[0].new_text) == ("old", "new")
        assert (rig.cwd / "f").read_text() == content
        end = rig.all(ToolCallChanged)[-1].change
        assert (end.tool_call_id, end.status) == (
            asked.tool.tool_call_id,
            "completed" if option == "allow" else "failed",
        )


async def test_always_in_this_chat_is_for_that_file_only(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path, policy=AgentPolicy(files_write="ask")) as rig:
        await rig.ready()
        rig.answer_all("allow_always")
        await rig.ask(f"#write {rig.cwd}/f 1\n#write {rig.cwd}/f 2")
        assert len(rig.all(PermissionAsked)) == 1
        await rig.ask(f"#write {rig.cwd}/g 1")
        assert len(rig.all(PermissionAsked)) == 2


async def test_what_the_user_has_just_allowed_is_not_asked_again(tmp_path: Path) -> None:  # B49
    async with Rig(tmp_path, policy=AgentPolicy(files_write="ask")) as rig:
        await rig.ready()
        path = os.path.realpath(rig.cwd) + "/f"

        def react(happening: Happening) -> None:
            if isinstance(happening, PermissionAsked):
                rig.link.answer_permission(happening.permission_id, happening.options[0].option_id)

        rig.react = react
        update = {"sessionUpdate": "tool_call", "toolCallId": "t1", "locations": [{"path": path}]}
        await rig.ask(f"#update {json.dumps(update)}\n#permission t1 Write f\n#write {path} new")
        assert len(rig.all(PermissionAsked)) == 1
        await rig.ask(f"#write {path} newer")
        assert len(rig.all(PermissionAsked)) == 2


async def test_extra_roots_of_the_session_are_inside(tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    async with Rig(tmp_path) as rig:
        rig.launch = replace(rig.launch, extra_roots=(str(tmp_path / "extra"),))
        await rig.ready()
        await rig.ask(f"#write {tmp_path}/extra/f x")
        assert (tmp_path / "extra/f").read_text() == "x"
