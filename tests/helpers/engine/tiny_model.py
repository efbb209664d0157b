"""Writes a tiny random Llama with a byte-level tokenizer: real files for the real code."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
END_TOKEN_ID = 2
VOCAB_SIZE = len(SPECIAL_TOKENS) + 256


def write_tiny_model(
    path: Path,
    *,
    seed: int,
    max_position: int = 4096,
    tokenizer: Tokenizer | None = None,
    num_heads: int = 6,
    num_kv_heads: int = 2,
) -> None:
    """Fill `path` with config.json, model.safetensors, tokenizer.json and tokenizer_config.json.

    `tokenizer` has the special tokens first; by default each byte is a token.
    """
    if tokenizer is None:
        tokenizer = _make_tokenizer()
    config = LlamaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=8 * num_heads,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=num_heads,
        num_key_value_heads=num_kv_heads,
        head_dim=8,
        max_position_embeddings=max_position,
        bos_token_id=1,
        eos_token_id=END_TOKEN_ID,
        pad_token_id=END_TOKEN_ID,
        tie_word_embeddings=True,
        initializer_range=0.35,
    )
    torch.manual_seed(seed)
    LlamaForCausalLM(config).save_pretrained(path)
    tokenizer.save(str(path / "tokenizer.json"))
    template = (
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    tokenizer_config = {
        "eos_token": "<|im_end|>",
        "bos_token": "<|im_start|>",
        "chat_template": template,
    }
    (path / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))


def write_small_vocabulary_model(path: Path, *, vocab_size: int) -> None:
    """A random one-layer Llama; the distributions of few tokens are neither flat nor peaked."""
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=64,
        bos_token_id=0,
        eos_token_id=None,
        tie_word_embeddings=False,
        initializer_range=0.25,
    )
    torch.manual_seed(7)
    LlamaForCausalLM(config).save_pretrained(path)


def _make_tokenizer() -> Tokenizer:
    """Make a tokenizer with one token a byte behind the special tokens, and no merges."""
    vocab = {token: token_id for token_id, token in enumerate(SPECIAL_TOKENS)}
    for symbol in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab[symbol] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL_TOKENS])
    return tokenizer
