"""From logits to verified tokens, one entry for each scheduled request."""

from __future__ import annotations

from torch import Tensor

from batching.events import RowEvidence, TokenLogprob
from batching.forward_batch import ForwardBatch
from batching.step_plan import ScheduledRequest, StepPlan, StepResult, VerifiedTokens
from kernels.ops import Ops


def verify(logits: Tensor, plan: StepPlan, batch: ForwardBatch, *, ops: Ops) -> StepResult:
    """Verify every draft of a step. logits: [num_rows, vocab_size] float32, as `logits_rows`."""
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
    token_ids = verification.token_ids.tolist()
    num_accepted = verification.num_accepted.tolist()
    row_bounds = batch.cu_rows.tolist()
    verified: list[VerifiedTokens] = []
    verified_index = 0
    for scheduled in plan.scheduled:
        if not scheduled.has_logits:
            verified.append(VerifiedTokens())
            continue
        start, stop = row_bounds[verified_index : verified_index + 2]
        accepted = num_accepted[verified_index]
        written = tuple(token_ids[start : min(start + accepted + 1, stop)])
        if scheduled.constrained_rows is None:
            verified.append(_verified(scheduled, logits[start:stop], written))
        else:
            verified.append(_verified_constrained(scheduled, logits[start:stop], written))
        verified_index += 1
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
    log_probs = logits[: len(written)].log_softmax(dim=-1)  # [num_written, vocab_size]
    evidence = []
    for row, token_id, row_log_probs in zip(rows, written, log_probs, strict=False):
        if not row.has_evidence:
            continue
        allowed = row_log_probs[list(row.allowed_token_ids)]
        evidence.append(
            RowEvidence(
                position=scheduled.output_position_of(row),
                token_id=token_id,
                allowed_token_ids=row.allowed_token_ids,
                logprobs=tuple(allowed.tolist()),
                outside_mass=max(0.0, 1.0 - float(allowed.exp().sum())),
                is_decision=row.is_decision,
                log_prior=row.log_prior,
            )
        )
    last_row = rows[len(written) - 1]
    if last_row.is_settled:
        return VerifiedTokens(evidence=tuple(evidence))
    num_kept = last_row.position - scheduled.start - len(scheduled.token_ids) + 1
    kept = scheduled.draft_token_ids[:num_kept]
    return VerifiedTokens((*kept, written[-1]), num_kept, evidence=tuple(evidence))


def _logprobs(logits: Tensor, token_ids: tuple[int, ...]) -> tuple[TokenLogprob, ...]:
    """Log-probabilities of the tokens written, before temperature and filters."""
    log_probs = logits.log_softmax(dim=-1)
    return tuple(
        TokenLogprob(token_id, float(log_probs[row, token_id]))
        for row, token_id in enumerate(token_ids)
    )
