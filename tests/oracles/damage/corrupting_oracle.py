"""A model that knows the right merge of each case, and writes a wrong one every now and then.

It stands behind the real engine. The profile is watched for the lines that a prompt asks to be
rewritten (the file, or regions of it), the engine for the requests that follow; both have the same
prompt tokens, so every request gets the truth of its own lines, or a corruption of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import msgspec
from oracle_service import OracleRunner
from oracles.damage.corruptions import random_corruption
from oracles.edits.region_truth import are_in_order, region_truths

from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case
from apply_service.prompts.errors import TextNotEncodableError
from apply_service.prompts.profile import Profile, Prompt, PromptRequest
from apply_service.service import LoadedModel
from batching.config import SchedulerConfig
from batching.engine import Engine
from batching.model.runner import ModelRunner
from batching.request import EngineRequest

MAX_POSITION = 400_000
BLOCK_SIZE = 16


@dataclass
class Attempt:
    """Prompts that were built before any of them was submitted; those of a try stand together."""

    asked: list[Sequence[str]] = field(default_factory=list)
    prompts: list[Prompt] = field(default_factory=list)
    truths: list[list[str]] | None = None


class WatchedProfile:
    """A profile that remembers the prompts of the attempt under way."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.attempt = Attempt()

    @property
    def name(self) -> str:
        return self._profile.name

    @property
    def default_constraint(self) -> Literal["none", "merge"]:
        return "none"

    @property
    def max_region_tokens(self) -> int | None:
        return self._profile.max_region_tokens

    def build(self, request: PromptRequest) -> Prompt:
        prompt = self._profile.build(request)
        if self.attempt.truths is not None:
            self.attempt = Attempt()
        self.attempt.asked.append(request.original_lines)
        self.attempt.prompts.append(prompt)
        return prompt


class AnsweringRunner(OracleRunner):
    """A runner with an answer of its own for every request."""

    def __init__(self) -> None:
        super().__init__(max_position=MAX_POSITION, num_blocks=MAX_POSITION // BLOCK_SIZE)
        self.answers: dict[str, tuple[int, ...]] = {}

    def answer_to(self, request_id: str) -> tuple[int, ...]:
        return self.answers[request_id]


class CorruptingOracle:
    """Answers one case after another; a share of the answers is corrupted, by a fixed seed.

    `kinds` says what was done to each answer of the case, in order; None is the truth.
    """

    def __init__(self, profile: Profile, *, share: float, seed: int = 0) -> None:
        self.profile = WatchedProfile(profile)
        self.runner = AnsweringRunner()
        self.kinds: list[str | None] = []
        self._share = share
        self._seed = seed
        self._case: Case | None = None

    def load(self) -> LoadedModel:
        """The oracle as the model of a pipeline."""
        return LoadedModel(name="oracle", engine=AskingEngine(self), profile=self.profile)

    def begin(self, case: Case) -> None:
        """The requests that follow are about this case."""
        self._case = case
        self.kinds = []
        self.profile.attempt = Attempt()
        self.runner.answers.clear()

    def prepare_answer(self, request: EngineRequest) -> None:
        """Decide what the model will write to a request whose prompt has just been built."""
        case, attempt = self._case, self.profile.attempt
        assert case is not None, "`begin` comes before the requests of a case"
        place = [prompt.token_ids for prompt in attempt.prompts].index(request.prompt_token_ids)
        prompt, asked = attempt.prompts[place], attempt.asked[place]
        if attempt.truths is None:
            attempt.truths = _truths(case, attempt.asked)
        kind, answer = self._corrupted(case, prompt, asked, attempt.truths[place])
        self.kinds.append(kind)
        # The engine stops at the first end; a draft may be verified beyond it.
        self.runner.answers[request.request_id] = (*answer, *prompt.end_token_ids * 2)

    def _corrupted(
        self, case: Case, prompt: Prompt, asked: Sequence[str], truth: Sequence[str]
    ) -> tuple[str | None, tuple[int, ...]]:
        """The tokens of the truth, or of something else with the kind of damage."""
        generator = random.Random(f"{self._seed} {len(self.kinds)} {case.id}")
        if generator.random() < self._share:
            part = msgspec.structs.replace(case, original=_text(asked), expected=_text(truth))
            corruption = random_corruption(part, seed=generator.randrange(1 << 30))
            try:
                if corruption is not None:
                    return corruption.kind, prompt.answer_token_ids(corruption.lines)
            except TextNotEncodableError:
                return None, prompt.answer_token_ids(truth)
        return None, prompt.answer_token_ids(truth)


class AskingEngine(Engine):
    """An engine that asks the oracle for the answer to every request before it takes it."""

    def __init__(self, oracle: CorruptingOracle) -> None:
        super().__init__(SchedulerConfig(), cast(ModelRunner, cast(Any, oracle.runner)))
        self._oracle = oracle

    def submit(self, request: EngineRequest) -> None:
        self._oracle.prepare_answer(request)
        super().submit(request)


def _truths(case: Case, asked: Sequence[Sequence[str]]) -> list[list[str]]:
    """The truth of each prompt; those of one try follow one another in the file."""
    original = TextFile.from_text(case.original).lines
    expected = TextFile.from_text(case.expected).lines
    tries: list[list[Sequence[str]]] = [[]]
    for part in asked:
        if not are_in_order(original, [*tries[-1], part]):
            tries.append([])
        tries[-1].append(part)
    return [truth for parts in tries for truth in region_truths(original, expected, parts)]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
