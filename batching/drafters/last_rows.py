"""Keeps the hidden row that each request's next token follows from."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from batching.drafters.drafter import DraftAsk, ObservedRequest


class LastRows:
    """The last row of each request that was seen."""

    def __init__(self) -> None:
        self._rows: dict[str, Tensor] = {}

    def keep(self, requests: Sequence[ObservedRequest], hidden: Tensor) -> None:
        """Take the rows of a step. hidden: [num_rows of the pass, size]"""
        last = hidden[[one.rows[-1] for one in requests]]
        for one, row in zip(requests, last, strict=True):
            self._rows[one.request_id] = row

    def keep_rows(self, requests: Sequence[ObservedRequest], rows: Tensor) -> None:
        """Take one row for each request. rows: [num_requests, size]"""
        for one, row in zip(requests, rows, strict=True):
            self._rows[one.request_id] = row

    def stacked(self, asks: Sequence[DraftAsk]) -> Tensor:
        """The rows [n, size] of these requests."""
        return torch.stack([self._rows[ask.request_id] for ask in asks])

    def forget(self, request_id: str) -> None:
        """Let a row go."""
        self._rows.pop(request_id, None)
