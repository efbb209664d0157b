"""Drafts that are trees change no token, whatever they hold, and leave no block behind."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from engine_runs import RunningEngine, running_engine
from tree_proposers import TreeKind, TreeProposer

from batching.config import EngineConfig, SchedulerConfig
from batching.request import EngineRequest, SamplingParams

NUM_CASES = 12
KINDS: tuple[TreeKind, ...] = ("lucky", "random", "wrong", "repeating", "too long")
SAMPLINGS = {
    "greedy": SamplingParams(max_tokens=70),
    "sampled": SamplingParams(max_tokens=70, temperature=0.9, top_p=0.95, top_k=40),
    "logprobs": SamplingParams(max_tokens=40, has_logprobs=True),
}
MakeProposer = Callable[[int], TreeProposer | None]


@pytest.fixture(scope="module")
def running(tiny_model_dir: Path) -> Iterator[RunningEngine]:
    with running_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)) as engine:
        yield engine


def make_requests(name: str, make_proposer: MakeProposer) -> list[EngineRequest]:
    generator = random.Random(3)
    return [
        EngineRequest(
            request_id=f"case-{case}",
            prompt_token_ids=tuple(
                generator.randrange(3, 259) for _ in range(generator.choice([5, 16, 31, 64, 200]))
            ),
            sampling=replace(SAMPLINGS[name], seed=case),
            proposer=make_proposer(case),
        )
        for case in range(NUM_CASES)
    ]


def texts(running: RunningEngine, requests: Sequence[EngineRequest]) -> list[list[int]]:
    outcomes = running.run(requests)
    assert running.engine.stats().num_free_blocks == running.engine.stats().num_blocks
    assert all(outcome.finished for outcome in outcomes)
    return [outcome.token_ids for outcome in outcomes]


@pytest.fixture(scope="module", params=SAMPLINGS)
def unspeculated(
    running: RunningEngine, request: pytest.FixtureRequest
) -> tuple[str, list[list[int]]]:
    return request.param, texts(running, make_requests(request.param, lambda _: None))


@pytest.mark.parametrize("kind", KINDS)
def test_trees_change_no_token(
    running: RunningEngine, unspeculated: tuple[str, list[list[int]]], kind: TreeKind
) -> None:
    name, answers = unspeculated
    proposers = [TreeProposer(answer, kind, seed=case) for case, answer in enumerate(answers)]
    before = running.engine.stats()
    assert texts(running, make_requests(name, lambda case: proposers[case])) == answers
    after = running.engine.stats()
    if kind == "lucky":
        assert sum(proposer.num_branched for proposer in proposers) > NUM_CASES
        assert after.steps - before.steps < sum(map(len, answers)) / 3
    if kind in ("wrong", "too long"):
        assert after.accepted == before.accepted


def test_trees_go_on_where_blocks_are_scarce(
    tiny_model_dir: Path, running: RunningEngine, unspeculated: tuple[str, list[list[int]]]
) -> None:
    name, answers = unspeculated
    kv_bytes = running.engine.model_info.kv_bytes_per_token * 16 * 40
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=kv_bytes,
        scheduler=SchedulerConfig(max_tokens_per_step=64),
    )
    proposers = [TreeProposer(answer, "lucky", seed=case) for case, answer in enumerate(answers)]
    with running_engine(config) as small:
        assert texts(small, make_requests(name, lambda case: proposers[case])) == answers
        assert small.engine.stats().preemptions
    assert any(proposer.num_branched for proposer in proposers)


def test_the_log_probabilities_of_a_branch_are_those_of_a_plain_step(
    running: RunningEngine,
) -> None:
    plain = running.run(make_requests("logprobs", lambda _: None))
    proposers = [
        TreeProposer(outcome.token_ids, "lucky", seed=case) for case, outcome in enumerate(plain)
    ]
    branched = running.run(make_requests("logprobs", lambda case: proposers[case]))
    assert [outcome.logprobs for outcome in branched] == [outcome.logprobs for outcome in plain]
    assert sum(proposer.num_branched for proposer in proposers) > NUM_CASES
