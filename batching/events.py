"""Events of the engine: tokens, then exactly one last event a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Literal

import msgspec

from batching.cache.stats import PrefixLookup
from batching.draft_losses import DraftLosses
from batching.errors import EngineError

FinishReason = Literal["stop", "length"]
TokenOrigin = Literal["forced", "drafted", "written"]


@dataclass(frozen=True, slots=True)
class ReferenceStats:
    """Draft tokens of one reference: how many were verified and how many of them held."""

    drafted: int
    accepted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStats:
    """Figures of one finished request; times in seconds.

    A target pass is every forward pass that held a row of the request, prefill included.
    `decode_passes` counts only those that produced output tokens. `load_s`, a part of `queue_s`,
    passed while the tiers of the prefix cache below the device were searched. The seconds of a step
    are shared among its requests by their rows: `prefill_share_s` and `decode_share_s` are what
    falls to this one, however many others it ran beside. `losses` are those of free drafts; with a
    constraint, or without speculation, there are none.
    """

    num_prompt_tokens: int
    num_cached_tokens: int
    num_output_tokens: int
    drafted: int
    accepted: int
    forced: int
    target_passes: int
    decode_passes: int
    queue_s: float
    load_s: float
    prefill_s: float
    decode_s: float
    prefill_share_s: float = 0.0
    decode_share_s: float = 0.0
    by_reference: dict[str, ReferenceStats] = field(default_factory=dict)
    prefix_lookups: tuple[PrefixLookup, ...] = ()
    losses: DraftLosses = field(default_factory=DraftLosses)

    @classmethod
    def total(cls, parts: Sequence[RequestStats]) -> RequestStats:
        """The figures of several requests that were made for one end, added up."""
        by_reference: dict[str, ReferenceStats] = {}
        for part in parts:
            for name, figures in part.by_reference.items():
                sum_so_far = by_reference.get(name, ReferenceStats(0, 0))
                by_reference[name] = ReferenceStats(
                    sum_so_far.drafted + figures.drafted, sum_so_far.accepted + figures.accepted
                )
        sums = {
            item.name: sum(getattr(part, item.name) for part in parts)
            for item in fields(cls)
            if item.name not in ("by_reference", "prefix_lookups", "losses")
        }
        lookups = tuple(lookup for part in parts for lookup in part.prefix_lookups)
        losses = DraftLosses.total([part.losses for part in parts])
        return cls(**sums, by_reference=by_reference, prefix_lookups=lookups, losses=losses)


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log-probability of the token written, under the distribution before filtering."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvidence:
    """The model's probabilities for the token at output position `position`, under a constraint.

    `logprobs`, one for each of `allowed_token_ids`, are of the distribution without constraint,
    before temperature and filters; `outside_mass` is the probability of everything not allowed.
    `log_prior`, one for each of them too or none, is what the constraint added to them.
    """

    position: int
    token_id: int
    allowed_token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    outside_mass: float
    is_decision: bool
    log_prior: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedStep:
    """What a step added to an answer, `at_s` seconds after its request had arrived.

    Each of `token_ids` was forced by the constraint, held as a draft, or was written by the model,
    as `origins` say. `reference` is what the draft was copied from, and `rejected_token_ids` are
    those of it that did not hold, those of its branches last.
    """

    at_s: float
    token_ids: tuple[int, ...]
    origins: tuple[TokenOrigin, ...]
    reference: str | None = None
    rejected_token_ids: tuple[int, ...] = ()


class Tokens(msgspec.Struct, frozen=True, tag="tokens", array_like=True):
    """New output tokens, in order. `logprobs` is empty unless they were asked for."""

    request_id: str
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...] = ()


class Finished(msgspec.Struct, frozen=True, tag="finished", array_like=True):
    """The last event of a request that ran to its end.

    Evidence comes with a constraint, a trace where it was asked for.
    """

    request_id: str
    reason: FinishReason
    stats: RequestStats
    evidence: tuple[RowEvidence, ...] = ()
    trace: tuple[TracedStep, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a request that the engine could not complete."""

    request_id: str
    error: EngineError


class Cancelled(msgspec.Struct, frozen=True, tag="cancelled", array_like=True):
    """The last event of a request that its owner withdrew."""

    request_id: str


Event = Tokens | Finished | Failed | Cancelled
