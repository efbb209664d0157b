"""Plain chat: a conversation that no edit is in, answered by a model that can chat."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from apply_service.compat.chat_schemas import FinishReason, LogprobToken
from apply_service.compat.stop_texts import StopCutter, StopTokens
from apply_service.edit_request import SamplingOptions
from apply_service.errors import PromptTooLongError, WithdrawnError
from apply_service.prompts.chat import ChatProfile
from apply_service.prompts.chat_template import ChatMessage
from apply_service.prompts.prompt import Prompt
from batching.async_engine import AsyncEngine, RequestHandle
from batching.events import Failed, Finished, RequestStats, TokenLogprob, Tokens
from batching.request import EngineRequest, SamplingParams
from lookup.edit_proposer import EditProposer


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A conversation and how its answer is to be written; `deadline_s` None waits forever.

    `max_tokens` above what the model has room for means all of that room.
    """

    messages: Sequence[ChatMessage]
    sampling: SamplingOptions
    prediction: str | None = None
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()
    has_logprobs: bool = False
    deadline_s: float | None = None
    cache_salt: bytes = b""


@dataclass(frozen=True, slots=True)
class ChatPiece:
    """The next piece of an answer and, if they are wanted, the tokens that begin in it."""

    text: str
    tokens: tuple[LogprobToken, ...]


@dataclass(frozen=True, slots=True)
class ChatEnd:
    """The end of an answer; `num_predicted_tokens` are those of the caller's prediction."""

    reason: FinishReason
    stats: RequestStats
    num_predicted_tokens: int


class ChatPipeline:
    """Runs conversations on one engine."""

    def __init__(self, engine: AsyncEngine, profile: ChatProfile, *, max_draft_tokens: int) -> None:
        self._engine = engine
        self._profile = profile
        self._max_draft_tokens = max_draft_tokens

    async def start(self, request: ChatRequest) -> ChatRun:
        """Check and submit a conversation. Raises PromptError, PromptTooLongError, EngineError."""
        started_at = time.monotonic()
        prompt = await asyncio.to_thread(
            self._profile.build_conversation, request.messages, prediction=request.prediction
        )
        engine_request = self._engine_request(request, prompt, started_at)
        return ChatRun(
            self._engine.submit(engine_request), engine_request.request_id, prompt, request
        )

    def _engine_request(
        self, request: ChatRequest, prompt: Prompt, started_at: float
    ) -> EngineRequest:
        sampling = request.sampling
        return EngineRequest(
            request_id=f"chat-{uuid.uuid4().hex}",
            prompt_token_ids=tuple(prompt.token_ids),
            sampling=SamplingParams(
                max_tokens=self._answer_limit(request, prompt),
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                seed=sampling.seed,
                stop_token_ids=prompt.stop_token_ids,
                has_logprobs=request.has_logprobs,
            ),
            proposer=_proposer_of(prompt) if self._max_draft_tokens else None,
            stop_checker=StopTokens(request.stops, prompt) if request.stops else None,
            max_draft_tokens=self._max_draft_tokens,
            deadline=None if request.deadline_s is None else started_at + request.deadline_s,
            cache_salt=request.cache_salt,
        )

    def _answer_limit(self, request: ChatRequest, prompt: Prompt) -> int:
        info = self._engine.model_info
        limit = min(info.max_position, info.num_kv_tokens)
        room = limit - len(prompt.token_ids)
        if room < 1:
            raise PromptTooLongError(
                f"the conversation has {len(prompt.token_ids)} tokens and needs one for its answer",
                value=len(prompt.token_ids) + 1,
                limit=limit,
                remedy="send a shorter conversation, or use a longer context (the model has"
                f" {info.max_position} tokens, its KV cache {info.num_kv_tokens}: see kv_memory)",
            )
        return room if request.max_tokens is None else min(request.max_tokens, room)


class ChatRun:
    """One answer under way. Iterate for its pieces and, last, its end; `cancel` withdraws it."""

    def __init__(
        self, handle: RequestHandle, request_id: str, prompt: Prompt, request: ChatRequest
    ) -> None:
        self.request_id = request_id
        self._handle = handle
        self._prompt = prompt
        self._decoder = prompt.stream_decoder()
        self._cutter = StopCutter(request.stops)
        self._tokens = _HeldTokens(prompt)

    def cancel(self) -> None:
        """Give the answer up."""
        self._handle.cancel()

    async def __aiter__(self) -> AsyncIterator[ChatPiece | ChatEnd]:
        async for event in self._handle:
            if isinstance(event, Tokens):
                self._tokens.hold(event.logprobs)
                text = self._cutter.push(self._decoder.push(event.token_ids))
            elif isinstance(event, Finished):
                text = self._cutter.push(self._decoder.finish()) + self._cutter.finish()
            elif isinstance(event, Failed):
                raise event.error
            else:
                raise WithdrawnError(f"the request {event.request_id} was cancelled")
            if text:
                yield ChatPiece(text, self._tokens.take(text))
            if isinstance(event, Finished):
                reason = "stop" if self._cutter.has_stopped else event.reason
                yield ChatEnd(reason, event.stats, len(self._prompt.prediction_token_ids))


def _proposer_of(prompt: Prompt) -> EditProposer:
    """Drafts from the prediction and from what the answer has said before."""
    prediction = prompt.prediction_token_ids
    return EditProposer(
        original=(),
        snippet_segments=(),
        prediction=prediction,
        end_token_ids=prompt.end_token_ids if prediction else (),
    )


class _HeldTokens:
    """Tokens with log-probabilities that wait until the text that they begin is shown."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._held: deque[LogprobToken] = deque()
        self._num_written = 0
        self._num_shown = 0

    def hold(self, logprobs: Sequence[TokenLogprob]) -> None:
        """Take the tokens of an event, none if they are not wanted."""
        tokenizer = self._prompt.tokenizer
        for entry in logprobs:
            if entry.token_id in tokenizer.special_token_ids:
                continue
            spelling = tokenizer.decode_bytes([entry.token_id])
            self._held.append(
                LogprobToken(
                    token=spelling.decode("utf-8", "replace"),
                    logprob=entry.logprob,
                    bytes=list(spelling),
                )
            )

    def take(self, text: str) -> tuple[LogprobToken, ...]:
        """The tokens that begin within what is shown, with `text` as the next of it."""
        self._num_shown += len("".join(self._prompt.substitution.apply([text])).encode())
        taken = []
        while self._held and self._num_written < self._num_shown:
            taken.append(self._held.popleft())
            self._num_written += len(taken[-1].bytes)
        return tuple(taken)
