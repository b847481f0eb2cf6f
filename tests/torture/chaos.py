"""Two editors, two servers, one database, and a seed that decides what happens next.

The choices are drawn before anything is known of the servers, so a seed gives the same choices again; what they meet
depends on time. Must not judge: the book does.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.stdio_client import Params, RpcError, ServerGone
from tests.torture.book import Book, Sent, deliveries
from tests.torture.editor import Editor, pick, seeded
from tests.torture.nursery import Nursery

SESSIONS = 2
CROWDED = 70  # waiting messages of a session from which on an editor waits before it sends more
SETTLE_S = 120.0

# What a message makes its agent do, and how often.
COMMANDS: dict[str, int] = {
    "#say ok": 60,
    "#stream 15 2\n#tool t edit completed": 8,
    "#permission p": 5,
    "#hang": 4,
    "#crash": 3,
    "#exit 3": 2,
    "#error -32603 boom": 2,
    "#ignore_cancel\n#sleep 30": 3,
    "#flood 2000": 3,
    "#end refusal": 1,
    "#no_answer": 1,
    "#fork\n#say forked": 2,
}

# What an editor does next, and how often.
ACTIONS: dict[str, int] = {
    "send": 300,
    "look": 60,
    "edit": 60,
    "move": 40,
    "remove": 50,
    "apply edits": 25,
    "resume": 60,
    "send at once": 15,
    "send pending now": 25,
    "cancel": 40,
    "answer": 40,
    "pause": 12,
    "hold": 10,
    "resend": 8,
    "close and open": 8,
    "look away": 8,
    "restart agent": 6,
    "kill server": 12,
    "kill agent": 14,
    "kill guard": 6,
    "hang up": 4,
    "shut down": 4,
}


@dataclass(frozen=True)
class Step:
    """`choices`: numbers between 0 and 1 that say which message, which place, how many."""

    action: str
    choices: tuple[float, ...]
    commands: tuple[str, ...]


def steps(rng: random.Random) -> Iterator[Step]:
    actions, weights = list(ACTIONS), list(ACTIONS.values())
    commands, command_weights = list(COMMANDS), list(COMMANDS.values())
    while True:
        action = rng.choices(actions, weights)[0]
        choices = tuple(rng.random() for _ in range(6))
        yield Step(action, choices, tuple(rng.choices(commands, command_weights, k=6)))


class Chaos:
    """`messages`: to be sent by both editors together; `seconds`: after which no more are sent."""

    def __init__(self, home: Path, seed: int, messages: int, seconds: float) -> None:
        self.home = home
        self.seed = seed
        self.book = Book()
        self._messages = messages
        self._ends_at = time.monotonic() + seconds
        self._tag = f"{seed}-{time.time_ns()}"
        self._editors: list[Editor] = []
        self._last_turn: dict[str, str | None] = {}

    async def run(self, nursery: Nursery) -> None:
        (self.home / "work").mkdir(parents=True)
        self._editors = [Editor(name, self.home, nursery, self.book, self._tag) for name in ("A", "B")]
        for editor in self._editors:
            editor.queue_settings = self.queue_settings
        first, second = self._editors
        await first.come()
        for _ in range(SESSIONS):
            answer = await first.client.request("agentik/newSession", {"cwd": str(self.home / "work")})
            for editor in self._editors:
                editor.sessions.append(answer["session"]["sessionId"])
        await second.come()
        await asyncio.gather(*(self._live(editor) for editor in self._editors))
        for editor in self._editors:
            editor.mortality = lambda: (0, "")
        await self._alive()
        await self._stand_still()
        await self._judge("standing still", drained=False)
        await self._settle()
        await self._judge("all drained", drained=True)
        await self._send_again()
        for editor in self._editors:
            await editor.leave()

    @property
    def queue_settings(self) -> Params:
        """The seed chooses these, too."""
        rng = seeded(self.seed, "settings")
        chosen = {"drain": ("one", "all"), "onCancel": ("pause", "continue"), "onRestore": ("pause", "run")}
        return {key: values[rng.random() < 0.35] for key, values in chosen.items()}

    # -------------------------------------------------------------------------------------------- the choices

    async def _live(self, editor: Editor) -> None:
        mortal = seeded(self.seed, editor.name, "mortality")
        editor.mortality = lambda: (mortal.randrange(1, 500) if mortal.random() < 0.4 else 0, "")
        for step in steps(seeded(self.seed, editor.name)):
            if len(self.book.sent) >= self._messages or time.monotonic() > self._ends_at:
                return
            try:
                await self._step(editor, step)
            except ServerGone:
                await editor.go()
                await editor.come()

    async def _step(self, editor: Editor, step: Step) -> None:
        a, b, c, *_ = step.choices
        session_id = editor.sessions[int(a * len(editor.sessions))]
        await editor.mend()
        screen = editor.screen
        waiting = screen.waiting(session_id)
        near = waiting + screen.taken(session_id, 6)
        mine = [name for name in waiting if name in self.book.sent and name.startswith(editor.name)]
        target = pick(near, self.book, b)
        own = pick([name for name in near if name.startswith(editor.name)], self.book, b)
        match step.action:
            case "send":
                await self._send(editor, session_id, step)
            case "send at once":
                editor.send(self.book.new(editor.name, session_id, step.commands[0], urgent=True))
            case "look":
                await editor.news(0.05)
            case "edit" if own:
                await editor.edit(own)
            case "move" if target:
                await editor.move(target, int(c * 8))
            case "remove" if own:
                await editor.remove(own)
            case "send pending now" if target:
                await editor.send_now(target)
            case "apply edits" if mine:
                await self._apply(editor, mine, step)
            case "resume" | "pause":
                await editor.asked(f"{step.action}Queue", session_id, set())
            case "cancel":
                await editor.asked("cancelTurn", session_id, set())
            case "answer" if screen.permissions(session_id):
                option = ("yes", "no", None)[int(c * 3)]
                permission_id = screen.permissions(session_id)[-1]
                await editor.asked(
                    "answerPermission", session_id, {"unknownPermission"}, permissionId=permission_id, optionId=option
                )
            case "hold":
                await editor.asked("holdPending", session_id, set(), hold=True)
                await editor.news(0.02)
                await editor.asked("holdPending", session_id, set(), hold=False)
            case "resend":
                await self._resend(editor, session_id, b)
            case "close and open":
                await editor.asked("closeSession", session_id, set())
                screen.mirror(session_id).disconnected()
                await editor.watch(session_id)
            case "look away":
                await editor.look_away(b * 0.3)
            case "restart agent":
                await editor.asked("restartAgent", session_id, set())
            case _:
                await self._violence(editor, step)

    async def _send(self, editor: Editor, session_id: str, step: Step) -> None:
        """A burst, without waiting for replies; sometimes large, sometimes with a file."""
        await self._make_room(editor, session_id)
        for number in range(1 + int(step.choices[1] * 6)):
            command = step.commands[number]
            if step.choices[2] < 0.03:
                command += "\n" + "long text " * 8000
            attachments: list[Params] = []
            if step.choices[3] < 0.06:
                attachments = [{"path": str(self.home / "work" / "some file.txt"), "text": f"kept {number}"}]
            editor.send(self.book.new(editor.name, session_id, command), attachments)
        if step.choices[4] < 0.5:
            await editor.replies()

    async def _make_room(self, editor: Editor, session_id: str) -> None:
        for patience in range(60):
            if len(editor.screen.waiting(session_id)) < CROWDED:
                return
            if patience % 10 == 9:
                await editor.asked("resumeQueue", session_id, set())
                await editor.asked("cancelTurn", session_id, set())
            await editor.news(0.1)

    async def _apply(self, editor: Editor, mine: list[str], step: Step) -> None:
        edits: list[tuple[str, Sent, int]] = []
        for number, choice in enumerate(step.choices[1:4]):
            sent = pick(mine, self.book, choice)
            if sent is not None and sent.message_id not in {edit[1].message_id for edit in edits}:
                edits.append((("edit", "move", "remove")[(number + int(choice * 3)) % 3], sent, int(choice * 9)))
        await editor.apply(edits)

    async def _resend(self, editor: Editor, session_id: str, choice: float) -> None:
        page = await editor.open(session_id, limit=40)
        names = [m["messageId"] for m in page["messages"] if m["status"] in {"unknown", "interrupted", "failed"}]
        sent = pick([name for name in names if name in self.book.sent], self.book, choice)
        if sent is not None:
            sent.resends += 1
            allowed = {"alreadyDelivered", "unknownMessage", "queueFull"}
            await editor.asked("resendMessage", session_id, allowed, messageId=sent.message_id)

    async def _violence(self, editor: Editor, step: Step) -> None:
        match step.action:
            case "kill server":
                await asyncio.sleep(step.choices[1] ** 3 * 0.03)
                editor.kill_server()
            case "kill agent":
                editor.kill_of_agent(step.choices[1], guard=False)
            case "kill guard":
                editor.kill_of_agent(step.choices[1], guard=True)
            case "hang up":
                editor.hang_up()
            case "shut down":
                self.book.counts["shut down"] += 1
                editor.ending = True
                await editor.client.request("shutdown")
                editor.client.notify("exit")
            case _:
                return
        if step.action in {"kill server", "hang up", "shut down"}:
            raise ServerGone("as it was chosen")

    # ---------------------------------------------------------------------------------------------- the count

    async def _alive(self) -> None:
        """Both editors at servers that will not die by themselves, every reply heard."""
        for editor in self._editors:
            editor.kill_server()
            await editor.go()
            await editor.come()
        for editor in self._editors:
            await editor.replies()

    async def _stand_still(self) -> None:
        """Nothing runs and nothing will: the queues are paused by the user, the turns cancelled."""
        editor = self._editors[0]
        for session_id in editor.sessions:
            async with asyncio.timeout(SETTLE_S):
                while True:
                    await editor.asked("pauseQueue", session_id, set())
                    page = await editor.open(session_id)
                    if page["session"]["state"] == "idle" and (page["session"]["paused"] or not page["pending"]):
                        break
                    await editor.asked("cancelTurn", session_id, set())
                    await editor.news(0.2)

    async def _settle(self) -> None:
        """Everybody behaves from now on, until nothing waits."""
        async with asyncio.timeout(SETTLE_S):
            await asyncio.gather(*(self._settle_session(session_id) for session_id in self._editors[0].sessions))

    async def _settle_session(self, session_id: str) -> None:
        editor = self._editors[1]
        quiet = 0
        while True:
            page = await editor.open(session_id)
            busy = page["session"]["state"] != "idle"
            if not busy and not page["pending"]:
                return
            if page["session"]["paused"]:
                await editor.asked("resumeQueue", session_id, set())
            for permission in page["permissions"]:
                params = {"permissionId": permission["permissionId"], "optionId": "yes"}
                await editor.asked("answerPermission", session_id, {"unknownPermission"}, **params)
            turn = page["messages"][-1]["turnId"] if page["messages"] else None
            quiet = quiet + 1 if busy and turn == self._last_turn.get(session_id) else 0
            self._last_turn[session_id] = turn
            if quiet > 3:
                await editor.asked("cancelTurn", session_id, set())
            await editor.news(0.1)

    async def _judge(self, when: str, *, drained: bool) -> None:
        for editor in self._editors:
            found = await editor.count(self.book, drained=drained)
            self.book.problems += [f"{when}, seen by {editor.name}: {problem}" for problem in found]
        self.book.counts["delivered"] = len(deliveries(self.home / "agent.log"))

    async def _send_again(self) -> None:
        """B4: what is sent again is answered as it was at first, and nothing comes of it."""
        editor = self._editors[0]
        known = [sent for sent in self.book.sent.values() if sent.acknowledged and not sent.resends]
        before = len(deliveries(self.home / "agent.log"))
        for sent in seeded(self.seed, "again").sample(known, min(50, len(known))):
            params = {"messageId": sent.message_id, "text": sent.text(0)}
            try:
                disposition = (await editor.call("sendMessage", sent.session_id, **params))["disposition"]
            except RpcError as error:
                disposition = str(error)
            expected = {"removed"} if sent.removed == "yes" else {sent.acknowledged}
            if sent.removed == "perhaps":
                expected.add("removed")
            if disposition not in expected:
                self.book.wrong(f"sent again, {sent.message_id} is {disposition} and not {expected}")
        await self._settle()
        if len(deliveries(self.home / "agent.log")) != before:
            self.book.wrong("something was delivered again")
