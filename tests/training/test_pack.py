from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from training.example import PRIOR_STEP, Example, TokenChoice
from training.pack import MAX_VALUE, PackError, read_pack, write_pack

TOKEN_IDS = st.lists(st.integers(0, MAX_VALUE), max_size=6).map(tuple)
PRIORS = st.lists(st.integers(0, MAX_VALUE).map(lambda n: -n * PRIOR_STEP), max_size=4).map(tuple)
CHOICES = st.lists(
    st.builds(TokenChoice, st.integers(0, MAX_VALUE), TOKEN_IDS, PRIORS), max_size=3
).map(tuple)
EXAMPLES = st.lists(
    st.builds(Example, st.text(max_size=4), st.text(max_size=4), TOKEN_IDS, TOKEN_IDS, CHOICES),
    max_size=8,
)


@given(examples=EXAMPLES)
def test_a_pack_gives_back_what_was_written(
    examples: list[Example], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("pack") / "train.pack"
    assert write_pack(path, examples) == len(examples)
    assert read_pack(path) == examples


def test_repeated_code_takes_little_room(tmp_path: Path) -> None:
    tokens = tuple(range(1000, 1400))
    examples = [Example(f"case {n}", "context", tokens, tokens[n:]) for n in range(200)]
    write_pack(tmp_path / "train.pack", examples)
    num_tokens = sum(map(len, examples))
    assert (tmp_path / "train.pack").stat().st_size < num_tokens / 20


@pytest.mark.parametrize(
    "example",
    [
        Example("large token", "", (MAX_VALUE + 1,), (1,)),
        Example("long answer", "", (1,), (1,) * (MAX_VALUE + 1)),
        Example("far choice", "", (1,), (1,), (TokenChoice(MAX_VALUE + 1, (1, 2)),)),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    tmp_path: Path, example: Example
) -> None:
    with pytest.raises(PackError, match=f"{example.case_id}.*limit {MAX_VALUE}"):
        write_pack(tmp_path / "train.pack", [example])
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_no_packs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.pack"
    with pytest.raises(PackError, match=r"train\.pack is no pack"):
        read_pack(path)
    path.write_bytes(b"plain text")
    with pytest.raises(PackError, match="is no pack"):
        read_pack(path)
    compress = zstandard.ZstdCompressor().compress
    path.write_bytes(compress(b"[]\n"))
    with pytest.raises(PackError, match="is no pack"):
        read_pack(path)
    path.write_bytes(compress(json.dumps({"version": 99}).encode() + b"\n"))
    with pytest.raises(PackError, match="version 99"):
        read_pack(path)


def test_a_pack_that_lost_examples_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "train.pack"
    write_pack(path, [Example("a", "", (1, 2), (3,))])
    packed = zstandard.ZstdDecompressor().decompress(path.read_bytes())
    header, _, _ = packed.partition(b"\n")
    path.write_bytes(zstandard.ZstdCompressor().compress(header + b"\n"))
    with pytest.raises(PackError, match="0 of 1 examples"):
        read_pack(path)
