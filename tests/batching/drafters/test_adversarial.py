"""Drafters may be wrong, look at the draws, fail or break the rules: the texts stay the same."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from adversarial_drafters import (
    Answers,
    BrokenDrafter,
    FailingDrafter,
    MakeDrafter,
    PeekingDrafter,
    SlowDrafter,
    TreeDrafter,
    engine_with_drafter,
)
from engine_runs import RunningEngine, running_engine
from oracles.engine.joint_distribution import Answer, chi_square_p_value, joint_probs
from oracles.engine.sorted_filter import filter_sorted
from tiny_model import VOCAB_SIZE, write_small_vocabulary_model

from batching.config import EngineConfig, SchedulerConfig
from batching.events import Finished
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams
from lookup.proposer import Branch, Draft

# 15 drafters: 210 greedy and 210 sampled texts.
NUM_CASES = 14
SAMPLINGS = {
    "greedy": SamplingParams(max_tokens=40),
    "sampled": SamplingParams(max_tokens=40, temperature=0.8, top_p=0.95),
}


def make_working(answers: Answers, kind: str) -> MakeDrafter:
    """Drafters that keep to the rules."""
    if kind == "peeking":
        return PeekingDrafter
    if kind == "slow":
        return lambda _: SlowDrafter(answers, "lucky")
    return lambda _: TreeDrafter(answers, kind)  # type: ignore[arg-type]


BROKEN = {
    "a token too high": Draft((5, VOCAB_SIZE), "adversarial", 0),
    "a token too low": Draft((5,), "adversarial", 0, branches=(Branch(0, (-1,), "adversarial"),)),
    "a branch of nothing": Draft((5,), "adversarial", 0, branches=(Branch(3, (6,), "here"),)),
    "an empty branch": Draft((5,), "adversarial", 0, branches=(Branch(0, (), "here"),)),
    "a draft missing": None,
}
FAILING = ("observe", "draft", "forget")


def make_requests(name: str, *, has_drafts: bool) -> list[EngineRequest]:
    generator = random.Random(5)
    return [
        EngineRequest(
            request_id=f"{name}-{case}",
            prompt_token_ids=tuple(
                generator.randrange(3, VOCAB_SIZE) for _ in range(generator.choice([5, 31, 100]))
            ),
            sampling=dataclasses.replace(SAMPLINGS[name], seed=generator.getrandbits(63)),
            proposer=EditDrafts(original=(), snippet_segments=()) if has_drafts else None,
        )
        for case in range(NUM_CASES)
    ]


def texts(running: RunningEngine, requests: Sequence[EngineRequest]) -> dict[str, list[int]]:
    outcomes = running.run(requests)
    stats = running.engine.stats()
    assert stats.num_free_blocks == stats.num_blocks
    assert all(outcome.finished for outcome in outcomes)
    return {
        request.request_id: outcome.token_ids
        for request, outcome in zip(requests, outcomes, strict=True)
    }


def make_config(model_dir: Path) -> EngineConfig:
    return EngineConfig(model_path=model_dir, kv_memory_bytes=4 << 20)


@pytest.fixture(scope="module")
def answers(tiny_model_dir: Path) -> dict[str, list[int]]:
    with running_engine(make_config(tiny_model_dir)) as plain:
        return {
            request_id: token_ids
            for name in SAMPLINGS
            for request_id, token_ids in texts(plain, make_requests(name, has_drafts=False)).items()
        }


def check_texts(running: RunningEngine, answers: Answers) -> None:
    written = {
        request_id: token_ids
        for name in SAMPLINGS
        for request_id, token_ids in texts(running, make_requests(name, has_drafts=True)).items()
    }
    assert written == answers


@pytest.mark.parametrize("kind", ["lucky", "random", "wrong", "repeating", "slow", "peeking"])
def test_what_is_drafted_changes_no_token(
    tiny_model_dir: Path, answers: dict[str, list[int]], kind: str
) -> None:
    config = make_config(tiny_model_dir)
    with engine_with_drafter(config, make_working(answers, kind)) as running:
        check_texts(running, answers)
        stats = running.engine.stats()
        assert stats.drafters["adversarial"].asks > NUM_CASES
        assert (stats.accepted > 0) is (kind != "wrong")
        assert stats.drafted > stats.accepted


@pytest.mark.parametrize("method", FAILING)
def test_a_drafter_that_raises_is_asked_no_more(
    tiny_model_dir: Path, answers: dict[str, list[int]], method: str
) -> None:
    config = make_config(tiny_model_dir)
    with engine_with_drafter(config, lambda _: FailingDrafter(answers, method)) as running:
        check_texts(running, answers)
        assert not running.engine.stats().drafters


@pytest.mark.parametrize("kind", [*BROKEN, "too long"])
def test_a_drafter_that_breaks_the_rules_is_asked_no_more(
    tiny_model_dir: Path, answers: dict[str, list[int]], kind: str
) -> None:
    def make(_target: object) -> TreeDrafter:
        if kind == "too long":
            return TreeDrafter(answers, "too long")
        return BrokenDrafter(answers, BROKEN[kind])

    with engine_with_drafter(make_config(tiny_model_dir), make) as running:
        check_texts(running, answers)
        assert not running.engine.stats().drafters


NUM_POSITIONS = 3
SMALL_VOCABULARY = 4
PROMPT = (1, 3, 2, 0, 3)
ANSWERS_PER_SEED = 1100
FEW, MANY = range(3), range(19)
# One test for each number of draws.
MIN_P_VALUE = 1e-3 / 2


@pytest.mark.parametrize("base_seeds", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_drafter_that_looks_at_the_draws_leaves_the_distribution_as_it_is(
    tmp_path: Path, base_seeds: range
) -> None:
    write_small_vocabulary_model(tmp_path, vocab_size=SMALL_VOCABULARY)
    # Answers are longer than what is counted, so that drafts may be trees where it is written.
    sampling = SamplingParams(max_tokens=NUM_POSITIONS + 4, temperature=0.8, top_p=0.95)
    config = EngineConfig(
        model_path=tmp_path,
        kv_memory_bytes=1 << 20,
        scheduler=SchedulerConfig(
            block_size=4, max_tokens_per_step=2048, max_running=256, max_waiting=ANSWERS_PER_SEED
        ),
    )
    found: list[Answer] = []
    with engine_with_drafter(config, PeekingDrafter) as running:
        for base_seed in base_seeds:
            found += draw_answers(running, sampling, base_seed=base_seed)
        stats = running.engine.stats()
        assert 0.1 < stats.accepted / stats.drafted < 0.9, "drafts must both hold and fail often"
    joint = joint_probs(
        tmp_path,
        PROMPT,
        length=NUM_POSITIONS,
        distribution=lambda logits: filter_sorted(
            logits, temperature=sampling.temperature, top_p=sampling.top_p
        ),
    )
    p_value = chi_square_p_value(found, joint)
    assert p_value > MIN_P_VALUE, f"p = {p_value:.2e} over {len(found)} answers"


def draw_answers(
    running: RunningEngine, sampling: SamplingParams, *, base_seed: int
) -> list[Answer]:
    """The first tokens of as many requests, each with its own seed."""
    requests = [
        EngineRequest(
            request_id=f"{base_seed}-{at}",
            prompt_token_ids=PROMPT,
            sampling=dataclasses.replace(sampling, seed=base_seed * 100_000 + at),
            proposer=EditDrafts(original=(), snippet_segments=()),
        )
        for at in range(ANSWERS_PER_SEED)
    ]
    for request in requests:
        running.submit(request)
    num_live = len(requests)
    while num_live:  # counted, because looking through thousands after each event takes as long
        num_live -= isinstance(running.take_event(), Finished)
    return [
        tuple(running.outcomes.pop(request.request_id).token_ids[:NUM_POSITIONS])
        for request in requests
    ]
