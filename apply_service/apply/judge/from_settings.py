"""The judge that the settings name."""

from __future__ import annotations

from collections.abc import Mapping

from apply_service.apply.judge.endpoint import JudgeEndpoint
from apply_service.apply.judge.judge import Judge, JudgeTerms, Observe, nobody_observes
from apply_service.config import JUDGE_KEY_VARIABLE, Settings


def judge_of(
    settings: Settings, environment: Mapping[str, str], *, observe: Observe = nobody_observes
) -> Judge | None:
    """The judge of the settings; None without an address. Raises JudgeUrlError.

    Its API key is read apart from the settings, because command lines can be seen by others.
    """
    if settings.judge_url is None:
        return None
    terms = JudgeTerms(
        accuracy=settings.judge_accuracy,
        timeout_s=settings.judge_timeout_s,
        per_minute=settings.judge_per_minute,
    )
    endpoint = JudgeEndpoint(settings.judge_url, api_key=environment.get(JUDGE_KEY_VARIABLE))
    return Judge(endpoint, terms, model=settings.judge_model, observe=observe)
