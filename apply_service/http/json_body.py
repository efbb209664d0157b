"""Reads JSON bodies strictly, with errors that name the field or the position."""

import itertools
import json
import re
from array import array
from typing import Any, ClassVar, TypeVar

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException
from msgspec import UNSET, UnsetType

from apply_service.apply.errors import WithdrawnError
from apply_service.edit.text.lone_surrogates import find_lone_surrogate
from apply_service.http.files_body import FilesBody
from apply_service.http.problems import ProblemError, make_problem
from apply_service.http.schemas import ApplyBody, HashlinesBody
from apply_service.shown_text import shortened

T = TypeVar("T")

# Arrays and objects inside one another, which a parser follows on the stack. The tools of a chat,
# the deepest bodies that are sent in earnest, need a dozen.
MAX_DEPTH = 100
_DEPTH_STEPS = bytes(1 if one in b"[{" else 255 if one in b"]}" else 0 for one in range(256))
_NO_BRACKETS = bytes(one for one in range(256) if one not in b"[]{}")
_SCANNED_BRACKETS = 1 << 12

_FIELD = re.compile(r"`\$\.?(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")


class JsonRequest(Request[Any, Any, Any]):
    """A request whose JSON is a `body_type`; types are never converted."""

    body_type: ClassVar[type]

    async def body(self) -> bytes:
        """The raw body. Raises ProblemError (400) if there is none, or WithdrawnError."""
        try:
            body = await super().body()
        except InternalServerException as error:  # what the framework makes of a disconnect
            raise WithdrawnError("the client went away before its body was complete") from error
        if not body:
            raise _invalid_json(b"", "the body is empty")
        return body

    async def json(self) -> Any:
        """The decoded body. Raises ProblemError (400)."""
        return decode_body(await self.body(), self.body_type)


class ApplyBodyRequest(JsonRequest):
    """A request to `/v1/apply`, for one file or, with a member `files`, for several."""

    body_type = ApplyBody

    async def json(self) -> Any:
        """An `ApplyBody` or a `FilesBody`. Raises ProblemError (400)."""
        body = await self.body()
        return decode_body(body, FilesBody if _has_files(body) else ApplyBody)


class HashlinesRequest(JsonRequest):
    """A request to `/v1/hashlines`."""

    body_type = HashlinesBody


class _Peek(msgspec.Struct):
    """What tells the two bodies apart."""

    files: msgspec.Raw | UnsetType = UNSET


def _has_files(body: bytes) -> bool:
    """True if a body is an object with a member `files`, as far as it can be read."""
    if b'"files"' not in body or _is_too_deep(body):
        return False
    try:
        return msgspec.json.decode(body, type=_Peek).files is not UNSET
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def decode_body(body: bytes, body_type: type[T]) -> T:
    """Decode strictly. Raises ProblemError with the field, or the position of what is no JSON."""
    if _is_too_deep(body):
        raise _too_deep()
    try:
        return msgspec.json.decode(body, type=body_type)
    except msgspec.ValidationError as error:
        raise _invalid_field(str(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _invalid_json(body, str(error)) from error


def _is_too_deep(body: bytes) -> bool:
    """True if JSON has arrays and objects more than `MAX_DEPTH` deep; stops where it knows."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside_strings = b"".join(unescaped.split(b'"')[::2])
    steps = array("b", outside_strings.translate(_DEPTH_STEPS, _NO_BRACKETS))
    depth = 0
    for start in range(0, len(steps), _SCANNED_BRACKETS):
        depths = list(itertools.accumulate(steps[start : start + _SCANNED_BRACKETS], initial=depth))
        if max(depths) > MAX_DEPTH:
            return True
        depth = depths[-1]
    return False


def _too_deep() -> ProblemError:
    return ProblemError(
        make_problem(
            400,
            code="too-deeply-nested",
            title="The JSON is nested too deeply",
            detail=f"arrays and objects are nested more than {MAX_DEPTH} deep",
            limit=MAX_DEPTH,
            remedy=f"send at most {MAX_DEPTH} levels; /schema describes the body",
        )
    )


def _invalid_field(message: str) -> ProblemError:
    place = _FIELD.search(message)
    named = _UNKNOWN.search(message) or _MISSING.search(message)
    parts = [place["path"] if place else "", named["name"] if named else ""]
    detail = shortened(message.split(" - at `$", 1)[0])
    field = shortened(".".join(part for part in parts if part)) or None
    return ProblemError(
        make_problem(
            400,
            code="unknown-field" if _UNKNOWN.search(message) else "invalid-field",
            title="The body has a wrong field",
            detail=f"{field}: {detail}" if field else detail,
            field=field,
            remedy="/schema describes the body",
        )
    )


def _invalid_json(body: bytes, message: str) -> ProblemError:
    """What is wrong with a body that is no JSON, or holds text that is no text."""
    code, title = "invalid-json", "The body is not JSON"
    field, detail = None, message
    try:
        found = find_lone_surrogate(json.loads(body), whole="the body")
        if found is not None:
            code, title = "lone-surrogate", "The text has a lone surrogate"
            field, detail = found[0] or None, found[1]
    except json.JSONDecodeError as error:
        detail = f"{error.msg} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError as error:
        detail = f"the body is not UTF-8 at byte {error.start}"
    except ValueError:  # such as a number with more digits than Python reads
        pass
    return ProblemError(make_problem(400, code=code, title=title, detail=detail, field=field))
