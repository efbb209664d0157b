"""The tokenizer keeps user text exact and says so when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_service.prompts.errors import TextNotEncodableError, TokenizerError
from apply_service.prompts.substitution import MAX_SUBSTITUTES, Substitution
from apply_service.prompts.tokenizer import PromptTokenizer


def test_missing_bytes_are_found_in_the_vocabulary(tokenizer: PromptTokenizer) -> None:
    assert tokenizer.missing_bytes == {0x04, 0x1D, 0x16, 0xF1}


def test_white_space_tokens_write_white_space_and_nothing_else(tokenizer: PromptTokenizer) -> None:
    white_space = tokenizer.white_space_token_ids
    for token_id in range(tokenizer.vocab_size):
        is_blank = tokenizer.decode_bytes([token_id]).isspace()
        assert (token_id in white_space) == is_blank
    assert white_space.issuperset(tokenizer.encode("\n \n"))
    assert white_space.isdisjoint(tokenizer.encode_template("<|im_end|>"))


def test_text_that_would_lose_characters_is_refused(tokenizer: PromptTokenizer) -> None:
    with pytest.raises(TextNotEncodableError, match="exactly"):
        tokenizer.encode("a\x04b")


def test_control_tokens_only_in_templates(tokenizer: PromptTokenizer) -> None:
    assert 2 in tokenizer.encode_template("a<|im_end|>")
    assert tokenizer.special_token_ids.isdisjoint(tokenizer.encode("a<|im_end|>"))
    with pytest.raises(TokenizerError, match="no control token"):
        tokenizer.control_token_id("<|eot_id|>")


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])), st.text())
def test_substitution_is_reversible(first: str, second: str) -> None:
    missing = frozenset({0x04, 0xF1, 0xEE, 0x41, 0xC3})
    texts = [[first], [second.encode(errors="ignore").decode()]]
    substitution = Substitution.for_texts(texts, missing)
    for lines in texts:
        inner = "".join(substitution.apply(lines))
        assert missing.isdisjoint(inner.encode())
        assert substitution.restore(inner) == "".join(lines)


def test_too_many_missing_characters_are_refused() -> None:
    text = "".join(map(chr, range(0x40000, 0x40000 + MAX_SUBSTITUTES + 1)))
    with pytest.raises(TextNotEncodableError, match=str(MAX_SUBSTITUTES + 1)):
        Substitution.for_texts([[text]], frozenset({0xF1, 0xF2}))


def test_a_normalizer_does_not_alter_user_text(model_dir: Path) -> None:
    definition = json.loads((model_dir / "tokenizer.json").read_text(encoding="utf-8"))
    definition["normalizer"] = {"type": "NFC"}
    definition["pre_tokenizer"]["add_prefix_space"] = True
    tokenizer = PromptTokenizer(definition)
    assert tokenizer.decode_bytes(tokenizer.encode("e\u0301")) == "e\u0301".encode()


def test_other_tokenizers_and_damage_are_refused(model_dir: Path, tmp_path: Path) -> None:
    definition = json.loads((model_dir / "tokenizer.json").read_text(encoding="utf-8"))
    with pytest.raises(TokenizerError, match="byte-level"):
        PromptTokenizer({**definition, "decoder": {"type": "Metaspace"}})
    with pytest.raises(TokenizerError, match="cannot be read"):
        PromptTokenizer.from_dir(tmp_path)
    (tmp_path / "tokenizer.json").write_text('{"model"', encoding="utf-8")
    with pytest.raises(TokenizerError, match="damaged"):
        PromptTokenizer.from_dir(tmp_path)
