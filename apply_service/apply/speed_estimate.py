"""Estimates how long an edit alone would take on this machine, from the edits before it."""

from __future__ import annotations

from batching.events import RequestStats

# How much of what was known is kept with each new request.
KEPT_SHARE = 0.8


class SpeedEstimate:
    """Seconds a prompt token and seconds an answer token, each averaged over recent requests.

    Until an answer token was seen it counts as a prompt token: drafted, it costs about as much.
    """

    def __init__(self) -> None:
        self._prefill = Rate()
        self._decode = Rate()

    def observe(self, stats: RequestStats) -> None:
        """Record the figures of a finished request, whatever ran beside it."""
        num_computed = stats.num_prompt_tokens - stats.num_cached_tokens
        if num_computed > 0:
            self._prefill.add(stats.prefill_share_s, num_computed)
        if stats.num_output_tokens > 1:
            self._decode.add(stats.decode_share_s, stats.num_output_tokens)

    def seconds(self, *, num_prompt_tokens: int, num_answer_tokens: int) -> float | None:
        """Seconds of a request with the engine to itself; None before any was observed."""
        prefill_s = self._prefill.seconds_each
        if prefill_s is None:
            return None
        decode_s = self._decode.seconds_each
        if decode_s is None:
            decode_s = prefill_s
        return num_prompt_tokens * prefill_s + num_answer_tokens * decode_s


class Rate:
    """Seconds divided by tokens, or by requests; older ones weigh less.

    It is a ratio of sums: of a cached prompt only a token or two are computed, and their time is
    mostly the fixed time of a step.
    """

    def __init__(self, kept_share: float = KEPT_SHARE) -> None:
        self._kept_share = kept_share
        self._seconds = 0.0
        self._count = 0.0

    def add(self, seconds: float, count: int) -> None:
        self._seconds = self._kept_share * self._seconds + seconds
        self._count = self._kept_share * self._count + count

    @property
    def seconds_each(self) -> float | None:
        return self._seconds / self._count if self._count else None
