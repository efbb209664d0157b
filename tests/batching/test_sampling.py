"""Sampled answers follow the model's own distribution, and a seed fixes them whatever happens."""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from engine_runs import RunningEngine, ScriptedProposer, running_engine
from oracles.engine.joint_distribution import Answer, chi_square_p_value, joint_probs
from oracles.engine.sorted_filter import filter_sorted
from tiny_model import write_small_vocabulary_model
from torch import Tensor

import batching.model.runner
from batching.config import EngineConfig, SchedulerConfig
from batching.events import Finished
from batching.request import EngineRequest, SamplingParams
from kernels.op_set import Ops
from kernels.ops import select_ops
from kernels.philox import philox_uniform
from kernels.rejection_verify import SamplingTensors
from kernels.verification import AllowedTokens, Verification

# A deviation of the verifier shows in fewer draws where fewer answers are possible.
VOCAB_SIZE = 4
NUM_POSITIONS = 3
PROMPT = (1, 3, 2, 0, 3)
# The model below likes these after the prompt; a bias towards drafts adds up where they agree.
LIKELY_ANSWER = (1, 2, 1)
# So many draws tell wrong samplers apart; `pytest -m slow` draws four times as many.
BASE_SEEDS = range(5)
MANY_BASE_SEEDS = range(20)
ANSWERS_PER_SEED = 1100
TEMPERATURES = (0.5, 1.0, 1.7)
# One pooled test and one for each base seed, at each temperature; two for the filters.
NUM_TESTS = len(TEMPERATURES) * (len(MANY_BASE_SEEDS) + 1) + 2
MIN_P_VALUE = 1e-3 / NUM_TESTS


@pytest.fixture(scope="module")
def small_vocab_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random one-layer Llama with four tokens; its distributions are neither flat nor peaked."""
    path = tmp_path_factory.mktemp("small-vocab")
    write_small_vocabulary_model(path, vocab_size=VOCAB_SIZE)
    return path


def make_config(model_dir: Path) -> EngineConfig:
    return EngineConfig(
        model_path=model_dir,
        kv_memory_bytes=1 << 20,
        scheduler=SchedulerConfig(
            block_size=4, max_tokens_per_step=2048, max_running=256, max_waiting=ANSWERS_PER_SEED
        ),
    )


@pytest.fixture(scope="module")
def engine(small_vocab_dir: Path) -> Iterator[RunningEngine]:
    with running_engine(make_config(small_vocab_dir)) as running:
        yield running


def draw_answers(
    engine: RunningEngine, sampling: SamplingParams, *, base_seed: int, num_answers: int
) -> list[Answer]:
    """Answers of as many requests, each with its own seed and drafts of its own.

    Nine of ten draft the likely answer, the others anything; whatever they say, the model decides.
    """
    generator = random.Random(base_seed)
    requests = []
    for i in range(num_answers):
        script = LIKELY_ANSWER
        if generator.random() < 0.1:
            script = tuple(generator.choices(range(VOCAB_SIZE), k=NUM_POSITIONS))
        requests.append(
            EngineRequest(
                request_id=f"{base_seed}-{i}",
                prompt_token_ids=PROMPT,
                sampling=dataclasses.replace(sampling, seed=base_seed * 100_000 + i),
                proposer=ScriptedProposer(script),
            )
        )
    for request in requests:
        engine.submit(request)
    num_live = num_answers
    while num_live:  # counted, because looking through thousands after each event takes as long
        num_live -= isinstance(engine.take_event(), Finished)
    return [tuple(engine.outcomes.pop(request.request_id).token_ids) for request in requests]


def check_distribution(answers: Sequence[Answer], joint: dict[Answer, float]) -> None:
    assert all(len(answer) == NUM_POSITIONS for answer in answers)
    p_value = chi_square_p_value(answers, joint)
    assert p_value > MIN_P_VALUE, f"p = {p_value:.2e} over {len(answers)} answers"


def plain_joint(model_dir: Path, temperature: float) -> dict[Answer, float]:
    return joint_probs(
        model_dir,
        PROMPT,
        length=NUM_POSITIONS,
        distribution=lambda logits: filter_sorted(logits, temperature=temperature),
    )


@pytest.mark.parametrize(
    "base_seeds", [BASE_SEEDS, pytest.param(MANY_BASE_SEEDS, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("temperature", TEMPERATURES)
def test_sampled_answers_follow_the_model(
    engine: RunningEngine, small_vocab_dir: Path, temperature: float, base_seeds: range
) -> None:
    joint = plain_joint(small_vocab_dir, temperature)
    sampling = SamplingParams(max_tokens=NUM_POSITIONS, temperature=temperature)
    before = engine.engine.stats()
    pooled: list[Answer] = []
    for base_seed in base_seeds:
        answers = draw_answers(engine, sampling, base_seed=base_seed, num_answers=ANSWERS_PER_SEED)
        check_distribution(answers, joint)
        pooled += answers
    check_distribution(pooled, joint)
    after = engine.engine.stats()
    acceptance = (after.accepted - before.accepted) / (after.drafted - before.drafted)
    assert 0.1 < acceptance < 0.9, "the drafts must both hold and fail often"


@pytest.mark.parametrize(("top_k", "top_p"), [(2, 1.0), (0, 0.8)])
def test_filtered_answers_follow_the_filtered_model(
    engine: RunningEngine, small_vocab_dir: Path, top_k: int, top_p: float
) -> None:
    joint = joint_probs(
        small_vocab_dir,
        PROMPT,
        length=NUM_POSITIONS,
        distribution=lambda logits: filter_sorted(
            logits, temperature=1.0, top_k=top_k, top_p=top_p
        ),
    )
    assert sum(probability == 0.0 for probability in joint.values()) > len(joint) / 2
    sampling = SamplingParams(max_tokens=NUM_POSITIONS, temperature=1.0, top_k=top_k, top_p=top_p)
    answers = []
    for base_seed in BASE_SEEDS:
        answers += draw_answers(engine, sampling, base_seed=base_seed, num_answers=200)
    check_distribution(answers, joint)


@dataclasses.dataclass(frozen=True)
class TwoDrawVerifier:
    """Rejection sampling with two uniforms a row: accept the draft or draw a recovered token.

    Right as it stands; `accept_factor` other than 1 accepts too often or too rarely, and with
    `recovers_draft` the rejected draft can be drawn again.
    """

    accept_factor: float = 1.0
    recovers_draft: bool = False

    def __call__(
        self,
        logits: Tensor,
        draft_token_ids: Tensor,
        *,
        cu_rows: Tensor,
        sampling: SamplingTensors,
        allowed: AllowedTokens | None = None,
    ) -> Verification:
        assert allowed is None
        token_ids = torch.full_like(draft_token_ids, -1)
        bounds, drafts = cu_rows.tolist(), draft_token_ids.tolist()
        num_accepted = []
        for index, (start, stop) in enumerate(itertools.pairwise(bounds)):
            temperature = float(sampling.temperature[index])
            probs = (logits[start:stop].double() / temperature).softmax(dim=-1).tolist()
            seed, position = int(sampling.seeds[index]), int(sampling.positions[start])
            for row in range(start, stop):
                token = self._draw(probs[row - start], drafts[row], seed, position + row - start)
                token_ids[row] = token
                if token != drafts[row]:
                    break
            num_accepted.append(row - start)
        return Verification(token_ids, torch.tensor(num_accepted))

    def _draw(self, probs: list[float], draft: int, seed: int, position: int) -> int:
        weights = list(probs)
        if draft >= 0:
            if philox_uniform(seed, 2 * position) < self.accept_factor * probs[draft]:
                return draft
            if not self.recovers_draft:
                weights[draft] = 0.0
        target = philox_uniform(seed, 2 * position + 1) * sum(weights)
        cumulative = list(itertools.accumulate(weights))
        return min(bisect.bisect_right(cumulative, target), len(weights) - 1)


@pytest.mark.parametrize(
    ("verifier", "is_right"),
    [
        (TwoDrawVerifier(), True),
        (TwoDrawVerifier(accept_factor=1.25), False),
        (TwoDrawVerifier(recovers_draft=True), False),
    ],
)
def test_the_statistic_tells_a_wrong_sampler_from_a_right_one(
    small_vocab_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    verifier: TwoDrawVerifier,
    is_right: bool,
) -> None:
    def select_other_ops(device: torch.device, **_options: bool) -> Ops:
        return dataclasses.replace(select_ops(device), rejection_verify=verifier)

    monkeypatch.setattr(batching.model.runner, "select_ops", select_other_ops)
    sampling = SamplingParams(max_tokens=NUM_POSITIONS, temperature=1.0)
    answers = []
    with running_engine(make_config(small_vocab_dir)) as other_engine:
        for base_seed in BASE_SEEDS:
            answers += draw_answers(
                other_engine, sampling, base_seed=base_seed, num_answers=ANSWERS_PER_SEED
            )
    p_value = chi_square_p_value(answers, plain_joint(small_vocab_dir, 1.0))
    assert (p_value > MIN_P_VALUE) is is_right, p_value


SEEDED_SAMPLINGS = (
    SamplingParams(max_tokens=48, temperature=1.0),
    SamplingParams(max_tokens=48, temperature=0.7, top_k=40, top_p=0.95),
    SamplingParams(max_tokens=48, temperature=0.0),
)


def make_seeded_requests(num_requests: int) -> list[EngineRequest]:
    """Requests without drafts, of different lengths, samplings and seeds."""
    generator = random.Random(7)
    return [
        EngineRequest(
            request_id=f"r{i}",
            prompt_token_ids=tuple(generator.choices(range(3, 259), k=20 + 3 * i)),
            sampling=dataclasses.replace(SEEDED_SAMPLINGS[i % 3], seed=generator.getrandbits(64)),
        )
        for i in range(num_requests)
    ]


def add_drafts(request: EngineRequest, answer: Sequence[int]) -> EngineRequest:
    """The same request with drafts of its own answer, every seventh token of them wrong."""
    script = [(token + 1) % 259 if i % 7 == 6 else token for i, token in enumerate(answer)]
    return dataclasses.replace(request, proposer=ScriptedProposer(script))


def run_one_after_another(
    engine: RunningEngine, requests: Sequence[EngineRequest]
) -> list[list[int]]:
    return [engine.run([request])[0].token_ids for request in requests]


def test_a_seed_fixes_the_answer_whatever_happens(tiny_model_dir: Path) -> None:
    requests = make_seeded_requests(8)
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)
    with running_engine(config) as engine:
        expected = run_one_after_another(engine, requests)
        drafted = [add_drafts(*pair) for pair in zip(requests, expected, strict=True)]
        assert run_one_after_another(engine, drafted) == expected
        stats = engine.engine.stats()
        assert 0 < stats.accepted < stats.drafted
        assert [outcome.token_ids for outcome in engine.run(requests)] == expected
        drafted = [add_drafts(*pair) for pair in zip(requests, expected, strict=True)]
        assert [outcome.token_ids for outcome in engine.run(drafted)] == expected
    block_bytes = 16 * engine.engine.model_info.kv_bytes_per_token
    tiny_pool = dataclasses.replace(config, kv_memory_bytes=10 * block_bytes)
    with running_engine(tiny_pool) as engine:
        assert [outcome.token_ids for outcome in engine.run(requests)] == expected
        undrafted = engine.engine.stats().preemptions
        assert undrafted > 0
        drafted = [add_drafts(*pair) for pair in zip(requests, expected, strict=True)]
        assert [outcome.token_ids for outcome in engine.run(drafted)] == expected
        assert engine.engine.stats().preemptions > undrafted
        assert engine.engine.stats().num_free_blocks == 10


def test_other_seeds_give_other_answers(tiny_model_dir: Path) -> None:
    (request,) = make_seeded_requests(1)
    requests = [
        dataclasses.replace(
            request,
            request_id=f"seed {seed}",
            sampling=dataclasses.replace(request.sampling, seed=seed),
        )
        for seed in (0, 1, 2**63, 2**64 - 1, -1, -2)
    ]
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=4 << 20)
    with running_engine(config) as engine:
        answers = [tuple(outcome.token_ids) for outcome in engine.run(requests)]
    assert answers[3] == answers[4], "seeds count modulo 2**64"
    assert len(set(answers)) == 5
