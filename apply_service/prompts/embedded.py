"""The profile of the embedded model: every line is tokenised by itself, as newline + line.

No token crosses the border of a line, so a line has the same ids in the file, in the update and
in the answer. The file stands first: requests on one file share their prefix up to its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from apply_service.prompts.answer import AnswerLayout
from apply_service.prompts.calibration import Calibration, read_calibration
from apply_service.prompts.merge_form import LineTokens
from apply_service.prompts.prompt import Prompt, PromptRequest
from apply_service.prompts.substitution import Substitution
from apply_service.prompts.tokenizer import PromptTokenizer, TokenIds

LAYOUT = AnswerLayout(opening="", closing="\n</updated-code>", newline="first", is_strict=True)


# Of a model this small without a measured calibration: its word breaks ties and no more.
WEAK_MODEL = Calibration(prior_scale=12.0)


class EmbeddedProfile:
    """Builds line-aligned prompts; the answer is line-aligned too."""

    name = "embedded"
    default_constraint: Literal["none", "merge"] = "merge"
    constraints: tuple[Literal["none", "merge"], ...] = ("merge", "none")
    max_region_tokens: int | None = 1500

    def __init__(self, tokenizer: PromptTokenizer, calibration: Calibration = WEAK_MODEL) -> None:
        """Encode the constant parts. Raises `TokenizerError` if a chat marker is missing."""
        self.calibration = calibration
        self.tokenizer = tokenizer
        end_of_turn = tokenizer.control_token_id("<|im_end|>")
        tokenizer.control_token_id("<|im_start|>")
        self._before_file = tokenizer.encode_template("<|im_start|>user\n<code>")
        self._before_instruction = tokenizer.encode_template("\n</code>\n<instruction>")
        self._after_instruction = tokenizer.encode_template("\n</instruction>\n<update>")
        self._before_update = tokenizer.encode_template("\n</code>\n<update>")
        self._after_update = tokenizer.encode_template(
            "\n</update><|im_end|>\n<|im_start|>assistant\n<updated-code>"
        )
        self._end = (*tokenizer.encode_template(LAYOUT.closing), end_of_turn)
        ends = [end_of_turn]
        if tokenizer.has_control_token("<|endoftext|>"):
            ends.append(tokenizer.control_token_id("<|endoftext|>"))
        self._stop_token_ids = frozenset(ends)

    @classmethod
    def from_dir(cls, model_dir: Path) -> EmbeddedProfile:
        """Read the tokenizer of the model in `model_dir`, and its calibration if it has one.

        Raises `TokenizerError` or `CalibrationError`.
        """
        calibration = read_calibration(model_dir) or WEAK_MODEL
        return cls(PromptTokenizer.from_dir(model_dir), calibration)

    def build(self, request: PromptRequest) -> Prompt:
        """The prompt of a request. Raises `TextNotEncodableError`."""
        instruction = [] if request.instruction is None else request.instruction.split("\n")
        prediction = request.prediction_lines or ()
        substitution = Substitution.for_texts(
            [request.original_lines, request.update_lines, instruction, prediction],
            self.tokenizer.missing_bytes,
        )
        original = self._encode(substitution.apply(request.original_lines))
        update = self._encode(substitution.apply(request.update_lines))
        return Prompt(
            token_ids=(
                *self._before_file,
                *original,
                *self._between(substitution.apply(instruction)),
                *update,
                *self._after_update,
            ),
            original_token_ids=original,
            snippet_segments=tuple(
                self._encode(substitution.apply(segment)) for segment in request.segments
            ),
            update_token_ids=update,
            prediction_token_ids=self._encode(substitution.apply(prediction)),
            end_token_ids=self._end,
            stop_token_ids=self._stop_token_ids,
            layout=LAYOUT,
            tokenizer=self.tokenizer,
            substitution=substitution,
            encode_answer=self._encode,
            merge_form=LineTokens(
                self._end,
                lambda lines: self.tokenizer.encode_lines(substitution.apply(lines)),
                calibration=self.calibration,
            ),
        )

    def _between(self, instruction: Sequence[str]) -> TokenIds:
        """The text between file and update: the instruction, if there is one."""
        if not instruction:
            return self._before_update
        return (*self._before_instruction, *self._encode(instruction), *self._after_instruction)

    def _encode(self, lines: Sequence[str]) -> TokenIds:
        return tuple(token_id for line in self.tokenizer.encode_lines(lines) for token_id in line)
