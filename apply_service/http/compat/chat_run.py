"""Plain chat: conversations without an edit, answered by a chat model."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from apply_service.apply.admission import Admission
from apply_service.apply.edit_request import SamplingOptions
from apply_service.apply.errors import PromptTooLongError, WithdrawnError
from apply_service.http.compat.answer_form import AnswerEnd
from apply_service.http.compat.chat_answer import ChatAnswer, ChatPiece
from apply_service.http.compat.conversation import Conversation
from apply_service.http.problems import ProblemError, make_problem
from apply_service.prompts.chat import ChatProfile
from apply_service.prompts.errors import ChatTemplateError
from apply_service.prompts.prompt import Prompt
from batching.async_engine import AsyncEngine, RequestHandle
from batching.events import Cancelled, Failed, Finished, RequestStats
from batching.recipes import EditDrafts, StopTexts
from batching.request import EngineRequest, SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A conversation and how its answer is to be written; `deadline_s` None waits forever.

    `max_tokens` above what the model has room for means all of that room.
    """

    conversation: Conversation
    sampling: SamplingOptions
    deadline_s: float | None = None
    cache_salt: bytes = b""


class ChatPipeline:
    """Runs conversations on one engine, into which `admission` lets them.

    `observe` takes the figures of each that finishes.
    """

    def __init__(
        self,
        engine: AsyncEngine,
        profile: ChatProfile,
        *,
        admission: Admission,
        max_draft_tokens: int,
        observe: Callable[[RequestStats], None],
    ) -> None:
        self._observe_chat = observe
        self._admission = admission
        self._engine = engine
        self._profile = profile
        self._max_draft_tokens = max_draft_tokens

    async def start(self, request: ChatRequest) -> ChatRun:
        """Check and submit a conversation.

        Raises PromptTooLongError, TextNotEncodableError, EngineError, and ProblemError (400) for
        messages that the model's template has no place for.
        """
        started_at = time.monotonic()
        prompt = await asyncio.to_thread(self._build, request)
        engine_request = self._engine_request(request, prompt, started_at)
        answer = ChatAnswer(prompt, request.conversation.stops)
        (handle,) = self._admission.submit([engine_request])
        return ChatRun(handle, answer, engine_request, observe=self._observe)

    def _observe(self, stats: RequestStats) -> None:
        self._admission.observe(stats)
        self._observe_chat(stats)

    def _build(self, request: ChatRequest) -> Prompt:
        conversation = request.conversation
        try:
            return self._profile.build_conversation(
                conversation.messages, prediction=conversation.prediction
            )
        except ChatTemplateError as error:
            problem = make_problem(
                400,
                code="unsupported-messages",
                title="The model cannot take these messages",
                detail=str(error),
                field=conversation.messages_field,
                remedy="send messages of user and assistant in turn, user first",
            )
            raise ProblemError(problem) from error

    def _engine_request(
        self, request: ChatRequest, prompt: Prompt, started_at: float
    ) -> EngineRequest:
        sampling, conversation = request.sampling, request.conversation
        stops = conversation.stops
        return EngineRequest(
            request_id=f"chat-{uuid.uuid4().hex}",
            prompt_token_ids=tuple(prompt.token_ids),
            sampling=SamplingParams(
                max_tokens=self._answer_limit(conversation, prompt),
                temperature=sampling.temperature,
                top_k=sampling.top_k,
                top_p=sampling.top_p,
                seed=sampling.seed,
                stop_token_ids=prompt.stop_token_ids,
                has_logprobs=conversation.has_logprobs,
            ),
            proposer=_proposer_of(prompt) if self._max_draft_tokens else None,
            stop_checker=_stops_of(stops, prompt),
            max_draft_tokens=self._max_draft_tokens,
            deadline=None if request.deadline_s is None else started_at + request.deadline_s,
            cache_salt=request.cache_salt,
            prompt_kind="chat",
        )

    def _answer_limit(self, conversation: Conversation, prompt: Prompt) -> int:
        info = self._engine.model_info
        limit = min(info.max_position, info.num_kv_tokens)
        room = limit - len(prompt.token_ids)
        if room < 1:
            raise PromptTooLongError(
                f"the conversation has {len(prompt.token_ids)} tokens and needs 1 for its answer",
                value=len(prompt.token_ids) + 1,
                limit=limit,
                remedy="send a shorter conversation, or use a longer context (the model has"
                f" {info.max_position} tokens, its KV cache {info.num_kv_tokens}; raise kv_memory"
                " for more)",
            )
        max_tokens = conversation.max_tokens
        return room if max_tokens is None else min(max_tokens, room)


class ChatRun:
    """One answer under way. Iterate for its pieces and, last, its end; `cancel` withdraws it."""

    def __init__(
        self,
        handle: RequestHandle,
        answer: ChatAnswer,
        request: EngineRequest,
        *,
        observe: Callable[[RequestStats], None],
    ) -> None:
        self.request_id = request.request_id
        self.num_prompt_tokens = len(request.prompt_token_ids)
        self._handle = handle
        self._answer = answer
        self._observe = observe

    def cancel(self) -> None:
        """Withdraw the request."""
        self._handle.cancel()

    async def __aiter__(self) -> AsyncIterator[ChatPiece | AnswerEnd]:
        async for event in self._handle:
            if isinstance(event, Failed):
                raise event.error
            if isinstance(event, Cancelled):
                raise WithdrawnError(f"the request {event.request_id} was cancelled")
            piece = self._answer.push(event)
            if piece.text:
                yield piece
            if isinstance(event, Finished):
                self._observe(event.stats)
                yield self._answer.end(event)


def _proposer_of(prompt: Prompt) -> EditDrafts:
    """Drafts from the prediction and from what the answer has said before."""
    prediction = prompt.prediction_token_ids
    return EditDrafts(
        original=(),
        snippet_segments=(),
        prediction=prediction,
        end_token_ids=prompt.end_token_ids if prediction else (),
    )


def _stops_of(stops: Sequence[str], prompt: Prompt) -> StopTexts | None:
    """Stop texts as the model writes them; None without any."""
    if not stops:
        return None
    return StopTexts([text.encode() for text in prompt.substitution.apply(stops)])
