"""A step plan as tensors: positions, slots, block tables, rows of logits and sampling."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from batching.model.forward_batch import ForwardBatch
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from lookup.proposer import Draft

BLOCK_SIZE = 4
CPU = torch.device("cpu")


def make_scheduled(
    name: str,
    token_ids: tuple[int, ...],
    *,
    start: int = 0,
    block_ids: tuple[int, ...] = (0,),
    drafts: tuple[int, ...] = (),
    has_logits: bool = True,
    sampling: SamplingParams | None = None,
) -> ScheduledRequest:
    return ScheduledRequest(
        request_id=name,
        token_ids=token_ids,
        start=start,
        block_ids=block_ids,
        draft=Draft(drafts, "test", 0) if drafts else None,
        has_logits=has_logits,
        output_position=start,
        sampling=sampling or SamplingParams(max_tokens=8),
    )


def pack(
    *scheduled: ScheduledRequest, max_logits_rows: int | None = None, splits_greedy: bool = True
) -> ForwardBatch:
    return ForwardBatch.from_plan(
        StepPlan(scheduled),
        block_size=BLOCK_SIZE,
        max_logits_rows=max_logits_rows,
        splits_greedy=splits_greedy,
    )


@pytest.mark.parametrize(
    ("sampling", "num_parts"),
    [
        (SamplingParams(max_tokens=8), 1),
        (SamplingParams(max_tokens=8, temperature=0.5), 3),
        (SamplingParams(max_tokens=8, has_logprobs=True), 3),
    ],
)
def test_only_those_who_need_logits_are_split_by_their_size(
    sampling: SamplingParams, num_parts: int
) -> None:
    scheduled = [
        make_scheduled(f"r{at}", (at,), start=0, block_ids=(at,), drafts=(1, 2), sampling=one)
        for at, one in enumerate((None, sampling, None))
    ]
    assert len(pack(*scheduled, max_logits_rows=3, splits_greedy=False).verified) == num_parts
    assert len(pack(*scheduled, max_logits_rows=3).verified) == 3


def test_a_mixed_step() -> None:
    """A prefill chunk, a verification and a plain decode."""
    batch = pack(
        make_scheduled("chunk", (10, 11, 12), start=6, block_ids=(9, 2, 5), has_logits=False),
        make_scheduled("verify", (20,), start=3, block_ids=(7, 1), drafts=(21, 22)),
        make_scheduled("decode", (30,), start=0, block_ids=(3,)),
    )
    assert batch.input_ids.tolist() == [10, 11, 12, 20, 21, 22, 30]
    assert batch.position_ids.tolist() == [6, 7, 8, 3, 4, 5, 0]
    assert batch.slot_mapping.tolist() == [2 * 4 + 2, 2 * 4 + 3, 5 * 4, 7 * 4 + 3, 4, 5, 12]
    assert batch.block_tables.tolist() == [[9, 2, 5], [7, 1, 0], [3, 0, 0]]
    assert batch.cu_query_lens.tolist() == [0, 3, 6, 7]
    assert batch.context_lens.tolist() == [9, 6, 1]
    assert batch.logits_rows.tolist() == [3, 4, 5, 6]
    assert batch.verified[0].draft_token_ids.tolist() == [21, 22, -1, -1]
    assert batch.verified[0].cu_rows.tolist() == [0, 3, 4]
    assert batch.verified[0].sampling is None


def test_tensors_have_the_types_that_kernels_expect() -> None:
    batch = pack(make_scheduled("r", (1, 2), drafts=(3,)))
    for name in ("input_ids", "position_ids", "slot_mapping", "logits_rows"):
        assert getattr(batch, name).dtype == torch.int64, name
    for name in ("block_tables", "cu_query_lens", "context_lens"):
        assert getattr(batch, name).dtype == torch.int32, name
    (part,) = batch.verified
    assert part.cu_rows.dtype == part.draft_token_ids.dtype == torch.int64
    whole_numbers = SamplingParams(max_tokens=8, temperature=1, top_p=1)
    sampling = pack(make_scheduled("r", (1, 2), sampling=whole_numbers)).verified[0].sampling
    assert sampling is not None
    assert sampling.temperature.dtype == sampling.top_p.dtype == torch.float32
    assert sampling.top_k.dtype == sampling.seeds.dtype == sampling.positions.dtype == torch.int64


def test_only_the_last_known_token_and_the_drafts_have_logits() -> None:
    batch = pack(make_scheduled("r", (1, 2, 3, 4, 5), block_ids=(0, 1), drafts=(6, 7)))
    assert batch.logits_rows.tolist() == [4, 5, 6]


def test_a_step_of_prefill_chunks_has_no_rows_to_verify() -> None:
    batch = pack(make_scheduled("r", (1, 2), has_logits=False))
    assert batch.logits_rows.tolist() == []
    assert batch.verified == ()


def test_sampling_has_an_entry_for_each_verified_request() -> None:
    sampled = SamplingParams(max_tokens=9, temperature=0.5, top_k=7, top_p=0.9, seed=3)
    huge = SamplingParams(max_tokens=9, temperature=1.0, seed=2**64 - 1)
    batch = pack(
        make_scheduled("chunk", (1,), has_logits=False, sampling=sampled),
        make_scheduled("greedy", (2,), start=1),
        make_scheduled("sampled", (3,), start=2, sampling=sampled),
        make_scheduled("huge", (4,), start=3, sampling=huge),
    )
    assert batch.verified[0].sampling is not None
    assert batch.verified[0].sampling.temperature.tolist() == [0.0, 0.5, 1.0]
    assert batch.verified[0].sampling.top_k.tolist() == [0, 7, 0]
    torch.testing.assert_close(batch.verified[0].sampling.top_p, torch.tensor([1.0, 0.9, 1.0]))
    assert batch.verified[0].sampling.seeds.tolist() == [0, 3, -1]
    assert batch.verified[0].sampling.positions.tolist() == [1, 2, 3]


def test_a_sampled_request_that_is_not_verified_needs_no_sampling() -> None:
    sampled = SamplingParams(max_tokens=9, temperature=0.5)
    batch = pack(
        make_scheduled("chunk", (1,), has_logits=False, sampling=sampled),
        make_scheduled("greedy", (2,)),
    )
    assert batch.verified[0].sampling is None


@st.composite
def plans(draw: st.DrawFn) -> tuple[ScheduledRequest, ...]:
    """Requests with blocks of their own, in any order."""
    num_requests = draw(st.integers(1, 5))
    blocks = draw(st.permutations(range(num_requests * 6)))
    scheduled = []
    for i in range(num_requests):
        has_logits = draw(st.booleans())
        scheduled.append(
            make_scheduled(
                f"r{i}",
                tuple(draw(st.lists(st.integers(0, 99), min_size=1, max_size=10))),
                start=draw(st.integers(0, 8)),
                block_ids=tuple(blocks[i * 6 : i * 6 + 6]),
                drafts=tuple(draw(st.lists(st.integers(0, 99), max_size=5))) if has_logits else (),
                has_logits=has_logits,
            )
        )
    return tuple(scheduled)


@settings(deadline=None)
@given(st.data(), plans())
def test_every_row_stands_where_its_request_says(
    data: st.DataObject, scheduled: tuple[ScheduledRequest, ...]
) -> None:
    max_rows = data.draw(st.none() | st.integers(1, 12))
    batch = pack(*scheduled, max_logits_rows=max_rows)
    bounds = batch.cu_query_lens.tolist()
    assert len(set(batch.slot_mapping.tolist())) == bounds[-1] == len(batch.input_ids)
    verified = []
    for part in batch.verified:
        part_bounds = part.cu_rows.tolist()
        verified += [(part, first, stop) for first, stop in pairwise(part_bounds)]
        assert part.stop - part.start == part_bounds[-1] == len(part.draft_token_ids)
        if max_rows is not None and len(part_bounds) > 2:
            assert part_bounds[-1] <= max_rows, "several requests only where they fit"
    assert [part.start for part in batch.verified[1:]] == [p.stop for p in batch.verified[:-1]]
    entries = iter(verified)
    for index, request in enumerate(scheduled):
        rows = range(bounds[index], bounds[index + 1])
        tokens = [*request.token_ids, *request.draft_token_ids]
        assert [int(batch.input_ids[row]) for row in rows] == tokens
        assert int(batch.context_lens[index]) == request.start + len(tokens)
        for offset, row in enumerate(rows):
            position = request.start + offset
            assert int(batch.position_ids[row]) == position
            block = int(batch.block_tables[index, position // BLOCK_SIZE])
            assert int(batch.slot_mapping[row]) == block * BLOCK_SIZE + position % BLOCK_SIZE
        if request.has_logits:
            part, first, stop = next(entries)
            asked = batch.logits_rows[part.start + first : part.start + stop].tolist()
            assert asked == list(rows)[len(request.token_ids) - 1 :]
            assert part.draft_token_ids[first:stop].tolist() == [*request.draft_token_ids, -1]
    assert next(entries, None) is None
