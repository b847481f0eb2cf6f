"""The language server that the editor talks to: pygls for the life of an LSP server; our own codec, pipes and outbox.

The only module that knows pygls. It keeps no rule of sessions; what arrives is handled in the order of the wire, by
plain calls. No input ends it: only `exit`, the end of stdin, a signal, or a client that closed our stdout.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import signal
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final

from cattrs import transform_error
from cattrs.errors import BaseValidationError
from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method

from agentik_server.editor import codec
from agentik_server.editor.buffers import EditorBuffers, EditorRefused
from agentik_server.editor.dispatch import PREFIX, Dispatcher
from agentik_server.editor.lifecycle import BadOption, Lifecycle, Phase, options_of
from agentik_server.editor.outbox import Outbox
from agentik_server.editor.progress import CREATE, Created, WireProgress
from agentik_server.editor.replies import Replies
from agentik_server.editor.stdio import Stdio, StdioEvents, claim_stdio
from agentik_server.ports import Application, BufferState, Progress
from agentik_server.protocol.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NOT_INITIALIZED,
    PARSE_ERROR,
    PROTOCOL_VERSION,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from cattrs import Converter

logger = logging.getLogger(__name__)
logging.getLogger("pygls").setLevel(logging.WARNING)  # below that it logs whole payloads

NAME: Final = "agentik-server"
FLUSH_S: Final = 1.0  # for the client to read the last frames
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class _Server(LanguageServer):
    """Errors go to the log: pygls would show each to the user."""

    def report_server_error(self, error: Exception, source: object) -> None:
        logger.debug("%s: %s", source, error)


class _Protocol(LanguageServerProtocol):
    """pygls' part: the answers to initialize and shutdown, and the futures of what we ask the client."""

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.database_id = ""
        self.replies: Replies
        self.outbox: Outbox

    def _register_builtin_features(self) -> None:
        """Only these: pygls would keep documents, which nobody here reads, and offer commands."""
        self.fm.add_builtin_feature(types.INITIALIZE, self.lsp_initialize)
        self.fm.add_builtin_feature(types.INITIALIZED, self.lsp_initialized)
        self.fm.add_builtin_feature(types.SHUTDOWN, self.lsp_shutdown)
        self.fm.add_builtin_feature(types.SET_TRACE, self.lsp_set_trace)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        result: types.InitializeResult = yield from super().lsp_initialize(params)
        ours = {
            "protocolVersion": PROTOCOL_VERSION,
            "version": self._server.version,
            "databaseId": self.database_id,
        }
        result.capabilities = types.ServerCapabilities(
            position_encoding=result.capabilities.position_encoding, experimental={"agentik": ours}
        )
        return result

    @property
    def shows_progress(self) -> bool:
        window = self.client_capabilities.window
        return window is not None and bool(window.work_done_progress)

    def answer_initialize(self, number: codec.MessageId, params: types.InitializeParams, database_id: str) -> None:
        self.database_id = database_id
        self._handle_request(number, types.INITIALIZE, params)

    def answer_shutdown(self, number: codec.MessageId) -> None:
        self._handle_request(number, types.SHUTDOWN, None)

    def notified(self, method: str, params: Mapping[str, Any]) -> None:
        """`initialized`, `$/setTrace`; anything else is ignored."""
        kind = self.get_message_type(method)
        if method in self.fm.builtin_features and kind is not None:
            message = self._converter.structure({"jsonrpc": "2.0", "method": method, "params": params}, kind)
            self._handle_notification(method, message.params)

    def initialize_params(self, params: Mapping[str, Any]) -> types.InitializeParams:
        """Raises BadOption."""
        given = {key: value for key, value in params.items() if value is not None and key != "initializationOptions"}
        defaults: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
        try:
            return self._converter.structure({**defaults, **given}, types.InitializeParams)
        except (BaseValidationError, ValueError, TypeError, KeyError) as error:
            reason, _, field = transform_error(error)[0].partition(" @ $")
            field = re.sub("_([a-z])", lambda letter: letter[1].upper(), field.removeprefix("."))
            raise BadOption(field or "params", reason) from None

    def ask(self, number: str, method: str, params: Mapping[str, Any]) -> Future[Any]:
        """Send a request to the client. The future raises JsonRpcException for an error."""
        return self.send_request(method, params, msg_id=number)

    def forget(self, number: codec.MessageId) -> None:
        """An answer is not awaited any more; a late one is logged and dropped."""
        self._request_futures.pop(number, None)
        self._result_types.pop(number, None)

    def answered(self, response: codec.Response) -> None:
        future = self._request_futures.get(response.id)
        if future is not None and future.done():  # its time was just over
            self.forget(response.id)
            return
        error = None
        if response.error is not None:
            code, message = response.error.get("code"), response.error.get("message")
            code = code if isinstance(code, int) else INTERNAL_ERROR
            error = types.ResponseError(code=code, message=str(message or "no reason given"))
        self._handle_response(response.id, response.result, error)
        self.forget(response.id)

    def _send_data(self, data: Any) -> None:
        message = {"jsonrpc": "2.0", "method": data.method, "params": data.params}
        if hasattr(data, "id"):
            message["id"] = data.id
        self.outbox.send(message)

    def _send_response(
        self, msg_id: codec.MessageId, result: Any = None, error: types.ResponseError | None = None
    ) -> None:
        if error is None:
            self._result_types.pop(msg_id, None)
            self.replies.send_result(msg_id, "a request", self._converter.unstructure(result))
        else:  # without its data: pygls puts a traceback there
            self.replies.send_error(msg_id, error.code, error.message)


class EditorServer:
    """ports.Editor, ports.OpenBuffers and ports.Progresses, and the loop that serves one application (`serve`)."""

    def __init__(self, version: str) -> None:
        server = _Server(
            NAME,
            version,
            text_document_sync_kind=types.TextDocumentSyncKind.None_,
            protocol_cls=_Protocol,
            converter_factory=default_converter,
        )
        assert isinstance(server.protocol, _Protocol)
        self._protocol = server.protocol
        self._buffers = EditorBuffers(self._ask)
        self._parser = codec.FrameParser()
        self._asked: dict[str, Future[Any]] = {}
        self._early: list[tuple[str, Mapping[str, object]]] = []
        self._count = 0
        self._life: Lifecycle
        self._dispatcher: Dispatcher
        self._outbox: Outbox
        self._replies: Replies
        self._ended: asyncio.Future[int]

    # -- ports --------------------------------------------------------------------------------------------------------

    def notify(self, method: str, params: Mapping[str, object]) -> None:
        if self._life.phase in {Phase.NEW, Phase.STARTING}:
            self._early.append((method, params))  # LSP: nothing before the answer to initialize
        else:
            self._outbox.notify(method, params)

    async def read(self, path: str) -> BufferState | None:
        return await self._buffers.read(path)

    async def write(self, path: str, text: str) -> tuple[bool, str | None] | None:
        return await self._buffers.write(path, text)

    def progress(self, title: str) -> Progress:
        self._count += 1
        return WireProgress(title, f"agentik-{self._count}", self._create_progress, self.notify)

    # -- the loop -----------------------------------------------------------------------------------------------------

    async def serve(self, application: Application, incoming: int, outgoing: int) -> int:
        """Serve until the end; returns the exit code. Takes over both file descriptors."""
        loop = asyncio.get_running_loop()
        stdio = Stdio()
        self._ended = loop.create_future()
        self._outbox = self._protocol.outbox = Outbox(stdio.write)
        self._replies = self._protocol.replies = Replies(self._outbox)
        self._dispatcher = Dispatcher(application, self._replies, self._outbox)
        self._life = Lifecycle(application, self._replies, before_end=self._give_up_asking)
        for number in SIGNALS:
            loop.add_signal_handler(number, self.end, 0)
        events = StdioEvents(self._received, lambda: self.end(0), self._outbox.pipe_full, self._outbox.pipe_has_room)
        await stdio.open(incoming, outgoing, events)
        code = await self._ended
        await self._life.wind_up()
        self._outbox.close()
        await stdio.close(FLUSH_S)
        return code

    def end(self, code: int) -> None:
        """The orderly end begins; `serve` returns `code`. The first cause wins."""
        if not self._ended.done():
            self._ended.set_result(code)

    def _received(self, data: bytes) -> None:
        for found in self._parser.feed(data):
            if isinstance(found, codec.BrokenFrame):
                logger.warning("a frame from the client is broken: %s", found.reason)
                self._replies.send_error(None, PARSE_ERROR, f"no frame: {found.reason}")
                continue
            try:
                self._handle(codec.decode(found))
            except Exception:
                logger.exception("a message from the client met a bug")

    def _handle(self, message: codec.Incoming) -> None:
        match message:
            case codec.Request():
                self._requested(message)
            case codec.Notification():
                self._notified(message)
            case codec.Response():
                self._protocol.answered(message)
            case codec.Invalid():
                logger.warning("no message from the client: %s", message.message)
                self._replies.send_error(message.id, message.code, message.message)

    def _requested(self, request: codec.Request) -> None:
        phase = self._life.phase
        if phase is Phase.ENDING:
            self._replies.send_error(request.id, INVALID_REQUEST, "the server is shutting down")
        elif request.method == types.INITIALIZE:
            self._initialize(request)
        elif phase is not Phase.READY:
            self._replies.send_error(request.id, NOT_INITIALIZED, "the server is not initialized")
        elif request.method == types.SHUTDOWN:
            self._life.shut_down(lambda: self._protocol.answer_shutdown(request.id))
        elif request.method.startswith(PREFIX):
            self._dispatcher.serve(request)
        else:
            self._replies.send_error(request.id, METHOD_NOT_FOUND, f"no method {request.method}")

    def _initialize(self, request: codec.Request) -> None:
        if self._life.phase is not Phase.NEW:
            self._replies.send_error(request.id, INVALID_REQUEST, "initialize came already")
            return
        try:
            if not isinstance(request.params, dict):
                raise BadOption("params", "must be an object")
            options = options_of(request.params)
            params = self._protocol.initialize_params(request.params)
        except BadOption as bad:
            data = {"field": bad.field, "reason": bad.reason}
            self._replies.send_error(request.id, INVALID_PARAMS, f"initialize: {bad}", data)
            return

        self._early.clear()  # of a start that failed

        def answer(database_id: str) -> None:
            self._protocol.answer_initialize(request.id, params, database_id)
            for method, news in self._early:
                self._outbox.notify(method, news)
            self._early.clear()
            asyncio.get_running_loop().call_soon(_settle)

        self._life.initialize(request.id, options, answer)

    def _notified(self, notification: codec.Notification) -> None:
        params = notification.params if isinstance(notification.params, dict) else {}
        if notification.method == types.EXIT:
            self.end(0 if self._life.phase is Phase.ENDING else 1)
        elif notification.method == types.CANCEL_REQUEST:
            self._replies.cancel(params.get("id"))
        elif notification.method.startswith(PREFIX):
            logger.warning("%s came without an id and was ignored", notification.method)
        else:
            self._protocol.notified(notification.method, params)

    # -- what we ask --------------------------------------------------------------------------------------------------

    async def _ask(self, method: str, params: Mapping[str, Any], limit_s: float) -> Any:
        """buffers.Ask."""
        number, future = self._send_request(method, params)
        try:
            async with asyncio.timeout(limit_s) as limit:
                return await asyncio.wrap_future(future)
        except TimeoutError:
            if not limit.expired():
                raise  # the future's own: the editor is gone
            self._outbox.notify(types.CANCEL_REQUEST, {"id": number})
            raise TimeoutError(f"the editor did not answer within {limit_s:g} s") from None
        except JsonRpcException as error:
            raise EditorRefused(error.code, error.message) from None
        finally:
            self._protocol.forget(number)
            self._asked.pop(number, None)

    def _send_request(self, method: str, params: Mapping[str, Any]) -> tuple[str, Future[Any]]:
        if self._life.phase is not Phase.READY:
            raise TimeoutError("the editor is gone")
        self._count += 1
        number = f"agentik-{self._count}"
        future = self._asked[number] = self._protocol.ask(number, method, params)
        return number, future

    def _give_up_asking(self) -> None:
        for future in list(self._asked.values()):
            if not future.done():
                future.set_exception(TimeoutError("the editor is gone"))

    def _create_progress(self, token: str, then: Created) -> None:
        if self._life.phase is not Phase.READY or not self._protocol.shows_progress:
            then(False)
            return
        number, future = self._send_request(CREATE, {"token": token})

        def done(future: Future[Any]) -> None:
            self._asked.pop(number, None)
            then(future.exception() is None)

        future.add_done_callback(done)


def run(
    application: Application, editor: EditorServer, incoming: int | None = None, outgoing: int | None = None
) -> int:
    """Serve `application` on stdin and stdout (or these file descriptors) until the end; returns the exit code."""
    if incoming is None or outgoing is None:
        incoming, outgoing = claim_stdio()
    return asyncio.run(editor.serve(application, incoming, outgoing))


def _settle() -> None:
    """What the first request needs, while the editor is busy with the answer to `initialize`."""
    import agentik_server.protocol.registry  # noqa: F401

    gc.freeze()  # what was loaded stays: a full collection would walk over it for tens of milliseconds
