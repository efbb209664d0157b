"""Turns an HTTP answer into a typed result or an error."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from apply_client.errors import InvalidResponseError, error_of
from apply_client.protocol.exchange import Answer
from apply_client.protocol.wire import (
    ApplyResult,
    Base64Content,
    Content,
    FileResult,
    FilesResult,
    ModelCard,
    ModelList,
    Problem,
)

REQUEST_ID_HEADER = "x-request-id"
_MAX_SHOWN_CHARACTERS = 200

T = TypeVar("T")


def result_of(answer: Answer, kind: type[Content]) -> ApplyResult[Content]:
    """The result of an edit; `merged` has the type of the original.

    Raises APIStatusError for a refusal, InvalidResponseError for an answer that is not of this API.
    """
    check_status(answer)
    return result_from(answer.content, kind, request_id=answer.headers.get(REQUEST_ID_HEADER))


def result_from(
    content: bytes, kind: type[Content], *, request_id: str | None = None
) -> ApplyResult[Content]:
    """The result in a piece of JSON. Raises InvalidResponseError."""
    result = decode(content, ApplyResult[str | Base64Content], request_id=request_id)
    merged = result.merged.base64 if isinstance(result.merged, Base64Content) else result.merged
    if not isinstance(merged, kind):
        raise InvalidResponseError(
            f"the merged file came as {type(merged).__name__}, the original was sent as"
            f" {kind.__name__}",
            request_id=request_id,
        )
    members = {name: getattr(result, name) for name in ApplyResult.__struct_fields__}
    return ApplyResult[kind](**members | {"merged": merged})  # type: ignore[valid-type]


def files_result_of(answer: Answer) -> FilesResult[str | bytes]:
    """What became of several files. Raises APIStatusError or InvalidResponseError."""
    check_status(answer)
    request_id = answer.headers.get(REQUEST_ID_HEADER)
    wire = decode(answer.content, FilesResult[str | Base64Content], request_id=request_id)
    files = [
        FileResult[str | bytes](
            path=file.path,
            action=file.action,
            new_path=file.new_path,
            result=None if file.result is None else _with_bytes(file.result),
            problem=file.problem,
        )
        for file in wire.files
    ]
    members = {name: getattr(wire, name) for name in FilesResult.__struct_fields__}
    return FilesResult[str | bytes](**members | {"files": tuple(files)})


def _with_bytes(result: ApplyResult[str | Base64Content]) -> ApplyResult[str | bytes]:
    merged = result.merged
    members = {name: getattr(result, name) for name in ApplyResult.__struct_fields__}
    members["merged"] = merged.base64 if isinstance(merged, Base64Content) else merged
    return ApplyResult[str | bytes](**members)


def models_of(answer: Answer) -> tuple[ModelCard, ...]:
    """The served models. Raises APIStatusError or InvalidResponseError."""
    check_status(answer)
    return decode(answer.content, ModelList).data


def check_status(answer: Answer) -> None:
    """Raise the error that an answer reports, if any."""
    if answer.status == 200:
        return
    raise error_of(problem_of(answer), request_id=answer.headers.get(REQUEST_ID_HEADER))


def problem_of(answer: Answer) -> Problem:
    """The problem in a refusal; proxies before the service may write another form."""
    try:
        problem = msgspec.json.decode(answer.content, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = answer.content.decode("utf-8", "replace").strip()[:_MAX_SHOWN_CHARACTERS]
        return Problem(
            status=answer.status,
            detail=f"the service answered {answer.status}: {text or 'nothing more'}",
        )
    return msgspec.structs.replace(problem, status=answer.status)


def decode(content: bytes, kind: type[T], *, request_id: str | None = None) -> T:
    """Decode JSON of this API. Raises InvalidResponseError with the beginning of the text."""
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        shown = content[:_MAX_SHOWN_CHARACTERS].decode("utf-8", "replace")
        raise InvalidResponseError(
            f"the answer is none of this API ({error}): {shown!r}; see whether the address is that"
            " of an apply-service of this version",
            request_id=request_id,
        ) from error
