"""Training examples as one small file: token ids as uint16 under zstd, to be carried anywhere.

PackError: a file that is no pack, or examples that do not fit into one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from training.example import PRIOR_STEP, Example, TokenChoice

VERSION = 2
MAX_VALUE = 2**16 - 1
_LEVEL = 12


class PackError(Exception):
    """A pack cannot be written or read."""


def write_pack(path: Path, examples: Iterable[Example]) -> int:
    """Write the examples in order, then put the file in place; how many they were.

    Raises `PackError` if a token id or a length is above `MAX_VALUE`.
    """
    case_numbers: dict[str, int] = {}
    style_numbers: dict[str, int] = {}
    records: list[bytes] = []
    for example in examples:
        case_number = case_numbers.setdefault(example.case_id, len(case_numbers))
        style_number = style_numbers.setdefault(example.style, len(style_numbers))
        values = [*divmod(case_number, MAX_VALUE + 1), style_number, *_values(example)]
        if max(values) > MAX_VALUE:
            raise PackError(
                f"{example.case_id}: value {max(values)}, limit {MAX_VALUE}; leave this example out"
            )
        records.append(np.asarray(values, dtype="<u2").tobytes())
    header = {
        "version": VERSION,
        "num_examples": len(records),
        "case_ids": list(case_numbers),
        "styles": list(style_numbers),
    }
    packed = json.dumps(header).encode() + b"\n" + b"".join(records)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(zstandard.ZstdCompressor(level=_LEVEL).compress(packed))
    partial.replace(path)
    return len(records)


def _values(example: Example) -> list[int]:
    values = [len(example.prompt_token_ids), len(example.answer_token_ids), len(example.choices)]
    values += example.prompt_token_ids + example.answer_token_ids
    for choice in example.choices:
        values += [choice.offset, len(choice.allowed_token_ids), *choice.allowed_token_ids]
        priors = [min(round(-one / PRIOR_STEP), MAX_VALUE) for one in choice.log_prior]
        values += [len(priors), *priors]
    return values


def read_pack(path: Path) -> list[Example]:
    """The examples of a pack in order. Raises `PackError`."""
    try:
        packed = zstandard.ZstdDecompressor().decompress(path.read_bytes())
        first_line, _, body = packed.partition(b"\n")
        header = json.loads(first_line)
        version = header["version"]
    except (OSError, zstandard.ZstdError, ValueError, KeyError, TypeError) as error:
        raise PackError(f"{path} is no pack of examples ({error}); write it again") from error
    if version != VERSION:
        raise PackError(f"{path} has version {version}, not {VERSION}; write it again")
    examples = list(_read_examples(np.frombuffer(body, dtype="<u2").tolist(), header))
    if len(examples) != header["num_examples"]:
        raise PackError(f"{path} holds {len(examples)} of {header['num_examples']} examples")
    return examples


def _read_examples(values: list[int], header: dict[str, Any]) -> Iterator[Example]:
    place = 0

    def take(count: int) -> tuple[int, ...]:
        nonlocal place
        place += count
        return tuple(values[place - count : place])

    while place < len(values):
        high, low, style_number, num_prompt, num_answer, num_choices = take(6)
        prompt, answer = take(num_prompt), take(num_answer)
        choices = []
        for _ in range(num_choices):
            offset, num_allowed = take(2)
            allowed = take(num_allowed)
            (num_priors,) = take(1)
            log_prior = tuple(-PRIOR_STEP * one for one in take(num_priors))
            choices.append(TokenChoice(offset, allowed, log_prior))
        case_id = header["case_ids"][high * (MAX_VALUE + 1) + low]
        yield Example(case_id, header["styles"][style_number], prompt, answer, tuple(choices))
