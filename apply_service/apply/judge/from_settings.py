"""The judge that the settings name."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from apply_service.apply.judge.judge import Judge, Observe, nobody_observes
from apply_service.apply.remote.endpoint import JUDGE, RemoteEndpoint
from apply_service.apply.remote.server import RemoteTerms
from apply_service.config import JUDGE_KEY_VARIABLE, Settings


def judge_of(
    settings: Settings,
    environment: Mapping[str, str],
    *,
    observe: Observe = nobody_observes,
    may_rest: bool = True,
) -> Judge | None:
    """The judge of the settings; None without an address. Raises RemoteUrlError.

    Its API key is read apart from the settings, because command lines can be seen by others. One
    that may not rest is asked as often as you like, whatever it answers.
    """
    if settings.judge_url is None:
        return None
    terms = RemoteTerms(
        accuracy=settings.judge_accuracy,
        timeout_s=settings.judge_timeout_s,
        per_minute=settings.judge_per_minute if may_rest else sys.maxsize,
        may_rest=may_rest,
    )
    api_key = environment.get(JUDGE_KEY_VARIABLE)
    endpoint = RemoteEndpoint(settings.judge_url, role=JUDGE, api_key=api_key)
    return Judge(endpoint, terms, model=settings.judge_model, observe=observe)
