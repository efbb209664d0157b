"""The wire format of `POST /v1/batches`: what a line takes and what a line gives."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyBody, ApplyResult


class BatchEdit(ApplyBody, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One line of a batch: an edit as `/v1/apply` takes it, and the caller's name for it."""

    id: Annotated[str, Meta(max_length=256, description="Comes back with the answer.")]
    stream: Literal[False] = False
    priority: Literal["batch"] = "batch"


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to the `line`-th line, counted from 1; either `result` or `problem` is there.

    `id` is null where the line has none that can be read.
    """

    id: str | None
    line: int
    result: ApplyResult | None = None
    problem: Problem | None = None
