"""What the demo agent says and does: a scene for each of its slash commands, and an answer to anything else.

It explains Agentik while it plays. It must never pretend to have understood what was written.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from agentik_server.agents.demo.stage import Stage
from agentik_server.agents.demo.wire import Json

SCRATCH = "agentik-demo.txt"
MARK = "Written by Agentik's demo agent. You may delete this file.\n"

COMMANDS: list[Json] = [
    {"name": "help", "description": "What this demo agent can do"},
    {"name": "tour", "description": "A tour: thoughts, a plan, tools, an edit that asks first"},
    {"name": "plan", "description": "Show a plan and work through it"},
    {"name": "edit", "description": f"Write {SCRATCH} in your folder, after asking you"},
    {"name": "ask", "description": "Ask you a question with a form"},
    {"name": "long", "description": "Talk for a while: time to queue messages or to stop me"},
    {"name": "crash", "description": "End this agent's process in the middle of an answer"},
]

WELCOME = """\
Hello! I am the **demo agent** of Agentik. There is no language model behind me: I follow a script, need no key, and \
send nothing anywhere. I am here so that you can try the editor's side.

While I talk, **write another message and send it**. It does not interrupt me: it appears in the list of pending \
messages and is delivered when this answer is finished. Nothing you send is lost, not even if you close Neovim.

Some things to try:

- `/tour` shows thoughts, a plan, a tool call, and an edit that asks you first
- `/long` keeps me talking, so that you can queue, reorder or stop
- `/help` lists the rest

When you want a real agent (Claude Code, Codex, Gemini CLI and many more), install one of them and choose it; \
`:help agentik` says how.
"""

TIPS = (
    "Messages that wait can be edited, moved and removed in the pending list, before I get to see them.",
    "Select some lines and send: the selection travels as an attachment, with its file name and line numbers.",
    "Stop me at any time. What I said so far is kept, and the queue pauses, so that nothing follows by surprise.",
    "Close Neovim in the middle of an answer and open it again: the conversation is still there.",
    "If an agent's process dies, Agentik shows why, and starts it again with your next message. `/crash` proves it.",
    "Two Neovims can look at one conversation; one of them runs it, both can write.",
)


def title_of(text: str) -> str:
    """A title for the session: the first words."""
    words = " ".join(text.split())
    return words[:50] + ("…" if len(words) > 50 else "") or "Demo"


def read_prompt(blocks: list[object]) -> tuple[str, list[str]]:
    """The text of a prompt, and one line about each attachment."""
    texts: list[str] = []
    attached: list[str] = []
    for block in blocks:
        fields = block if isinstance(block, dict) else {}
        kind = fields.get("type")
        if kind == "text":
            texts.append(str(fields.get("text", "")))
        elif kind == "resource" and isinstance(fields.get("resource"), dict):
            resource = fields["resource"]
            lines = _count(len(str(resource.get("text", "")).splitlines()), "line")
            attached.append(f"`{resource.get('uri', '?')}`: {lines} of text")
        elif kind == "resource_link":
            attached.append(f"`{fields.get('uri', '?')}`: a link")
        elif kind is not None:
            attached.append(f"{kind} of type {fields.get('mimeType', 'unknown')}")
    return "\n".join(texts), attached


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def play(stage: Stage, text: str, attached: list[str], *, turn: int, may_write: bool, thinks: bool) -> None:
    """Answer one prompt. Raises Cancelled when the turn is cancelled."""
    command = text.split(maxsplit=1)[0][1:] if text.startswith("/") and text.split() else ""
    scene = SCENES.get(command)
    if scene is not None:
        scene(stage, may_write, thinks)
    elif command:
        stage.say(f"I do not know the command `/{command}`. ")
        help_scene(stage, may_write, thinks)
    else:
        answer(stage, text, attached, turn, thinks)


def answer(stage: Stage, text: str, attached: list[str], turn: int, thinks: bool) -> None:
    """Anything that is no command: say what came, and one thing worth knowing."""
    if thinks:
        stage.think("No model here; I answer from my script.")
    if turn == 1:
        stage.say(WELCOME)
    size = f"{_count(len(text), 'character')}, {_count(len(text.split()), 'word')}"
    stage.say(f"\nYour message arrived in full: {size}. ")
    shown = " ".join(text.split())
    stage.say(f"It begins with:\n\n> {shown[:160]}{'…' if len(shown) > 160 else ''}\n")
    for line in attached:
        stage.say(f"\n- attached: {line}")
    stage.say(f"\n\n*Did you know?* {TIPS[turn % len(TIPS)]}\n")


def help_scene(stage: Stage, may_write: bool, thinks: bool) -> None:
    del may_write, thinks
    stage.say("I am a demo without a model. These are my commands:\n\n")
    for command in COMMANDS:
        stage.say(f"- `/{command['name']}`: {command['description']}\n")
    stage.say("\nAnything else I answer with what I received, and with a hint about Agentik.\n")


def tour(stage: Stage, may_write: bool, thinks: bool) -> None:
    steps = ["Look at the folder", "Propose an edit", "Say what happened"]
    if thinks:
        stage.think("I show one of each: a thought (this one), a plan, two tools and an answer. ")
    stage.plan(steps, 0)
    stage.say("This is a tour of what agents do in Agentik. Above is my **plan**; it changes as I go on.\n\n")
    look(stage)
    stage.plan(steps, 1)
    stage.say("That was a **tool call** which only read. Now one that writes; it **asks you first**:\n\n")
    edit(stage, may_write, thinks)
    stage.plan(steps, 2)
    stage.say("\nThat is all there is to see: thoughts, a plan, tools, a permission, text. ")
    stage.say("Real agents do the same, with a model to decide what and why.\n")
    stage.plan(steps, 3)


def look(stage: Stage) -> None:
    """A tool call that counts the entries of the working folder and reads none of them."""
    tool = stage.tool("read", f"Look at {stage.cwd.name or stage.cwd}", locations=[{"path": str(stage.cwd)}])
    stage.tool_update(tool, "in_progress")
    stage.pause(20)
    try:
        with os.scandir(stage.cwd) as entries:
            kinds = [entry.is_dir() for entry in entries]
    except OSError as error:
        stage.tool_update(tool, "failed", str(error))
        return
    found = f"{_count(kinds.count(False), 'file')}, {_count(kinds.count(True), 'folder')}"
    stage.tool_update(tool, "completed", found)


def plan_scene(stage: Stage, may_write: bool, thinks: bool) -> None:
    del may_write, thinks
    steps = ["Read the question", "Think of an answer", "Write it down", "Check it"]
    stage.say("A plan is one entry of the chat that changes in place:\n")
    for done in range(len(steps) + 1):
        stage.plan(steps, done)
        stage.pause(25)
    stage.say("\nAll steps are done. (I did not really do them; there is no model here.)\n")


def edit(stage: Stage, may_write: bool, thinks: bool) -> None:
    """Write the scratch file, after asking, through the editor where it can."""
    del thinks
    path, old = scratch_file(stage.cwd)
    new = MARK + f"Lines so far: {len((old or MARK).splitlines())}\n"
    title = f"Write {path.name}"
    diff: Json = {"type": "diff", "path": str(path), "newText": new}
    content = [{**diff, "oldText": old} if old is not None else diff]
    if not may_write:
        stage.say(f"I would write `{path.name}` now, but the mode is *Look only*.\n")
        return
    tool = stage.tool("edit", title, content=content, locations=[{"path": str(path)}])
    if not stage.may(tool, title, content):
        stage.tool_update(tool, "failed", "rejected")
        stage.say(f"You said no, so `{path.name}` was not touched.\n")
        return
    stage.tool_update(tool, "in_progress")
    problem = write(stage, path, new)
    if problem is None:
        stage.tool_update(tool, "completed")
        stage.say(f"`{path.name}` is written. It is a scratch file of mine; delete it when you like.\n")
    else:
        stage.tool_update(tool, "failed", problem)
        stage.say(f"`{path.name}` could not be written: {problem}\n")


def scratch_file(folder: Path) -> tuple[Path, str | None]:
    """A path for the scratch file and its present text; never a file that the demo has not written itself."""
    for number in range(1, 100):
        path = folder / (SCRATCH if number == 1 else f"agentik-demo-{number}.txt")
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return path, None
        except (OSError, ValueError):
            continue
        if text.startswith(MARK):
            return path, text
    return folder / f"agentik-demo-{os.getpid()}.txt", None


def write(stage: Stage, path: Path, text: str) -> str | None:
    """What went wrong, or None."""
    if stage.able("fs", "writeTextFile"):
        done = stage.ask("fs/write_text_file", {"path": str(path), "content": text})
        return None if done is not None else "the editor refused it"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return str(error)
    return None


def ask(stage: Stage, may_write: bool, thinks: bool) -> None:
    del may_write, thinks
    if not stage.able("elicitation", "form"):
        stage.say("I would ask you something now, but this client shows no forms.\n")
        return
    stage.say("A question, with a form of two fields:\n\n")
    schema: Json = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "What shall I call you?", "minLength": 1},
            "colour": {"type": "string", "title": "Your favourite colour", "enum": ["blue", "green", "red", "other"]},
        },
        "required": ["name"],
    }
    params: Json = {"mode": "form", "message": "Two things about you (kept nowhere):", "requestedSchema": schema}
    reply = stage.ask("elicitation/create", params) or {}
    content = reply.get("content")
    if reply.get("action") == "accept" and isinstance(content, dict):
        stage.say(f"Nice to meet you, {content.get('name', 'whoever you are')}! ")
        stage.say(f"Colour: {content.get('colour', 'a secret')}. I have forgotten it already.\n")
    else:
        stage.say("You did not want to say, and that is fine.\n")


def long(stage: Stage, may_write: bool, thinks: bool) -> None:
    del may_write, thinks
    stage.say("I will talk for about a minute. Queue something, or stop me.\n\n")
    for number in range(1, 41):
        stage.say(
            f"{number}. This is sentence number {number} of forty; it has no meaning, but it takes its time, "
            "so that you can see text arrive while you type, scroll, queue messages and change their order.\n"
        )
    stage.say("\nThat was all.\n")


def crash(stage: Stage, may_write: bool, thinks: bool) -> None:
    del may_write, thinks
    stage.say("I am going to end my process in the middle of this sentence, as a real agent might if")
    os.write(2, b"demo agent: this crash was asked for with /crash\n")
    os._exit(42)


SCENES: dict[str, Callable[[Stage, bool, bool], None]] = {
    "help": help_scene,
    "tour": tour,
    "plan": plan_scene,
    "edit": edit,
    "ask": ask,
    "long": long,
    "crash": crash,
}
