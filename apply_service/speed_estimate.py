"""How long an edit will take on this machine, judged by the ones before it."""

from __future__ import annotations

from batching.events import RequestStats

# Weight of the newest request in the moving averages.
SMOOTHING = 0.2


class SpeedEstimate:
    """Moving averages of seconds a prompt token and seconds an answer token.

    An answer token counts as a prompt token until one was seen: drafted, it costs about that.
    """

    def __init__(self) -> None:
        self._prefill_s: float | None = None
        self._decode_s: float | None = None

    def observe(self, stats: RequestStats) -> None:
        """Take in the figures of a finished request."""
        num_computed = stats.num_prompt_tokens - stats.num_cached_tokens
        if num_computed > 0:
            self._prefill_s = _blend(self._prefill_s, stats.prefill_s / num_computed)
        if stats.num_output_tokens > 1:
            self._decode_s = _blend(self._decode_s, stats.decode_s / stats.num_output_tokens)

    def seconds(self, *, num_prompt_tokens: int, num_answer_tokens: int) -> float | None:
        """What a request will take, waiting aside; None before anything was observed."""
        if self._prefill_s is None:
            return None
        decode_s = self._prefill_s if self._decode_s is None else self._decode_s
        return num_prompt_tokens * self._prefill_s + num_answer_tokens * decode_s


def _blend(average: float | None, value: float) -> float:
    return value if average is None else (1 - SMOOTHING) * average + SMOOTHING * value
