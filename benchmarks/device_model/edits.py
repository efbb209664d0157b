"""Real edits of whole files with the answers that a model would write, as requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from apply_service.apply.engine_requests import drafts_of
from apply_service.edit.text.text_file import TextFileError
from apply_service.evaluate.cases.case_file import read_cases
from apply_service.models.store import resolve_model
from apply_service.prompts.profile import Prompt, PromptError, load_profile
from batching.request import EngineRequest, SamplingParams
from benchmarks.drafters.replay_case import to_tokens

_SLACK_TOKENS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A prompt, what drafts are copied from, and the answer with its end."""

    prompt: Prompt
    predicted: tuple[int, ...]
    rival: tuple[int, ...]
    answer: tuple[int, ...]

    def request(
        self, request_id: str, *, max_draft_tokens: int, cache_salt: bytes | None = None
    ) -> EngineRequest:
        """A request; without a salt nothing of it is in the prefix cache."""
        return EngineRequest(
            request_id=request_id,
            prompt_token_ids=self.prompt.token_ids,
            sampling=SamplingParams(
                max_tokens=len(self.answer) + _SLACK_TOKENS,
                stop_token_ids=self.prompt.stop_token_ids,
            ),
            proposer=drafts_of(
                self.prompt, predicted_token_ids=self.predicted, rival_token_ids=self.rival
            ),
            max_draft_tokens=max_draft_tokens,
            cache_salt=request_id.encode() if cache_salt is None else cache_salt,
        )


def read_edits(paths: Iterable[Path], *, limit: int, max_tokens: int) -> list[Edit]:
    """The first edits of these case files whose prompt and answer are no longer than that."""
    edits: list[Edit] = []
    for edit in _edits(paths):
        if len(edit.prompt.token_ids) + len(edit.answer) <= max_tokens:
            edits.append(edit)
        if len(edits) == limit:
            break
    return edits


def _edits(paths: Iterable[Path]) -> Iterator[Edit]:
    location = resolve_model("embedded")
    profile = load_profile(location.profile, location.path)
    for path in paths:
        for case in read_cases(path):
            try:
                found = to_tokens(case, profile, has_merge=True)
            except (PromptError, TextFileError):
                continue
            yield Edit(
                prompt=found.prompt,
                predicted=found.predicted,
                rival=found.rival,
                answer=found.answer,
            )
