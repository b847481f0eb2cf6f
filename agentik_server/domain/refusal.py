"""The one exception of the domain: a call that was refused and changed nothing.

Must not be raised for faults of the world (disk, agent, pipe): those are happenings, not refusals.
"""

from __future__ import annotations


class Refused(Exception):  # noqa: N818 -- the word of the protocol
    """A refused call. `reason`: one of PROTOCOL.md's "Errors the caller can act on"; `str()`: a line for a person."""

    def __init__(self, reason: str, message: str, **data: object) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.data = data
