"""How long an edit would take on this machine by itself, judged by the ones before it."""

from __future__ import annotations

from batching.events import RequestStats

# How much of what was known is kept with each new request.
KEPT_SHARE = 0.8


class SpeedEstimate:
    """Seconds a prompt token and seconds an answer token, each over the tokens of late requests.

    An answer token counts as a prompt token until one was seen: drafted, it costs about that.
    """

    def __init__(self) -> None:
        self._prefill = _Rate()
        self._decode = _Rate()

    def observe(self, stats: RequestStats, *, num_together: int = 1) -> None:
        """Take in the figures of a finished request that shared the engine with so many others."""
        num_computed = stats.num_prompt_tokens - stats.num_cached_tokens
        if num_computed > 0:
            self._prefill.add(stats.prefill_s / num_together, num_computed)
        if stats.num_output_tokens > 1:
            self._decode.add(stats.decode_s / num_together, stats.num_output_tokens)

    def seconds(self, *, num_prompt_tokens: int, num_answer_tokens: int) -> float | None:
        """What a request will take that has the engine for itself; None before any was observed."""
        prefill_s = self._prefill.seconds_per_token
        if prefill_s is None:
            return None
        decode_s = self._decode.seconds_per_token
        if decode_s is None:
            decode_s = prefill_s
        return num_prompt_tokens * prefill_s + num_answer_tokens * decode_s


class _Rate:
    """Seconds over tokens, of which older ones weigh less.

    A ratio of sums: of a cached prompt a token or two are computed, which tell of little else than
    of the time of a step.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._num_tokens = 0.0

    def add(self, seconds: float, num_tokens: int) -> None:
        self._seconds = KEPT_SHARE * self._seconds + seconds
        self._num_tokens = KEPT_SHARE * self._num_tokens + num_tokens

    @property
    def seconds_per_token(self) -> float | None:
        return self._seconds / self._num_tokens if self._num_tokens else None
