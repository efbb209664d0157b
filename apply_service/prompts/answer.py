"""The answer's text: one document between tags, parsed whole or shown while it is written."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.prompts.errors import AnswerFormatError
from apply_service.prompts.substitution import Substitution
from apply_service.prompts.tokenizer import PromptTokenizer

NewlinePlace = Literal["first", "between", "last"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerLayout:
    """The layout of an answer: `opening` + lines + `closing`.

    `opening` is the text that the model itself has to write before the document. Newlines stand
    before every line ("first"), between the lines, or after every line ("last"; a model may leave
    the very last one out). With `is_strict` nothing may stand outside the tags, else whitespace
    may.
    """

    opening: str
    closing: str
    newline: NewlinePlace
    is_strict: bool

    def join(self, lines: Sequence[str]) -> str:
        """The text of the document between the tags."""
        if self.newline == "first":
            return "".join(["\n" + line for line in lines])
        if self.newline == "last":
            return "".join([line + "\n" for line in lines])
        return "\n".join(lines)

    def parse(self, text: str) -> list[str]:
        """The lines of the document in an answer. Raises `AnswerFormatError`."""
        if not self.is_strict:
            text = text.rstrip()
            text = text.lstrip() if self.opening else text
        if not text.startswith(self.opening):
            raise AnswerFormatError(
                f"the answer begins with {text[:40]!r} instead of {self.opening!r}"
            )
        text = text[len(self.opening) :]
        if not text.endswith(self.closing):
            raise AnswerFormatError(
                f"the answer ends with {text[-40:]!r} instead of {self.closing!r};"
                " allow more output tokens if it was cut off"
            )
        return self._split(text.removesuffix(self.closing))

    def _split(self, document: str) -> list[str]:
        if not document:
            return []
        if self.newline == "first":
            if not document.startswith("\n"):
                raise AnswerFormatError(
                    f"the answer begins with {document[:40]!r} instead of a new line"
                )
            return document[1:].split("\n")
        if self.newline == "last":
            document = document.removesuffix("\n")
        return document.split("\n")

    def num_held_characters(self, text: str) -> int:
        """Number of characters at the end of `text` that may turn out to close the answer."""
        kept = text if self.is_strict else text.rstrip()
        if kept.endswith(self.closing):
            num_tag = len(self.closing)
        else:
            kept = text
            num_tag = next(
                n for n in range(len(self.closing) - 1, -1, -1) if text.endswith(self.closing[:n])
            )
        num_held = num_tag + len(text) - len(kept)
        is_newline_held = self.newline == "last" and text[: len(text) - num_held].endswith("\n")
        return num_held + is_newline_held


class StreamDecoder:
    """Shows an answer while it is written; the returned pieces, joined, are the document's text.

    Half a UTF-8 character and everything that may turn out to be the closing tag is held back.
    Owned by the task that reads the tokens of one answer.
    """

    def __init__(
        self, layout: AnswerLayout, tokenizer: PromptTokenizer, substitution: Substitution
    ) -> None:
        self._layout = layout
        self._tokenizer = tokenizer
        self._substitution = substitution
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._is_open = not layout.opening
        self._is_newline_due = layout.newline == "first"

    def push(self, token_ids: Sequence[int]) -> str:
        """Take new tokens; return the text that is now safe to show, perhaps none."""
        special = self._tokenizer.special_token_ids
        text_ids = [token_id for token_id in token_ids if token_id not in special]
        self._pending += self._utf8.decode(self._tokenizer.decode_bytes(text_ids))
        if not self._is_open and not self._try_open():
            return ""
        return self._take(len(self._pending) - self._layout.num_held_characters(self._pending))

    def finish(self) -> str:
        """Return the rest of the text after the last token, without a closing tag."""
        self._pending += self._utf8.decode(b"", final=True)
        if not self._is_open and not self._try_open():
            return ""
        layout = self._layout
        kept = self._pending if layout.is_strict else self._pending.rstrip()
        if not kept.endswith(layout.closing):
            return self._take(len(self._pending))
        document = kept.removesuffix(layout.closing)
        if layout.newline == "last":
            document = document.removesuffix("\n")
        return self._take(len(document))

    def _try_open(self) -> bool:
        """Drop the opening tag once it is complete."""
        text = self._pending.lstrip()
        if text.startswith(self._layout.opening):
            self._pending = text[len(self._layout.opening) :]
            self._is_open = True
        return self._is_open

    def _take(self, num_characters: int) -> str:
        text, self._pending = self._pending[:num_characters], self._pending[num_characters:]
        if text and self._is_newline_due:
            self._is_newline_due = False
            text = text.removeprefix("\n")
        return self._substitution.restore(text)
