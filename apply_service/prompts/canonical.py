"""Prompts for models trained elsewhere, with text tokenised as their own tokenizer does it."""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.prompts.answer import AnswerLayout
from apply_service.prompts.merge_form import LineBytes
from apply_service.prompts.prompt import Prompt, PromptRequest
from apply_service.prompts.substitution import Substitution
from apply_service.prompts.tokenizer import PromptTokenizer, TokenIds

# Last characters of a document that tokenizers treat differently before a tag.
_PROBES = ("", "x", "}", "0", ".", " ", "\t", "\n", "/", "<", "-", '"', ";", "é")


class CanonicalAnswer:
    """Encodes whole answers and splits off the end that does not depend on the document.

    A tokenizer may join the last characters of a document with the beginning of the closing tag
    ("}</"). Such tokens count as part of the answer; `end_token_ids` begins after them.
    """

    def __init__(
        self, layout: AnswerLayout, tokenizer: PromptTokenizer, *, end_of_turn: int
    ) -> None:
        self.layout = layout
        self.tokenizer = tokenizer
        self._tail = _constant_tail(layout, tokenizer)
        self.end_token_ids: TokenIds = (*self._tail, end_of_turn)

    def encode(self, lines: Sequence[str]) -> TokenIds:
        """The tokens of an answer as the model would write it, up to `end_token_ids`."""
        layout = self.layout
        text = layout.opening + layout.join(lines) + layout.closing
        token_ids = self.tokenizer.encode(text)
        num_tail = len(self._tail)
        if token_ids[len(token_ids) - num_tail :] == self._tail:
            return token_ids[: len(token_ids) - num_tail]
        tail_text = self.tokenizer.decode_bytes(self._tail).decode()
        return self.tokenizer.encode(text.removesuffix(tail_text))

    def prompt(
        self,
        token_ids: TokenIds,
        request: PromptRequest,
        *,
        substitution: Substitution,
        stop_token_ids: frozenset[int],
        is_document: bool = True,
    ) -> Prompt:
        """The prompt `token_ids`, with references from `request`.

        An answer that is not a document is free text.
        """
        prediction = request.prediction_lines
        return Prompt(
            token_ids=token_ids,
            original_token_ids=self.encode(substitution.apply(request.original_lines)),
            snippet_segments=tuple(
                self.tokenizer.encode("".join([line + "\n" for line in segment]))
                for segment in map(substitution.apply, request.segments)
            ),
            update_token_ids=self.encode(substitution.apply(request.update_lines)),
            prediction_token_ids=(
                () if prediction is None else self.encode(substitution.apply(prediction))
            ),
            end_token_ids=self.end_token_ids,
            stop_token_ids=stop_token_ids,
            layout=self.layout,
            tokenizer=self.tokenizer,
            substitution=substitution,
            encode_answer=self.encode,
            merge_form=self._merge_form(substitution) if is_document else None,
        )

    def _merge_form(self, substitution: Substitution) -> LineBytes:
        return LineBytes(self.layout, self.tokenizer, substitution, self.end_token_ids[-1])


def substitution_of(request: PromptRequest, tokenizer: PromptTokenizer) -> Substitution:
    """The substitution for all texts of a request. Raises `TextNotEncodableError`."""
    instruction = () if request.instruction is None else (request.instruction,)
    return Substitution.for_texts(
        [
            request.original_lines,
            request.update_lines,
            instruction,
            request.prediction_lines or (),
        ],
        tokenizer.missing_bytes,
    )


def _constant_tail(layout: AnswerLayout, tokenizer: PromptTokenizer) -> TokenIds:
    """The longest tail of the closing tag whose tokens are the same after any document."""
    texts = [layout.closing, *(layout.join([probe]) + layout.closing for probe in _PROBES)]
    encoded = tokenizer.encode_batch(texts)
    num_same = 0
    for tokens in zip(*(reversed(token_ids) for token_ids in encoded), strict=False):
        if len(set(tokens)) > 1:
            break
        num_same += 1
    tail = encoded[0][len(encoded[0]) - num_same :]
    return tail or tokenizer.encode(layout.closing)
