"""Lines of `POST /v1/batches`: their schemas, and how received bytes are cut into lines."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class BatchLine:
    """One line, counted from 1, blank ones included; `content` is None if it was over the limit."""

    number: int
    content: bytes | None
    num_bytes: int


class LineSplitter:
    """Splits bytes into lines and holds one at most; of a line over the limit only its length."""

    def __init__(self, *, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._buffer = bytearray()
        self._num_bytes = 0
        self._number = 1

    def feed(self, piece: bytes) -> list[BatchLine]:
        """Take a piece of the body; the lines that it completes, without blank ones."""
        *complete, rest = piece.split(b"\n")
        lines = []
        for part in complete:
            self._add(part)
            lines += self._take()
        self._add(rest)
        return lines

    def end(self) -> list[BatchLine]:
        """The last line, if there is no newline behind it."""
        return self._take()

    def cut_off(self) -> BatchLine:
        """The unfinished line, or the number of the next one, when the body ends early."""
        return BatchLine(self._number, None, self._num_bytes)

    def _add(self, part: bytes) -> None:
        self._num_bytes += len(part)
        if self._num_bytes > self._max_line_bytes:
            self._buffer.clear()
        else:
            self._buffer += part

    def _take(self) -> list[BatchLine]:
        content, num_bytes = bytes(self._buffer), self._num_bytes
        is_kept = num_bytes <= self._max_line_bytes
        line = BatchLine(self._number, content if is_kept else None, num_bytes)
        self._buffer.clear()
        self._num_bytes = 0
        self._number += 1
        return [] if is_kept and not content.strip() else [line]
