"""A trace tells of every token of an answer which step wrote it, and why."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from engine_runs import Outcome, RunningEngine, running_engine

from batching.config import EngineConfig
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams
from lookup.merge_grammar import MergeGrammar
from lookup.merge_rules import MergeRules, MergeText

NEWLINE, END = 13, (13, 60, 2)
LINES = [(NEWLINE, 40 + at, 50 + at, 60 + at) for at in range(6)]


@pytest.fixture(scope="module")
def running(tiny_model_dir: Path) -> Iterator[RunningEngine]:
    with running_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)) as found:
        yield found


def free_request(name: str, seed: int, answer: tuple[int, ...] = ()) -> EngineRequest:
    """Drafts are copied from `answer`, if there is one."""
    generator = random.Random(seed)
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(30)),
        sampling=SamplingParams(max_tokens=40),
        proposer=EditDrafts(original=answer, snippet_segments=()) if answer else None,
        max_draft_tokens=8 if answer else 0,
        is_traced=True,
    )


def bound_request(name: str, seed: int, *, k: int) -> EngineRequest:
    """One of two texts that differ in a line."""
    texts = [
        MergeText(symbols=tuple(token for line in lines for token in line), weight=0.0, borders=[])
        for lines in (LINES, [*LINES[:3], LINES[0], *LINES[4:]])
    ]
    generator = random.Random(seed)
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(30)),
        sampling=SamplingParams(max_tokens=100),
        constraint=MergeGrammar(MergeRules(texts=texts, end_token_ids=END, prior_scale=0.0)),
        max_draft_tokens=k,
        is_traced=True,
    )


def check(outcome: Outcome) -> Counter[str]:
    """The steps give the answer in order; how many tokens came from where."""
    trace, stats = outcome.finished.trace, outcome.finished.stats
    assert [token_id for step in trace for token_id in step.token_ids] == outcome.token_ids
    assert all(len(step.origins) == len(step.token_ids) for step in trace)
    times = [step.at_s for step in trace]
    assert times == sorted(times)
    assert times[0] >= 0
    origins = Counter(origin for step in trace for origin in step.origins)
    assert origins["drafted"] == stats.accepted
    assert origins["forced"] == stats.forced
    assert origins["written"] <= stats.decode_passes
    return origins


@pytest.mark.parametrize("seed", range(4))
def test_of_drafts_what_held_and_what_did_not(running: RunningEngine, seed: int) -> None:
    (plain,) = running.run([free_request(f"plain-{seed}", seed)])
    assert check(plain) == {"written": 40}
    answer = list(plain.token_ids)
    answer[20] = answer[20] % 250 + 3  # where a draft breaks off
    (drafted,) = running.run([free_request(f"drafted-{seed}", seed, tuple(answer))])
    assert drafted.token_ids == plain.token_ids
    assert check(drafted)["drafted"] > 0
    steps = drafted.finished.trace
    num_rejected = sum(len(step.rejected_token_ids) for step in steps)
    stats = drafted.finished.stats
    assert num_rejected == stats.drafted - stats.accepted
    assert all(step.reference == "original" for step in steps if "drafted" in step.origins)


def test_under_a_constraint_most_is_forced(running: RunningEngine) -> None:
    bound, plain = running.run([bound_request("bound", 7, k=64), bound_request("plain", 7, k=0)])
    origins = check(bound)
    assert origins["forced"] > origins["drafted"] + origins["written"] > 0
    assert check(plain) == {"written": len(bound.token_ids)}, "without drafts the model is asked"


def test_nobody_pays_for_a_trace_that_is_not_wanted(running: RunningEngine) -> None:
    request = replace(free_request("untraced", 1), is_traced=False)
    (outcome,) = running.run([request])
    assert outcome.finished.trace == ()
