"""The difference of two texts as hunks to be shown. Must stay fast: what is too large is shown as replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

CONTEXT = 2
LARGE = 600
"""Lines in the changed middle beyond which no fine comparison is made (it is quadratic)."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """`change` is " ", "+" or "-"; `number` counts from 1 in the new text, for "-" in the old one."""

    change: str
    text: str
    number: int


@dataclass(frozen=True, slots=True)
class Difference:
    """`hunks` are runs of lines with `CONTEXT` unchanged lines around the changed ones."""

    hunks: tuple[tuple[DiffLine, ...], ...]
    added: int
    removed: int


def difference(old: str | None, new: str) -> Difference:
    """Compares by lines. `old` None: a new file."""
    before = old.splitlines() if old else []
    after = new.splitlines()
    changes = list(_changes(before, after))
    shown = list(_opcodes_with_context(before, after))
    hunks: list[tuple[DiffLine, ...]] = []
    for group in shown:
        lines: list[DiffLine] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                lines += [DiffLine(" ", after[j], j + 1) for j in range(j1, j2)]
            else:
                lines += [DiffLine("-", before[i], i + 1) for i in range(i1, i2)]
                lines += [DiffLine("+", after[j], j + 1) for j in range(j1, j2)]
        hunks.append(tuple(lines))
    return Difference(
        tuple(hunks),
        added=sum(j2 - j1 for _, _, _, j1, j2 in changes),
        removed=sum(i2 - i1 for _, i1, i2, _, _ in changes),
    )


Opcode = tuple[str, int, int, int, int]


def _changes(before: list[str], after: list[str]) -> Iterator[Opcode]:
    return (opcode for opcode in _opcodes(before, after) if opcode[0] != "equal")


def _opcodes(before: list[str], after: list[str]) -> list[Opcode]:
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle_before = before[head : len(before) - tail]
    middle_after = after[head : len(after) - tail]
    opcodes: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    if len(middle_before) > LARGE or len(middle_after) > LARGE or not (middle_before and middle_after):
        if middle_before or middle_after:
            opcodes.append(("replace", head, head + len(middle_before), head, head + len(middle_after)))
    else:
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, middle_before, middle_after, autojunk=False).get_opcodes():
            opcodes.append((tag, head + i1, head + i2, head + j1, head + j2))
    if tail:
        opcodes.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return opcodes


def _opcodes_with_context(before: list[str], after: list[str]) -> Iterator[list[Opcode]]:
    group: list[Opcode] = []
    opcodes = _opcodes(before, after)
    for index, (tag, i1, i2, j1, j2) in enumerate(opcodes):
        if tag != "equal":
            group.append((tag, i1, i2, j1, j2))
            continue
        first, last = index == 0, index == len(opcodes) - 1
        if first and last:
            continue
        if first:
            group = [(tag, max(i1, i2 - CONTEXT), i2, max(j1, j2 - CONTEXT), j2)]
        elif last:
            group.append((tag, i1, min(i2, i1 + CONTEXT), j1, min(j2, j1 + CONTEXT)))
        elif i2 - i1 > 2 * CONTEXT:
            group.append((tag, i1, i1 + CONTEXT, j1, j1 + CONTEXT))
            yield group
            group = [(tag, i2 - CONTEXT, i2, j2 - CONTEXT, j2)]
        else:
            group.append((tag, i1, i2, j1, j2))
    if group:
        yield group
