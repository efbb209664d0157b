"""Layers of three ranks, one a thread, compute what one layer computes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn

from batching.model.forward_batch import ForwardBatch
from batching.model.parallel.frames import Array, Step
from batching.model.parallel.layers import (
    RowParallelLinear,
    VocabParallelEmbedding,
    VocabParallelHead,
)
from batching.model.parallel.rank_group import RankGroup
from batching.model.parallel.split import Split
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan

NUM_RANKS, VOCAB_SIZE, HIDDEN_SIZE = 3, 31, 24

T = TypeVar("T")


def on_all_ranks(meeting: Path, compute: Callable[[RankGroup], T]) -> list[T]:
    """What each rank computes, while the others do the same."""

    def run(rank: int) -> T:
        group = RankGroup(rank, NUM_RANKS, meeting=meeting, device=torch.device("cpu"))
        with torch.inference_mode():
            return compute(group)

    with ThreadPoolExecutor(NUM_RANKS) as pool:
        return list(pool.map(run, range(NUM_RANKS)))


def linear_of(weight: Tensor) -> nn.Linear:
    linear = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    linear.weight = nn.Parameter(weight.clone(), requires_grad=False)
    return linear


def make_head(weight: Tensor, group: RankGroup) -> VocabParallelHead:
    own = Split(group.rank, group.size).part(VOCAB_SIZE)
    return VocabParallelHead(linear_of(weight[own]), group, start=own.start, vocab_size=VOCAB_SIZE)


def test_the_head_has_all_logits_and_finds_the_best_without_them(tmp_path: Path) -> None:
    weight, rows = torch.randn(VOCAB_SIZE, HIDDEN_SIZE), torch.randn(9, HIDDEN_SIZE)
    weight[25] = weight[3] = 9 * rows[0]  # of equal logits the lowest id
    rows[5, 2] = torch.nan
    rows[6] = torch.inf * weight[30].sign()

    def compute(group: RankGroup) -> tuple[Tensor, Tensor, Tensor]:
        head = make_head(weight, group)
        return (head(rows), *head.best(rows))

    logits, largest, token_ids = on_all_ranks(tmp_path / "meeting", compute)[0]
    expected = rows @ weight.T
    torch.testing.assert_close(logits, expected, equal_nan=True)
    is_number = expected.isfinite().all(dim=1)
    assert torch.equal(token_ids[is_number], logits.argmax(dim=-1)[is_number])
    assert token_ids[0] == 3
    assert torch.equal(largest[is_number].float(), logits.amax(dim=-1)[is_number])
    assert not largest[5].isfinite()
    assert not largest[6].isfinite()


def test_embeddings_are_those_of_the_whole_table_to_the_bit(tmp_path: Path) -> None:
    table = torch.randn(VOCAB_SIZE, HIDDEN_SIZE).bfloat16()
    token_ids = torch.tensor([[0, 30, 9, 10, 11, 20, 21]])

    def compute(group: RankGroup) -> Tensor:
        own = Split(group.rank, group.size).part(VOCAB_SIZE)
        weight = nn.Parameter(table[own].clone(), requires_grad=False)
        found: Tensor = VocabParallelEmbedding(weight, group, start=own.start)(token_ids)
        return found

    for found in on_all_ranks(tmp_path / "meeting", compute):
        assert torch.equal(found, table[token_ids])


def test_a_row_has_the_same_bits_in_any_batch_and_on_all_ranks(tmp_path: Path) -> None:
    weight, rows = torch.randn(16, HIDDEN_SIZE), torch.randn(40, HIDDEN_SIZE)

    def compute(group: RankGroup) -> tuple[Tensor, Tensor]:
        own = Split(group.rank, group.size).part(HIDDEN_SIZE)
        products = (rows[:, None, own] * weight[:, own]).sum(dim=-1)  # not those of a library
        alone = torch.cat([group.sum(row[None]) for row in products])
        return group.sum(products), alone

    results = on_all_ranks(tmp_path / "meeting", compute)
    for together, alone in results:
        assert torch.equal(together, alone)
        assert torch.equal(together, results[0][0])
    torch.testing.assert_close(results[0][0], rows @ weight.T)


def test_a_bias_is_added_once(tmp_path: Path) -> None:
    whole, rows = nn.Linear(HIDDEN_SIZE, 8), torch.randn(5, HIDDEN_SIZE)

    def compute(group: RankGroup) -> Tensor:
        own = Split(group.rank, group.size).part(HIDDEN_SIZE)
        linear = linear_of(whole.weight.detach()[:, own])
        linear.bias = nn.Parameter(whole.bias.detach(), requires_grad=False)
        total: Tensor = RowParallelLinear(linear, group)(rows[:, own])
        return total

    torch.testing.assert_close(on_all_ranks(tmp_path / "meeting", compute)[1], whole(rows))


def test_what_the_lead_has_goes_to_each_rank_and_back(tmp_path: Path) -> None:
    def compute(group: RankGroup) -> tuple[Tensor, Tensor, int]:
        received = torch.empty(2)
        parts = [torch.full((2,), 10.0 + rank) for rank in range(group.size)]
        group.scatter(parts if group.is_lead else (), received)
        return received, group.gather(received), group.least(7 - group.rank)

    results = on_all_ranks(tmp_path / "meeting", compute)
    assert [received[0].item() for received, _, _ in results] == [10.0, 11.0, 12.0]
    assert results[0][1].tolist() == [[10.0] * 2, [11.0] * 2, [12.0] * 2]
    assert {least for _, _, least in results} == {5}


def test_a_step_comes_out_of_its_frame_as_it_went_in() -> None:
    scheduled = ScheduledRequest(
        request_id="one",
        token_ids=(3, 4, 5),
        start=14,
        block_ids=(2, 7),
        draft=None,
        has_logits=True,
        output_position=0,
        sampling=SamplingParams(max_tokens=1),
    )
    batch = ForwardBatch.from_plan(StepPlan((scheduled,)), block_size=16)
    received = Step.of(batch, [False]).batch()
    for name in ("input_ids", "slot_mapping", "block_tables", "context_lens", "logits_rows"):
        sent = getattr(batch, name)
        assert torch.equal(getattr(received, name), sent)
        assert getattr(received, name).dtype == sent.dtype
    numbers = torch.randn(3, 0, 2).bfloat16()
    assert Array.of(numbers).tensor().shape == numbers.shape
    numbers = torch.randn(1, 2)[:, 1:].bfloat16()  # a single number, whatever its stride
    assert torch.equal(Array.of(numbers).tensor(), numbers)
    numbers = torch.randn(3, 2).bfloat16()
    assert torch.equal(Array.of(numbers).tensor(), numbers)
