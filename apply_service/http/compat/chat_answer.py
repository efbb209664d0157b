"""Answers of plain chat: engine events become text to show, then the end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.http.compat.answer_form import AnswerEnd
from apply_service.http.compat.schemas import LogprobToken
from apply_service.http.compat.stop_texts import StopCutter
from apply_service.prompts.prompt import Prompt
from batching.events import Finished, TokenLogprob, Tokens


@dataclass(frozen=True, slots=True)
class ChatPiece:
    """The next piece of an answer and, if they are wanted, the tokens that begin in it."""

    text: str
    tokens: tuple[LogprobToken, ...]


class ChatAnswer:
    """Takes the events of one answer in order; a text to stop at and all behind it is not shown."""

    def __init__(self, prompt: Prompt, stops: Sequence[str]) -> None:
        self._prompt = prompt
        self._decoder = prompt.stream_decoder()
        self._cutter = StopCutter(stops)
        self._held: deque[LogprobToken] = deque()
        self._num_bytes_taken = 0
        self._num_bytes_shown = 0

    def push(self, event: Tokens | Finished) -> ChatPiece:
        """Take one event; the text that can be shown now, perhaps none."""
        if isinstance(event, Finished):
            text = self._cutter.push(self._decoder.finish()) + self._cutter.finish()
        else:
            self._held.extend(self._logprob_tokens(event.logprobs))
            text = self._cutter.push(self._decoder.push(event.token_ids))
        return ChatPiece(text, self._take_tokens(text))

    def end(self, event: Finished) -> AnswerEnd:
        """The end of the answer, after its last event."""
        return AnswerEnd(
            reason="stop" if self._cutter.has_stopped else event.reason,
            stats=event.stats,
            stop_text=self._cutter.stop_text,
            num_predicted_tokens=len(self._prompt.prediction_token_ids),
        )

    def _logprob_tokens(self, logprobs: Sequence[TokenLogprob]) -> list[LogprobToken]:
        tokenizer = self._prompt.tokenizer
        tokens = []
        for entry in logprobs:
            if entry.token_id not in tokenizer.special_token_ids:
                spelling = tokenizer.decode_bytes([entry.token_id])
                token = LogprobToken(
                    token=spelling.decode("utf-8", "replace"),
                    logprob=entry.logprob,
                    bytes=list(spelling),
                )
                tokens.append(token)
        return tokens

    def _take_tokens(self, text: str) -> tuple[LogprobToken, ...]:
        """The tokens that begin within what is shown, with `text` as the next of it."""
        written = "".join(self._prompt.substitution.apply([text]))
        self._num_bytes_shown += len(written.encode())
        taken: list[LogprobToken] = []
        while text and self._held and self._num_bytes_taken < self._num_bytes_shown:
            taken.append(self._held.popleft())
            self._num_bytes_taken += len(taken[-1].bytes)
        return tuple(taken)
