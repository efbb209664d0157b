"""One request as tokens: the model's prompt, the probable answer, and the way back to text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from apply_service.prompts.answer import AnswerLayout, StreamDecoder
from apply_service.prompts.errors import AnswerFormatError
from apply_service.prompts.merge_form import MergeForm
from apply_service.prompts.substitution import Substitution
from apply_service.prompts.tokenizer import PromptTokenizer, TokenIds


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """An edit as lines of text, without their newlines.

    `segments` is the update cut at its markers; they only help drafting. `prediction_lines` is the
    caller's own guess of the whole answer.
    """

    original_lines: Sequence[str]
    update_lines: Sequence[str]
    segments: Sequence[Sequence[str]]
    instruction: str | None = None
    prediction_lines: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request in the tokens of one model.

    A complete answer is `answer_token_ids(lines)` followed by `end_token_ids`, whose last token
    is a control token. `original_token_ids` is the answer if nothing changed, without the end.
    `snippet_segments` are runs that the answer probably holds, `update_token_ids` is the answer if
    it is the update with its markers. `merge_form` says how merges are written; None where the
    answer is free text.
    """

    token_ids: TokenIds
    original_token_ids: TokenIds
    snippet_segments: tuple[TokenIds, ...]
    update_token_ids: TokenIds
    prediction_token_ids: TokenIds
    end_token_ids: TokenIds
    stop_token_ids: frozenset[int]
    layout: AnswerLayout = field(repr=False)
    tokenizer: PromptTokenizer = field(repr=False)
    substitution: Substitution = field(repr=False)
    encode_answer: Callable[[Sequence[str]], TokenIds] = field(repr=False)
    merge_form: MergeForm | None = field(default=None, repr=False)

    def answer_token_ids(self, lines: Sequence[str]) -> TokenIds:
        """The tokens of an answer that consists of `lines`, without `end_token_ids`.

        Raises `TextNotEncodableError` if a line has characters that no part of the request contains
        and the vocabulary lacks.
        """
        return self.encode_answer(self.substitution.apply(lines))

    def parse_answer(self, token_ids: Sequence[int]) -> list[str]:
        """The lines of a complete answer, with or without its stop token.

        Only the last closing tag ends the document, so an answer that was cut off at a limit must
        not be given here. Raises `AnswerFormatError` if a tag is missing, text stands outside the
        tags, or the answer is not text.
        """
        has_stop = bool(token_ids) and token_ids[-1] in self.stop_token_ids
        body = token_ids[:-1] if has_stop else token_ids
        if not self.tokenizer.special_token_ids.isdisjoint(body):
            raise AnswerFormatError("a control token of the model stands inside the answer")
        try:
            text = self.tokenizer.decode_bytes(body).decode()
        except UnicodeDecodeError as error:
            raise AnswerFormatError(f"the answer is not UTF-8 at byte {error.start}") from error
        return [self.substitution.restore(line) for line in self.layout.parse(text)]

    def stream_decoder(self) -> StreamDecoder:
        """A fresh decoder that shows this prompt's answer while it is written."""
        return StreamDecoder(self.layout, self.tokenizer, self.substitution)
