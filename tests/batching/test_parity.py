"""Speculation changes the speed, never the tokens: every run against the unspeculated one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from engine_runs import RunningEngine, running_engine
from parity import check_parity, find_differences

from batching.config import EngineConfig
from batching.request import EngineRequest, SamplingParams
from lookup.edit_proposer import EditProposer
from lookup.proposer import Proposer

NUM_CASES = 18
KV_BYTES = 4 << 20

Prompts = list[tuple[int, ...]]
MakeProposer = Callable[[int], Proposer | None]


@pytest.fixture(scope="module")
def prompts() -> Prompts:
    generator = random.Random(0)
    return [
        tuple(generator.randrange(3, 259) for _ in range(generator.choice([5, 31, 64, 200, 700])))
        for _ in range(NUM_CASES)
    ]


@pytest.fixture(scope="module")
def answer_lens() -> list[int]:
    generator = random.Random(1)
    return [generator.randrange(20, 160) for _ in range(NUM_CASES)]


def run_at_batch(
    running: RunningEngine,
    prompts: Prompts,
    answer_lens: Sequence[int],
    *,
    batch: int,
    make_proposer: MakeProposer,
) -> list[list[int]]:
    """Answers of all cases, `batch` requests at once."""
    answers: list[list[int]] = []
    for start in range(0, len(prompts), batch):
        requests = [
            EngineRequest(
                request_id=f"case-{case}-at-{batch}",
                prompt_token_ids=prompts[case],
                sampling=SamplingParams(max_tokens=answer_lens[case]),
                proposer=make_proposer(case),
                cache_salt=f"{batch}-{case}".encode(),
            )
            for case in range(start, min(start + batch, len(prompts)))
        ]
        answers += [outcome.token_ids for outcome in running.run(requests)]
    return answers


def corrupt(token_ids: Sequence[int], generator: random.Random) -> list[int]:
    """A text like the answer, but with pieces changed, dropped and inserted: an original file."""
    corrupted: list[int] = []
    for token in token_ids:
        kind = generator.random()
        if kind < 0.03:
            corrupted += [token, generator.randrange(3, 259)]
        elif kind < 0.06:
            corrupted.append(generator.randrange(3, 259))
        elif kind >= 0.09:
            corrupted.append(token)
    return corrupted


@pytest.fixture(scope="module")
def running(tiny_model_dir: Path):
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=KV_BYTES)
    with running_engine(config) as engine:
        yield engine


@pytest.fixture(scope="module")
def unspeculated(
    running: RunningEngine, prompts: Prompts, answer_lens: list[int]
) -> list[list[int]]:
    return run_at_batch(running, prompts, answer_lens, batch=1, make_proposer=lambda _: None)


@pytest.mark.parametrize("batch", [1, 8])
def test_speculation_changes_no_token(
    running: RunningEngine,
    tiny_model_dir: Path,
    prompts: Prompts,
    answer_lens: list[int],
    unspeculated: list[list[int]],
    batch: int,
) -> None:
    generator = random.Random(2)
    originals = [corrupt(answer, generator) for answer in unspeculated]

    def make_proposer(case: int) -> Proposer:
        answer = unspeculated[case]
        return EditProposer(
            original=originals[case],
            snippet_segments=[answer[5:15], answer[40:60]],
            end_token_ids=[2],
        )

    before = running.engine.stats()
    answers = run_at_batch(running, prompts, answer_lens, batch=batch, make_proposer=make_proposer)
    after = running.engine.stats()
    check_parity(tiny_model_dir, prompts, unspeculated, answers)
    drafted = after.drafted - before.drafted
    accepted = after.accepted - before.accepted
    assert accepted > sum(answer_lens) / 2  # otherwise this run proves little
    assert drafted > accepted  # and rejections must have happened too


def test_other_requests_in_the_batch_change_no_token(
    running: RunningEngine,
    tiny_model_dir: Path,
    prompts: Prompts,
    answer_lens: list[int],
    unspeculated: list[list[int]],
) -> None:
    answers = run_at_batch(running, prompts, answer_lens, batch=8, make_proposer=lambda _: None)
    check_parity(tiny_model_dir, prompts, unspeculated, answers)


def test_the_parity_check_finds_a_wrong_token(
    tiny_model_dir: Path, prompts: Prompts, unspeculated: list[list[int]]
) -> None:
    wrong = [list(answer) for answer in unspeculated]
    wrong[3][7] = (wrong[3][7] + 1) % 259
    (difference,) = find_differences(tiny_model_dir, prompts, unspeculated, wrong)
    assert (difference.case, difference.position) == (3, 7)
    with pytest.raises(AssertionError, match="no near-ties"):
        check_parity(tiny_model_dir, prompts, unspeculated, wrong)
