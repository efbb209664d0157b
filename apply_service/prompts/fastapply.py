"""The profile of models trained on the FastApply template of Kortix: ChatML, whole files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from apply_service.prompts.answer import AnswerLayout
from apply_service.prompts.canonical import CanonicalAnswer, substitution_of
from apply_service.prompts.prompt import Prompt, PromptRequest
from apply_service.prompts.tokenizer import PromptTokenizer

LAYOUT = AnswerLayout(
    opening="<updated-code>", closing="</updated-code>", newline="between", is_strict=False
)

# Wrong grammar and all: the models were trained on these very words.
_SYSTEM = (
    "You are an coding assistant that helps merge code updates, ensuring every modification"
    " is fully integrated."
)
_TASK = """\
Merge all changes from the <update> snippet into the <code> below.
- Preserve the code's structure, order, comments, and indentation exactly.
- Output only the updated code, enclosed within <updated-code> and </updated-code> tags.
- Do not include any additional text, explanations, placeholders, ellipses, or code fences.

<code>"""
_BETWEEN = "</code>\n\n<update>"
_AFTER_UPDATE = "</update>"
_INSTRUCTION = "\n\nInstruction: "
_REQUEST = "\n\nProvide the complete updated code."


class FastApplyProfile:
    """Builds prompts in the words of the FastApply models; they write the opening tag too.

    The template has no place for an instruction; one that is given stands after the update.
    An answer cannot tell a document without lines from one of a single empty line.
    """

    name = "fastapply"
    default_constraint: Literal["none", "merge"] = "none"
    constraints: tuple[Literal["none", "merge"], ...] = ("none", "merge")
    max_region_tokens: int | None = None

    def __init__(self, tokenizer: PromptTokenizer) -> None:
        """Encode the constant parts. Raises `TokenizerError` if a chat marker is missing."""
        self.tokenizer = tokenizer
        end_of_turn = tokenizer.control_token_id("<|im_end|>")
        tokenizer.control_token_id("<|im_start|>")
        self._before = tokenizer.encode_template(
            f"<|im_start|>system\n{_SYSTEM}<|im_end|>\n<|im_start|>user\n"
        )
        self._after = tokenizer.encode_template("<|im_end|>\n<|im_start|>assistant\n")
        self._answer = CanonicalAnswer(LAYOUT, tokenizer, end_of_turn=end_of_turn)
        self._stop_token_ids = frozenset(
            tokenizer.control_token_id(token)
            for token in ("<|im_end|>", "<|endoftext|>")
            if tokenizer.has_control_token(token)
        )

    @classmethod
    def from_dir(cls, model_dir: Path) -> FastApplyProfile:
        """Read the tokenizer of the model in `model_dir`. Raises `TokenizerError`."""
        return cls(PromptTokenizer.from_dir(model_dir))

    def build(self, request: PromptRequest) -> Prompt:
        """The prompt of a request. Raises `TextNotEncodableError`."""
        substitution = substitution_of(request, self.tokenizer)
        parts = [
            _TASK,
            "\n".join(substitution.apply(request.original_lines)),
            _BETWEEN,
            "\n".join(substitution.apply(request.update_lines)),
            _AFTER_UPDATE,
        ]
        if request.instruction is not None:
            parts += [_INSTRUCTION, *substitution.apply([request.instruction])]
        message = self.tokenizer.encode("".join([*parts, _REQUEST]))
        return self._answer.prompt(
            (*self._before, *message, *self._after),
            request,
            substitution=substitution,
            stop_token_ids=self._stop_token_ids,
        )
