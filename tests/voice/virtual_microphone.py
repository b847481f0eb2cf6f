"""A microphone without hardware: a private pulseaudio whose null sink is heard by PortAudio, in real time.

Nothing of the machine's own sound is touched; everything is ended by its own process id.

    with VirtualMicrophone() as microphone:
        server = start(env={**os.environ, **microphone.environment})
        microphone.speak(wav).wait()
"""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Self

_SINK = "speech"
_READY = "Daemon startup complete"


def missing() -> str | None:
    """What this machine lacks for a virtual microphone, as one line; None when all is there."""
    lacking = [program for program in ("pulseaudio", "pactl", "paplay", "parec") if shutil.which(program) is None]
    if ctypes.util.find_library("portaudio") is None:
        lacking.append("libportaudio2")
    if not any(Path("/usr/lib").glob("*/alsa-lib/libasound_module_pcm_pulse.so")):
        lacking.append("libasound2-plugins")
    return f"no virtual microphone on this machine: {', '.join(lacking)} missing" if lacking else None


class VirtualMicrophone:
    """Open it with `with`. `environment` is what a process needs to hear it."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._drains: list[threading.Thread] = []
        self.log: list[str] = []
        """What pulseaudio said; for failing tests."""

    def __enter__(self) -> Self:
        self._cleanup = contextlib.ExitStack()
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.wait(timeout=10)
        for drain in self._drains:
            drain.join(timeout=10)
        self._cleanup.close()

    def speak(self, wav: Path) -> subprocess.Popen[bytes]:
        """Plays a file into the microphone; wait for the process to wait for the end of it."""
        process = self._spawn("paplay", f"--device={_SINK}", "--latency-msec=20", str(wav))
        self._processes.append(process)
        return process

    def unplug(self) -> None:
        """The device is gone, as if pulled out."""
        self._daemon.kill()
        self._daemon.wait(timeout=10)

    @contextlib.contextmanager
    def in_this_process(self) -> Iterator[None]:
        """This process hears it, from the next time PortAudio looks for devices."""
        before = {name: os.environ.get(name) for name in self.environment}
        os.environ.update(self.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value

    def _start(self) -> None:
        # A short path: the name of a socket has at most 107 bytes.
        folder = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory(prefix="vmic", dir="/tmp")))
        self.environment = {
            "PULSE_SERVER": f"unix:{folder}/native",
            "PULSE_RUNTIME_PATH": str(folder),
            "PULSE_STATE_PATH": str(folder),
            "PULSE_COOKIE": f"{folder}/cookie",
            # Own configuration: PortAudio sees exactly one device, whatever the machine's own says.
            "ALSA_CONFIG_PATH": f"{folder}/alsa.conf",
        }
        (folder / "alsa.conf").write_text(
            'pcm.!default { type pulse hint { show on description "virtual microphone" } }\n'
            "ctl.!default { type pulse }\n"
        )
        self._daemon = self._spawn(
            "pulseaudio", "-n", "--daemonize=no", "--use-pid-file=no", "--exit-idle-time=-1", "--realtime=no",
            "--high-priority=no", "--disable-shm=yes", "--log-target=stderr", "--log-level=info",
            "-L", f"module-native-protocol-unix auth-anonymous=1 socket={folder}/native",
            "-L", f"module-null-sink sink_name={_SINK} rate=16000 channels=1 format=s16le",
            HOME=str(folder),
        )  # fmt: skip
        self._processes.append(self._daemon)
        self._wait_until_ready(self._daemon)
        subprocess.run(
            ["pactl", "set-default-source", f"{_SINK}.monitor"], env=self._own_environment(), check=True, timeout=10
        )
        # The null sink wakes every 2 s until somebody asks for low latency: this reader does, and its first bytes say
        # that the device runs.
        reader = self._spawn("parec", "--raw", "--rate=16000", "--channels=1", "--latency-msec=20")
        self._processes.append(reader)
        assert reader.stdout
        if not reader.stdout.read(640):
            raise RuntimeError("\n".join(["the virtual microphone gives no sound", *self.log]))
        self._drain(reader.stdout, keep=False)

    def _wait_until_ready(self, daemon: subprocess.Popen[bytes]) -> None:
        assert daemon.stderr
        for line in daemon.stderr:
            self.log.append(line.decode(errors="replace").rstrip())
            if _READY in self.log[-1]:
                break
        else:
            raise RuntimeError("\n".join(["pulseaudio did not start", *self.log]))
        self._drain(daemon.stderr, keep=True)

    def _drain(self, stream: IO[bytes], *, keep: bool) -> None:
        def read() -> None:
            while data := stream.read1(4096):  # type: ignore[attr-defined]
                if keep:
                    self.log.append(data.decode(errors="replace").rstrip())

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        self._drains.append(thread)

    def _spawn(self, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            env={**self._own_environment(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if command[0] == "parec" else subprocess.DEVNULL,
            stderr=subprocess.PIPE if command[0] == "pulseaudio" else subprocess.DEVNULL,
        )

    def _own_environment(self) -> dict[str, str]:
        return {**os.environ, **self.environment}
