"""Requests of random prompts, and their texts by an engine that must hold no block afterwards."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from engine_runs import RunningEngine

from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams

MAX_TOKENS = 60
SAMPLINGS = {
    "greedy": SamplingParams(max_tokens=MAX_TOKENS),
    "sampled": SamplingParams(max_tokens=MAX_TOKENS, temperature=0.8, top_p=0.95, top_k=50),
}


def make_requests(
    name: str, *, count: int, has_drafts: bool, max_tokens: int = MAX_TOKENS
) -> list[EngineRequest]:
    """The first so many requests; each has a prompt and a seed of its own."""
    generator = random.Random(3)
    requests = []
    for case in range(count):
        length = generator.choice([5, 16, 31, 64, 200])
        prompt = tuple(generator.randrange(3, 259) for _ in range(length))
        requests.append(
            EngineRequest(
                request_id=f"case-{case}",
                prompt_token_ids=prompt,
                sampling=replace(SAMPLINGS[name], seed=case, max_tokens=max_tokens),
                proposer=EditDrafts(original=(), snippet_segments=()) if has_drafts else None,
            )
        )
    return requests


def texts(running: RunningEngine, requests: Sequence[EngineRequest]) -> list[list[int]]:
    """Run them all at once."""
    outcomes = running.run(requests)
    stats = running.engine.stats()
    assert stats.num_free_blocks == stats.num_blocks
    assert all(outcome.finished for outcome in outcomes)
    return [outcome.token_ids for outcome in outcomes]
