"""The tables of all methods: what the server dispatches by, and what the documents are made from."""

from __future__ import annotations

from dataclasses import dataclass

from agentik_server.protocol.base import Empty, Wire
from agentik_server.protocol.notifications import (
    ConnectionChanged,
    DictationFinal,
    DictationLevel,
    DictationPartial,
    DictationState,
    MessageQueued,
    MessageReceived,
    MessageUpdated,
    Notice,
    PendingChanged,
    PermissionRequested,
    PermissionResolved,
    QuestionAsked,
    QuestionResolved,
    ReadBuffer,
    ReadBufferResult,
    Resync,
    SessionChanged,
    SessionDeleted,
    StreamingToken,
    TurnEnded,
    TurnStarted,
    WriteBuffer,
    WriteBufferResult,
)
from agentik_server.protocol.requests import (
    AnswerPermission,
    AnswerQuestion,
    ApplyPendingEdits,
    ApplyPendingEditsResult,
    Authenticate,
    CancelTurnResult,
    CheckAgentResult,
    DictationStarted,
    EditPending,
    ExportSession,
    ForkSession,
    HoldPending,
    ImportSessions,
    ListAgentsResult,
    ListMessages,
    ListMessagesResult,
    ListMicrophonesResult,
    ListSessions,
    ListSessionsResult,
    MovePending,
    NewSession,
    OfAgent,
    OfDictation,
    OfMessage,
    OfSession,
    OpenSession,
    OpenSessionResult,
    RenameSession,
    SearchMessages,
    SearchMessagesResult,
    SendMessage,
    SendMessageResult,
    SessionResult,
    SessionsResult,
    SetConfigOption,
    SetMode,
    StartDictation,
    Status,
    TextResult,
)


@dataclass(frozen=True, slots=True)
class RequestType:
    """One method. `read_only`: it changes nothing, so `$/cancelRequest` ends it at once; the others answer in the end.

    `refusals`: the reasons of error 4000 that a caller has to expect.
    """

    params_model: type[Wire]
    result_model: type[Wire]
    doc: str
    read_only: bool = False
    refusals: tuple[str, ...] = ()


_SESSION = ("unknownSession",)
_STORED = ("unknownSession", "storeFailed")
_TEXT = ("emptyText", "invalidText", "textTooLong", "tooManyFiles", "attachmentMissing", "attachmentTooLarge")
_QUEUE = ("queueTooLarge",)
_PENDING = ("unknownSession", "unknownMessage", "alreadyDelivered", "storeFailed")
_AGENT = ("unknownSession", "notOwner", "agentUnavailable", "notSupported")

REQUESTS: dict[str, RequestType] = {
    "agentik/listAgents": RequestType(Empty, ListAgentsResult, "The agents there are.", read_only=True),
    "agentik/checkAgent": RequestType(
        OfAgent,
        CheckAgentResult,
        "Start the agent, do a real handshake, stop it: for health checks.",
        read_only=True,
        refusals=("unknownAgent",),
    ),
    "agentik/newSession": RequestType(
        NewSession,
        SessionResult,
        "A new session. The agent starts later, or now in the background.",
        refusals=("unknownAgent", "agentUnavailable", "storeFailed"),
    ),
    "agentik/listSessions": RequestType(ListSessions, ListSessionsResult, "Sessions, newest first.", read_only=True),
    "agentik/openSession": RequestType(
        OpenSession,
        OpenSessionResult,
        "Subscribe to a session and get what the client lacks. Without `after`: the newest `limit` messages; with it: "
        "everything that changed since that revision, deletions as tombstones.",
        refusals=_SESSION,
    ),
    "agentik/closeSession": RequestType(OfSession, Empty, "Unsubscribe; the session lives on.", refusals=_SESSION),
    "agentik/deleteSession": RequestType(
        OfSession, Empty, "Delete it and everything of it, attachments included.", refusals=(*_STORED, "notOwner")
    ),
    "agentik/renameSession": RequestType(RenameSession, Empty, "Change the title.", refusals=_STORED),
    "agentik/forkSession": RequestType(
        ForkSession,
        SessionResult,
        "A new session that goes on from this one, where the agent can.",
        refusals=(*_AGENT, "unknownMessage", "storeFailed"),
    ),
    "agentik/importSessions": RequestType(
        ImportSessions,
        SessionsResult,
        "Take over sessions of the folder that so far only the agent knows.",
        refusals=("unknownAgent", "agentUnavailable", "authRequired", "notSupported", "storeFailed"),
    ),
    "agentik/listMessages": RequestType(
        ListMessages, ListMessagesResult, "A page of the transcript.", read_only=True, refusals=_SESSION
    ),
    "agentik/searchMessages": RequestType(
        SearchMessages,
        SearchMessagesResult,
        "Full-text search, over all sessions unless `sessionId` is given.",
        read_only=True,
        refusals=_SESSION,
    ),
    "agentik/exportSession": RequestType(
        ExportSession, TextResult, "The whole transcript as text.", read_only=True, refusals=_SESSION
    ),
    "agentik/sendMessage": RequestType(
        SendMessage,
        SendMessageResult,
        "Send a message. Idempotent by `messageId`: the same id and text again starts nothing and returns the first "
        "outcome (`removed`: the user removed it meanwhile). Answered after it is committed.",
        refusals=(*_SESSION, *_TEXT, "queueFull", *_QUEUE, "sessionBusy", "duplicateId", "notOwner", "storeFailed"),
    ),
    "agentik/editPending": RequestType(
        EditPending, Empty, "Change a waiting message; id and place stay.", refusals=(*_PENDING, *_TEXT, *_QUEUE)
    ),
    "agentik/movePending": RequestType(MovePending, Empty, "Move a waiting message.", refusals=_PENDING),
    "agentik/removePending": RequestType(OfMessage, Empty, "Drop a waiting message.", refusals=_PENDING),
    "agentik/clearPending": RequestType(OfSession, Empty, "Drop all waiting messages.", refusals=_STORED),
    "agentik/sendPendingNow": RequestType(
        OfMessage, Empty, "Cancel the running turn; this item goes next, the rest follows unpaused.", refusals=_PENDING
    ),
    "agentik/applyPendingEdits": RequestType(
        ApplyPendingEdits,
        ApplyPendingEditsResult,
        "Several edits in one transaction; each says whether it was applied, and why not.",
        refusals=_STORED,
    ),
    "agentik/holdPending": RequestType(
        HoldPending, Empty, "Hold the head of the queue while the user edits the list.", refusals=_STORED
    ),
    "agentik/pauseQueue": RequestType(OfSession, Empty, "Pause the queue.", refusals=_STORED),
    "agentik/resumeQueue": RequestType(OfSession, Empty, "Lift a pause, whatever made it.", refusals=_STORED),
    "agentik/cancelTurn": RequestType(OfSession, CancelTurnResult, "Cancel the running turn.", refusals=_SESSION),
    "agentik/resendMessage": RequestType(
        OfMessage,
        SendMessageResult,
        "Send again a message that is `unknown`, `interrupted` or `failed`.",
        refusals=("unknownSession", "unknownMessage", "queueFull", *_QUEUE, "sessionBusy", "notOwner", "storeFailed"),
    ),
    "agentik/answerPermission": RequestType(
        AnswerPermission,
        Empty,
        "Answer a permission request.",
        refusals=(*_SESSION, "unknownPermission", "unknownOption", "storeFailed"),
    ),
    "agentik/answerQuestion": RequestType(
        AnswerQuestion, Empty, "Answer a question.", refusals=(*_SESSION, "unknownPermission", "storeFailed")
    ),
    "agentik/setMode": RequestType(
        SetMode, Empty, "Change the agent's mode.", refusals=(*_AGENT, "unknownOption", "authRequired")
    ),
    "agentik/setConfigOption": RequestType(
        SetConfigOption,
        Empty,
        "Change one of the agent's options.",
        refusals=(*_AGENT, "unknownOption", "authRequired"),
    ),
    "agentik/authenticate": RequestType(Authenticate, Empty, "Log in by one of the agent's methods.", refusals=_AGENT),
    "agentik/restartAgent": RequestType(
        OfSession, Empty, "Stop the agent's process and start it anew.", refusals=("unknownSession", "notOwner")
    ),
    "agentik/startDictation": RequestType(
        StartDictation,
        DictationStarted,
        "Open the microphone and turn speech into text.",
        refusals=("microphoneUnavailable", "speechModelMissing", "dictationBusy"),
    ),
    "agentik/stopDictation": RequestType(OfDictation, TextResult, "End it; answers with the text of all of it."),
    "agentik/cancelDictation": RequestType(OfDictation, Empty, "End it and drop the text."),
    "agentik/listMicrophones": RequestType(
        Empty, ListMicrophonesResult, "The microphones there are.", read_only=True, refusals=("microphoneUnavailable",)
    ),
    "agentik/status": RequestType(Empty, Status, "The server's state, for health checks and reports.", read_only=True),
}

CLIENT_REQUESTS: dict[str, RequestType] = {
    "agentik/readBuffer": RequestType(
        ReadBuffer, ReadBufferResult, "The agent reads a file that may be open with unsaved changes."
    ),
    "agentik/writeBuffer": RequestType(WriteBuffer, WriteBufferResult, "The agent writes a file that may be open."),
}


@dataclass(frozen=True, slots=True)
class NotificationType:
    params_model: type[Wire]
    doc: str


NOTIFICATIONS: dict[str, NotificationType] = {
    "agentik/messageQueued": NotificationType(
        MessageQueued, "The message waits in the pending queue, and that is committed."
    ),
    "agentik/messageReceived": NotificationType(
        MessageReceived,
        "The agent's run took the message: draw it in the chat, drop it from pending by `messageId`.",
    ),
    "agentik/turnStarted": NotificationType(TurnStarted, "The prompt goes to the agent."),
    "agentik/streamingToken": NotificationType(
        StreamingToken,
        "Text arrived for an `agent` or `thought` message. Frames of one message may be merged. A client that holds "
        "less text than `offset` asks for the session again; one that holds more cuts the overlap.",
    ),
    "agentik/messageUpdated": NotificationType(
        MessageUpdated,
        "A tool call, plan, notice or finished answer is new or changed. While the client does not read, a newer one "
        "of the same message replaces an older one, and streaming text that it contains.",
    ),
    "agentik/turnEnded": NotificationType(TurnEnded, "Exactly once per turn."),
    "agentik/pendingChanged": NotificationType(PendingChanged, "The queue changed in any way."),
    "agentik/permissionRequested": NotificationType(PermissionRequested, "The agent asks."),
    "agentik/permissionResolved": NotificationType(PermissionResolved, "Somebody answered, or it was cancelled."),
    "agentik/questionAsked": NotificationType(QuestionAsked, "The agent wants input."),
    "agentik/questionResolved": NotificationType(QuestionResolved, "Somebody answered, or it was withdrawn."),
    "agentik/sessionDeleted": NotificationType(SessionDeleted, "It and everything of it is gone."),
    "agentik/sessionChanged": NotificationType(SessionChanged, "Title, state, mode, commands, usage or owner changed."),
    "agentik/connectionChanged": NotificationType(ConnectionChanged, "Each step of the agent's state machine."),
    "agentik/notice": NotificationType(Notice, "Something the person should read."),
    "agentik/resync": NotificationType(
        Resync,
        "The client did not read for so long that notifications of this session were dropped: ask `openSession` with "
        "`after` = the last revision seen. Nothing else of the session was sent in between.",
    ),
    "agentik/dictationState": NotificationType(DictationState, "A step of the dictation."),
    "agentik/dictationPartial": NotificationType(DictationPartial, "The running guess of what is being said."),
    "agentik/dictationFinal": NotificationType(DictationFinal, "Text that will not change any more."),
    "agentik/dictationLevel": NotificationType(DictationLevel, "Input level, at most 10 a second."),
}
