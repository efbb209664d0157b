"""Writes merges in a model's tokens: line by line, or as text that tokens cut anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

from apply_service.prompts.answer import AnswerLayout
from apply_service.prompts.calibration import UNMEASURED, Calibration
from apply_service.prompts.substitution import Substitution
from apply_service.prompts.tokenizer import PromptTokenizer, TokenIds
from batching.recipes import ByteMerges, Merges, TokenMerges
from lookup.byte_merge_grammar import ByteMergeGrammar
from lookup.constraint import Constraint
from lookup.merge_automaton import MergeDecision
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules


class AnyMergeGrammar(Constraint[Any], Protocol):
    """A constraint whose answers are merges and can be read as such."""

    def chosen(self) -> int:
        """The number of the text written so far."""
        ...

    def decisions(self, token_ids: Sequence[int]) -> list[MergeDecision]:
        """The decisions in an answer, read from the start. Raises `TokenNotAllowedError`."""
        ...


class MergeForm(Protocol):
    """Turns lines into the symbols of `MergeRules`, and the rules into a grammar over tokens."""

    @property
    def end(self) -> Sequence[int]:
        """The symbols that close an answer."""
        ...

    @property
    def calibration(self) -> Calibration:
        """The reliability of the model's probabilities for merges in this form."""
        ...

    def lines(self, lines: Sequence[str]) -> Sequence[Sequence[int]]:
        """The symbols of each line. Raises `TextNotEncodableError`."""
        ...

    def grammar(self, rules: MergeRules) -> AnyMergeGrammar:
        """A fresh grammar at the start of an answer. Raises `GrammarError`."""
        ...

    def recipe(self, rules: MergeRules) -> Merges:
        """The same grammar as plain data, for an engine."""
        ...

    def symbols(self, token_id: int) -> Sequence[int]:
        """The symbols of a token; the same answer in other tokens has the same symbols."""
        ...

    def symbol_starts(self, token_ids: Sequence[int]) -> Sequence[int]:
        """The symbol at which each token of an answer begins, and the end of the last one."""
        ...


@dataclass(frozen=True, slots=True)
class LineTokens:
    """A form whose symbols are tokens, because no token crosses the border of a line."""

    end: TokenIds
    encode_lines: Callable[[Sequence[str]], list[TokenIds]]
    calibration: Calibration = UNMEASURED

    def lines(self, lines: Sequence[str]) -> Sequence[Sequence[int]]:
        """The tokens of each line."""
        return self.encode_lines(lines)

    def grammar(self, rules: MergeRules) -> MergeGrammar:
        """A fresh grammar over tokens."""
        return MergeGrammar(rules)

    def recipe(self, rules: MergeRules) -> TokenMerges:
        """The same as plain data."""
        return TokenMerges(rules)

    def symbols(self, token_id: int) -> Sequence[int]:
        """The token itself."""
        return (token_id,)

    def symbol_starts(self, token_ids: Sequence[int]) -> Sequence[int]:
        """Each token is one symbol."""
        return range(len(token_ids) + 1)


@dataclass(frozen=True, slots=True)
class LineBytes:
    """A form whose symbols are bytes, because tokens may cross the borders of lines.

    The tags of the layout are part of every answer. `end_token_id` is written behind them.
    """

    layout: AnswerLayout
    tokenizer: PromptTokenizer
    substitution: Substitution
    end_token_id: int
    calibration: Calibration = UNMEASURED

    @property
    def end(self) -> bytes:
        """The closing tag."""
        return self.layout.closing.encode()

    def lines(self, lines: Sequence[str]) -> list[bytes]:
        """The bytes of each line with a newline, where the layout has it."""
        pattern = "{}\n" if self.layout.newline == "last" else "\n{}"
        return [pattern.format(line).encode() for line in self.substitution.apply(lines)]

    def grammar(self, rules: MergeRules) -> ByteMergeGrammar:
        """A fresh grammar over the vocabulary's bytes."""
        return self.recipe(rules).make(self.tokenizer)

    def recipe(self, rules: MergeRules) -> ByteMerges:
        """The same as plain data."""
        return ByteMerges(
            rules=rules,
            end_token_ids=(self.end_token_id,),
            opening=self.layout.opening.encode(),
            skipped=self._skipped,
        )

    def symbols(self, token_id: int) -> Sequence[int]:
        """The bytes of a token; a control token is a symbol of its own."""
        return self.tokenizer.vocabulary.bytes_of(token_id) or (-1 - token_id,)

    def symbol_starts(self, token_ids: Sequence[int]) -> Sequence[int]:
        """The symbol at which each token begins; tokens of the opening tag begin at the first."""
        lengths = (len(self.tokenizer.vocabulary.bytes_of(token_id)) for token_id in token_ids)
        origin = len(self._skipped) - len(self.layout.opening.encode())
        return [max(0, start) for start in accumulate(lengths, initial=origin)]

    @property
    def _skipped(self) -> bytes:
        """The newline that the first line lacks."""
        return b"\n" if self.layout.newline == "between" else b""
