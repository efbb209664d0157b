"""From logits to verified tokens, one entry for each scheduled request."""

from __future__ import annotations

from torch import Tensor

from batching.events import TokenLogprob
from batching.forward_batch import ForwardBatch
from batching.step_plan import StepPlan, StepResult, VerifiedTokens
from kernels.ops import Ops


def verify(logits: Tensor, plan: StepPlan, batch: ForwardBatch, *, ops: Ops) -> StepResult:
    """Verify every draft of a step. logits: [num_rows, vocab_size] float32, as `logits_rows`."""
    if batch.sampling is None:
        verification = ops.greedy_verify(logits, batch.draft_token_ids, cu_rows=batch.cu_rows)
    else:
        verification = ops.rejection_verify(
            logits, batch.draft_token_ids, cu_rows=batch.cu_rows, sampling=batch.sampling
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
        start = row_bounds[verified_index]
        accepted = num_accepted[verified_index]
        written = tuple(token_ids[start : start + accepted + 1])
        logprobs: tuple[TokenLogprob, ...] = ()
        if scheduled.sampling.has_logprobs:
            logprobs = _logprobs(logits[start : start + accepted + 1], written)
        verified.append(VerifiedTokens(written, accepted, logprobs))
        verified_index += 1
    return StepResult(tuple(verified))


def _logprobs(logits: Tensor, token_ids: tuple[int, ...]) -> tuple[TokenLogprob, ...]:
    """Log-probabilities of the tokens written, before temperature and filters."""
    log_probs = logits.log_softmax(dim=-1)
    return tuple(
        TokenLogprob(token_id, float(log_probs[row, token_id]))
        for row, token_id in enumerate(token_ids)
    )
