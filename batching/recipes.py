"""What a request drafts from, is bound to and stops at, as plain data.

An engine may run in another process than whoever asks it, so a request says how to make these
things. `TokenText` is what a tokenizer knows, for recipes that are about text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from batching.stop_tokens import StopTokens
from lookup.byte_merge_grammar import ByteMergeGrammar
from lookup.edit_proposer import EditProposer
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules
from lookup.vocabulary_index import VocabularyIndex


class TokenText(Protocol):
    """A tokenizer between tokens and bytes of UTF-8."""

    @property
    def vocabulary(self) -> VocabularyIndex:
        """The bytes of all tokens."""
        ...

    @property
    def special_token_ids(self) -> Collection[int]:
        """Control tokens."""
        ...

    def encode_bytes(self, text: bytes) -> Sequence[int]:
        """The canonical tokens of a text."""
        ...

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        """The text of tokens."""
        ...


class EditDrafts(msgspec.Struct, frozen=True, kw_only=True):
    """The references of an `EditProposer`."""

    original: Sequence[int]
    snippet_segments: Sequence[Sequence[int]]
    merge: Sequence[int] = ()
    rival: Sequence[int] = ()
    prediction: Sequence[int] = ()
    update: Sequence[int] = ()
    end_token_ids: Sequence[int] = ()
    white_space: Collection[int] = ()

    def make(self) -> EditProposer:
        """The proposer."""
        return EditProposer(
            original=self.original,
            snippet_segments=self.snippet_segments,
            merge=self.merge,
            rival=self.rival,
            prediction=self.prediction,
            update=self.update,
            end_token_ids=self.end_token_ids,
            white_space=self.white_space,
        )


class TokenMerges(msgspec.Struct, frozen=True, tag="tokens"):
    """Rules over tokens, for a `MergeGrammar`."""

    rules: MergeRules

    def make(self, _tokens: TokenText | None) -> MergeGrammar:
        """The grammar. Raises GrammarError."""
        return MergeGrammar(self.rules)


class ByteMerges(msgspec.Struct, frozen=True, tag="bytes", kw_only=True):
    """Rules over bytes, for a `ByteMergeGrammar`."""

    rules: MergeRules
    end_token_ids: Sequence[int]
    opening: bytes = b""
    skipped: bytes = b""

    def make(self, tokens: TokenText | None) -> ByteMergeGrammar:
        """The grammar. Raises GrammarError."""
        assert tokens is not None, "a grammar over text needs the model's tokenizer"
        return ByteMergeGrammar(
            self.rules,
            tokens.vocabulary,
            encode=tokens.encode_bytes,
            end_token_ids=self.end_token_ids,
            opening=self.opening,
            skipped=self.skipped,
        )


Merges = TokenMerges | ByteMerges


class StopTexts(msgspec.Struct, frozen=True):
    """Texts, one at least, at which an answer ends."""

    texts: Sequence[bytes]

    def make(self, tokens: TokenText | None) -> StopTokens:
        """What finds them among tokens."""
        assert tokens is not None, "text is found with the model's tokenizer"
        return StopTokens(
            self.texts,
            decode=tokens.decode_bytes,
            special_token_ids=tokens.special_token_ids,
        )
