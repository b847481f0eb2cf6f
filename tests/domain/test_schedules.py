"""No schedule of submit, end, cancel, crash, drain and pause loses or doubles a message (B1–B9, B22, B24–B26, B35)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentik_server.domain.happenings import TextArrived
from agentik_server.domain.policy import SessionPolicy
from tests.domain.world import Answered, World

MOVES = (
    "send", "send", "send", "send now", "commit", "commit", "commit", "commit group", "read", "ready", "ready",
    "answer", "answer", "error", "chunk", "ask", "permit", "agent dies", "cancel", "pause", "resume", "tick", "timer",
    "remove", "move", "now", "restart", "server dies", "server dies after commit",
)  # fmt: skip


class Play:
    """One schedule, and what the person at the editor may rely on."""

    def __init__(self, policy: SessionPolicy) -> None:
        self.world = World(policy)
        self.session_id = self.world.new_session()
        self.sent: list[tuple[str, Answered]] = []
        self.removed: list[tuple[str, Answered]] = []
        self.resets = 0

    def move(self, name: str, choice: int) -> None:
        world, session_id = self.world, self.session_id
        link = world.links.get(session_id)
        match name:
            case "send" | "send now":
                message_id = f"m{len(self.sent)}"
                answered = world.ask(
                    "sendMessage", sessionId=session_id, messageId=message_id, text=message_id, now=name == "send now"
                )
                self.sent.append((message_id, answered))
            case "commit" if world.store.queue:
                world.store.commit()
            case "commit group" if world.store.queue:
                world.store.commit(2 + choice % 6)
            case "read" if world.store.reads:
                world.store.answer_read()
            case "ready" if link:
                link.become_ready()
            case "answer" if link:
                link.answer(("end_turn", "cancelled", "refusal", "nonsense", None)[choice % 5])
            case "error" if link:
                link.answer(None, "it failed")
            case "chunk" if link and link.state == "up":
                link.tell(TextArrived("agent", f"chunk {choice} "))
            case "ask" if link:
                link.ask()
            case "permit" if link and link.permissions:
                world.ask("answerPermission", sessionId=session_id, permissionId=link.permissions[0], optionId="yes")
            case "agent dies" if link:
                link.exit()
            case "cancel":
                world.ask("cancelTurn", sessionId=session_id)
            case "pause":
                world.ask("pauseQueue", sessionId=session_id)
            case "resume":
                world.ask("resumeQueue", sessionId=session_id)
            case "restart":
                world.ask("restartAgent", sessionId=session_id)
            case "tick":
                world.app.tick()
            case "timer" if world.timers.armed:
                names = sorted(world.timers.armed)
                world.fire(names[choice % len(names)])
            case "remove" | "move" | "now" if self.sent:
                self.edit(name, self.sent[choice % len(self.sent)][0], choice)
            case "server dies" | "server dies after commit":
                world.die(commit_first=name.endswith("commit"))
                self.resets += 1
                world.finish(world.ask("openSession", sessionId=session_id))
            case _:
                pass

    def edit(self, name: str, message_id: str, choice: int) -> None:
        world, session_id = self.world, self.session_id
        if name == "remove":
            self.removed.append((message_id, world.ask("removePending", sessionId=session_id, messageId=message_id)))
        elif name == "move":
            world.ask("movePending", sessionId=session_id, messageId=message_id, position=choice % 4)
        else:
            world.ask("sendPendingNow", sessionId=session_id, messageId=message_id)

    def transcript(self) -> dict[str, Mapping[str, object]]:
        answer = self.world.finish(self.world.ask("openSession", sessionId=self.session_id, limit=10_000))
        assert answer.value is not None
        return {m["messageId"]: m for m in answer.value["messages"]}  # type: ignore[index, union-attr, misc]

    def check(self) -> None:
        delivered = self.world.delivered
        transcript = self.transcript()
        removed = {message_id for message_id, answered in self.removed if answered.value is not None}
        perhaps = {message_id for message_id, answered in self.removed if answered.reason is None}  # no reply: a crash
        for message_id, answered in self.sent:
            assert delivered[message_id] <= 1, f"{message_id} reached the agent {delivered[message_id]} times"
            if answered.value is None:
                continue  # refused, or the server died before it said anything
            if message_id in removed:
                assert delivered[message_id] == 0, f"{message_id} was removed and sent all the same"
                assert message_id not in transcript
                continue
            if message_id in perhaps and message_id not in transcript:
                assert delivered[message_id] == 0
                continue
            assert message_id in transcript, f"{message_id} was acknowledged and is gone"
            status = transcript[message_id]["status"]
            if delivered[message_id] == 0:
                assert status in {"interrupted", "unknown"}, f"{message_id} is {status} and was never sent"
        unknown = [m for m in transcript.values() if m["status"] == "streaming"]
        assert not unknown, f"streams for ever: {unknown}"

    def check_turns(self) -> None:
        """B35: exactly one turnEnded for each turnStarted (as far as one server's editor was told)."""
        started = Counter(p["turnId"] for p in self.world.editor.of("turnStarted"))
        ended = Counter(p["turnId"] for p in self.world.editor.of("turnEnded"))
        assert all(count == 1 for count in started.values()), started
        assert all(count == 1 for count in ended.values()), ended
        assert set(started) <= set(ended), (started, ended)


@given(
    moves=st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 20)), max_size=120),
    drain_all=st.booleans(),
    pause_on_cancel=st.booleans(),
)
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_schedule(moves: list[tuple[str, int]], drain_all: bool, pause_on_cancel: bool) -> None:
    """Whatever happens in whatever order: acknowledged means there, once; every turn ends once."""
    play = Play(SessionPolicy(drain_all=drain_all, pause_on_cancel=pause_on_cancel))
    for name, choice in moves:
        play.move(name, choice)
    play.world.settle(play.session_id)
    play.check()
    play.check_turns()
