"""From logits to verified tokens, one entry for each scheduled request."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from batching.events import RowEvidence, TokenLogprob
from batching.model.forward_batch import ForwardBatch
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens
from kernels.op_set import Ops
from kernels.verification import Verification


def verify(logits: Tensor, plan: StepPlan, batch: ForwardBatch, *, ops: Ops) -> StepResult:
    """Verify every draft of a step. logits: [num_rows, vocab_size] float32, as `logits_rows`."""
    outcome = verify_logits(logits, batch, ops=ops)
    return read_outcome(outcome.tolist(), plan, logits=logits)


def verify_logits(logits: Tensor, batch: ForwardBatch, *, ops: Ops) -> Tensor:
    """Verify as a packed outcome on the device of `logits`, without waiting for it."""
    if batch.sampling is None:
        verification = ops.greedy_verify(
            logits, batch.draft_token_ids, cu_rows=batch.cu_rows, allowed=batch.allowed
        )
    else:
        verification = ops.rejection_verify(
            logits,
            batch.draft_token_ids,
            cu_rows=batch.cu_rows,
            sampling=batch.sampling,
            allowed=batch.allowed,
        )
    return pack_outcome(verification)


def pack_outcome(verification: Verification) -> Tensor:
    """The tokens of all rows, then the numbers of accepted drafts: [num_rows + num_requests] int64.

    One tensor of both, because each copy to the host waits for the device.
    """
    return torch.cat([verification.token_ids, verification.num_accepted])


def wants_logits(plan: StepPlan, batch: ForwardBatch) -> bool:
    """True if a step needs more of the logits than their argmax."""
    has_logprobs = any(s.sampling.has_logprobs for s in plan.scheduled if s.has_logits)
    return batch.sampling is not None or batch.allowed is not None or has_logprobs


def read_outcome(outcome: Sequence[int], plan: StepPlan, *, logits: Tensor | None) -> StepResult:
    """Unpack an outcome into verified tokens, one entry for each request of the plan.

    logits: [num_rows, vocab_size] float32; None for a step that does not want them
    """
    num_rows = sum(len(scheduled.logits_rows) for scheduled in plan.scheduled)
    token_ids, num_accepted = outcome[:num_rows], iter(outcome[num_rows:])
    verified: list[VerifiedTokens] = []
    stop = 0
    for scheduled in plan.scheduled:
        if not scheduled.has_logits:
            verified.append(VerifiedTokens())
            continue
        start, stop = stop, stop + len(scheduled.logits_rows)
        written = tuple(token_ids[start : min(start + next(num_accepted) + 1, stop)])
        if logits is None:
            verified.append(VerifiedTokens(written, len(written) - 1))
        elif scheduled.constrained_rows is None:
            verified.append(_verified(scheduled, logits[start:stop], written))
        else:
            verified.append(_verified_constrained(scheduled, logits[start:stop], written))
    return StepResult(tuple(verified))


def _verified(
    scheduled: ScheduledRequest, logits: Tensor, written: tuple[int, ...]
) -> VerifiedTokens:
    """logits: [num_rows, vocab_size]; `written`, the tokens of the rows that count."""
    logprobs: tuple[TokenLogprob, ...] = ()
    if scheduled.sampling.has_logprobs:
        logprobs = _logprobs(logits[: len(written)], written)
    return VerifiedTokens(written, len(written) - 1, logprobs)


def _verified_constrained(
    scheduled: ScheduledRequest, logits: Tensor, written: tuple[int, ...]
) -> VerifiedTokens:
    """As `_verified`; tokens between the rows are forced by those before them."""
    rows = scheduled.logits_rows
    evidence = _gather_evidence(scheduled, logits[: len(written)], written)
    last_row = rows[len(written) - 1]
    if last_row.is_settled:
        return VerifiedTokens(evidence=evidence)
    num_kept = last_row.position - scheduled.start - len(scheduled.token_ids) + 1
    kept = scheduled.draft_token_ids[:num_kept]
    return VerifiedTokens((*kept, written[-1]), num_kept, evidence=evidence)


def _gather_evidence(
    scheduled: ScheduledRequest, logits: Tensor, written: tuple[int, ...]
) -> tuple[RowEvidence, ...]:
    """What the model said in the rows that were written and are wanted as evidence.

    logits: [num_written, vocab_size]
    """
    rows = scheduled.logits_rows[: len(written)]
    asked = [(at, row) for at, row in enumerate(rows) if row.has_evidence]
    if not asked:
        return ()
    row_at = [at for at, row in asked for _ in row.allowed_token_ids]
    token_ids = [token_id for _, row in asked for token_id in row.allowed_token_ids]
    index = torch.tensor([row_at, token_ids], device=logits.device)
    log_probs = logits.log_softmax(dim=-1)[index[0], index[1]].tolist()
    evidence = []
    start = 0
    for at, row in asked:
        allowed = tuple(log_probs[start : start + len(row.allowed_token_ids)])
        start += len(allowed)
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


def _logprobs(logits: Tensor, token_ids: tuple[int, ...]) -> tuple[TokenLogprob, ...]:
    """Log-probabilities of the tokens written, before temperature and filters."""
    chosen = torch.tensor(token_ids, device=logits.device)[:, None]
    log_probs = logits.log_softmax(dim=-1).gather(1, chosen).squeeze(1).tolist()
    return tuple(map(TokenLogprob, token_ids, log_probs))
