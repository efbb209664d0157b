"""Times between tokens and drafts, by kind of prompt, temperature and phase of the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_runs import RunningEngine, ScriptedProposer, running_engine

from batching.answer_counters import START_TOKENS
from batching.config import EngineConfig, SchedulerConfig
from batching.request import EngineRequest, PromptKind, SamplingParams
from batching.stats import AnswerPart, AnswerStats

NUM_TOKENS = START_TOKENS + 8
PROMPT = (5, 6, 7, 8)


@pytest.fixture
def engine(tiny_model_dir: Path) -> Iterator[RunningEngine]:
    config = EngineConfig(
        model_path=tiny_model_dir, kv_memory_bytes=1 << 20, scheduler=SchedulerConfig(block_size=4)
    )
    with running_engine(config) as running:
        yield running


def make_request(
    name: str, kind: PromptKind, temperature: float, *, script: tuple[int, ...] = ()
) -> EngineRequest:
    return EngineRequest(
        request_id=name,
        prompt_token_ids=PROMPT,
        sampling=SamplingParams(max_tokens=NUM_TOKENS, temperature=temperature, seed=3),
        proposer=ScriptedProposer(script) if script else None,
        prompt_kind=kind,
    )


def by_part(engine: RunningEngine) -> dict[AnswerPart, AnswerStats]:
    return {one.part: one for one in engine.engine.stats().answers}


def test_each_token_but_the_first_has_one_gap(engine: RunningEngine) -> None:
    engine.run(
        [
            make_request("a", "edit", 0.0),
            make_request("b", "chat", 0.5),
            make_request("c", "chat", 0.7),
            make_request("d", "chat", 1.2),
        ]
    )
    gaps = {part: sum(one.gaps_us.counts) for part, one in by_part(engine).items()}
    assert gaps == {
        ("edit", "zero", "start"): START_TOKENS - 1,
        ("edit", "zero", "rest"): NUM_TOKENS - START_TOKENS,
        ("chat", "low", "start"): 2 * (START_TOKENS - 1),
        ("chat", "low", "rest"): 2 * (NUM_TOKENS - START_TOKENS),
        ("chat", "high", "start"): START_TOKENS - 1,
        ("chat", "high", "rest"): NUM_TOKENS - START_TOKENS,
    }


def test_tokens_of_one_pass_come_without_a_gap(engine: RunningEngine) -> None:
    (plain,) = engine.run([make_request("plain", "edit", 0.0)])
    before = by_part(engine)
    (drafted,) = engine.run([make_request("d", "edit", 0.0, script=tuple(plain.token_ids))])
    assert drafted.token_ids == plain.token_ids
    after, new = by_part(engine), Counter[str]()
    for part, one in after.items():
        assert one.gaps_us.limits[0] == 0
        new["gaps"] += sum(one.gaps_us.counts) - sum(before[part].gaps_us.counts)
        new["none"] += one.gaps_us.counts[0] - before[part].gaps_us.counts[0]
        new["drafted"] += one.drafted - before[part].drafted
        new["accepted"] += one.accepted - before[part].accepted
    passes = drafted.finished.stats.decode_passes
    assert new["gaps"] == NUM_TOKENS - 1
    assert new["none"] == NUM_TOKENS - passes
    assert new["accepted"] == drafted.finished.stats.accepted > 0
    assert new["drafted"] >= new["accepted"]
