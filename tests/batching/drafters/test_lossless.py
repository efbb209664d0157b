"""Whatever a drafter drafts, the texts are those without it, and no block is left behind."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from drafter_checkpoints import DRAFTERS, make_drafter_config
from engine_runs import RunningEngine, running_engine

from apply_service.prompts.tokenizer import PromptTokenizer
from batching.config import EngineConfig, SchedulerConfig
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams

NUM_CASES = 12
SAMPLINGS = {
    "greedy": SamplingParams(max_tokens=60),
    "sampled": SamplingParams(max_tokens=60, temperature=0.8, top_p=0.95, top_k=50),
}


def make_requests(name: str, *, has_drafts: bool) -> list[EngineRequest]:
    generator = random.Random(3)
    requests = []
    for case in range(NUM_CASES):
        length = generator.choice([5, 16, 31, 64, 200])
        prompt = tuple(generator.randrange(3, 259) for _ in range(length))
        requests.append(
            EngineRequest(
                request_id=f"case-{case}",
                prompt_token_ids=prompt,
                sampling=replace(SAMPLINGS[name], seed=case),
                proposer=EditDrafts(original=(), snippet_segments=()) if has_drafts else None,
            )
        )
    return requests


def texts(running: RunningEngine, requests: Sequence[EngineRequest]) -> list[list[int]]:
    outcomes = running.run(requests)
    stats = running.engine.stats()
    assert stats.num_free_blocks == stats.num_blocks
    assert all(outcome.finished for outcome in outcomes)
    return [outcome.token_ids for outcome in outcomes]


@pytest.fixture(scope="module")
def unspeculated(tiny_model_dir: Path) -> dict[str, list[list[int]]]:
    with running_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)) as plain:
        return {name: texts(plain, make_requests(name, has_drafts=False)) for name in SAMPLINGS}


@pytest.mark.parametrize("kind", DRAFTERS)
def test_a_drafter_changes_no_token(
    tiny_model_dir: Path, tmp_path: Path, unspeculated: dict[str, list[list[int]]], kind: str
) -> None:
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=4 << 20,
        drafters=(make_drafter_config(kind, tiny_model_dir, tmp_path),),
    )
    with running_engine(config, tokens=PromptTokenizer.from_dir(tiny_model_dir)) as running:
        for name, answers in unspeculated.items():
            assert texts(running, make_requests(name, has_drafts=True)) == answers
        (figures,) = running.engine.stats().drafters.values()
        assert figures.asks > NUM_CASES
        assert running.engine.stats().by_reference.keys() >= set(running.engine.stats().drafters)


@pytest.mark.parametrize("kind", DRAFTERS)
def test_a_drafter_changes_no_token_where_blocks_are_scarce(
    tiny_model_dir: Path, tmp_path: Path, unspeculated: dict[str, list[list[int]]], kind: str
) -> None:
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=300 << 10,
        scheduler=SchedulerConfig(max_tokens_per_step=48),
        drafters=(make_drafter_config(kind, tiny_model_dir, tmp_path),),
    )
    with running_engine(config, tokens=PromptTokenizer.from_dir(tiny_model_dir)) as running:
        for name, answers in unspeculated.items():
            assert texts(running, make_requests(name, has_drafts=True)) == answers
        assert running.engine.stats().preemptions
