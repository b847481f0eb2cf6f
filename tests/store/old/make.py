"""Write the file of the current schema version: `python -m tests.store.old.make`, once, when a version lands.

It plays a life with everything in it through the public writes and keeps the database and what a reader sees of it.
A file that is there already is never written again: it shows how that version really wrote.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from agentik_server.domain import saves
from agentik_server.domain.message import (
    Attachment,
    Diff,
    Location,
    Permission,
    PermissionOption,
    PlanEntry,
    Position,
    Question,
    Range,
    ToolCall,
)
from agentik_server.domain.pending import Pause
from agentik_server.store import opening
from agentik_server.store.migrations import SCHEMA_VERSION, migrate
from agentik_server.store.reads import fetch
from tests.store.desk import ME, Desk

FOLDER = Path(__file__).parent
READS: tuple[saves.Read, ...] = (
    saves.ReadSession("s"),
    saves.ReadSession("s", after=0),
    saves.ReadSession("other"),
    saves.ReadMessages("s", limit=3),
    saves.ReadSessions(),
    saves.SearchMessages("needle"),
)


def seen(db: sqlite3.Connection) -> object:
    """What a reader sees, as JSON."""
    pages = [asdict(fetch(db, read)) for read in READS]
    ledger = db.execute("SELECT message_id, session_id, hex(text_hash), outcome FROM submissions ORDER BY 1").fetchall()
    return json.loads(json.dumps([*pages, ledger]))


def live(db: sqlite3.Connection) -> None:
    """Every table gets rows, every kind of message and state occurs."""
    desk = Desk(db)
    desk.session("s", title="Ein Titel – é", controls={"modeId": "plan", "commands": [{"name": "x"}]})
    desk.session("other", owner=None, cwd="/elsewhere")
    kept = Attachment("/x/a.py", "a.py", Range(Position(1, 2), Position(3, 4)), None, "python", None, "/kept/a.py", 9)
    desk.admitted("direct", "the needle é\r\n", free=True, attachments=(kept,))
    desk.journal("t-direct")
    tool = ToolCall(
        "c1", "Edit", "edit", "completed", (Location("/x", 3),), (Diff("/x", "new", "old"),), "needle out", {"a": [1]}
    )
    desk.end(
        "t-direct",
        desk.message("answer", "an answer with a needle", turn_id="t-direct"),
        desk.message("thought", "a thought", kind="thought", status="interrupted"),
        desk.message("tool", "", kind="tool", tool=tool),
        desk.message("plan", "", kind="plan", plan=(PlanEntry("find the needle", "in_progress", "high"),)),
        desk.message("notice", "a needle nobody looks for", kind="notice"),
        status="unknown",
        reason="crashed",
    )
    desk.do(saves.Resend("s", ME, "direct", True, "t-again", 20, saves.QueueLimits(), desk.now))
    desk.done(saves.EndTurn("s", ME, "t-again", "error", "failed", (), Pause("error"), desk.now, "no more tokens"))
    for message_id in ("back", "claimed", "waits", "removed"):
        desk.admitted(message_id)
    desk.claim("t-back")
    desk.put_back("t-back", Pause("start", "not found"))
    desk.done(saves.RemovePending("s", "removed"))
    desk.done(saves.PauseQueue("s", False))
    desk.claim("t-open")
    desk.journal("t-open")
    desk.save(desk.message("half", "half an ans", status="streaming", turn_id="t-open"))
    desk.done(saves.PauseQueue("s", True))
    desk.done(saves.HoldPending("s", 123_456, desk.now))
    desk.done(saves.SaveAsk("s", ME, Permission("p", "s", tool, (PermissionOption("y", "Yes", "allow_once"),), 5)))
    desk.done(saves.SaveAsk("s", ME, Question("q", "s", "Which?", 6, {"type": "object"}, "http://localhost/x")))
    desk.done(saves.CloseAsk("s", ME, "p", "y"))
    desk.done(saves.SaveNotice("s", ME, "warning", "context was reset"))
    desk.done(saves.PostMail("s", {"kind": "cancel"}, desk.now))


def main() -> int:
    target = FOLDER / f"v{SCHEMA_VERSION}.db"
    if target.exists():
        print(f"{target.name} is there already")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.db")
        db = opening.connect(path)
        migrate(db)
        live(db)
        (FOLDER / f"v{SCHEMA_VERSION}.json").write_text(json.dumps(seen(db), indent=1, sort_keys=True) + "\n")
        db.close()
        shutil.copy(path, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
