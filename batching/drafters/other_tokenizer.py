"""A draft model with other tokens: texts go to it and come back as text.

Source: Timor et al., "Accelerating LLM Inference with Lossless Speculative Decoding Algorithms for
Heterogeneous Vocabularies", ICML 2025, arXiv 2502.05202, the way of transformers' universal
assisted generation. What comes back is a draft like any other, so no probability is carried over.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from batching.drafters import growth
from batching.drafters.drafter import DraftAsk, Features, ObservedRequest
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from batching.model.loading import check_is_supported
from batching.recipes import TokenText
from kernels.linear import use_onednn_linear
from lookup.proposer import Draft

# Tokens before the draft that are written again with it: a tokenizer looks no further back.
_NUM_CONTEXT_TOKENS = 8
_UNREADABLE = "\ufffd"


@dataclass(slots=True)
class _Written:
    """What the draft model has read for one request, and its keys and values."""

    token_ids: list[int] = field(default_factory=list)
    cache: DynamicCache = field(default_factory=DynamicCache)


class OtherTokenizer:
    """A model from a folder with a `tokenizer.json` of any kind.

    Each request is drafted for by itself, greedily, with keys and values of its own beside the
    paged ones. The first draft reads the whole prompt.
    """

    name = "other-tokenizer"
    taps: Sequence[int] = ()
    kv = None

    def __init__(self, target: TargetModel, path: Path, tokens: TokenText | None) -> None:
        """tokens: the target's. Raises ModelLoadError if the model cannot be loaded."""
        if tokens is None:
            raise ModelLoadError(
                "other-tokenizer needs the model's own tokenizer, and the engine has none"
            )
        self._target, self._tokens = target, tokens
        self._model, self._tokenizer = _load(path, target)
        self._special_ids = frozenset(
            token_id
            for token_id, token in self._tokenizer.get_added_tokens_decoder().items()
            if token.special
        )
        # What texts begin with, if the tokenizer sets anything before them.
        self._opening = self._tokenizer.encode("").ids[:1]
        self._written: dict[str, _Written] = {}

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Nothing is to be taken in: a draft says what the text is."""

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """A chain behind each text."""
        return [Draft(self._chain(ask), self.name, 0) for ask in asks]

    def forget(self, request_id: str) -> None:
        """Let keys and values of a request go."""
        self._written.pop(request_id, None)

    def _chain(self, ask: DraftAsk) -> tuple[int, ...]:
        decoder = getincrementaldecoder("utf-8")(errors="replace")
        text = decoder.decode(self._tokens.decode_bytes(ask.token_ids))
        # A character may be half written; the draft model writes it anew.
        half_written, _ = decoder.getstate()
        prompt_ids = self._opening + self._tokenizer.encode(text, add_special_tokens=False).ids
        if not prompt_ids:
            return ()
        drafted_ids = self._continue(ask.request_id, prompt_ids, ask.max_depth)
        behind = self._text_behind(prompt_ids, drafted_ids).encode()
        if not behind.startswith(half_written):
            return ()
        behind = behind.removeprefix(half_written)
        return self._target_ids(ask.token_ids, behind)[: ask.max_depth]

    def _continue(self, request_id: str, prompt_ids: list[int], max_tokens: int) -> list[int]:
        """The likeliest tokens of the draft model, until their way becomes too unlikely."""
        kept = self._written.setdefault(request_id, _Written())
        num_equal = _num_equal(kept.token_ids, prompt_ids)
        num_read = min(num_equal, len(prompt_ids) - 1)
        if num_read < len(kept.token_ids):
            kept.cache.crop(num_read - len(kept.token_ids))
        kept.token_ids = prompt_ids[:num_read]
        drafted: list[int] = []
        read, worth = prompt_ids[num_read:], 1.0
        while len(drafted) < max_tokens and worth >= growth.MIN_WORTH:
            output = self._model(
                input_ids=torch.tensor([read], device=self._target.device),
                past_key_values=kept.cache,
                use_cache=True,
                logits_to_keep=1,
            )
            kept.token_ids += read
            prob, best = output.logits[0, -1].float().softmax(dim=-1).max(dim=-1)
            token_id = int(best)
            if token_id in self._special_ids:
                break  # the end of a text has no spelling that the target would read as one
            worth *= float(prob)
            drafted.append(token_id)
            read = [token_id]
        return drafted

    def _text_behind(self, prompt_ids: Sequence[int], drafted_ids: Sequence[int]) -> str:
        """The text of drafted tokens, without a character at the end that is half written."""
        context = list(prompt_ids[-_NUM_CONTEXT_TOKENS:])
        before, after = (
            self._tokenizer.decode(ids, skip_special_tokens=False)
            for ids in (context, [*context, *drafted_ids])
        )
        return after[len(before) :].rstrip(_UNREADABLE) if after.startswith(before) else ""

    def _target_ids(self, token_ids: Sequence[int], behind: bytes) -> tuple[int, ...]:
        """The target's tokens of a text behind others, as it would write both in one piece."""
        context = self._tokens.decode_bytes(token_ids[-_NUM_CONTEXT_TOKENS:])
        begins = (at for at in range(len(context) + 1) if _is_text(context[at:] + behind))
        begin = next(begins, None)
        if not behind or begin is None:
            return ()
        both = self._tokens.encode_bytes(context[begin:] + behind)
        ends = accumulate(len(self._tokens.decode_bytes([token_id])) for token_id in both)
        at = next((at for at, end in enumerate(ends, 1) if end == len(context) - begin), None)
        if at is not None:
            return tuple(both[at:])
        # A token spans both: what the target has written cannot be changed any more.
        return tuple(self._tokens.encode_bytes(behind)) if _is_text(behind) else ()


def _load(path: Path, target: TargetModel) -> tuple[Any, Tokenizer]:
    try:
        check_is_supported(AutoConfig.from_pretrained(path, trust_remote_code=False))
        tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        model: Any = AutoModelForCausalLM.from_pretrained(
            path, dtype=target.dtype, attn_implementation="sdpa", trust_remote_code=False
        )
    except ModelLoadError:
        raise
    except Exception as error:  # tokenizers raises nothing narrower
        raise ModelLoadError(f"the draft model {path} could not be loaded: {error}") from error
    model = model.eval().to(target.device)
    if target.device.type == "cpu" and target.dtype in (torch.float32, torch.bfloat16):
        use_onednn_linear(model)
    return model, tokenizer


def _num_equal(first: Sequence[int], second: Sequence[int]) -> int:
    for at, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return at
    return min(len(first), len(second))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True
