"""A thin msgpack-rpc driver of an embedded Neovim: nothing hidden, a time limit on everything, one process of ours.

Synchronous on purpose: a test reads from top to bottom. While it waits it takes in what Neovim sends.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from typing import Any

import msgpack


class NvimFault(Exception):  # noqa: N818 - Neovim's answer, not a fault of the driver
    """Neovim answered a request with an error."""


class NvimGone(Exception):  # noqa: N818 - a fact
    """Neovim has ended."""


class Rpc:
    """Speaks with one Neovim over its stdin and stdout."""

    def __init__(
        self, argv: list[str], env: dict[str, str], cwd: str, notified: Callable[[str, list[Any]], None]
    ) -> None:
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=cwd)
        self._notified = notified
        self._unpacker = msgpack.Unpacker(raw=False, unicode_errors="surrogateescape", strict_map_key=False)
        self._number = 0
        self._answers: dict[int, tuple[Any, Any]] = {}
        self._selector = selectors.DefaultSelector()
        assert self.process.stdout is not None
        self._selector.register(self.process.stdout, selectors.EVENT_READ)

    def send(self, method: str, *arguments: Any) -> int:
        """Sends a request and does not wait for its answer."""
        self._number += 1
        stdin = self.process.stdin
        assert stdin is not None
        try:
            stdin.write(msgpack.packb([0, self._number, method, arguments], unicode_errors="surrogateescape"))
            stdin.flush()
        except (BrokenPipeError, ValueError) as error:  # ValueError: we closed it
            raise NvimGone(method) from error
        return self._number

    def call(self, method: str, *arguments: Any, timeout_s: float = 20.0) -> Any:
        """Raises NvimFault, NvimGone or TimeoutError."""
        number = self.send(method, *arguments)
        self.pump(lambda: number in self._answers, timeout_s, what=f"the answer to {method}")
        error, result = self._answers.pop(number)
        if error is not None:
            raise NvimFault(error[1] if isinstance(error, list) else error)
        return result

    def pump(self, until: Callable[[], bool], timeout_s: float, what: str) -> None:
        """Takes in what Neovim sends until `until()` is true; asked again after each piece, and now and then."""
        deadline = time.monotonic() + timeout_s
        while not until():
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(what)
            self._read(min(left, 0.05))

    def listen(self, seconds: float) -> None:
        """Takes in what Neovim sends for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._read(left)

    def _read(self, wait_s: float) -> None:
        if not self._selector.select(wait_s):
            return
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 1 << 20)
        if not data:
            raise NvimGone("the end of Neovim's output")
        self._unpacker.feed(data)
        for message in self._unpacker:
            if message[0] == 1:
                self._answers[message[1]] = (message[2], message[3])
            elif message[0] == 2:
                self._notified(message[1], message[2])

    def close(self, timeout_s: float = 10.0) -> int:
        """Ends Neovim with `:qa!`, or kills it; gives its exit code."""
        try:
            if self.process.poll() is None:
                self.send("nvim_command", "qa!")
            self._drain(timeout_s)
        except NvimGone:
            pass
        finally:
            if self.process.poll() is None:
                self.process.kill()
            for stream in (self.process.stdin, self.process.stdout):
                if stream:
                    with contextlib.suppress(BrokenPipeError):  # what it did not read is lost
                        stream.close()
            self._selector.close()
        return self.process.wait()

    def _drain(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.05)
