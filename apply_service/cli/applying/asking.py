"""Has a request of `apply` answered, and asks at a terminal what is meant where it is in doubt."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from apply_service.cli.answer import answer_edit
from apply_service.cli.applying.choice_prompt import ask_which
from apply_service.config import Settings
from apply_service.http.problems import Problem
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.observe.progress import Progress

Answer = ApplyResult | Problem


def ask_for(
    body: ApplyBody, settings: Settings, environment: Mapping[str, str], *, may_ask: bool
) -> Answer:
    """The answer to a request; `may_ask` whether somebody at the terminal may choose."""
    answer = _shown_answer(body, settings, environment)
    chosen = ask_which(answer.choices) if may_ask and answer.choices else None
    if chosen is None:
        return answer
    return _shown_answer(msgspec.structs.replace(body, resolve=chosen.id), settings, environment)


def _shown_answer(body: ApplyBody, settings: Settings, environment: Mapping[str, str]) -> Answer:
    """The answer to an edit; stderr shows how far it is."""
    progress = Progress(sys.stderr)
    try:
        return answer_edit(body, settings, environment, progress)
    finally:
        progress.clear()
