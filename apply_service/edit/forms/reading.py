"""What the edits of a form may mean: the texts, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from apply_service.edit.finding import Finding

MAX_SHOWN_CHARACTERS = 200


class FormError(Exception):
    """No text is meant: the edits contradict the file, each other, or change nothing."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def refused(code: str, message: str, hint: str, line: int | None = None) -> FormError:
    """The error with this finding; halves of surrogate pairs in its words are escapes."""
    message, hint = (one.encode("utf-8", "backslashreplace").decode() for one in (message, hint))
    return FormError(Finding(code=code, severity="error", message=message, hint=hint, line=line))


def shown(value: object) -> str:
    """What was sent, in printable characters and cut behind 200 of them."""
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "…"


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that may be meant, with its probability."""

    lines: tuple[str, ...]
    probability: float = 1.0


def text_of(lines: tuple[str, ...]) -> str:
    """The lines as a text in which each of them ends."""
    return "".join(f"{line}\n" for line in lines)


def lines_of(text: str) -> tuple[str, ...]:
    """The lines of a text, its last one ended or not."""
    return tuple(text.removesuffix("\n").split("\n")) if text else ()
