"""The whole transcript as a buffer: which lines each message has, and the patches that bring the buffer there.

The document knows the exact state of the buffer, because nobody else writes it; every patch is made for the state
that the patches before it leave. Pure: patches are data. Must not decide what a message looks like (blocks, tools do).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentik.mirror import LIVE, Message
from agentik.render import blocks, tools
from agentik.render.blocks import Drawing, Lead, Place
from agentik.render.flow import Flow
from agentik.render.look import Scene
from agentik.render.marks import Marks

Key = tuple[int, str]
Patch = dict[str, Any]

_MORE, _ASK = "more", "ask"
_TOP: Key = (-(1 << 62), _MORE)
_ASKS = 1 << 62
_TOOL_SIZE = 1000
_DRAW: Mapping[str, Callable[[Message, Lead, Scene], Drawing]] = {
    "user": blocks.draw_user,
    "agent": blocks.draw_agent,
    "thought": blocks.draw_thought,
    "tool": tools.draw_tool,
    "plan": blocks.draw_plan,
    "notice": blocks.draw_notice,
}


@dataclass(slots=True)
class _Block:
    """One message in the buffer. `lines`, `marks` and `meta` are kept only while it may still change.

    `lines` are those before the lines of `flow`, or all.
    """

    number: int
    key: Key
    kind: str
    item_id: str
    lead: Lead = field(default_factory=Lead)
    height: int = 0
    lines: list[str] | None = None
    marks: Marks | None = None
    flow: Flow | None = None
    head: int = 0
    meta: dict[str, Any] | None = None

    def drawn(self) -> list[str] | None:
        """The lines as they stand in the buffer; None: not kept."""
        return self.lines if self.lines is None or self.flow is None else self.lines + self.flow.lines


@dataclass(frozen=True, slots=True)
class _Ask:
    """An open permission or question: the `number`th of `count`."""

    kind: str
    value: dict[str, Any]
    number: int
    count: int


@dataclass(frozen=True, slots=True)
class Found:
    """What stands at a place of the buffer."""

    kind: str
    item_id: str
    place: Place | None


class Document:
    """Feed it the mirror's changes, then `take` the patches of one frame.

    New messages are drawn from the newest on, as many as one frame has room for; the others wait for the next.
    """

    def __init__(self, scene: Scene, messages: Mapping[str, Message]) -> None:
        self.scene = scene
        self._messages = messages
        self._asks: dict[str, _Ask] = {}
        self._ask_keys: dict[str, Key] = {}
        self._blocks: list[_Block] = []
        self._keys: list[Key] = []
        self._by_id: dict[str, _Block] = {}
        self._numbers = 0
        self._height = 0
        self._dirty: dict[str, None] = {}
        self._grown: dict[str, list[str]] = {}
        self._waiting: list[Key] = []
        """New ones that no frame had room for, by place. An entry whose item has left that place means nothing."""
        self._more = False

    # What changed

    def changed(self, item_id: str) -> None:
        """A message is new, different or gone."""
        self._grown.pop(item_id, None)
        self._dirty[item_id] = None

    def grown(self, message_id: str, text: str) -> None:
        """Text was added to a message that is drawn, or will be."""
        if message_id not in self._dirty:
            self._grown.setdefault(message_id, []).append(text)

    def asked(self, permissions: Mapping[str, dict[str, Any]], questions: Mapping[str, dict[str, Any]]) -> None:
        """The requests and questions that are open now; they stand at the end."""
        asks = {
            ask_id: _Ask("permission", ask, number, len(permissions))
            for number, (ask_id, ask) in enumerate(permissions.items(), 1)
        }
        asks |= {ask_id: _Ask("question", ask, 1, 1) for ask_id, ask in questions.items()}
        for ask_id in self._asks | asks:
            if self._asks.get(ask_id) != asks.get(ask_id):
                self.changed(ask_id)
        last = max((key[0] for key in self._ask_keys.values()), default=_ASKS)
        keys = {ask_id: self._ask_keys.get(ask_id, (last + index, ask_id)) for index, ask_id in enumerate(asks, 1)}
        self._asks, self._ask_keys = asks, keys

    def older(self, exist: bool) -> None:
        """Whether older messages exist that are not here: said in the first line."""
        if exist != self._more:
            self._more = exist
            self.changed(_MORE)

    @property
    def is_dirty(self) -> bool:
        return bool(self._dirty or self._grown or self._waiting)

    @property
    def has_waiting(self) -> bool:
        """Messages are left for another frame."""
        return bool(self._waiting)

    # What the buffer needs

    def take(self, room: int | None = None) -> list[Patch]:
        """Patches since the last call. `room`: characters of new messages, None for all; at least one is drawn."""
        patches = self._settle()
        if fresh := self._fresh(room):
            patches += self._add(fresh)
            patches += self._settle()
        return patches

    def redraw(self, room: int | None = None) -> list[Patch]:
        """Everything anew, for an empty buffer, from the newest on; `take` gives what had no room."""
        self._blocks, self._keys, self._by_id, self._height = [], [], {}, 0
        self._grown.clear()
        self._dirty.clear()
        ids = [*self._messages, *self._asks, *([_MORE] if self._more else [])]
        self._waiting = sorted(key for key in map(self._key, ids) if key)
        return self._add(self._fresh(room))

    def find(self, number: int, offset: int) -> Found | None:
        """What stands `offset` lines below the start of the block with this number."""
        block = next((each for each in self._blocks if each.number == number), None)
        if block is None:
            return None
        drawing = self._draw(block)
        place = next((place for place in drawing.places if place.row == offset), None)
        return Found(block.kind, block.item_id, place)

    # Inside: one block

    def _settle(self) -> list[Patch]:
        """What changed of the blocks that are drawn; what is new waits."""
        patches: list[Patch] = []
        while self._dirty or self._grown:
            if self._dirty:
                item_id = next(iter(self._dirty))
                del self._dirty[item_id]
                patches += self._update(item_id)
                continue
            message_id = next(iter(self._grown))
            text = "".join(self._grown.pop(message_id))
            block = self._by_id.get(message_id)
            if block and block.flow and block.flow.lines:
                patches += self._grow(block, text)
            elif block:
                patches += self._update(message_id)
        return patches

    def _update(self, item_id: str) -> list[Patch]:
        key = self._key(item_id)
        block = self._by_id.get(item_id)
        patches: list[Patch] = []
        if block and (key is None or block.key != key or block.kind != self._kind(item_id)):
            patches.append(self._remove(block))
            block = None
        if block:
            patches += self._redraw_block(block)
        elif key is not None:
            insort(self._waiting, key)
        return patches

    def _fresh(self, room: int | None) -> list[Key]:
        """Takes the newest that wait and have room, by place."""
        fresh: list[Key] = []
        taken = 0
        while self._waiting and (room is None or not fresh or taken < room):
            key = self._waiting.pop()
            item_id = key[1]
            if self._key(item_id) == key and item_id not in self._by_id and key not in fresh[-1:]:
                fresh.append(key)
                taken += self._size(item_id)
        return fresh[::-1]

    def _size(self, item_id: str) -> int:
        """Characters that are drawn of an item, roughly."""
        message = self._messages.get(item_id)
        return len(message.text) + (_TOOL_SIZE if message.tool else 0) if message else 0

    def _add(self, fresh: list[Key]) -> list[Patch]:
        """Each is drawn once all have their place; those that stand side by side are one patch of text."""
        added = [self._insert(key) for key in fresh]
        patches: list[Patch] = []
        run: Patch = {}
        for block in added:
            for patch in self._redraw_block(block):
                patches.append(patch)
                if "lines" in patch and not _join(run, patch):
                    run = patch
        return patches

    def _key(self, item_id: str) -> Key | None:
        """Where the item stands, None when it stands nowhere."""
        if item_id == _MORE:
            return _TOP if self._more else None
        if item_id in self._asks:
            return self._ask_keys[item_id]
        message = self._messages.get(item_id)
        return (message.seq, item_id) if message else None

    def _kind(self, item_id: str) -> str:
        if item_id == _MORE:
            return _MORE
        return _ASK if item_id in self._asks else self._messages[item_id].kind

    def _insert(self, key: Key) -> _Block:
        self._numbers += 1
        block = _Block(self._numbers, key, self._kind(key[1]), key[1])
        index = bisect_left(self._keys, key)
        self._blocks.insert(index, block)
        self._keys.insert(index, key)
        self._by_id[block.item_id] = block
        return block

    def _remove(self, block: _Block) -> Patch:
        index = bisect_left(self._keys, block.key)
        patch: Patch = {"block": block.number, "row": self._row(index), "del": block.height, "lines": [], "gone": True}
        del self._blocks[index], self._keys[index], self._by_id[block.item_id]
        self._height -= block.height
        self._check_neighbours(index - 1)
        return patch

    def _check_neighbours(self, index: int) -> None:
        """The blocks beside a place that changed may have to be drawn with another lead."""
        for near in (index - 1, index, index + 1):
            if 0 <= near < len(self._blocks):
                block = self._blocks[near]
                if block.height and self._lead(near) != block.lead:
                    self.changed(block.item_id)

    def _lead(self, index: int) -> Lead:
        block = self._blocks[index]
        kind = self._blocks[index - 1].kind if index else None
        ends_at = None
        if block.kind == "thought" and index + 1 < len(self._blocks):
            after = self._messages.get(self._blocks[index + 1].item_id)
            this = self._messages.get(block.item_id)
            if after and this and after.turn_id == this.turn_id:
                ends_at = after.created_at
        return Lead(kind, ends_at)

    def _row(self, index: int) -> int:
        """First row of the block at `index`; counted from the nearer end, which mostly is the last."""
        if index > len(self._blocks) // 2:
            return self._height - sum(block.height for block in self._blocks[index:])
        return sum(block.height for block in self._blocks[:index])

    def _draw(self, block: _Block) -> Drawing:
        index = bisect_left(self._keys, block.key)
        lead = self._lead(index)
        block.lead = lead
        if block.kind == _MORE:
            return _draw_more(self.scene)
        if block.kind == _ASK:
            ask = self._asks[block.item_id]
            if ask.kind == "permission":
                return tools.draw_permission(ask.value, ask.number, ask.count, lead, self.scene)
            return tools.draw_question(ask.value, lead, self.scene)
        message = self._messages[block.item_id]
        return _DRAW.get(message.kind, blocks.draw_notice)(message, lead, self.scene)

    def _redraw_block(self, block: _Block) -> list[Patch]:
        drawing = self._draw(block)
        index = bisect_left(self._keys, block.key)
        self._check_neighbours(index)
        start = self._row(index)
        head, removed, end, clear = _difference(block, drawing)
        patch: Patch = {"block": block.number, "at": start}
        meta = _meta(block, drawing)
        if meta != block.meta:
            patch["meta"] = meta
        if removed or end > head:
            # An empty buffer has one line for Neovim: the first text replaces it.
            patch |= {"row": start + head, "del": removed if self._height else 1, "lines": drawing.lines[head:end]}
        if clear[1] > clear[0]:
            patch["clear"] = [start + clear[0], start + clear[1]]
            patch |= drawing.marks.within(*clear).wire(start)
        self._resize(block, len(drawing.lines))
        block.flow, block.head = drawing.flow, drawing.head
        keeps = self._is_open(block)
        block.lines = drawing.lines[: drawing.head if drawing.flow else None] if keeps else None
        block.marks = drawing.marks if keeps else None
        block.meta = meta if keeps else None
        return [patch] if len(patch) > 2 else []

    def _is_open(self, block: _Block) -> bool:
        message = self._messages.get(block.item_id)
        if message is None:
            return True
        return message.status == LIVE or (message.tool or {}).get("status") in {"pending", "in_progress"}

    def _grow(self, block: _Block, text: str) -> list[Patch]:
        assert block.flow is not None
        added, marks = block.flow.add(text)
        if not added:
            return []
        start = self._row(bisect_left(self._keys, block.key))
        last = start + block.height - 1
        moved = Marks()
        moved.extend(marks, block.head)
        if block.marks is not None:
            block.marks.extend(marks, block.head)
        self._resize(block, block.height + len(added) - 1)
        return [{"block": block.number, "row": last, "text": added, "height": block.height, **moved.wire(start)}]

    def _resize(self, block: _Block, height: int) -> None:
        self._height += height - block.height
        block.height = height


def _join(run: Patch, patch: Patch) -> bool:
    """Moves text and marks of a new block to the patch of the one above it, if it stands right below."""
    if not run or patch["del"] or run["row"] + len(run["lines"]) != patch["row"]:
        return False
    del patch["row"], patch["del"]
    run["lines"] += patch.pop("lines")
    run["clear"][1] = patch.pop("clear")[1]
    for name in ("spans", "fills", "signs", "codes"):
        if name in patch:
            run[name] = run.get(name, []) + patch.pop(name)
    return True


def _meta(block: _Block, drawing: Drawing) -> dict[str, Any]:
    meta: dict[str, Any] = {"id": block.item_id, "kind": block.kind, "height": len(drawing.lines)}
    if drawing.fold:
        meta["fold"] = [drawing.fold.first, drawing.fold.last, drawing.fold.closed]
    return meta


def _draw_more(scene: Scene) -> Drawing:
    drawing = Drawing()
    hint = f": {scene.look.keys['open']} shows them" if "open" in scene.look.keys else ""
    drawing.line(f"older messages{hint}", group="More")
    return drawing


def _difference(block: _Block, drawing: Drawing) -> tuple[int, int, int, tuple[int, int]]:
    """The smallest run of lines to replace: `head` lines stay, then `removed` are replaced by those up to `end`; and
    the rows of the new lines (first, end) whose marks are to be set anew.
    """
    new, old = drawing.lines, block.drawn()
    if old is None or block.marks is None:
        return 0, block.height, len(new), (0, len(new))
    least = min(len(old), len(new))
    head = 0
    while head < least and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < least - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before, after = block.marks.by_row(), drawing.marks.by_row()
    shift = len(old) - len(new)
    first, end = head, len(new) - tail
    unlike = [row for row in range(first) if before.get(row) != after.get(row)]
    unlike += [row for row in range(end, len(new)) if before.get(row + shift) != after.get(row)]
    if unlike and first == end and len(old) == len(new):
        first, end = unlike[0], unlike[-1] + 1
    elif unlike:
        first, end = min(first, unlike[0]), max(end, unlike[-1] + 1)
    return head, len(old) - tail - head, len(new) - tail, (first, end)
