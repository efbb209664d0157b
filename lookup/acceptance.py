"""Acceptance rates of drafted tokens, by their reference and their position in the draft."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

# First positions of the buckets: the beginning of a draft tells most, so it is told apart best.
_POSITION_BOUNDS = (0, 1, 2, 4, 8, 16, 32, 64, 128)
_MATCH_BOUNDS = (0, 1, 4, 8, 16, 32, 64)

# What is assumed of a token before anything was seen, and how many tokens that counts for.
PRIOR_ACCEPTANCE = 0.97
PRIOR_WEIGHT = 4.0
# A bucket leans on all positions of its kind as if these many tokens had been seen there.
_BACKOFF_WEIGHT = 2.0
# Older drafts fade with this factor for each newer one: some 32 of them are remembered.
_FADING = 1.0 - 1.0 / 32.0
# A bucket that sees nothing for so many drafts of any kind has half its weight left.
_HALF_LIFE_DRAFTS = 512.0


@dataclass(frozen=True, slots=True)
class DraftKind:
    """Drafts that probably hold equally well: same reference, same length of agreement so far.

    `match_bucket` -1 stands for drafts at the very beginning of an answer.
    """

    reference: str
    match_bucket: int

    @classmethod
    def of(cls, reference: str, match_length: int, *, is_first: bool) -> DraftKind:
        """The kind of a draft; `is_first` when nothing of the answer is written yet."""
        bucket = -1 if is_first else bisect_right(_MATCH_BOUNDS, match_length) - 1
        return cls(reference, bucket)


class AcceptanceCounters:
    """Decaying counts of tokens that were verified and tokens that held.

    A token counts as verified if all drafted tokens before it held. The counts may also be of
    the choices that a draft makes, where the tokens between them are certain.
    """

    def __init__(self, *, prior_acceptance: float = PRIOR_ACCEPTANCE) -> None:
        """prior_acceptance: what is assumed of tokens of which nothing was seen"""
        self._prior_acceptance = prior_acceptance
        self._kinds: dict[DraftKind, _KindCounts] = {}
        self._num_drafts = 0

    def observe(self, kind: DraftKind, *, num_verified: int, num_held: int) -> None:
        """Record one draft: the first `num_held` of `num_verified` tokens held.

        Tokens after the first that did not hold do not count, however long the draft was.
        """
        if num_verified < 1:
            return
        self._num_drafts += 1
        counts = self._kinds.setdefault(kind, _KindCounts(self._prior_acceptance))
        counts.observe(min(num_verified, num_held + 1), num_held, now=self._num_drafts)

    def survival(self, kind: DraftKind, num_tokens: int) -> list[float]:
        """The probability, for each token of a draft, that it and all before it hold."""
        counts = self._kinds.get(kind)
        survival: list[float] = []
        product = 1.0
        for bucket, start in enumerate(_POSITION_BOUNDS):
            if start >= num_tokens:
                break
            rate = self._prior_acceptance
            if counts is not None:
                rate = counts.acceptance(bucket, now=self._num_drafts)
            for _ in range(start, min(_bucket_stop(bucket), num_tokens)):
                product *= rate
                survival.append(product)
        return survival


class _KindCounts:
    """The counts of one kind: a sum over all positions, and one cell for each bucket of them."""

    def __init__(self, prior_acceptance: float) -> None:
        self._prior_acceptance = prior_acceptance
        self._all = _Cell()
        self._cells = [_Cell() for _ in _POSITION_BOUNDS]

    def observe(self, num_verified: int, num_held: int, *, now: int) -> None:
        self._all.add(num_verified, num_held, now=now)
        for bucket, start in enumerate(_POSITION_BOUNDS):
            if start >= num_verified:
                break
            stop = _bucket_stop(bucket)
            verified = min(num_verified, stop) - start
            self._cells[bucket].add(verified, max(0, min(num_held, stop) - start), now=now)

    def acceptance(self, bucket: int, *, now: int) -> float:
        """Probability that a token of the bucket holds if those before it do."""
        of_kind = self._all.rate(self._prior_acceptance, PRIOR_WEIGHT, now=now)
        return self._cells[bucket].rate(of_kind, _BACKOFF_WEIGHT, now=now)


class _Cell:
    """Two decaying sums; `_seen_at` is the number of drafts at the last change."""

    def __init__(self) -> None:
        self._verified = 0.0
        self._held = 0.0
        self._seen_at = 0

    def add(self, verified: int, held: int, *, now: int) -> None:
        fading = self._staleness(now) * _FADING
        self._verified = self._verified * fading + verified
        self._held = self._held * fading + held
        self._seen_at = now

    def rate(self, expected: float, weight: float, *, now: int) -> float:
        """The share that held, drawn towards `expected` as by `weight` more tokens."""
        fading = self._staleness(now)
        held, verified = self._held * fading, self._verified * fading
        return (held + weight * expected) / (verified + weight)

    def _staleness(self, now: int) -> float:
        return float(0.5 ** ((now - self._seen_at) / _HALF_LIFE_DRAFTS))


def _bucket_stop(bucket: int) -> int:
    """The position behind a bucket; the last one ends beyond the reach of any draft."""
    is_last = bucket + 1 == len(_POSITION_BOUNDS)
    return 1 << 30 if is_last else _POSITION_BOUNDS[bucket + 1]
