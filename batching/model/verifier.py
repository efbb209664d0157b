"""From logits to verified tokens, one entry for each scheduled request.

On the device each part of a step's rows becomes one tensor of numbers, its outcome; on the host the
outcomes become values. Nothing between them asks the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batching.events import RowEvidence, TokenLogprob
from batching.model.forward_batch import ForwardBatch, VerifiedRows, WantedLogprobs
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens
from kernels.lossy_verify import LossyRows, lossy_verify
from kernels.op_set import Ops
from kernels.verification import Verification

# In place of the token of a row whose numbers are none.
_BROKEN = -2

# The outcome of a part from its hidden rows [num_rows, hidden_size].
Verify = Callable[[Tensor, VerifiedRows], Tensor]


def verify(logits: Tensor, plan: StepPlan, batch: ForwardBatch, *, ops: Ops) -> StepResult:
    """Verify every draft of a step. logits: [num_rows, vocab_size] float32, as `logits_rows`."""
    outcomes = [
        verify_logits(logits[part.start : part.stop], part, ops=ops) for part in batch.verified
    ]
    return read_outcome(join_outcomes(outcomes, logits.device).numpy(), plan, batch)


def verify_logits(logits: Tensor, rows: VerifiedRows, *, ops: Ops) -> Tensor:
    """The outcome of a part on the device of its logits, without waiting for it."""
    if rows.acceptances:
        verification = _verify_lossy(logits, rows, ops=ops)
    elif rows.sampling is None:
        verification = ops.greedy_verify(
            logits, rows.draft_token_ids, cu_rows=rows.cu_rows, allowed=rows.allowed
        )
    else:
        verification = ops.rejection_verify(
            logits,
            rows.draft_token_ids,
            cu_rows=rows.cu_rows,
            sampling=rows.sampling,
            allowed=rows.allowed,
        )
    # A draw from what is no distribution may be no token.
    token_ids = verification.token_ids.clamp(0, logits.shape[1] - 1)
    chosen = logits.gather(1, token_ids[:, None]).squeeze(1)
    log_probs = None
    if rows.wanted is not None:
        log_probs = _wanted_log_probs(logits, token_ids, rows.wanted)
    return pack_outcome(verification, is_number=chosen.isfinite(), log_probs=log_probs)


def _verify_lossy(logits: Tensor, rows: VerifiedRows, *, ops: Ops) -> Verification:
    """Draw a token at every row, then let drafts pass as each request has it."""
    assert rows.sampling is not None, "packed where anybody has drafts pass"
    every_row = torch.arange(logits.shape[0] + 1, device=logits.device)
    drawn = ops.rejection_verify(
        logits,
        torch.full_like(rows.draft_token_ids, -1),
        cu_rows=every_row,
        sampling=rows.sampling.by_row(rows.cu_rows),
        allowed=rows.allowed,
    )
    lossy = LossyRows(logits, rows.draft_token_ids, rows.cu_rows, rows.sampling, rows.acceptances)
    return lossy_verify(lossy, drawn=drawn.token_ids)


def _wanted_log_probs(logits: Tensor, token_ids: Tensor, wanted: WantedLogprobs) -> Tensor:
    """Before temperature and filters: of the listed tokens, then of the written ones."""
    log_probs = logits.index_select(0, wanted.rows).log_softmax(dim=-1)
    written = token_ids[wanted.written_rows]
    return torch.cat(
        [
            log_probs[wanted.listed_at, wanted.listed_token_ids],
            log_probs[wanted.written_at, written],
        ]
    )


def pack_outcome(
    verification: Verification, *, is_number: Tensor, log_probs: Tensor | None = None
) -> Tensor:
    """Tokens of rows, accepted drafts of requests, bits of log-probabilities: [n] int64.

    One tensor of all, because each copy to the host waits for the device. is_number: [num_rows]
    bool; False marks a row as broken.
    """
    token_ids = verification.token_ids.masked_fill(~is_number, _BROKEN)
    parts = [token_ids, verification.num_accepted]
    if log_probs is not None:
        parts.append(log_probs.double().view(torch.int64))
    return torch.cat(parts)


def join_outcomes(outcomes: Sequence[Tensor], device: torch.device) -> Tensor:
    """The outcomes of all parts of a step in one tensor."""
    if len(outcomes) == 1:
        return outcomes[0]
    return torch.cat([torch.empty(0, dtype=torch.int64, device=device), *outcomes])


def read_outcome(outcome: NDArray[Any], plan: StepPlan, batch: ForwardBatch) -> StepResult:
    """Unpack the outcomes of a step into verified tokens, one entry for each request of the plan.

    outcome: [n] int64, as `join_outcomes` makes it
    """
    asked = (one for one in plan.entries if one.num_logits_rows)
    read: list[VerifiedTokens] = []
    position = 0
    for part in batch.verified:
        num_requests = part.cu_rows.shape[0] - 1
        requests = [next(asked) for _ in range(num_requests)]
        num_log_probs = 0
        if part.wanted is not None:
            num_log_probs = len(part.wanted.listed_at) + len(part.wanted.written_at)
        size = part.stop - part.start + num_requests + num_log_probs
        read += _read_part(outcome[position : position + size], requests, part)
        position += size
    entries = iter(read)
    return StepResult(tuple(_read_ways(one, entries) for one in plan.scheduled))


NOTHING = VerifiedTokens()


def _read_ways(scheduled: ScheduledRequest, entries: Iterator[VerifiedTokens]) -> VerifiedTokens:
    """What a request writes: a branch goes on where the model chose its first token."""
    way = next(entries) if scheduled.num_logits_rows else NOTHING
    branches = [(branch, next(entries)) for branch in scheduled.branches]
    for index, (branch, verified) in enumerate(branches):
        is_chosen = (
            branch.parent == way.branch
            and branch.fork == way.num_accepted
            and way.token_ids[-1:] == branch.rows.token_ids
        )
        if is_chosen:
            way = VerifiedTokens(
                way.token_ids + verified.token_ids,
                way.num_accepted + 1 + verified.num_accepted,
                way.logprobs + verified.logprobs,
                is_broken=verified.is_broken,
                branch=index,
            )
    return way


def _read_part(
    outcome: NDArray[Any], requests: Sequence[ScheduledRequest], part: VerifiedRows
) -> Iterator[VerifiedTokens]:
    num_rows = part.stop - part.start
    numbers = outcome[: num_rows + len(requests)].tolist()
    token_ids, accepted = numbers[:num_rows], numbers[num_rows:]
    log_probs: list[float] = outcome[num_rows + len(requests) :].view(np.float64).tolist()
    num_listed = 0 if part.wanted is None else len(part.wanted.listed_at)
    listed, of_written = iter(log_probs[:num_listed]), iter(log_probs[num_listed:])
    start = 0
    for scheduled, num_accepted in zip(requests, accepted, strict=True):
        stop = start + scheduled.num_logits_rows
        written = tuple(token_ids[start : min(start + num_accepted + 1, stop)])
        if scheduled.constrained_rows is not None:
            evidence = _read_evidence(scheduled, written, listed)
            entry = _verified_constrained(scheduled, written, evidence)
        elif scheduled.sampling.has_logprobs:
            own = [next(of_written) for _ in range(stop - start)]
            entry = VerifiedTokens(
                written, len(written) - 1, tuple(map(TokenLogprob, written, own))
            )
        else:
            entry = VerifiedTokens(written, len(written) - 1)
        yield VerifiedTokens(is_broken=True) if _BROKEN in written else entry
        start = stop


def _verified_constrained(
    scheduled: ScheduledRequest, written: tuple[int, ...], evidence: tuple[RowEvidence, ...]
) -> VerifiedTokens:
    """Tokens between the rows are forced by those before them."""
    last_row = scheduled.logits_rows[len(written) - 1]
    if last_row.is_settled:
        return VerifiedTokens(evidence=evidence)
    num_kept = last_row.position - scheduled.start - len(scheduled.token_ids) + 1
    kept = scheduled.draft_token_ids[:num_kept]
    return VerifiedTokens((*kept, written[-1]), num_kept, evidence=evidence)


def _read_evidence(
    scheduled: ScheduledRequest, written: tuple[int, ...], listed: Iterator[float]
) -> tuple[RowEvidence, ...]:
    """What the model said in the rows that were written and are wanted as evidence.

    Takes the log-probabilities of all rows from `listed`.
    """
    evidence = []
    for at, row in enumerate(scheduled.logits_rows):
        if not row.has_evidence:
            continue
        allowed = tuple(next(listed) for _ in row.allowed_token_ids)
        if at < len(written):
            evidence.append(
                RowEvidence(
                    position=scheduled.output_position_of(row),
                    token_id=written[at],
                    allowed_token_ids=row.allowed_token_ids,
                    logprobs=allowed,
                    outside_mass=max(0.0, 1.0 - math.fsum(map(math.exp, allowed))),
                    is_decision=row.is_decision,
                    log_prior=row.log_prior,
                )
            )
    return tuple(evidence)
