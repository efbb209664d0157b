"""White space that an answer writes otherwise than its references, and goes on doing."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class Respacing:
    """Tokens of white space that stand for others of the same kind, as the answer has shown.

    A model that indents a block its own way does so line after line. A replacement is tried where
    it was seen, holds from the first token that agrees behind it, and is forgotten where the answer
    writes the reference's own white space again.
    """

    __slots__ = ("_replaced", "_tried", "_white_space")

    def __init__(self, white_space: Collection[int]) -> None:
        """Take the tokens that write nothing but white space."""
        self._white_space = white_space
        self._replaced: dict[int, int] = {}
        self._tried: tuple[int, int] | None = None

    def may_replace(self, expected: int, written: int) -> bool:
        """Whether both tokens are white space."""
        return expected in self._white_space and written in self._white_space

    def attempt(self, expected: int, written: int) -> None:
        """Take `written` to stand for `expected` until the next token says so."""
        if self._replaced.get(expected) != written:
            self._tried = expected, written

    def settle(self, *, is_right: bool) -> None:
        """Say whether what was attempted last, if anything was, is what the answer does."""
        if self._tried is not None and is_right:
            expected, written = self._tried
            self._replaced[expected] = written
        self._tried = None

    def apply(self, token_ids: Sequence[int]) -> Sequence[int]:
        """Tokens of a reference as the answer probably writes them."""
        if not self._replaced:
            return token_ids
        return [self._replaced.get(token, token) for token in token_ids]

    def num_agreed(self, copied: Sequence[int], written: Sequence[int]) -> int:
        """How many leading tokens are written as `apply` or the reference itself has them.

        Replacements that the answer contradicts are forgotten. Both are equally long.
        """
        expected = self.apply(copied)
        if expected == written:
            return len(written)
        for count, (own, token) in enumerate(zip(copied, written, strict=True)):
            if self._replaced.get(own, own) == token:
                continue
            if own != token:
                return count
            del self._replaced[own]
        return len(written)
