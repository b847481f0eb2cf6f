"""Version, error codes and reasons of the protocol. Data only; imports nothing heavy (see the package)."""

from __future__ import annotations

from typing import Final

PROTOCOL_VERSION: Final = 1

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
NOT_INITIALIZED: Final = -32002
CANCELLED: Final = -32800
REFUSED: Final = 4000

CODES: Final[dict[int, str]] = {
    PARSE_ERROR: "the frame is no JSON, or its header is broken; `id` is null",
    INVALID_REQUEST: "valid JSON, but no valid JSON-RPC message (a batch array is none), or a request after `shutdown`",
    METHOD_NOT_FOUND: "no such method",
    INVALID_PARAMS: "`data.field` names the first bad field, `data.reason` says why, `data.problems` lists all",
    INTERNAL_ERROR: "a bug of the server; its log has the traceback. The session lives on",
    NOT_INITIALIZED: "a request before `initialize` was answered",
    CANCELLED: "the answer to a request that was cancelled by `$/cancelRequest`, or still open at `shutdown`",
    REFUSED: "refused, nothing was changed; `data.reason` is one of the reasons below",
}

REASONS: Final[dict[str, str]] = {
    "unknownSession": "no session has this id",
    "unknownMessage": "no message of the session has this id",
    "emptyText": "the text is blank and nothing is attached",
    "invalidText": "the text holds NUL or half a surrogate pair",
    "textTooLong": "more bytes than `queue.maxTextBytes`",
    "tooManyFiles": "more attachments than `queue.maxFiles`",
    "queueFull": "`queue.maxItems` are waiting",
    "queueTooLarge": "what waits would be more than `queue.maxTotalBytes`",
    "attachmentMissing": "an attached file cannot be read",
    "attachmentTooLarge": "an attached file is too large",
    "sessionBusy": "the session is busy and the queue is disabled",
    "alreadyDelivered": "the message is in the transcript already",
    "duplicateId": "the same message id came with another text",
    "unknownAgent": "no agent has this id",
    "agentUnavailable": "the agent's command is not there, or it did not start",
    "authRequired": "the agent wants a login first",
    "unknownPermission": "no such permission or question is open",
    "unknownOption": "the agent does not offer this option",
    "notOwner": "another process runs this session",
    "storeFailed": "the database could not be written; the answer to `initialize` when it cannot be opened",
    "startFailed": "the answer to `initialize` when the server cannot start for another reason",
    "microphoneUnavailable": "no microphone, or it is in use",
    "speechModelMissing": "the speech model is not on this machine",
    "dictationBusy": "another dictation is running",
    "notSupported": "the agent cannot do this",
    "serverBusy": "more requests are open than the server takes, or the client does not read the answers",
}
