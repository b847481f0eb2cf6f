"""The one refusal of dictation: a line a person can act on, with the protocol's reason."""

from __future__ import annotations

from typing import Literal

Reason = Literal["microphoneUnavailable", "speechModelMissing", "dictationBusy"]


class VoiceRefused(Exception):  # noqa: N818 -- a refusal is an answer to the caller, not a defect
    """Dictation cannot be done as asked, and nothing was changed.

    `reason` is the protocol's (`error.data.reason`), `message` one line for a person: what is wrong and what helps.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
