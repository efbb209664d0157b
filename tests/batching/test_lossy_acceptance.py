"""Requests may let drafts pass that the model would not have written; those beside them do not."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from engine_runs import Outcome, RunningEngine, ScriptedProposer, running_engine
from tiny_model import write_small_vocabulary_model
from transformers import AutoModelForCausalLM

from batching.config import EngineConfig, SchedulerConfig
from batching.request import EngineRequest, SamplingParams
from kernels.lossy_verify import TOP_N

VOCAB_SIZE = 12
NUM_TOKENS = 24
NUM_REQUESTS = 12
PROMPT = (1, 3, 2, 5)


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("twelve-tokens")
    write_small_vocabulary_model(path, vocab_size=VOCAB_SIZE)
    return path


@pytest.fixture(scope="module")
def engine(model_dir: Path) -> Iterator[RunningEngine]:
    config = EngineConfig(
        model_path=model_dir, kv_memory_bytes=1 << 20, scheduler=SchedulerConfig(block_size=4)
    )
    with running_engine(config) as running:
        yield running


def make_request(name: str, sampling: SamplingParams, *, has_drafts: bool) -> EngineRequest:
    script = random.Random(name).choices(range(VOCAB_SIZE), k=NUM_TOKENS)
    return EngineRequest(
        request_id=name,
        prompt_token_ids=PROMPT,
        sampling=sampling,
        proposer=ScriptedProposer(script) if has_drafts else None,
    )


def ranks_of(model_dir: Path, outcome: Outcome) -> list[int]:
    """The place of each token among all tokens by the model's own word; 0 is its choice."""
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32).eval()
    token_ids = torch.tensor([*PROMPT, *outcome.token_ids])
    with torch.inference_mode():
        logits = model(token_ids[None]).logits[0, len(PROMPT) - 1 : -1]
    ranks = logits.argsort(dim=-1, descending=True).argsort(dim=-1)
    return [int(row[token_id]) for row, token_id in zip(ranks, outcome.token_ids, strict=True)]


def test_tolerated_drafts_pass_and_exact_requests_beside_them_stay_exact(
    engine: RunningEngine, model_dir: Path
) -> None:
    tolerant = SamplingParams(max_tokens=NUM_TOKENS, acceptance="top-n")
    exact = SamplingParams(max_tokens=NUM_TOKENS)
    names = [f"r{number}" for number in range(NUM_REQUESTS)]

    (off,) = engine.run([make_request("off", exact, has_drafts=False)])
    outcomes = engine.run(
        [
            make_request(name, exact if number % 2 else tolerant, has_drafts=True)
            for number, name in enumerate(names)
        ]
    )

    ranks = [rank for outcome in outcomes[::2] for rank in ranks_of(model_dir, outcome)]
    assert max(ranks) < TOP_N
    assert any(ranks)
    assert all(outcome.token_ids == off.token_ids for outcome in outcomes[1::2])
    assert ranks_of(model_dir, off) == [0] * NUM_TOKENS


@pytest.mark.parametrize("acceptance", ["typical", "adaptive", "top-n"])
def test_without_drafts_no_acceptance_changes_a_text(
    engine: RunningEngine, acceptance: str
) -> None:
    sampling = {"max_tokens": NUM_TOKENS, "temperature": 0.8, "seed": 5}
    (exact, lossy) = engine.run(
        [
            make_request("exact", SamplingParams(**sampling), has_drafts=False),
            make_request(
                "lossy", SamplingParams(**sampling, acceptance=acceptance), has_drafts=False
            ),
        ]
    )
    assert lossy.token_ids == exact.token_ids


@pytest.mark.parametrize("acceptance", ["typical", "adaptive", "top-n"])
def test_the_same_seed_and_drafts_give_the_same_text(
    engine: RunningEngine, acceptance: str
) -> None:
    sampling = SamplingParams(max_tokens=NUM_TOKENS, temperature=0.8, acceptance=acceptance)
    (alone,) = engine.run([make_request("r0", sampling, has_drafts=True)])
    names = [f"r{number}" for number in range(NUM_REQUESTS)]
    beside = engine.run([make_request(name, sampling, has_drafts=True) for name in names])
    assert beside[0].token_ids == alone.token_ids
