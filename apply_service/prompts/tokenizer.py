"""A model's tokenizer, kept exact: template parts may hold control tokens, user text never does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from apply_service.prompts.errors import TextNotEncodableError, TokenizerError
from lookup.vocabulary_index import VocabularyIndex

TokenIds = tuple[int, ...]


class PromptTokenizer:
    """Turns text into token ids and back, and guarantees that user text returns unchanged.

    `missing_bytes` are the bytes that no token of the vocabulary can write. `special_token_ids`
    are the control tokens; encoded user text never contains one of them.
    """

    def __init__(self, definition: dict[str, Any]) -> None:
        """Take the content of a `tokenizer.json`. Raises `TokenizerError`."""
        if not _is_byte_level(definition):
            raise TokenizerError(
                "the tokenizer is not byte-level BPE, so text could change on its way through"
                " the model; choose a model with a byte-level tokenizer"
            )
        added = definition.get("added_tokens") or []
        vocabulary: dict[str, int] = definition["model"]["vocab"]
        self.special_token_ids = frozenset(t["id"] for t in added if t["special"])
        self.missing_bytes = frozenset(b for b, s in _BYTE_SYMBOLS.items() if s not in vocabulary)
        self._added_token_ids = frozenset(token["id"] for token in added)
        self._control_tokens: dict[str, int] = {t["content"]: t["id"] for t in added}
        self._token_bytes = _token_bytes(vocabulary, self._control_tokens)
        self._template = Tokenizer.from_str(json.dumps({**definition, "post_processor": None}))
        self._plain = Tokenizer.from_str(json.dumps(_plain_definition(definition)))

    @classmethod
    def from_dir(cls, model_dir: Path) -> PromptTokenizer:
        """Read `tokenizer.json` in the folder of a model. Raises `TokenizerError`."""
        path = model_dir / "tokenizer.json"
        try:
            definition = json.loads(path.read_text(encoding="utf-8"))
            return cls(definition)
        except OSError as error:
            raise TokenizerError(f"{path} cannot be read ({error.strerror})") from error
        except (ValueError, KeyError, TypeError) as error:
            raise TokenizerError(f"{path} is damaged ({error}); fetch the model again") from error

    @cached_property
    def vocabulary(self) -> VocabularyIndex:
        """The bytes of every token of user text, none for control tokens; built once."""
        return VocabularyIndex(
            [
                b"" if token_id in self._added_token_ids else spelling
                for token_id, spelling in enumerate(self._token_bytes)
            ]
        )

    @cached_property
    def white_space_token_ids(self) -> frozenset[int]:
        """The tokens of user text that consist of white space only."""
        return frozenset(
            token_id
            for token_id, spelling in enumerate(self._token_bytes)
            if spelling.isspace() and token_id not in self._added_token_ids
        )

    @property
    def vocab_size(self) -> int:
        """One more than the highest token id."""
        return len(self._token_bytes)

    def control_token_id(self, token: str) -> int:
        """The id of a control token such as `<|im_end|>`. Raises `TokenizerError`."""
        token_id = self._control_tokens.get(token)
        if token_id is None:
            raise TokenizerError(
                f"the tokenizer has no control token {token}; choose another prompt profile"
            )
        return token_id

    def has_control_token(self, token: str) -> bool:
        """True if `token` is one control token of this vocabulary."""
        return token in self._control_tokens

    def encode_template(self, text: str) -> TokenIds:
        """Encode a part of a template: control tokens in it are parsed."""
        return tuple(self._template.encode(text, add_special_tokens=False).ids)

    def encode(self, text: str) -> TokenIds:
        """Encode user text as one piece: `<|im_end|>` and its like are plain characters.

        Raises `TextNotEncodableError` if decoding would not give the same text back.
        """
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[TokenIds]:
        """Encode every text by itself, each as `encode` does."""
        expected = [_utf8(text) for text in texts]
        encoded = [
            tuple(encoding.ids)
            for encoding in self._plain.encode_batch_fast(list(texts), add_special_tokens=False)
        ]
        for token_ids, text_bytes in zip(encoded, expected, strict=True):
            if self.decode_bytes(token_ids) != text_bytes:
                raise TextNotEncodableError(
                    f"the model's vocabulary cannot write {text_bytes[:40]!r} exactly;"
                    " use another model for this file"
                )
            if not self._added_token_ids.isdisjoint(token_ids):
                raise TextNotEncodableError(
                    f"{text_bytes[:40]!r} would turn into a control token of the model;"
                    " use another model for this file"
                )
        return encoded

    def encode_bytes(self, text: bytes) -> list[int]:
        """Encode UTF-8 user text as one piece, without a check that the tokens give it back."""
        return list(self._plain.encode(text.decode(), add_special_tokens=False).ids)

    def encode_lines(self, lines: Sequence[str]) -> list[TokenIds]:
        """Encode every line by itself as newline + line; equal lines always have equal ids."""
        unique = dict.fromkeys(lines)
        encoded = self.encode_batch(["\n" + line for line in unique])
        by_line = dict(zip(unique, encoded, strict=True))
        return [by_line[line] for line in lines]

    def decode_bytes(self, token_ids: Sequence[int]) -> bytes:
        """The bytes of the tokens; control tokens as they are spelled."""
        return b"".join([self._token_bytes[token_id] for token_id in token_ids])


def _byte_symbols() -> dict[int, str]:
    """The printable character for each byte in byte-level vocabularies."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = (byte for byte in range(256) if byte not in printable)
    symbols = {byte: chr(byte) for byte in printable}
    symbols.update((byte, chr(0x100 + offset)) for offset, byte in enumerate(shifted))
    return symbols


_BYTE_SYMBOLS = _byte_symbols()
_SYMBOL_BYTES = {symbol: byte for byte, symbol in _BYTE_SYMBOLS.items()}


def _token_bytes(vocabulary: dict[str, int], added: dict[str, int]) -> list[bytes]:
    """The bytes that each token id writes; empty for ids that the vocabulary leaves out."""
    by_id = {token_id: content.encode() for content, token_id in added.items()}
    for token, token_id in vocabulary.items():
        if token_id not in by_id:
            by_id[token_id] = bytes([_SYMBOL_BYTES[symbol] for symbol in token])
    return [by_id.get(token_id, b"") for token_id in range(max(by_id) + 1)]


def _is_byte_level(definition: dict[str, Any]) -> bool:
    """True if the pre-tokenizer cuts text into bytes and the decoder joins them."""
    return definition["model"]["type"] == "BPE" and all(
        "ByteLevel" in {step["type"] for step in _steps(definition.get(part), part + "s")}
        for part in ("pre_tokenizer", "decoder")
    )


def _steps(part: dict[str, Any] | None, list_key: str) -> list[dict[str, Any]]:
    """The steps of a pre-tokenizer or decoder, which is a sequence or a single step."""
    if part is None:
        return []
    if part["type"] != "Sequence":
        return [part]
    return list(part.get(list_key) or part.get(list_key.replace("_", "")) or [])


def _plain_definition(definition: dict[str, Any]) -> dict[str, Any]:
    """The same vocabulary without control tokens and without anything that alters text."""
    pre_tokenizer = json.loads(json.dumps(definition["pre_tokenizer"]))
    for step in _steps(pre_tokenizer, "pre_tokenizers"):
        if "add_prefix_space" in step:
            step["add_prefix_space"] = False
    return {
        **definition,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": None,
        "truncation": None,
        "padding": None,
    }


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        code_point = ord(text[error.start])
        raise TextNotEncodableError(
            f"U+{code_point:04X} at character {error.start} is a lone surrogate, not text; send"
            " the bytes instead"
        ) from None
