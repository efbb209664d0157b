"""A small byte-level tokenizer whose vocabulary lacks some bytes, as real ones do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from apply_service.prompts.tokenizer import PromptTokenizer

CHAT_TEMPLATE = (
    "{%- for message in messages %}"
    "{{- '<|im_start|>' + message['role'] + '\n' + message['content'] | trim"
    " + '<|im_end|>' + '\n' }}"
    "{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)
# U+0004, U+001D, U+0016 and the lead byte of U+40000 to U+7FFFF.
LACKING = {0x04, 0x1D, 0x16, 0xF1}


def _symbol(byte: int) -> str:
    """The symbol of one byte, asked from the library itself."""
    token = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    if byte < 0x80:
        return token.pre_tokenize_str(chr(byte))[0][0]
    assert byte == 0xF1
    return token.pre_tokenize_str("\U00040000")[0][0][0]


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tokenizer and chat template, without weights."""
    folder = tmp_path_factory.mktemp("prompt_model")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    corpus = [
        "def build(self):\n    return self.value\n",
        "<updated-code>\n</updated-code> }</updated-code> <code></code> <update></update>",
        "for (int i = 0; i < n; i++) {\n\t\tx += 1;\n}\n\n\n",
    ]
    lacking = {_symbol(byte) for byte in LACKING}
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        show_progress=False,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(set(pre_tokenizers.ByteLevel.alphabet()) - lacking),
    )
    tokenizer.train_from_iterator(corpus * 5, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    settings = {"eos_token": {"content": "<|im_end|>"}, "bos_token": "<|endoftext|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "config.json").write_text('{"eos_token_id": [0, 2]}', encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def tokenizer(model_dir: Path) -> PromptTokenizer:
    return PromptTokenizer.from_dir(model_dir)
