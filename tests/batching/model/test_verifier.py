"""From logits to verified tokens: who gets which rows, greedy or sampled, with logprobs."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch import Tensor

from batching.model.forward_batch import ForwardBatch
from batching.model.verifier import join_outcomes, read_outcome, verify, verify_logits
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan, VerifiedTokens
from kernels.ops import select_ops
from lookup.proposer import Draft

VOCAB_SIZE = 8
CPU = torch.device("cpu")
GREEDY = SamplingParams(max_tokens=99)
SAMPLED = SamplingParams(max_tokens=99, temperature=1.0, seed=11)


def make_scheduled(
    name: str,
    drafts: tuple[int, ...] = (),
    *,
    has_logits: bool = True,
    sampling: SamplingParams = GREEDY,
    output_position: int = 0,
) -> ScheduledRequest:
    return ScheduledRequest(
        request_id=name,
        token_ids=(0, 1),
        start=0,
        block_ids=(0,),
        draft=Draft(drafts, "test", 0) if drafts else None,
        has_logits=has_logits,
        output_position=output_position,
        sampling=sampling,
    )


def run_verify(logits: Tensor, *scheduled: ScheduledRequest) -> tuple[VerifiedTokens, ...]:
    plan = StepPlan(scheduled)
    batch = ForwardBatch.from_plan(plan, block_size=16)
    assert len(batch.logits_rows) == len(logits)
    return verify(logits, plan, batch, ops=select_ops(CPU)).verified


def prefer(*token_ids: int) -> Tensor:
    """Logits [num_rows, vocab_size] with these argmaxes."""
    return torch.eye(VOCAB_SIZE)[list(token_ids)] * 3


def test_entries_stand_in_the_order_of_the_plan() -> None:
    verified = run_verify(
        prefer(5, 6, 7, 1, 2, 3),
        make_scheduled("right", (5, 6)),
        make_scheduled("chunk", has_logits=False),
        make_scheduled("wrong", (4,)),
        make_scheduled("plain"),
    )
    assert [entry.token_ids for entry in verified] == [(5, 6, 7), (), (1,), (3,)]
    assert [entry.num_accepted for entry in verified] == [2, 0, 0, 0]


def test_a_step_without_logits_verifies_nothing() -> None:
    logits = torch.empty(0, VOCAB_SIZE)
    assert run_verify(logits, make_scheduled("chunk", has_logits=False)) == (VerifiedTokens(),)


def test_greedy_requests_stay_greedy_beside_sampled_ones() -> None:
    logits = torch.cat([prefer(5, 6), torch.zeros(1, VOCAB_SIZE)])
    verified = run_verify(
        logits, make_scheduled("greedy", (5,)), make_scheduled("sampled", sampling=SAMPLED)
    )
    assert verified[0] == VerifiedTokens((5, 6), 1)
    assert len(verified[1].token_ids) == 1


def test_sampled_tokens_are_the_same_drafted_or_not() -> None:
    logits = torch.zeros(6, VOCAB_SIZE)
    one_by_one = []
    for position in range(6):
        alone = make_scheduled("r", sampling=SAMPLED, output_position=position)
        one_by_one += run_verify(logits[:1], alone)[0].token_ids
    assert len(set(one_by_one)) > 1
    drafted = make_scheduled("r", tuple(one_by_one[:5]), sampling=SAMPLED)
    assert run_verify(logits, drafted)[0] == VerifiedTokens(tuple(one_by_one), 5)


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED])
def test_log_probabilities_are_those_before_temperature_and_filters(
    sampling: SamplingParams,
) -> None:
    logits = torch.randn(4, VOCAB_SIZE, generator=torch.Generator().manual_seed(1))
    temperature = sampling.temperature / 2
    asked = dataclasses.replace(sampling, has_logprobs=True, top_k=2, temperature=temperature)
    silent, spoken = run_verify(
        logits,
        make_scheduled("silent", (int(logits[0].argmax()),)),
        make_scheduled("spoken", (3,), sampling=asked),
    )
    assert silent.logprobs == ()
    assert [entry.token_id for entry in spoken.logprobs] == list(spoken.token_ids)
    for row, entry in enumerate(spoken.logprobs, start=2):
        weights = [math.exp(logit) for logit in logits[row].tolist()]
        assert entry.logprob == pytest.approx(math.log(weights[entry.token_id] / sum(weights)))


def test_nothing_asks_the_device_before_the_outcome_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a GPU each of these calls would wait for all that has been launched."""
    logits = torch.randn(5, VOCAB_SIZE, generator=torch.Generator().manual_seed(1))
    asked = dataclasses.replace(GREEDY, has_logprobs=True)
    plan = StepPlan(
        (
            make_scheduled("silent", (int(logits[0].argmax()), 3)),
            make_scheduled("spoken", (3,), sampling=asked),
        )
    )
    batch = ForwardBatch.from_plan(plan, block_size=16)
    calls: list[str] = []
    with monkeypatch.context() as watched:
        for name in ("item", "tolist", "cpu", "numpy", "nonzero", "__bool__", "__int__"):
            watched.setattr(Tensor, name, lambda *_, called=name: calls.append(called))
        outcomes = [
            verify_logits(logits[part.start : part.stop], part, ops=select_ops(CPU))
            for part in batch.verified
        ]
        outcome = join_outcomes(outcomes, CPU)
    assert calls == []
    read = read_outcome(outcome.numpy(), plan, batch).verified
    assert read == run_verify(logits, *plan.scheduled)
    assert read[0].num_accepted == (1 if int(logits[1].argmax()) != 3 else 2)
    assert len(read[1].logprobs) == len(read[1].token_ids)


@pytest.mark.parametrize("max_rows", [1, 2, 3, 4, 7, 100])
def test_rows_verified_in_parts_are_what_all_together_are(max_rows: int) -> None:
    logits = torch.randn(12, VOCAB_SIZE, generator=torch.Generator().manual_seed(2))
    best = logits.argmax(dim=-1).tolist()
    asked = dataclasses.replace(SAMPLED, has_logprobs=True)
    scheduled = (
        make_scheduled("right", tuple(best[:3])),
        make_scheduled("chunk", has_logits=False),
        make_scheduled("sampled", (1, 2), sampling=asked),
        make_scheduled("plain"),
        make_scheduled("half", (best[8], (best[9] + 1) % VOCAB_SIZE, 1)),
    )
    plan = StepPlan(scheduled)
    batch = ForwardBatch.from_plan(plan, block_size=16, max_logits_rows=max_rows)
    assert (len(batch.verified) == 1) == (max_rows >= 12)
    together = run_verify(logits, *scheduled)
    assert verify(logits, plan, batch, ops=select_ops(CPU)).verified == together
    assert [entry.num_accepted for entry in together][::4] == [3, 1]
