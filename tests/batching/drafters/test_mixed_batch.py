"""Several drafters, constraints, cancelled and preempted requests at once: the texts stay the same.

The prefix cache is cold at first and warm then, with a tier in host memory.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from drafter_checkpoints import make_drafter_config
from engine_runs import Outcome, RunningEngine, running_engine

from batching.config import CacheConfig, EngineConfig, SchedulerConfig
from batching.events import Cancelled, Finished, Tokens
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules, MergeText

NUM_REQUESTS = 16
KINDS = ("token-recycling", "history", "medusa", "eagle")
NUM_BLOCKS = 72
NEWLINE, END = 13, (13, 60, 2)
SAMPLINGS = (
    SamplingParams(max_tokens=32),
    SamplingParams(max_tokens=32, temperature=0.8, top_p=0.95, top_k=50),
)
# Cancelled ones would write on for longer than anybody else.
NUM_CANCELLED_TOKENS = 500


def is_constrained(case: int) -> bool:
    return case % 4 == 3


def is_cancelled(case: int) -> bool:
    return case % 8 == 2


def make_grammar(case: int) -> MergeGrammar:
    """Versions of a text, to which some lines are new."""
    generator = random.Random(case)
    lines = [(NEWLINE, *generator.choices(range(61, 259), k=6)) for _ in range(20)]
    texts = []
    for _ in range(4):
        text = list(lines)
        text.insert(generator.randrange(len(text)), (NEWLINE, generator.randrange(61, 259)))
        texts.append(MergeText(symbols=tuple(token for line in text for token in line)))
    return MergeGrammar(MergeRules(texts=texts, end_token_ids=END))


def make_request(case: int, *, name: str, is_plain: bool) -> EngineRequest:
    generator = random.Random(100 + case)
    prompt = generator.choices(range(3, 259), k=generator.choice([5, 70, 130]))
    sampling = replace(SAMPLINGS[case % 2], seed=case)
    if is_constrained(case):
        sampling = replace(sampling, max_tokens=400)
    if is_cancelled(case):
        sampling = replace(sampling, max_tokens=NUM_CANCELLED_TOKENS)
    request = EngineRequest(
        request_id=f"{name}-{case}",
        prompt_token_ids=tuple(prompt),
        sampling=sampling,
        max_draft_tokens=0 if is_plain else 64,
        cache_salt=b"one" if case % 3 else b"other",
    )
    if is_constrained(case):
        return replace(request, constraint=make_grammar(case))
    return replace(request, proposer=EditDrafts(original=(), snippet_segments=()))


def run_batch(
    running: RunningEngine, name: str, *, cancelled: Mapping[str, int]
) -> Sequence[Outcome]:
    """The outcomes of all; some are cancelled once they have so many tokens."""
    requests = [
        make_request(case, name=name, is_plain=not cancelled) for case in range(NUM_REQUESTS)
    ]
    for request in requests:
        running.submit(request)
    left = dict(cancelled)
    while any(outcome.last is None for outcome in running.outcomes.values()):
        event = running.take_event()
        if isinstance(event, Tokens):
            num_tokens = len(running.outcomes[event.request_id].token_ids)
            if num_tokens >= left.get(event.request_id, num_tokens + 1):
                del left[event.request_id]
                running.engine.cancel(event.request_id)
    stats = running.engine.stats()
    assert stats.num_free_blocks == stats.num_blocks
    return [running.outcomes.pop(request.request_id) for request in requests]


@pytest.fixture(scope="module")
def unspeculated(tiny_model_dir: Path) -> list[list[int]]:
    with running_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)) as plain:
        return [outcome.token_ids for outcome in run_batch(plain, "plain", cancelled={})]


def test_drafters_together_change_no_token(
    tiny_model_dir: Path, tmp_path: Path, unspeculated: list[list[int]]
) -> None:
    kv_bytes_per_token = 2 * 2 * 2 * 8 * 4
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=NUM_BLOCKS * 16 * kv_bytes_per_token,
        scheduler=SchedulerConfig(max_tokens_per_step=96),
        cache=CacheConfig(memory_bytes=8 << 20),
        drafters=tuple(make_drafter_config(kind, tiny_model_dir, tmp_path) for kind in KINDS),
    )
    with running_engine(config) as running:
        assert running.engine.stats().num_blocks == NUM_BLOCKS
        num_cached = {}
        for name in ("cold", "warm"):
            cancelled = {
                f"{name}-{case}": 10 + case for case in range(NUM_REQUESTS) if is_cancelled(case)
            }
            outcomes = run_batch(running, name, cancelled=cancelled)
            assert running.engine.wait_for_stores(30.0)
            for case, (outcome, answer) in enumerate(zip(outcomes, unspeculated, strict=True)):
                if is_cancelled(case):
                    assert isinstance(outcome.last, Cancelled)
                    assert outcome.token_ids == answer[: len(outcome.token_ids)]
                else:
                    assert outcome.token_ids == answer, case
            num_cached[name] = sum(
                outcome.last.stats.num_cached_tokens
                for outcome in outcomes
                if isinstance(outcome.last, Finished)
            )
        stats = running.engine.stats()
        assert num_cached["warm"] > num_cached["cold"]
        assert stats.preemptions
        assert len(stats.drafters) == len(KINDS)
        assert all(figures.asks > NUM_REQUESTS for figures in stats.drafters.values())
        assert stats.accepted
