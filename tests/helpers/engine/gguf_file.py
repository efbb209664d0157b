"""A GGUF file of a tiny random Llama with a byte-level tokenizer."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from tokenizers import pre_tokenizers

HIDDEN_SIZE = 16
NUM_LAYERS = 2


def write_gguf(path: Path, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Write the file; return its weights by name."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *alphabet, "ab"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(HIDDEN_SIZE)
    writer.add_block_count(NUM_LAYERS)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(8)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 3 + [1] * (len(tokens) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    weights = _weights(len(tokens), seed)
    for name, weight in weights.items():
        writer.add_tensor(name, weight)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights


def _weights(num_tokens: int, seed: int) -> dict[str, np.ndarray]:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (num_tokens, HIDDEN_SIZE),
        "output_norm.weight": (HIDDEN_SIZE,),
    }
    for layer in range(NUM_LAYERS):
        block = {
            "attn_norm": (HIDDEN_SIZE,),
            "ffn_norm": (HIDDEN_SIZE,),
            "attn_q": (HIDDEN_SIZE, HIDDEN_SIZE),
            "attn_k": (8, HIDDEN_SIZE),
            "attn_v": (8, HIDDEN_SIZE),
            "attn_output": (HIDDEN_SIZE, HIDDEN_SIZE),
            "ffn_gate": (32, HIDDEN_SIZE),
            "ffn_up": (32, HIDDEN_SIZE),
            "ffn_down": (HIDDEN_SIZE, 32),
        }
        shapes |= {f"blk.{layer}.{name}.weight": shape for name, shape in block.items()}
    random = np.random.default_rng(seed)
    return {name: random.standard_normal(s).astype(np.float32) for name, s in shapes.items()}
