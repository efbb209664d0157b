"""Cases of `benchmarks speed`: whole files to write freely, planned as the service would."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from apply_service.apply.attempt import attempts_of
from apply_service.apply.engine_requests import default_max_tokens
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.apply.region_prompt import build_prompts
from apply_service.edit.read.snippet import SnippetError
from apply_service.edit.text.text_file import TextFileError
from apply_service.evaluate.cases.case_file import Case, read_cases
from apply_service.evaluate.cases.planned_case import edit_of_case
from apply_service.prompts.errors import PromptError
from apply_service.prompts.profile import Profile, Prompt


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """A case as the contenders get it.

    `predicted_token_ids` and `rival_token_ids` help those drafts that know merges.
    """

    case: Case
    prompt: Prompt
    predicted_token_ids: tuple[int, ...]
    max_tokens: int
    rival_token_ids: tuple[int, ...] = ()


def try_prepare(case: Case, profile: Profile, *, max_tokens: int | None) -> SpeedCase | None:
    """The prompt of a whole file; None where no model is asked or the update cannot be read.

    `max_tokens` None leaves room for the whole answer.
    """
    edit = replace(edit_of_case(case, constraint="none"), scope="file")
    try:
        plan = plan_edit(edit, max_file_bytes=sys.maxsize)
        if plan.decision is not None:
            return None
        attempt = next(attempts_of(plan, max_region_tokens=profile.max_region_tokens))
        (region,) = build_prompts(plan, profile, regions=attempt.regions, scope=attempt.scope)
    except (SnippetError, TextFileError, PromptError):
        return None
    room = default_max_tokens(region.prompt)
    return SpeedCase(
        case=case,
        prompt=region.prompt,
        predicted_token_ids=region.predicted_token_ids,
        rival_token_ids=region.rival_token_ids,
        max_tokens=room if max_tokens is None else min(room, max_tokens),
    )


def ordered_cases(path: Path, *, seed: int | None) -> list[Case]:
    """The cases of a file, each id once: in its order, or with a seed in a random one.

    Raises CaseFileError.
    """
    cases = list(read_cases(path))
    if seed is not None:
        random.Random(seed).shuffle(cases)
    return list({case.id: case for case in cases}.values())
