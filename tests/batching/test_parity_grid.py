"""Greedy tokens do not depend on the draft length, nor on who else is in the batch."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from engine_runs import RunningEngine, running_engine
from oracles.engine.erratic_costs import ErraticCosts
from parity import check_parity

from batching.config import EngineConfig
from batching.engine import Engine
from batching.model.runner import ModelRunner
from batching.request import EngineRequest, SamplingParams
from lookup.edit_proposer import EditProposer

NUM_REQUESTS = 30
ANSWER_LEN = 20
K_VALUES = (0, 8, 64)
BATCHES = (1, 16)


def make_prompts() -> list[tuple[int, ...]]:
    generator = random.Random(6)
    return [
        tuple(generator.randrange(3, 259) for _ in range(generator.choice([7, 30, 90])))
        for _ in range(NUM_REQUESTS)
    ]


def answer_all(
    running: RunningEngine,
    prompts: Sequence[tuple[int, ...]],
    *,
    k: int,
    batch: int,
    originals: Sequence[Sequence[int]],
) -> list[list[int]]:
    answers: list[list[int]] = []
    for start in range(0, len(prompts), batch):
        requests = [
            EngineRequest(
                request_id=f"{index}-{k}-{batch}",
                prompt_token_ids=prompts[index],
                sampling=SamplingParams(max_tokens=ANSWER_LEN),
                proposer=EditProposer(
                    original=originals[index], snippet_segments=[], end_token_ids=[2]
                )
                if k
                else None,
                max_draft_tokens=k,
                cache_salt=f"{k}-{batch}".encode(),
            )
            for index in range(start, min(start + batch, len(prompts)))
        ]
        answers += [outcome.token_ids for outcome in running.run(requests)]
    return answers


def almost(tokens: list[int]) -> list[int]:
    """An original that is the answer but for a token: what it drafts is mostly right."""
    return [*tokens[:9], (tokens[9] + 1) % 259, *tokens[10:]] if len(tokens) > 9 else tokens


@pytest.fixture(scope="module")
def config(tiny_model_dir: Path) -> EngineConfig:
    return EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=8 << 20)


@pytest.fixture(scope="module")
def expected(config: EngineConfig) -> list[list[int]]:
    """The answers without drafts, one at a time."""
    prompts = make_prompts()
    nothing: list[list[int]] = [[] for _ in prompts]
    with running_engine(config) as running:
        return answer_all(running, prompts, k=0, batch=1, originals=nothing)


@pytest.mark.parametrize("batch", BATCHES)
def test_tokens_are_the_same_over_the_grid(
    config: EngineConfig, tiny_model_dir: Path, expected: list[list[int]], batch: int
) -> None:
    prompts = make_prompts()
    originals = list(map(almost, expected))
    with running_engine(config) as running:
        for k in K_VALUES:
            answers = answer_all(running, prompts, k=k, batch=batch, originals=originals)
            check_parity(tiny_model_dir, prompts, expected, answers)
        stats = running.engine.stats()
    assert stats.accepted > NUM_REQUESTS * ANSWER_LEN / 2
    assert stats.drafted > stats.accepted


def test_tokens_are_the_same_whatever_the_budget_says(
    config: EngineConfig, tiny_model_dir: Path, expected: list[list[int]]
) -> None:
    prompts = make_prompts()
    runner = ModelRunner(config)
    originals = list(map(almost, expected))
    for seed in range(3):
        costs = ErraticCosts(seed)
        running = RunningEngine(Engine(config.scheduler, runner, costs=costs))
        answers = answer_all(running, prompts, k=64, batch=16, originals=originals)
        running.engine.stop()
        check_parity(tiny_model_dir, prompts, expected, answers)
        assert costs.num_observed > 0
