"""A result as the protocol's edits and diagnostics, and a doubt as its question."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from apply_service.edit.text.text_edits import Position, PositionEncoding, TextEdit, text_edits
from apply_service.http.schemas import ApplyResult, ChoiceBody, FindingBody

_SOURCE = "apply-service"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
}


def workspace_edit(
    document: types.OptionalVersionedTextDocumentIdentifier,
    original: str,
    result: ApplyResult,
    *,
    encoding: PositionEncoding,
    capabilities: types.ClientCapabilities,
) -> types.WorkspaceEdit:
    """The change of one document, in the form that a client can take.

    With a version it is refused by a client whose document has changed meanwhile.
    """
    assert isinstance(result.merged, str), "text was sent, so text comes back"
    edits = text_edits(original, result.merged, encoding=encoding)
    workspace = capabilities.workspace
    able = workspace.workspace_edit if workspace is not None else None
    if able is None or not able.document_changes:
        return types.WorkspaceEdit(changes={document.uri: [_plain(edit) for edit in edits]})
    if able.change_annotation_support is None:
        change = types.TextDocumentEdit(document, [_plain(edit) for edit in edits])
        return types.WorkspaceEdit(document_changes=[change])
    annotated = [
        types.AnnotatedTextEdit(
            annotation_id=_SOURCE, range=_range_of(edit.start, edit.end), new_text=edit.text
        )
        for edit in edits
    ]
    return types.WorkspaceEdit(
        document_changes=[types.TextDocumentEdit(document, annotated)],
        change_annotations={
            _SOURCE: types.ChangeAnnotation(
                label="Apply update", needs_confirmation=False, description=summary_of(result)
            )
        },
    )


def summary_of(result: ApplyResult) -> str:
    """A result in a few words."""
    words = result.status.replace("_", " ")
    return words if result.confidence is None else f"{words}, {result.confidence:.0%} certain"


def diagnostics_of(findings: Sequence[FindingBody], num_lines: int) -> list[types.Diagnostic]:
    """Each finding at its line, or at the first or last one of the document."""
    diagnostics = []
    for finding in findings:
        line = min(max((finding.line or 1) - 1, 0), max(num_lines - 1, 0))
        diagnostics.append(
            types.Diagnostic(
                range=_range_of(Position(line, 0), Position(line + 1, 0)),
                message=f"{finding.message}\n{finding.hint}",
                severity=_SEVERITIES[finding.severity],
                code=finding.code,
                source=_SOURCE,
            )
        )
    return diagnostics


def question_of(choices: Sequence[ChoiceBody]) -> types.ShowMessageRequestParams:
    """The question which choice is meant; `chosen_of` reads the answer."""
    reasons = [f"{number}. {choice.reason}" for number, choice in enumerate(choices, start=1)]
    return types.ShowMessageRequestParams(
        type=types.MessageType.Warning,
        message="\n".join(["Which result is meant?", *reasons]),
        actions=[types.MessageActionItem(title) for title in _titles(choices)],
    )


def chosen_of(
    choices: Sequence[ChoiceBody], answer: types.MessageActionItem | None
) -> ChoiceBody | None:
    """The choice that was meant; None if none was."""
    if answer is None:
        return None
    return dict(zip(_titles(choices), choices, strict=True)).get(answer.title)


def _titles(choices: Sequence[ChoiceBody]) -> list[str]:
    return [
        f"{number}. {choice.where.symbol or f'line {choice.where.start_line}'}"
        f" ({choice.probability:.0%})"
        for number, choice in enumerate(choices, start=1)
    ]


def _plain(edit: TextEdit) -> types.TextEdit:
    return types.TextEdit(range=_range_of(edit.start, edit.end), new_text=edit.text)


def _range_of(start: Position, end: Position) -> types.Range:
    return types.Range(
        start=types.Position(start.line, start.character),
        end=types.Position(end.line, end.character),
    )
