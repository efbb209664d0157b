"""A drafter that knows the answer: whether a model writes it is then a matter of a few passes."""

from __future__ import annotations

from collections.abc import Sequence

from lookup.proposer import EMPTY_DRAFT, Draft


class TruthProposer:
    """Drafts `answer` for as long as the output agrees with it."""

    def __init__(self, answer: Sequence[int]) -> None:
        self._answer = tuple(answer)
        self._num_written = 0
        self._agrees = True

    def build(self) -> None:
        """There is nothing to index."""

    def propose(self, max_tokens: int) -> Draft:
        """The next tokens of the answer."""
        start = self._num_written
        token_ids = self._answer[start : start + max_tokens] if self._agrees else ()
        return Draft(token_ids, "truth", start) if token_ids else EMPTY_DRAFT

    def commit(self, token_ids: Sequence[int]) -> None:
        """Take note of what the model wrote."""
        start, end = self._num_written, self._num_written + len(token_ids)
        self._agrees &= self._answer[start:end] == tuple(token_ids)
        self._num_written = end
