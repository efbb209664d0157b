"""One edit of a batch: what a source says of it, and what is sent to a worker."""

from __future__ import annotations

import hashlib

import msgspec

from apply_service.apply.errors import ApplyError


class SourceError(ApplyError):
    """A source of edits cannot be read."""


class EditRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line or row of a source; without `original` it is the file at `path` below the root."""

    update: str
    path: str | None = None
    original: str | None = None
    id: str | None = None
    instruction: str | None = None
    expected_sha256: str | None = None


class Edit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An edit with its file; `problem` says why it cannot be done.

    `key` is a hash of all that the result depends on, and of the id: equal keys, equal results.
    """

    key: str
    id: str
    update: str
    original: bytes = b""
    path: str | None = None
    instruction: str | None = None
    problem: str | None = None


def edit_of(row: EditRow, original: bytes, *, place: str, problem: str | None = None) -> Edit:
    """The edit of a row and its file; `place` names it where the row has no id."""
    digest = hashlib.sha256(original).hexdigest()
    if problem is None and row.expected_sha256 not in (None, digest):
        problem = (
            f"the file's hash is {digest}, expected_sha256 is {row.expected_sha256}; take the edit"
            " of the present file"
        )
    identity = [row.id, row.path, digest, row.update, row.instruction, problem]
    return Edit(
        key=hashlib.sha256(msgspec.json.encode(identity)).hexdigest(),
        id=row.id or place,
        update=row.update,
        original=original,
        path=row.path,
        instruction=row.instruction,
        problem=problem,
    )
