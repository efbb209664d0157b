"""One edit in the form that the pipeline takes, from any caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from apply_service.edit.forms.form import FORM_NAMES, UpdateFormat
from apply_service.edit.text.text_file import TextFile
from batching.request import Acceptance, Priority

Checks = Literal["on", "off"]
Scope = Literal["auto", "file", "region"]
Constraint = Literal["merge", "none"]
UseModel = Literal["auto", "always", "never"]
OnDoubt = Literal["ask", "best", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingOptions:
    """Sampling of the answer; `max_tokens` None allows as many as a merge can need."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int = 0
    max_tokens: int | None = None
    acceptance: Acceptance = "exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRequest:
    """An original, an update and the caller's options.

    `format` is how the update is written, where the caller says so or it is a form: then `update`
    is its JSON.

    `scope` is how much the model may rewrite. Without a fallback the model is asked once and its
    answer is the result, whatever the checks say of it. `constraint` None is the model's default.
    `use_model` "never" is the likeliest merge with its verdict; "auto" takes that merge where it
    can be trusted without a model. `may_ask_judge` False keeps a doubt from the server's judge.

    `on_doubt` is what becomes of a result that needs review: a question with choices, the likeliest
    merge as if it were certain, or a rejected result. `resolve` is the id of a choice of the same
    edit: that text is the result.

    `max_answer_tokens` is a ceiling that most answers stay far below: an attempt that needs more is
    rejected, and nothing else is tried. `sampling.max_tokens` is room that must be there; an
    attempt that needs more is followed by others.

    `max_draft_tokens` 0 turns speculation off, None takes the server's setting. `deadline_s` None
    waits as long as it takes; `is_deadline_capped` if the caller asked for more. Requests share
    cached work only with those of the same `cache_salt`. `wants_trace` says how answers came about.
    """

    original: TextFile
    update: str
    instruction: str | None = None
    prediction: str | None = None
    path: str | None = None
    language: str | None = None
    format: UpdateFormat | None = None
    scope: Scope = "auto"
    checks: Checks = "on"
    has_fallback: bool = True
    constraint: Constraint | None = None
    use_model: UseModel = "auto"
    may_ask_judge: bool = True
    on_doubt: OnDoubt = "ask"
    resolve: str | None = None
    sampling: SamplingOptions = SamplingOptions()
    max_answer_tokens: int | None = None
    max_draft_tokens: int | None = None
    priority: Priority = Priority.INTERACTIVE
    deadline_s: float | None = None
    is_deadline_capped: bool = False
    cache_salt: bytes = b""
    wants_trace: bool = False

    @property
    def is_form(self) -> bool:
        """True if the update is a form; its caller asks for no model."""
        return self.format in FORM_NAMES

    @property
    def num_characters(self) -> int:
        """Characters of the original, its line ends and the update."""
        lines = self.original.lines
        return len(self.update) + len(lines) + sum(map(len, lines))
