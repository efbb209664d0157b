"""The profile of any chat model: a request in plain English, in the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from apply_service.prompts.answer import AnswerLayout
from apply_service.prompts.canonical import CanonicalAnswer, substitution_of
from apply_service.prompts.chat_template import ChatMessage, ChatTemplate, stop_token_ids
from apply_service.prompts.prompt import Prompt, PromptRequest
from apply_service.prompts.substitution import Substitution
from apply_service.prompts.tokenizer import PromptTokenizer

LAYOUT = AnswerLayout(opening="", closing="</updated-code>", newline="last", is_strict=False)
_PLAIN_TEXT = AnswerLayout(opening="", closing="", newline="between", is_strict=True)

# The prompt itself opens the answer, so a talkative model goes straight to the file.
ANSWER_PREFIX = "<updated-code>\n"
_TASK = """\
Below is a source file in <code> tags and an edit to it in <update> tags. The edit shows only the \
parts that change; comments such as "... existing code ..." stand for lines of the file that stay \
as they are.
Write the complete file with the edit merged in:
- Where the edit has such a comment, write the lines of the file that it stands for.
- Take every other line of the edit exactly as it is.
- Copy everything that the edit does not touch character by character: order, comments, blank \
lines, indentation.
Answer with the whole file in <updated-code> tags and nothing else: no explanation, no code fence, \
nothing left out.

<code>
"""
_BETWEEN = "</code>\n\n<update>\n"
_AFTER_UPDATE = "</update>"
_INSTRUCTION = "\n\nWhat the edit is meant to do:\n"


def request_text(
    original_lines: Sequence[str], update_lines: Sequence[str], instruction: str | None
) -> str:
    """The message that asks for an edit; the answer is in the `LAYOUT`, after `ANSWER_PREFIX`."""
    parts = [
        _TASK,
        LAYOUT.join(original_lines),
        _BETWEEN,
        LAYOUT.join(update_lines),
        _AFTER_UPDATE,
    ]
    return "".join(parts if instruction is None else [*parts, _INSTRUCTION, instruction])


class ChatProfile:
    """Builds prompts for a chat model that was not trained to merge."""

    name = "chat"
    default_constraint: Literal["none", "merge"] = "none"
    constraints: tuple[Literal["none", "merge"], ...] = ("none", "merge")
    max_region_tokens: int | None = None

    def __init__(
        self,
        tokenizer: PromptTokenizer,
        template: ChatTemplate,
        *,
        stop_token_ids: frozenset[int] = frozenset(),
    ) -> None:
        """`stop_token_ids` end an answer besides the template's own end of turn."""
        self.tokenizer = tokenizer
        self._template = template
        self._answer = CanonicalAnswer(LAYOUT, tokenizer, end_of_turn=template.end_of_turn)
        self._plain_text = CanonicalAnswer(_PLAIN_TEXT, tokenizer, end_of_turn=template.end_of_turn)
        self._stop_token_ids = stop_token_ids | {template.end_of_turn}

    @classmethod
    def from_dir(cls, model_dir: Path) -> ChatProfile:
        """Read tokenizer and template of a model. Raises `TokenizerError`, `ChatTemplateError`."""
        tokenizer = PromptTokenizer.from_dir(model_dir)
        template = ChatTemplate.from_dir(model_dir, tokenizer)
        return cls(tokenizer, template, stop_token_ids=stop_token_ids(model_dir))

    def build(self, request: PromptRequest) -> Prompt:
        """The prompt of a request. Raises `TextNotEncodableError`, `ChatTemplateError`."""
        substitution = substitution_of(request, self.tokenizer)
        text = request_text(request.original_lines, request.update_lines, request.instruction)
        token_ids = self._template.encode(
            [ChatMessage("user", text)],
            substitution=substitution,
            answer_prefix=ANSWER_PREFIX,
        )
        return self._answer.prompt(
            token_ids,
            request,
            substitution=substitution,
            stop_token_ids=self._stop_token_ids,
        )

    def build_conversation(
        self, messages: Sequence[ChatMessage], *, prediction: str | None = None
    ) -> Prompt:
        """The prompt of a plain conversation; its answer is free text.

        `prediction` is the caller's guess of the answer. Raises as `build` does.
        """
        lines = None if prediction is None else prediction.split("\n")
        texts = [message.content for message in messages]
        substitution = Substitution.for_texts([texts, lines or ()], self.tokenizer.missing_bytes)
        return self._plain_text.prompt(
            self._template.encode(messages, substitution=substitution),
            PromptRequest((), (), (), prediction_lines=lines),
            substitution=substitution,
            stop_token_ids=self._stop_token_ids,
            is_document=False,
        )
