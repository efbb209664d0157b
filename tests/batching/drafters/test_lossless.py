"""Whatever a drafter drafts, the texts are those without it, and no block is left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from drafter_checkpoints import DRAFTERS, make_drafter_config
from drafter_texts import SAMPLINGS, make_requests, texts
from engine_runs import running_engine

from apply_service.prompts.tokenizer import PromptTokenizer
from batching.config import EngineConfig, SchedulerConfig

NUM_CASES = 12


@pytest.fixture(scope="module")
def unspeculated(tiny_model_dir: Path) -> dict[str, list[list[int]]]:
    with running_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)) as plain:
        return {
            name: texts(plain, make_requests(name, count=NUM_CASES, has_drafts=False))
            for name in SAMPLINGS
        }


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
            assert texts(running, make_requests(name, count=NUM_CASES, has_drafts=True)) == answers
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
            assert texts(running, make_requests(name, count=NUM_CASES, has_drafts=True)) == answers
        assert running.engine.stats().preemptions
