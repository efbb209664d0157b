"""A step plan as tensors: the rows of all requests packed into one sequence.

Packing works on arrays of all requests at once: what is done for each request is a few calls, and
nothing is done for each row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batching.step_plan import ScheduledRequest, StepPlan
from kernels.attention_work import AttentionHeads, AttentionWork
from kernels.lossy_verify import Acceptance
from kernels.rejection_verify import SamplingTensors
from kernels.verification import AllowedTokens
from lookup.proposer import MAIN

_NO_DRAFT = -1

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedLogprobs:
    """Log-probabilities that a step is to bring along with its tokens.

    rows: [num_wanted] int64; rows of the logits whose distribution is looked at
    listed_at, listed_token_ids: [num_listed] int64; tokens asked for, each at an index of `rows`
    written_at: [num_written] int64; indexes of `rows` whose own token is asked for
    written_rows: [num_written] int64; the same as rows of the logits
    """

    rows: Tensor
    listed_at: Tensor
    listed_token_ids: Tensor
    written_at: Tensor
    written_rows: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedRows:
    """What verification reads: consecutive rows of logits, of some requests of a step.

    start, stop: the rows among all `logits_rows` of the step
    draft_token_ids: [num_rows] int64; the draft each of them is asked about, -1 for none
    cu_rows: [num_verified + 1] int64; bounds of the requests' rows, from 0
    allowed: what each row may take, None if none of the requests has a constraint
    sampling: one entry a request; None when all of them are greedy
    wanted: None if nobody asks for log-probabilities
    acceptances: which drafts pass, one entry a request; empty if only those that are right
    """

    start: int
    stop: int
    draft_token_ids: Tensor
    cu_rows: Tensor
    allowed: AllowedTokens | None
    sampling: SamplingTensors | None
    wanted: WantedLogprobs | None
    acceptances: tuple[Acceptance, ...] = ()

    @property
    def wants_logits(self) -> bool:
        """True if these rows need more of the logits than their argmax."""
        return not (self.sampling is None and self.allowed is None and self.wanted is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKV:
    """Keys and values that branches of drafts have in common with what they branch off.

    copied_from, copied_to: [num_copied] int64; blocks to be copied before the pass
    rows, slots: [num_stored] int64; rows of the pass, and slots that get their keys and values
        besides their own
    """

    copied_from: Tensor
    copied_to: Tensor
    rows: Tensor
    slots: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardBatch:
    """Inputs of one forward pass, besides weights and cache.

    input_ids, position_ids, slot_mapping: [num_tokens] int64
    block_tables: [num_requests, max_blocks] int32, padded with 0
    cu_query_lens: [num_requests + 1] int32; context_lens: [num_requests] int32
    logits_rows: [num_rows] int64; rows of the pass whose logits are needed
    verified: these rows in parts, each small enough for its logits; none if there are no rows
    work: the lists that attention on a GPU walks; None where nothing walks them
    shared: None if no draft has branches
    """

    input_ids: Tensor
    position_ids: Tensor
    slot_mapping: Tensor
    block_tables: Tensor
    cu_query_lens: Tensor
    context_lens: Tensor
    logits_rows: Tensor
    verified: tuple[VerifiedRows, ...] = ()
    work: AttentionWork | None = None
    shared: SharedKV | None = None

    @classmethod
    def from_plan(
        cls,
        plan: StepPlan,
        *,
        block_size: int,
        max_logits_rows: int | None = None,
        splits_greedy: bool = True,
    ) -> ForwardBatch:
        """Pack a plan of at least one request, on the host.

        Requests are verified together while they have at most `max_logits_rows` rows of logits.
        Without `splits_greedy` all are, where none needs more of its logits than their argmax.
        """
        scheduled = plan.entries
        if not splits_greedy and not any(map(_wants_logits, scheduled)):
            max_logits_rows = None
        token_ids: list[int] = []
        for one in scheduled:
            token_ids += one.token_ids
            token_ids += one.draft_token_ids
        starts, num_known, num_rows = np.array(
            [(one.start, len(one.token_ids), one.num_rows) for one in scheduled], dtype=np.int64
        ).T
        bounds = _bounds_of(num_rows)
        request_at = np.repeat(np.arange(len(scheduled)), num_rows)
        position_ids = np.arange(bounds[-1]) + (starts - bounds[:-1])[request_at]
        block_tables = _pack_block_tables(scheduled)
        blocks = block_tables[request_at, position_ids // block_size].astype(np.int64)
        input_ids = np.array(token_ids, dtype=np.int64)
        logits_rows, draft_token_ids, num_asked = _pack_asked(
            scheduled, input_ids, bounds=bounds, num_known=num_known
        )
        return cls(
            input_ids=_tensor(input_ids),
            position_ids=_tensor(position_ids),
            slot_mapping=_tensor(blocks * block_size + position_ids % block_size),
            block_tables=_tensor(block_tables),
            cu_query_lens=_tensor(bounds.astype(np.int32)),
            context_lens=_tensor((starts + num_rows).astype(np.int32)),
            logits_rows=_tensor(logits_rows),
            verified=tuple(
                _verified_rows(scheduled[first:last], draft_token_ids, start=start, stop=stop)
                for first, last, start, stop in _parts(num_asked, max_logits_rows)
            ),
            shared=_pack_shared(plan, bounds, block_size),
        )

    def to(self, device: torch.device) -> ForwardBatch:
        """The same inputs on another device; what verification reads stays where it is."""
        moved = {name: getattr(self, name).to(device) for name in INPUTS}
        shared = self.shared
        if shared is not None:
            parts = {field.name: getattr(shared, field.name) for field in fields(shared)}
            shared = SharedKV(**{name: part.to(device) for name, part in parts.items()})
        return replace(self, **moved, shared=shared)

    def with_work(self, heads: AttentionHeads) -> ForwardBatch:
        """A batch on the host with the lists for its attention."""
        work = AttentionWork.plan(
            np.diff(self.cu_query_lens.numpy()),
            self.context_lens.numpy(),
            num_tokens=self.input_ids.shape[0],
            table_width=self.block_tables.shape[1],
            heads=heads,
        )
        return replace(self, work=work)


# The tensors of a batch that the layers of a model read.
INPUTS = tuple(
    field.name for field in fields(ForwardBatch) if field.name not in ("verified", "work", "shared")
)


def _tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


def _bounds_of(lengths: Array) -> Array:
    """Where consecutive parts of these lengths begin, and where the last one ends."""
    bounds = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def _pack_block_tables(scheduled: Sequence[ScheduledRequest]) -> Array:
    tables = [np.asarray(one.block_ids, dtype=np.int32) for one in scheduled]
    packed = np.zeros((len(tables), max(map(len, tables))), dtype=np.int32)
    for table, row in zip(tables, packed, strict=True):
        row[: len(table)] = table
    return packed


def _pack_shared(plan: StepPlan, bounds: Array, block_size: int) -> SharedKV | None:
    """What the first blocks of branches have from others: computed before, or in this pass."""
    if len(plan.entries) == len(plan.scheduled):
        return None
    copied: list[tuple[int, int]] = []
    stored: list[tuple[int, int]] = []
    entry = 0
    for one in plan.scheduled:
        for branch in one.branches:
            at = branch.rows.start // block_size
            begin = at * block_size
            own_block = branch.rows.block_ids[at]
            if min(one.start, branch.rows.start) > begin:
                copied.append((one.block_ids[at], own_block))
            for position in range(max(begin, one.start), branch.rows.start):
                row = _row_of(one, branch.parent, position, bounds=bounds[entry:])
                stored.append((row, own_block * block_size + position % block_size))
        entry += 1 + len(one.branches)
    copied_pairs = np.array(copied, dtype=np.int64).reshape(-1, 2)
    stored_pairs = np.array(stored, dtype=np.int64).reshape(-1, 2)
    return SharedKV(
        copied_from=_tensor(copied_pairs[:, 0]),
        copied_to=_tensor(copied_pairs[:, 1]),
        rows=_tensor(stored_pairs[:, 0]),
        slots=_tensor(stored_pairs[:, 1]),
    )


def _row_of(one: ScheduledRequest, way: int, position: int, *, bounds: Array) -> int:
    """The row of the pass that stands at a position of a branch, or of what it branches off.

    bounds: where the rows of the request begin, those of its branches behind them
    """
    while way != MAIN and position < one.branches[way].rows.start:
        way = one.branches[way].parent
    start = one.start if way == MAIN else one.branches[way].rows.start
    return int(bounds[way + 1]) + position - start


def _pack_asked(
    scheduled: Sequence[ScheduledRequest], input_ids: Array, *, bounds: Array, num_known: Array
) -> tuple[Array, Array, Array]:
    """Rows with logits, the draft that each is asked about, and how many each request has.

    Those of a request without a constraint are its last known token and its draft.
    """
    num_asked = np.array([one.num_logits_rows for one in scheduled], dtype=np.int64)
    first_rows = bounds[:-1] + num_known - 1
    asked_bounds = _bounds_of(num_asked)
    request_at = np.repeat(np.arange(len(scheduled)), num_asked)
    rows = np.arange(asked_bounds[-1]) + (first_rows - asked_bounds[:-1])[request_at]
    # What a row is asked about is the next token of the pass, if that is one of its request.
    behind = np.append(input_ids, _NO_DRAFT)
    drafts = behind[np.minimum(rows + 1, len(input_ids))]
    drafts[asked_bounds[1:][num_asked > 0] - 1] = _NO_DRAFT
    for index, one in enumerate(scheduled):
        if one.constrained_rows:
            own = slice(asked_bounds[index], asked_bounds[index + 1])
            first = bounds[index] - one.start
            rows[own] = [first + row.position for row in one.constrained_rows]
            drafts[own] = [
                _NO_DRAFT if row.known_token_id is None else row.known_token_id
                for row in one.constrained_rows
            ]
    return rows, drafts, num_asked


def _wants_logits(scheduled: ScheduledRequest) -> bool:
    """As `VerifiedRows.wants_logits`, of one request; none without a row of logits does."""
    if not scheduled.num_logits_rows:
        return False
    sampling = scheduled.sampling
    is_bound = scheduled.constrained_rows is not None
    is_plain = sampling.temperature == 0 and sampling.acceptance == "exact"
    return is_bound or not is_plain or sampling.has_logprobs


def _parts(num_asked: Array, max_rows: int | None) -> Iterator[tuple[int, int, int, int]]:
    """Runs of requests with at most `max_rows` rows, or one request: first, last, start, stop."""
    bounds = _bounds_of(num_asked).tolist()
    first = 0
    for last in range(1, len(bounds)):
        is_end = last == len(bounds) - 1
        if is_end or (max_rows is not None and bounds[last + 1] - bounds[first] > max_rows):
            if bounds[last] > bounds[first]:
                yield first, last, bounds[first], bounds[last]
            first = last


def _verified_rows(
    scheduled: Sequence[ScheduledRequest], draft_token_ids: Array, *, start: int, stop: int
) -> VerifiedRows:
    asked = [one for one in scheduled if one.num_logits_rows]
    bounds = _bounds_of(np.array([one.num_logits_rows for one in asked], dtype=np.int64))
    return VerifiedRows(
        start=start,
        stop=stop,
        draft_token_ids=_tensor(draft_token_ids[start:stop]),
        cu_rows=_tensor(bounds),
        allowed=_pack_allowed(asked),
        sampling=_pack_sampling(asked, bounds),
        wanted=_pack_wanted(asked, bounds),
        acceptances=_acceptances(asked),
    )


def _acceptances(asked: Sequence[ScheduledRequest]) -> tuple[Acceptance, ...]:
    if all(one.sampling.acceptance == "exact" for one in asked):
        return ()
    return tuple(
        Acceptance.EXACT if one.constrained_rows else Acceptance(one.sampling.acceptance)
        for one in asked
    )


def _pack_allowed(asked: Sequence[ScheduledRequest]) -> AllowedTokens | None:
    if all(one.constrained_rows is None for one in asked):
        return None
    allowed: list[Sequence[int]] = []
    priors: list[Sequence[float]] = []
    for one in asked:
        if one.constrained_rows is None:
            allowed += [()] * one.num_logits_rows
            continue
        for row in one.constrained_rows:
            allowed.append(row.allowed_token_ids)
            priors.append(row.log_prior or (0.0,) * len(row.allowed_token_ids))
    has_prior = any(map(any, priors))
    return AllowedTokens(
        token_ids=torch.tensor([*chain.from_iterable(allowed)], dtype=torch.int64),
        cu_lens=torch.tensor([*accumulate(map(len, allowed), initial=0)]),
        log_prior=(
            torch.tensor([*chain.from_iterable(priors)], dtype=torch.float32) if has_prior else None
        ),
    )


def _pack_sampling(asked: Sequence[ScheduledRequest], bounds: Array) -> SamplingTensors | None:
    params = [one.sampling for one in asked]
    if all(one.temperature == 0 and one.acceptance == "exact" for one in params):
        return None
    positions = np.concatenate([_output_positions(one) for one in asked])
    return SamplingTensors(
        temperature=torch.tensor([one.temperature for one in params], dtype=torch.float32),
        top_k=torch.tensor([one.top_k for one in params]),
        top_p=torch.tensor([one.top_p for one in params], dtype=torch.float32),
        seeds=torch.tensor([_wrap_seed(one.seed) for one in params]),
        positions=_tensor(positions),
    )


def _output_positions(scheduled: ScheduledRequest) -> Array:
    """The output position of the token that each row with logits leads to."""
    if scheduled.constrained_rows is None:
        first = scheduled.output_position
        return np.arange(first, first + scheduled.num_logits_rows)
    rows = scheduled.constrained_rows
    return np.array([scheduled.output_position_of(row) for row in rows], dtype=np.int64)


def _pack_wanted(asked: Sequence[ScheduledRequest], bounds: Array) -> WantedLogprobs | None:
    if not any(one.constrained_rows or one.sampling.has_logprobs for one in asked):
        return None
    rows: list[int] = []
    listed_at: list[int] = []
    listed_token_ids: list[int] = []
    written: list[int] = []
    for one, first in zip(asked, bounds.tolist(), strict=False):
        if one.constrained_rows is not None:
            for row_at, row in enumerate(one.constrained_rows, start=first):
                if row.has_evidence:
                    listed_at += [len(rows)] * len(row.allowed_token_ids)
                    listed_token_ids += row.allowed_token_ids
                    rows.append(row_at)
        elif one.sampling.has_logprobs:
            written += range(len(rows), len(rows) + one.num_logits_rows)
            rows += range(first, first + one.num_logits_rows)
    if not rows:
        return None
    as_rows = np.array(rows, dtype=np.int64)
    written_at = np.array(written, dtype=np.int64)
    return WantedLogprobs(
        rows=_tensor(as_rows),
        listed_at=torch.tensor(listed_at, dtype=torch.int64),
        listed_token_ids=torch.tensor(listed_token_ids, dtype=torch.int64),
        written_at=_tensor(written_at),
        written_rows=_tensor(as_rows[written_at]),
    )


def _wrap_seed(seed: int) -> int:
    """The signed 64-bit number that equals `seed` modulo 2**64."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)
