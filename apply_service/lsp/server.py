"""The language server: commands that apply updates to an editor's documents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

import msgspec
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import TextDocument

from apply_service.edit.forms.form import UpdateFormat
from apply_service.edit.text.text_edits import PositionEncoding
from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyBody, ApplyResult, ChoiceBody, FindingBody, RangeBody
from apply_service.lsp.clipboard import ClipboardError
from apply_service.lsp.protocol_edits import (
    chosen_of,
    diagnostics_of,
    question_of,
    summary_of,
    workspace_edit,
)
from apply_service.regular_file import read_regular
from apply_service.shown_text import shown_line

APPLY = "apply-service.apply"
APPLY_SELECTION = "apply-service.applySelection"
APPLY_DOCUMENT = "apply-service.applyDocument"

_LOGGER = logging.getLogger(__name__)
_PROTOCOL_LOGGER = logging.getLogger("pygls.protocol.json_rpc")

# Answers an edit, as a server would; may take its time, and may raise.
Ask = Callable[[ApplyBody], ApplyResult | Problem]


class CommandOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The last argument of each command."""

    instruction: str | None = None
    format: UpdateFormat | None = None
    resolve: str | None = None


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """What each command returns; `has_changed` says whether the editor took the edit."""

    status: str
    message: str
    has_changed: bool = False
    confidence: float | None = None
    findings: list[FindingBody] = []
    choices: list[ChoiceBody] = []


@dataclass(frozen=True, slots=True)
class _Question:
    """What an update may mean, while nobody has said; `command` with `arguments` asked."""

    text: str
    command: str
    arguments: tuple[Any, ...]
    options: CommandOptions
    choices: Sequence[ChoiceBody]

    def actions(self) -> Iterator[types.Command]:
        """A command for each choice, which applies the update as it says."""
        for choice in self.choices:
            options = msgspec.structs.replace(self.options, resolve=choice.id)
            yield types.Command(
                f"Apply the update: {choice.reason} ({choice.probability:.0%})",
                self.command,
                arguments=[*self.arguments, msgspec.to_builtins(options)],
            )


class _Applier:
    """Applies updates to the documents of one editor."""

    def __init__(self, server: LanguageServer, ask: Ask, *, max_file_bytes: int) -> None:
        self._server = server
        self._ask = ask
        self._max_file_bytes = max_file_bytes
        # What documents looked like when their findings were shown.
        self._shown: dict[str, str] = {}
        self._questions: dict[str, _Question] = {}

    async def apply(
        self,
        uri: str,
        update: str,
        options: CommandOptions,
        *,
        command: str,
        arguments: tuple[Any, ...],
        original: str | None = None,
    ) -> CommandResult:
        """Apply an update to a document, or to a text in the place of its own.

        `command` with `arguments` does the same again.
        """
        self._questions.pop(uri, None)
        document = self.document(uri)
        text, version = document.source, document.version
        try:
            body = ApplyBody(
                original=text if original is None else original,
                update=update,
                path=_path_of(uri, self._server.workspace.root_path),
                format=options.format,
                instruction=options.instruction,
                resolve=options.resolve,
            )
            answer = await asyncio.to_thread(self._ask, body)
            if answer.choices:
                self._questions[uri] = _Question(text, command, arguments, options, answer.choices)
            chosen = await self._which(answer.choices or ())
            if chosen is not None:
                self._questions.pop(uri, None)
                body = msgspec.structs.replace(body, resolve=chosen.id)
                answer = await asyncio.to_thread(self._ask, body)
        except Exception as error:  # whatever the way to a server or a model may raise
            _LOGGER.debug("an edit failed", exc_info=error)
            return self.failed(str(error) or type(error).__name__)
        if isinstance(answer, Problem):
            return self._refused(uri, text, answer)
        if answer.status == "needs_review":
            return self._shown_result(uri, text, answer)
        if self.document(uri).source != text:
            # A client that knows no versions would put the edit into the other text.
            return self.failed("the document has changed meanwhile; apply the update again")
        identity = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
        edit = workspace_edit(
            identity,
            text,
            answer,
            encoding=cast(PositionEncoding, self._server.workspace.position_encoding),
            capabilities=self._server.client_capabilities,
        )
        label = f"Apply update ({summary_of(answer)})"
        taken = await self._server.workspace_apply_edit_async(
            types.ApplyWorkspaceEditParams(edit=edit, label=label)
        )
        if not taken.applied:
            reason = taken.failure_reason or "the document has changed; apply the update again"
            return self.failed(f"the editor did not take the edit: {reason}")
        merged = cast(str, answer.merged)
        return self._shown_result(uri, merged, answer, has_changed=merged != text)

    def document(self, uri: str) -> TextDocument:
        """A document that is open, or a file that is not. Raises JsonRpcInvalidParams."""
        opened = self._opened(uri)
        if opened is not None:
            return opened
        try:
            path = to_fs_path(uri)
            if path is None:
                raise ValueError("it is no open document and no file")
            text = read_regular(path, max_bytes=self._max_file_bytes).decode("utf-8")
            codec = self._server.workspace.position_codec
            return TextDocument(uri, text, position_codec=codec)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise JsonRpcInvalidParams(
                f"{shown_line(uri)} cannot be read: {reason}; open the document first"
            ) from error

    def _opened(self, uri: str) -> TextDocument | None:
        documents: dict[str, TextDocument] = self._server.workspace.text_documents
        return documents.get(unquote(uri))

    async def _which(self, choices: list[ChoiceBody] | tuple[()]) -> ChoiceBody | None:
        """The choice that the person at the editor means, if any.

        Some editors show no questions; their users find the choices among the code actions.
        """
        if not choices:
            return None
        try:
            answer = await self._server.window_show_message_request_async(question_of(choices))
        except JsonRpcException as error:
            _LOGGER.debug("the editor asks nobody", exc_info=error)
            return None
        return chosen_of(choices, answer)

    def open_choices(self, uri: str) -> list[types.Command]:
        """The choices of the last update of a document, while nobody has said which is meant."""
        question = self._questions.get(uri)
        return [] if question is None else list(question.actions())

    def _shown_result(
        self, uri: str, text: str, answer: ApplyResult, *, has_changed: bool = False
    ) -> CommandResult:
        self._show(uri, text, answer.findings)
        return CommandResult(
            status=answer.status,
            message=summary_of(answer),
            has_changed=has_changed,
            confidence=answer.confidence,
            findings=answer.findings,
            choices=answer.choices,
        )

    def _refused(self, uri: str, text: str, problem: Problem) -> CommandResult:
        findings = problem.findings or []
        self._show(uri, text, findings)
        remedy = f"; {problem.remedy}" if problem.remedy else ""
        message = f"{problem.detail}{remedy}"
        self._tell(message)
        return CommandResult(
            status="rejected" if findings else "failed",
            message=message,
            findings=findings,
            choices=problem.choices or [],
        )

    def failed(self, message: str) -> CommandResult:
        """Tell the editor that nothing was done."""
        self._tell(message)
        return CommandResult(status="failed", message=message)

    def _tell(self, message: str) -> None:
        self._server.window_show_message(
            types.ShowMessageParams(types.MessageType.Error, f"apply-service: {message}")
        )

    def _show(self, uri: str, text: str, findings: list[FindingBody]) -> None:
        if findings or uri in self._shown:
            self._publish(uri, diagnostics_of(findings, text.count("\n") + 1))
        self._shown[uri] = text

    def clear_if_changed(self, uri: str) -> None:
        """Take findings and question back once their document is another one."""
        opened = self._opened(uri)
        text = None if opened is None else opened.source
        question = self._questions.get(uri)
        if question is not None and question.text != text:
            del self._questions[uri]
        shown = self._shown.get(uri)
        if shown is not None and text != shown:
            del self._shown[uri]
            self._publish(uri, [])

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics)
        )


def make_server(
    ask: Ask, *, read_clipboard: Callable[[], str], max_file_bytes: int, version: str = "0"
) -> LanguageServer:
    """A server that is ready to be started; of files that are not open it reads so many bytes."""
    server = LanguageServer("apply-service", version)
    applier = _Applier(server, ask, max_file_bytes=max_file_bytes)
    _PROTOCOL_LOGGER.addFilter(_without_trace)

    @server.command(APPLY)
    async def apply(ls: LanguageServer, *arguments: Any) -> Any:
        """Apply an update (uri, update, options), by default the one in the clipboard."""
        uri, update, options = _read(arguments, (str, str | None, CommandOptions))
        if update is None:
            try:
                update = await asyncio.to_thread(read_clipboard)
            except ClipboardError as error:
                return _plain(applier.failed(str(error)))
        arguments = (uri, update)
        return _plain(await applier.apply(uri, update, options, command=APPLY, arguments=arguments))

    @server.command(APPLY_DOCUMENT)
    async def apply_document(ls: LanguageServer, *arguments: Any) -> Any:
        """Apply the update that another document is: uri, its uri, options."""
        uri, source_uri, options = _read(arguments, (str, str, CommandOptions))
        update = applier.document(source_uri).source
        arguments = (uri, source_uri)
        return _plain(
            await applier.apply(uri, update, options, command=APPLY_DOCUMENT, arguments=arguments)
        )

    @server.command(APPLY_SELECTION)
    async def apply_selection(ls: LanguageServer, *arguments: Any) -> Any:
        """Apply the update in a range of a document: uri, the other's uri, range, options.

        An update that stands in the file itself is taken out of it.
        """
        kinds = (str, str, RangeBody, CommandOptions)
        uri, source_uri, selection, options = _read(arguments, kinds)
        source = applier.document(source_uri)
        start, end = (
            source.offset_at_position(types.Position(at.line, at.character))
            for at in (selection.start, selection.end)
        )
        text = source.source
        original = text[:start] + text[end:] if source_uri == uri else None
        return _plain(
            await applier.apply(
                uri,
                text[start:end],
                options,
                command=APPLY_SELECTION,
                arguments=(uri, source_uri, msgspec.to_builtins(selection)),
                original=original,
            )
        )

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION)
    def code_actions(params: types.CodeActionParams) -> list[types.Command]:
        uri, selection = params.text_document.uri, params.range
        actions = [types.Command("Apply the update in the clipboard", APPLY, arguments=[uri])]
        if selection.start != selection.end:
            title = "Apply the selected update to this file"
            arguments = [uri, uri, selection]
            actions.append(types.Command(title, APPLY_SELECTION, arguments=arguments))
        return [*applier.open_choices(uri), *actions]

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        applier.clear_if_changed(params.text_document.uri)

    return server


def _without_trace(record: logging.LogRecord) -> bool:
    """What was wrong with a request is in its answer, and is no mistake to be traced."""
    if record.exc_info and isinstance(record.exc_info[1], JsonRpcException):
        record.exc_info = None
    return True


def _path_of(uri: str, root: str | None) -> str | None:
    """The name of a document, below its workspace if it is there; None if it is no file."""
    path = to_fs_path(uri)
    if path is None:
        return None
    if root is not None and Path(path).is_relative_to(root):
        return Path(path).relative_to(root).as_posix()
    return Path(path).name


def _read(arguments: Sequence[Any], kinds: Sequence[Any]) -> tuple[Any, ...]:
    """The arguments of a command in their types; those that are left out are unset.

    Raises JsonRpcInvalidParams.
    """
    if len(arguments) > len(kinds):
        raise JsonRpcInvalidParams(
            f"{len(arguments)} arguments, and at most {len(kinds)} are known"
        )
    values: list[Any] = []
    for number, kind in enumerate(kinds):
        given = arguments[number] if number < len(arguments) else None
        if given is None and kind is CommandOptions:
            given = {}
        try:
            values.append(msgspec.convert(_as_builtins(given), kind))
        except msgspec.ValidationError as error:
            raise JsonRpcInvalidParams(f"argument {number + 1}: {error}") from error
    return tuple(values)


def _as_builtins(value: Any) -> Any:
    """What was decoded into objects with attributes, as plain dicts again."""
    if hasattr(value, "_asdict"):
        return {name: _as_builtins(one) for name, one in value._asdict().items()}
    return value


def _plain(result: CommandResult) -> Any:
    return msgspec.to_builtins(result)
