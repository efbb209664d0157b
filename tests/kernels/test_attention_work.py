"""The lists that attention on a GPU walks: every row once, every split once, within the limits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.attention_work import (
    ALL_SPLITS,
    AttentionHeads,
    AttentionWork,
    WorkLimits,
    list_work,
)

SPLIT_SIZE = 8
TABLE_WIDTH = 100

heads_of_any_model = st.builds(
    AttentionHeads,
    num_groups=st.integers(1, 8),
    num_kv_heads=st.integers(1, 8),
    head_dim=st.sampled_from([16, 64, 128]),
)
# Rows and what stands before them; rows may be missing where a graph is padded.
requests_of_a_step = st.lists(st.tuples(st.integers(0, 70), st.integers(0, 90)), max_size=6)


def brute_splits(
    heads: AttentionHeads, lens: list[int], contexts: list[int], block_m: int
) -> dict[tuple[int, int], set[int]]:
    """The splits that each tile must see, by request and first row, position by position."""
    seen = {}
    for request, (length, context) in enumerate(zip(lens, contexts, strict=True)):
        for first in range(0, length * heads.num_groups, block_m):
            rows = range(first, min(first + block_m, length * heads.num_groups))
            positions = {
                position
                for row in rows
                for position in range(context - length + row // heads.num_groups + 1)
            }
            seen[request, first] = {position // SPLIT_SIZE for position in positions}
    return seen


@given(
    heads=heads_of_any_model,
    requests=requests_of_a_step,
    num_padding=st.integers(0, 40),
    num_slots=st.none() | st.integers(0, 30),
)
def test_every_tile_sees_every_split_once(
    heads: AttentionHeads,
    requests: list[tuple[int, int]],
    num_padding: int,
    num_slots: int | None,
) -> None:
    lens = [length for length, _ in requests]
    contexts = [length + before if length else 0 for length, before in requests]
    num_tokens = sum(lens) + num_padding
    limits = WorkLimits.build(
        heads,
        num_tokens=num_tokens,
        num_requests=len(requests),
        max_context=max(contexts, default=0),
        split_size=SPLIT_SIZE,
    )
    if num_slots is not None:
        limits = replace(limits, num_slots=min(num_slots, limits.num_slots))
    items, merges = list_work(
        np.array(lens, dtype=np.int64),
        np.array(contexts, dtype=np.int64),
        num_tokens=num_tokens,
        table_width=TABLE_WIDTH,
        heads=heads,
        limits=limits,
        split_size=SPLIT_SIZE,
    )
    assert len(items) <= limits.max_items
    assert len(merges) <= limits.max_merges
    expected = brute_splits(heads, [*lens, num_padding], [*contexts, 0], limits.block_m)
    whole: Counter[tuple[int, int]] = Counter()
    parts: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (
        table_at,
        first_token,
        first_position,
        first_row,
        num_rows,
        split,
        slot,
        _,
    ) in items.tolist():
        request = table_at // TABLE_WIDTH
        assert first_token == sum(lens[:request])
        assert num_rows == [*lens, num_padding][request] * heads.num_groups
        assert first_position == [*contexts, 0][request] - num_rows // heads.num_groups
        if split == ALL_SPLITS:
            whole[request, first_row] += 1
        else:
            parts.setdefault((request, first_row), []).append((split, slot))
    assert set(whole.values()) <= {1}
    assert whole.keys() | parts.keys() == expected.keys()
    assert not whole.keys() & parts.keys()
    slots: list[int] = []
    lines = {(line[0] // TABLE_WIDTH, line[3]): (line[5], line[6]) for line in merges.tolist()}
    assert lines.keys() == parts.keys()
    for key, (num_parts, first_slot) in lines.items():
        assert sorted(parts[key]) == [(at, first_slot + at) for at in range(num_parts)]
        assert {split for split, _ in parts[key]} == expected[key]
        slots += [slot for _, slot in parts[key]]
    assert sorted(slots) == list(range(len(slots)))
    assert len(slots) <= limits.num_slots


@pytest.mark.parametrize("num_groups", range(1, 9))
def test_a_verification_reads_its_context_in_few_tiles(num_groups: int) -> None:
    """65 rows are at most nine tiles of a head; one tile a row group would be 33 of them."""
    work = plan([65], [8192], num_groups=num_groups)
    assert len(work.merges) <= -(-65 * num_groups // work.limits.block_m) <= 9
    assert len(work.items) == 16 * len(work.merges)


def test_a_long_context_among_short_ones_is_spread() -> None:
    work = plan([1] * 200 + [1], [100] * 200 + [32_768])
    assert len(work.merges) == 1
    assert len(work.items) == 200 + 64


def test_many_tiles_go_through_their_splits_themselves() -> None:
    work = plan([512] * 4, [8192] * 4)
    assert not len(work.merges)
    assert work.limits.num_slots == 0


def test_long_items_come_first() -> None:
    work = plan([256] * 8, [600, 8192, 600, 600, 600, 600, 600, 600])
    lens = [line[2] for line in work.items.tolist() if line[5] == ALL_SPLITS]
    assert lens == sorted(lens, reverse=True)


def plan(lens: list[int], contexts: list[int], *, num_groups: int = 7) -> AttentionWork:
    heads = AttentionHeads(num_groups=num_groups, num_kv_heads=4, head_dim=128)
    return AttentionWork.plan(
        lens, contexts, num_tokens=sum(lens), table_width=TABLE_WIDTH, heads=heads
    )
