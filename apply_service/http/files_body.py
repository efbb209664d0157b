"""The wire format of `POST /v1/apply` for several files: a body with `files`, and its answer."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from apply_service.edit.split.section import FileAction
from apply_service.edit.split.split import SplitFormat
from apply_service.http.problems import Problem
from apply_service.http.schemas import (
    ApplyResult,
    ChosenId,
    EditOptions,
    Format,
    Language,
    Original,
    Prediction,
    Update,
    Usage,
)

# More edits are a batch.
MAX_FILES = 100

WholeStatus = Literal["applied", "unchanged", "needs_review", "rejected", "failed"]


class FileBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One file, and its update unless the request has one for all files."""

    path: Annotated[
        str,
        Meta(
            min_length=1,
            description="Name of the file, which no other one has; `./a` and `b/../a` are `a`.",
        ),
    ]
    original: Original
    update: Annotated[
        Update | None, Meta(description="As for one file; left out below a common `update`.")
    ] = None
    format: Format = None
    instruction: Annotated[
        str | None, Meta(description="In the place of the one for all files.")
    ] = None
    language: Language = None
    prediction: Prediction = None
    resolve: ChosenId = None


class FilesBody(EditOptions, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Edits of several files, each with an update of its own or all by one patch."""

    files: Annotated[list[FileBody], Meta(min_length=1, extra_json_schema={"maxItems": MAX_FILES})]
    update: Annotated[
        str | None,
        Meta(
            description="A `*** Begin Patch` patch or a unified diff of several files, which is"
            " split by their paths."
        ),
    ] = None
    format: Annotated[SplitFormat | None, Meta(description="How `update` is written.")] = None
    atomic: Annotated[
        bool, Meta(description="No result is returned unless all files are applied or unchanged.")
    ] = False
    stream: Literal[False] = False


class FileAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What becomes of one file: a `result`, or a `problem` that says why there is none.

    There is neither where a file is deleted, moved as it is, added without any text, or where a
    common update does not speak of it (`action` `none`).
    """

    path: str
    action: FileAction | Literal["none"]
    new_path: Annotated[str | None, Meta(description="The path that the file moves to.")] = None
    result: ApplyResult | None = None
    problem: Problem | None = None


class FilesResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of all files, in the order of the request; new files of a patch come last.

    `status` is the worst one of a file.
    """

    status: WholeStatus
    atomic: bool
    files: list[FileAnswer]
    in_doubt: Annotated[
        list[str],
        Meta(
            description="The paths of the files with `choices`; send the request again with the"
            " `resolve` of each."
        ),
    ]
    usage: Usage
    deadline_s: Annotated[
        float | None,
        Meta(description="The seconds that all had, where `deadline_s` asked for more."),
    ] = None
