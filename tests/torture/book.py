"""What the editors may rely on: every message with the replies they got, and the comparison with what became of it.

Must not talk to a server: it is told the replies, the agents' log and the transcripts, and finds what does not agree.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

_FIRST_LINE = re.compile(r"^(?P<id>\S+) v(?P<version>\d+)$", re.MULTILINE)
REACHED_AGENT = frozenset({"complete", "failed"})


@dataclass
class Sent:
    """One message. `removed` "perhaps": the removal was asked for and its reply never came."""

    message_id: str
    sender: str
    session_id: str
    number: int
    command: str
    urgent: bool = False
    acknowledged: str | None = None  # the first disposition
    refused: str | None = None  # the reason
    version: int = 0  # the last edit that was asked for
    confirmed: int = 0  # the last edit that was applied
    moved: bool = False
    removed: Literal["no", "perhaps", "yes"] = "no"
    resends: int = 0  # asked for by the user, whatever came of it

    def text(self, version: int | None = None) -> str:
        return f"{self.message_id} v{self.version if version is None else version}\n{self.command}"

    @property
    def keeps_order(self) -> bool:
        return not (self.moved or self.urgent or self.resends)


@dataclass
class Book:
    """All messages of all editors, in the order of sending."""

    sent: dict[str, Sent] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)  # what was done
    problems: list[str] = field(default_factory=list)

    def new(self, sender: str, session_id: str, command: str, *, urgent: bool = False, prefix: str = "") -> Sent:
        number = len(self.sent)
        sent = Sent(f"{prefix}{sender}{number}", sender, session_id, number, command, urgent)
        self.sent[sent.message_id] = sent
        return sent

    def wrong(self, what: str) -> None:
        self.problems.append(what)

    def waits_for_sure(self, message_id: str) -> bool:
        """Acknowledged, and nobody asked for its removal."""
        sent = self.sent.get(message_id)
        return sent is not None and sent.acknowledged is not None and sent.removed == "no"


@dataclass(frozen=True)
class Delivered:
    """A message in a prompt that reached an agent."""

    message_id: str
    version: int


def deliveries(agent_log: Path) -> list[Delivered]:
    """In the order in which they reached the agents."""
    found: list[Delivered] = []
    lines = agent_log.read_text().splitlines() if agent_log.exists() else []
    for entry in map(json.loads, lines):
        if entry["method"] == "session/prompt":
            text = "\n".join(block.get("text", "") for block in entry["params"]["prompt"] if block["type"] == "text")
            found += [Delivered(match["id"], int(match["version"])) for match in _FIRST_LINE.finditer(text)]
    return found


def account(book: Book, delivered: Sequence[Delivered], pages: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What is lost, doubled, out of order or not as it was replied. `pages`: whole sessions (openSession)."""
    waiting = Counter(item["messageId"] for page in pages.values() for item in page["pending"])
    statuses: dict[str, list[str]] = defaultdict(list)
    for page in pages.values():
        for message in page["messages"]:
            if message["kind"] == "user":
                statuses[message["messageId"]].append(message["status"])
    by_id: dict[str, list[int]] = defaultdict(list)
    for one in delivered:
        by_id[one.message_id].append(one.version)
    problems = []
    for sent in book.sent.values():
        name = sent.message_id
        wrong = _judge(sent, by_id[name], waiting[name], statuses[name])
        if wrong:
            found = f"delivered {by_id[name]}, waits {waiting[name]}, {statuses[name]}"
            problems.append(f"{name}: {wrong} [{sent}; {found}]")
    strangers = (set(by_id) | set(waiting)) - set(book.sent)
    problems += [f"{name}: nobody sent it" for name in sorted(strangers)]
    for page in pages.values():
        problems += [f"{m['messageId']} streams for ever" for m in page["messages"] if m["status"] == "streaming"]
    return problems + list(_disorder(book, delivered))


def _judge(sent: Sent, versions: list[int], waits: int, statuses: list[str]) -> str:
    """Empty when everything is as it was promised."""
    places = waits + len(statuses)
    if len(versions) > 1 + sent.resends:
        return "doubled"
    if places > 1:
        return "in two places"
    if sent.acknowledged is None:
        return "refused and there all the same" if sent.refused and (versions or places) else ""
    if sent.removed == "yes":
        return "removed and there all the same" if places or len(versions) > sent.resends else ""
    if not places:
        return "" if sent.removed == "perhaps" and len(versions) <= sent.resends else "lost"
    if waits and len(versions) > sent.resends:
        return "delivered, and waits to be delivered again"
    if statuses and statuses[0] in REACHED_AGENT and not versions:
        return "said to be delivered and never was"
    if versions and not sent.resends and not sent.confirmed <= versions[-1] <= sent.version:
        return "delivered with another text than the last edit"
    return ""


def _disorder(book: Book, delivered: Iterable[Delivered]) -> Iterable[str]:
    """Order is kept for each sender in each session, but for what was moved or sent at once."""
    last: dict[tuple[str, str], Sent] = {}
    for one in delivered:
        sent = book.sent.get(one.message_id)
        if sent is None or not sent.keeps_order:
            continue
        key = sent.sender, sent.session_id
        before = last.get(key)
        if before is not None and before.number > sent.number:
            yield f"{sent.message_id} was delivered after {before.message_id}"
        last[key] = sent
