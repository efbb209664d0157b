"""What one request brings along or computes harms no other: it is lost alone, or its drafts."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_runs import RunningEngine, ScriptedProposer, running_engine

from batching.config import EngineConfig
from batching.errors import BrokenNumbersError, ConstraintFailedError, StepFailedError
from batching.events import Failed, Finished
from batching.request import EngineRequest, SamplingParams
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules, MergeText
from lookup.proposer import Draft

METHODS = ("build", "propose", "commit")
POISONED = 77


@pytest.fixture(scope="module")
def running(tiny_model_dir: Path) -> Iterator[RunningEngine]:
    with running_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20)) as run:
        yield run


def make_request(name: str, num_prompt: int = 20, **options: Any) -> EngineRequest:
    generator = random.Random(name)
    tokens = [token for token in range(3, 259) if token != POISONED]
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.choices(tokens, k=num_prompt)),
        sampling=SamplingParams(max_tokens=24),
        **options,
    )


@pytest.fixture(scope="module")
def answers(running: RunningEngine) -> dict[str, list[int]]:
    requests = [make_request(f"good-{number}") for number in range(3)]
    outcomes = running.run([*requests, make_request("bad")])
    return {f"good-{number}": one.token_ids for number, one in enumerate(outcomes)} | {
        "bad": outcomes[-1].token_ids
    }


def run_beside(running: RunningEngine, bad: EngineRequest, answers: dict[str, list[int]]) -> Any:
    """The outcome of a bad request; others beside it, and after it, answer as ever."""
    num_blocks = running.engine.stats().num_free_blocks
    good = [make_request(f"good-{number}") for number in range(3)]
    *others, outcome = running.run([*good, bad])
    for request, other in zip(good, others, strict=True):
        assert other.token_ids == answers[request.request_id]
    (after,) = running.run([good[0]])
    assert after.token_ids == answers["good-0"]
    assert running.engine.stats().num_free_blocks == num_blocks
    running.engine._block_pool.check_invariants()
    return outcome


class RaisingProposer(ScriptedProposer):
    """Raises in one of its methods, from the n-th call on."""

    def __init__(self, script: Sequence[int], method: str, *, after: int) -> None:
        super().__init__(script)
        self._method = method
        self._left = after

    def _step(self, method: str) -> None:
        if method == self._method:
            self._left -= 1
            if self._left < 0:
                raise KeyError("a bug of a drafter")

    def build(self) -> None:
        self._step("build")

    def propose(self, max_tokens: int) -> Draft:
        self._step("propose")
        return super().propose(min(max_tokens, 4))

    def commit(self, token_ids: Sequence[int]) -> None:
        self._step("commit")
        super().commit(token_ids)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("after", [0, 2])
def test_a_proposer_that_raises_costs_its_drafts(
    running: RunningEngine, answers: dict[str, list[int]], method: str, after: int
) -> None:
    bad = make_request("bad", proposer=RaisingProposer(answers["bad"], method, after=after))
    outcome = run_beside(running, bad, answers)
    assert isinstance(outcome.last, Finished)
    assert outcome.token_ids == answers["bad"]


@pytest.mark.parametrize("token_ids", [(5000,), (-1,), tuple(range(3, 103))])
def test_drafts_of_no_tokens_or_of_too_many_are_not_computed(
    running: RunningEngine, answers: dict[str, list[int]], token_ids: tuple[int, ...]
) -> None:
    class Careless(ScriptedProposer):
        def propose(self, max_tokens: int) -> Draft:
            return Draft(token_ids, "careless", 0)

    outcome = run_beside(running, make_request("bad", proposer=Careless(())), answers)
    assert outcome.token_ids == answers["bad"]
    assert outcome.finished.stats.drafted == 0


class RaisingConstraint:
    """A grammar of two merges of which one method raises from the n-th call on."""

    def __init__(self, method: str, *, after: int) -> None:
        texts = [
            MergeText(symbols=(10, 11, one, 12, 13, other), weight=0.5, borders=[2])
            for one, other in ((20, 30), (21, 31))
        ]
        self._grammar = MergeGrammar(MergeRules(texts=texts, end_token_ids=(2,), prior_scale=1.0))
        self._method = method
        self._left = after

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._left -= 1
            if self._left < 0:
                raise ZeroDivisionError("a bug of a grammar")
        return getattr(self._grammar, name)


@pytest.mark.parametrize(
    "method", ["is_complete", "is_border", "allowed_next", "log_prior", "draft", "advance_all"]
)
@pytest.mark.parametrize(("after", "max_draft_tokens"), [(0, 64), (2, 64), (1, 0)])
def test_a_constraint_that_raises_costs_its_request(
    running: RunningEngine,
    answers: dict[str, list[int]],
    method: str,
    after: int,
    max_draft_tokens: int,
) -> None:
    bad = make_request(
        "bad",
        constraint=RaisingConstraint(method, after=after),
        max_draft_tokens=max_draft_tokens,
    )
    outcome = run_beside(running, bad, answers)
    if isinstance(outcome.last, Failed):
        assert isinstance(outcome.last.error, ConstraintFailedError)
        assert "a bug of a grammar" in str(outcome.last.error)
    else:
        assert after > 0 or method in ("is_border", "log_prior", "draft"), "it was never asked"


def test_a_stop_checker_that_raises_costs_its_request(
    running: RunningEngine, answers: dict[str, list[int]]
) -> None:
    class Stop:
        def push(self, token_ids: Sequence[int]) -> int | None:
            raise UnicodeError("a bug of a stop checker")

    outcome = run_beside(running, make_request("bad", stop_checker=Stop()), answers)
    assert isinstance(outcome.last, Failed)
    assert isinstance(outcome.last.error, StepFailedError)


def poisoned(kind: str) -> Callable[[torch.Tensor], None]:
    value = {"nan": torch.nan, "inf": torch.inf}[kind]

    def poison(weight: torch.Tensor) -> None:
        weight[POISONED] = value

    return poison


@pytest.mark.parametrize("kind", ["nan", "inf"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("has_logprobs", [False, True])
def test_numbers_that_are_none_cost_their_request(
    tiny_model_dir: Path,
    answers: dict[str, list[int]],
    kind: str,
    temperature: float,
    has_logprobs: bool,
) -> None:
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20)
    with running_engine(config) as running:
        model: Any = running.engine._runner._model
        with torch.no_grad():
            embedding = model.model.embed_tokens.weight
            # Without the head's own row, which may be tied to it.
            model.model.embed_tokens.weight = torch.nn.Parameter(embedding.clone())
            poisoned(kind)(model.model.embed_tokens.weight)
        bad = make_request("bad")
        bad = dataclasses.replace(
            bad,
            prompt_token_ids=(*bad.prompt_token_ids, POISONED, 9),
            sampling=SamplingParams(
                max_tokens=24, temperature=temperature, has_logprobs=has_logprobs
            ),
        )
        outcome = run_beside(running, bad, answers)
    assert isinstance(outcome.last, Failed)
    assert isinstance(outcome.last.error, BrokenNumbersError)
    assert outcome.token_ids == []
