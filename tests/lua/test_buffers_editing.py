"""The agent writes a file that is open: what the user sees and keeps (B50)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Editor

TOP_LINE = "return vim.fn.getline(vim.fn.winsaveview().topline)"
LINES = [f"line {number}" for number in range(1, 101)]


def text_of(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


@pytest.fixture
def path(editor: Editor, tmp_path: Path) -> Path:
    """A file of 100 lines, open in the current window."""
    path = tmp_path / "file.txt"
    path.write_text(text_of(LINES))
    editor.edit(path)
    return path


def write(editor: Editor, path: Path, lines: list[str]) -> dict[str, Any]:
    return dict(editor.lua("return require('agentik.buffers').write(...)", str(path), text_of(lines)))


def changed() -> list[str]:
    """Three lines more at the top, one changed, one removed, one more at the end."""
    lines = ["new 1", "new 2", "new 3", *LINES, "the end"]
    lines[10] = "changed"
    del lines[20]
    return lines


def test_cursor_and_scroll_stay_with_their_text(editor: Editor, path: Path) -> None:  # B50
    editor.keys("60Gzt64G3l")
    editor.cmd("split")
    editor.keys("gg<C-w>p")
    top = editor.lua(TOP_LINE)
    editor.cmd("wincmd p")
    write(editor, path, changed())
    editor.cmd("wincmd p")
    assert editor.line == "line 64"
    assert editor.lua("return vim.api.nvim_win_get_cursor(0)")[1] == 3
    assert editor.lua(TOP_LINE) == top
    editor.cmd("wincmd p")
    assert editor.line == "line 1"


def test_cursor_on_a_removed_line_goes_to_the_place_where_it_was(editor: Editor, path: Path) -> None:  # B50
    editor.keys("50G")
    write(editor, path, LINES[:49] + LINES[50:])
    assert editor.line == "line 51"


def test_whole_write_is_one_undo_step_between_the_users_own(editor: Editor, path: Path) -> None:  # B50
    editor.keys("5GA mine<Esc>")
    editor.cmd("write")
    own = editor.lines()
    agents = changed()
    agents[7] = "line 5 mine"
    assert write(editor, path, agents)["applied"]
    editor.keys("GA too<Esc>")
    editor.keys("u")
    assert editor.lines() == agents
    editor.keys("u")
    assert editor.lines() == own
    editor.keys("u")
    assert editor.lines() == LINES
    editor.keys("<C-r><C-r>")
    assert editor.lines() == agents


def test_marks_folds_and_extmarks_stay_with_their_lines(editor: Editor, path: Path) -> None:  # B50
    editor.cmd("setlocal foldmethod=manual | 40,50fold")
    editor.keys("30Gma80GmB")
    mark = editor.lua("""
      local namespace = vim.api.nvim_create_namespace('test')
      vim.api.nvim_buf_set_extmark(0, namespace, 69, 5, { end_row = 69, end_col = 7 })
      return namespace
    """)
    write(editor, path, changed())
    assert editor.lua('return vim.fn.getline("\'a")') == "line 30"
    assert editor.lua('return vim.fn.getline("\'B")') == "line 80"
    assert editor.lua("return vim.fn.getline(vim.fn.foldclosed(45))") == "line 40"
    assert editor.lua("return vim.fn.getline(vim.fn.foldclosedend(45))") == "line 50"
    [[_, row, col, details]] = editor.call("nvim_buf_get_extmarks", 0, mark, 0, -1, {"details": True})
    assert (editor.lines()[row], col, details["end_col"]) == ("line 70", 5, 7)


def test_mark_of_a_removed_line_is_not_lost(editor: Editor, path: Path) -> None:  # B50
    editor.keys("30Gma")
    write(editor, path, LINES[:28] + LINES[32:])
    assert editor.lua('return vim.fn.line("\'a")') == 29


def test_extmark_inside_a_changed_line_keeps_its_word(editor: Editor, tmp_path: Path) -> None:  # B50
    path = tmp_path / "words.txt"
    path.write_text("größe = alt und gut\n")
    editor.edit(path)
    namespace = editor.lua("""
      local namespace = vim.api.nvim_create_namespace('test')
      vim.api.nvim_buf_set_extmark(0, namespace, 0, ('größe = alt und '):len(), {})
      return namespace
    """)
    write(editor, path, ["größen = alt und gut"])
    [[_, _, col]] = editor.call("nvim_buf_get_extmarks", 0, namespace, 0, -1, {})
    assert editor.lines()[0].encode()[col:].decode() == "gut"


def test_characters_are_never_cut(editor: Editor, tmp_path: Path) -> None:
    """é and è share their first byte: the change is told to listeners at the border of the character."""
    path = tmp_path / "words.txt"
    path.write_text("aéb\n")
    buffer = editor.edit(path)
    editor.lua(
        """
      Changes = {}
      vim.api.nvim_buf_attach(..., false, { on_bytes = function(_, _, _, _, col, _, _, _, old, _, _, new)
        table.insert(Changes, { col, old, new })
      end })
    """,
        buffer,
    )
    write(editor, path, ["aèb"])
    assert editor.lua("return Changes") == [[1, 2, 2]]
    assert path.read_text() == "aèb\n"


def test_big_rewrite_is_one_change_for_listeners(editor: Editor, path: Path) -> None:
    """Language servers and treesitter hear every change: thousands of small ones would stop the editor."""
    path.write_text(text_of([str(n) for n in range(4000)]))
    editor.cmd("edit!")
    editor.lua("""
      Changes = 0
      vim.api.nvim_buf_attach(0, false, { on_lines = function() Changes = Changes + 1 end })
    """)
    new = [f"{n}x" if n % 3 == 0 else str(n) for n in range(4000)]
    write(editor, path, new)
    assert editor.lines() == new
    assert editor.lua("return Changes") < 4000


def test_unmodifiable_buffer_is_written_and_stays_unmodifiable(editor: Editor, path: Path) -> None:
    editor.cmd("setlocal nomodifiable readonly")
    assert write(editor, path, changed())["applied"]
    assert path.read_text() == text_of(changed())
    assert editor.options["modifiable"] is False
    assert editor.options["readonly"] is True


def test_hidden_buffer_and_other_tab(editor: Editor, path: Path) -> None:
    editor.cmd("tabnew")
    assert write(editor, path, changed())["applied"]
    assert path.read_text() == text_of(changed())
    editor.cmd("tabclose | enew")
    assert write(editor, path, LINES)["applied"]
    assert path.read_text() == text_of(LINES)
    assert editor.lua("return vim.api.nvim_buf_get_name(0)") == ""


FORMATTER = """
  local group = vim.api.nvim_create_augroup('test_formatter', { clear = true })
  vim.api.nvim_create_autocmd('BufWritePre', { group = group, callback = function()
    vim.api.nvim_buf_set_lines(0, 0, 0, true, { 'formatted' })
  end })
"""


def test_formatter_of_the_user_does_not_change_what_the_agent_wrote(editor: Editor, path: Path) -> None:  # B50
    editor.lua(FORMATTER)
    assert write(editor, path, changed())["applied"]
    assert path.read_text() == text_of(changed())


def test_formatter_runs_where_the_user_wants_it(editor: Editor, path: Path) -> None:
    editor.lua(FORMATTER)
    editor.lua("require('agentik.config').setup({ buffers = { autocmds = true } })")
    assert write(editor, path, changed())["applied"]
    assert path.read_text() == text_of(["formatted", *changed()])


def test_language_server_hears_of_the_save(editor: Editor, path: Path) -> None:
    saves = editor.lua(
        """
        Saves = {}
        local function server(dispatchers)
          return {
            request = function(method, _, callback)
              callback(nil, method == 'initialize' and {
                capabilities = { textDocumentSync = { openClose = true, change = 2, save = { includeText = true } } },
              } or nil)
              return true, 1
            end,
            notify = function(method, params)
              if method == 'textDocument/didSave' then table.insert(Saves, params) end
            end,
            is_closing = function() return false end,
            terminate = function() end,
          }
        end
        local client = vim.lsp.start({ name = 'test', cmd = server, root_dir = '/' })
        vim.wait(2000, function() return vim.lsp.get_client_by_id(client).initialized end, 1)
        require('agentik.buffers').write(...)
        vim.lsp.stop_client(client, true)
        return Saves
        """,
        str(path),
        "two\n",
    )
    assert [(save["textDocument"]["uri"], save["text"]) for save in saves] == [(path.as_uri(), "two\n")]


def test_user_autocommand_tells_of_the_write(editor: Editor, path: Path) -> None:
    editor.lua("""
      Written = nil
      vim.api.nvim_create_autocmd('User', { pattern = 'AgentikFileWritten', once = true, callback = function(event)
        Written = event.data
      end })
    """)
    write(editor, path, changed())
    assert editor.lua("return Written.path") == str(path)


def test_file_that_changed_on_disk_meanwhile_asks_nothing(editor: Editor, path: Path) -> None:
    """Neovim would ask "file has been changed since reading it": with nobody to answer, that would hang."""
    path.write_text("by somebody else\n")
    assert write(editor, path, changed())["applied"]
    assert path.read_text() == text_of(changed())
    editor.cmd("write")
    assert path.read_text() == text_of(changed())
