"""A draft model with other tokens drafts what transformers writes, in the target's tokens."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from drafter_checkpoints import make_drafter_config
from drafter_oracle import MAX_DEPTH, MIN_EQUAL, make_target, share_equal
from model_checkpoints import MERGES, merging_tokenizer
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

from apply_service.prompts.tokenizer import PromptTokenizer
from batching.drafters.drafter import DraftAsk
from batching.drafters.other_tokenizer import OtherTokenizer
from batching.errors import ModelLoadError
from batching.request import SamplingParams

NUM_TEXTS = 60
WORDS = (*MERGES, "the", "loop", "ß", "…", "  ", "\n", "x = 1", "日本")


@pytest.fixture
def tokens(tiny_model_dir: Path) -> PromptTokenizer:
    return PromptTokenizer.from_dir(tiny_model_dir)


@pytest.fixture
def folder(tiny_model_dir: Path, tmp_path: Path) -> Path:
    config = make_drafter_config("other-tokenizer", tiny_model_dir, tmp_path)
    assert config.path is not None
    return config.path


@pytest.fixture
def drafter(
    tiny_model_dir: Path, folder: Path, tokens: PromptTokenizer, monkeypatch: pytest.MonkeyPatch
) -> OtherTokenizer:
    monkeypatch.setattr("batching.drafters.growth.MIN_WORTH", 0.0)
    return OtherTokenizer(make_target(tiny_model_dir), folder, tokens)


def make_ask(request_id: str, token_ids: tuple[int, ...]) -> DraftAsk:
    return DraftAsk(
        request_id=request_id,
        token_ids=token_ids,
        num_prompt_tokens=1,
        block_ids=(),
        sampling=SamplingParams(max_tokens=100),
        max_nodes=64,
        max_depth=MAX_DEPTH,
    )


def oracle_chain(text: str, model: Any, tokenizer: Tokenizer) -> bytes:
    """The first bytes that the model writes behind a text, as far as they are whole characters."""
    token_ids = tokenizer.encode(text).ids
    num_known = len(token_ids)
    while len(token_ids) < num_known + MAX_DEPTH:
        logits = model(torch.tensor([token_ids]), use_cache=False).logits
        token_id = int(logits[0, -1].argmax())
        if token_id == tokenizer.token_to_id("</s>"):
            break
        token_ids.append(token_id)
    whole = tokenizer.decode(token_ids, skip_special_tokens=False)
    behind = whole[len(text) :].rstrip("\ufffd").encode()
    return behind[:MAX_DEPTH]


@torch.inference_mode()
def test_drafts_are_what_the_model_writes(
    drafter: OtherTokenizer, folder: Path, tokens: PromptTokenizer
) -> None:
    model: Any = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = merging_tokenizer()
    generator = random.Random(1)
    drafted, expected = [], []
    for case in range(NUM_TEXTS):
        text = "".join(generator.choices(WORDS, k=generator.randint(2, 20)))
        # Three drafts behind a growing text, the last one after a part of it was taken back.
        for part in (text[: len(text) // 2], text, text[: -(len(text) // 3) or None]):
            if not part:
                continue
            (draft,) = drafter.draft([make_ask(str(case), tokens.encode(part))])
            drafted.append(tokens.decode_bytes(draft.token_ids))
            expected.append(oracle_chain(part, model, tokenizer))
    assert sum(map(len, expected)) > 300
    assert [len(one) for one in drafted] == [len(one) for one in expected]
    assert share_equal([list(one) for one in drafted], [list(one) for one in expected]) >= MIN_EQUAL


@torch.inference_mode()
def test_a_character_that_is_half_written_is_ended(
    drafter: OtherTokenizer, tokens: PromptTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    token_ids = tokens.encode("the …")
    monkeypatch.setattr(drafter, "_continue", lambda *_: merging_tokenizer().encode("… and").ids)
    (draft,) = drafter.draft([make_ask("half", token_ids[:-1])])
    assert tokens.decode_bytes([*token_ids[:-1], *draft.token_ids]) == "the … and".encode()
    (draft,) = drafter.draft([make_ask("other", (*token_ids[:-2], *tokens.encode("x")))])
    assert tokens.decode_bytes(draft.token_ids).decode() == "… and"


@torch.inference_mode()
def test_nothing_is_drafted_behind_nothing(drafter: OtherTokenizer) -> None:
    (draft,) = drafter.draft([make_ask("empty", ())])
    assert not draft.token_ids


@torch.inference_mode()
def test_requests_are_forgotten(drafter: OtherTokenizer, tokens: PromptTokenizer) -> None:
    ask = make_ask("one", tokens.encode("the loop"))
    first = drafter.draft([ask])
    drafter.forget("one")
    drafter.forget("unknown")
    assert drafter.draft([ask]) == first


def test_the_tokenizer_of_the_model_is_needed(tiny_model_dir: Path, folder: Path) -> None:
    with pytest.raises(ModelLoadError, match="tokenizer"):
        OtherTokenizer(make_target(tiny_model_dir), folder, None)


def test_a_folder_without_a_tokenizer_is_refused(
    tiny_model_dir: Path, folder: Path, tokens: PromptTokenizer
) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelLoadError, match="could not be loaded"):
        OtherTokenizer(make_target(tiny_model_dir), folder, tokens)
