from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from drafter_oracle import (
    MAX_DEPTH,
    MIN_EQUAL,
    Text,
    drafted_chains,
    make_target,
    random_texts,
    share_equal,
)

from batching.config import DrafterConfig
from batching.drafters.drafter import LAST_HIDDEN
from batching.drafters.registry import make_drafters
from training.drafters.__main__ import main
from training.drafters.drafter_file import (
    DEFAULT_SIZES,
    KINDS,
    WEIGHTS_NAME,
    read_drafter,
    write_drafter,
)
from training.drafters.features import FeaturesError, FeatureSet, Passage, read_model_config
from training.drafters.frozen_target import FrozenTarget
from training.drafters.heads import DraftHeads, HeadSizes
from training.drafters.token_counts import frequent_token_ids
from training.drafters.train import HeadsTrainer
from training.finetune import Schedule

SIZES = {
    "medusa": HeadSizes(num_heads=2, num_layers=2),
    "hydra": HeadSizes(num_heads=3, num_layers=2),
    "eagle": HeadSizes(num_heads=1),
}
SCHEDULE = Schedule(minutes=1, max_steps=40)


def new_trainer(
    kind: str, features_dir: Path, *, dtype: torch.dtype = torch.float32, seed: int = 0
) -> tuple[DraftHeads, HeadsTrainer]:
    features = FeatureSet(features_dir / "train")
    token_ids = frequent_token_ids(features, count=100, vocab_size=259)
    target = FrozenTarget.read(features_dir, token_ids, dtype=dtype)
    torch.manual_seed(seed)
    heads = KINDS[kind](target, SIZES[kind])
    return heads, HeadsTrainer(
        heads, features, seed=7, settings={"kind": kind}, documents_per_step=4
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_falls(kind: str, dtype: torch.dtype, features_dir: Path) -> None:
    _, trainer = new_trainer(kind, features_dir, dtype=dtype)
    held_out = FeatureSet(features_dir / "held_out")
    sample = [held_out[index] for index in range(4)]
    before = trainer.evaluate(sample)["dev_loss"]
    losses = [trainer.train_step(SCHEDULE)["loss"] for _ in range(20)]
    assert sum(losses[-5:]) < sum(losses[:5])
    assert trainer.evaluate(sample)["dev_loss"] < before


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_ends_with_the_same_weights(
    kind: str, features_dir: Path, tmp_path: Path
) -> None:
    straight_heads, straight = new_trainer(kind, features_dir)
    for _ in range(6):
        straight.train_step(SCHEDULE)
    _, interrupted = new_trainer(kind, features_dir)
    for _ in range(3):
        interrupted.train_step(SCHEDULE)
    interrupted.save(tmp_path)
    resumed_heads, resumed = new_trainer(kind, features_dir, seed=99)
    assert resumed.try_resume(tmp_path)
    assert resumed.step == 3
    for _ in range(3):
        resumed.train_step(SCHEDULE)
    expected, found = straight_heads.state_dict(), resumed_heads.state_dict()
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_each_epoch_reads_all_documents_in_its_own_order(features_dir: Path) -> None:
    _, trainer = new_trainer("medusa", features_dir)
    num_documents = len(FeatureSet(features_dir / "train"))
    drawn = [index for step in range(num_documents) for index in trainer.batch(step)]
    epochs = [drawn[start : start + num_documents] for start in range(0, len(drawn), num_documents)]
    assert all(sorted(epoch) == list(range(num_documents)) for epoch in epochs)
    assert epochs[0] != epochs[1]


def test_a_run_does_not_go_on_from_another(features_dir: Path, tmp_path: Path) -> None:
    _, trainer = new_trainer("medusa", features_dir)
    trainer.save(tmp_path)
    _, other = new_trainer("hydra", features_dir)
    with pytest.raises(FeaturesError, match="trained with kind 'medusa', and now it is 'hydra'"):
        other.try_resume(tmp_path)


def module_chain(heads: DraftHeads, text: Text, num_levels: int) -> list[int]:
    """The greedy chain behind a text, level by level from all its tokens so far."""
    token_ids = list(text.token_ids)
    for level in range(num_levels):
        rows = torch.zeros(len(token_ids), heads.target.hidden_size)
        rows[: text.num_rows] = text.rows[LAST_HIDDEN]
        passage = Passage(torch.tensor(token_ids), torch.tensor(token_ids), rows)
        guesses = heads.guesses(passage, num_levels=level + 1, count=1)
        token_ids.append(int(guesses[level][text.num_rows - 1, 0]))
    return token_ids[len(text.token_ids) :]


@pytest.mark.parametrize("own_head", [[], ["--own-head"]])
@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_drafts_what_the_command_has_trained(
    kind: str,
    own_head: list[str],
    features_dir: Path,
    tiny_model_dir: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = ["--features", str(features_dir), "--threads", "1"]
    training = ["--kind", kind, "--out", str(tmp_path), "--dtype", "float32", *own_head]
    training += ["--vocabulary", "100", "--max-steps", "6", "--learning-rate", "0.01"]
    assert main(["train", *settings, *training]) == 0
    heads = read_drafter(kind, tmp_path / "ckpt", features=features_dir)
    target = make_target(tiny_model_dir)
    (drafter,) = make_drafters([DrafterConfig(kind=kind, path=tmp_path / "ckpt")], target)
    texts = random_texts(target, drafter.taps)[:20]
    num_levels = MAX_DEPTH if kind == "eagle" else heads.sizes.num_heads
    with torch.inference_mode():
        expected = [module_chain(heads, text, num_levels) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL

    capsys.readouterr()
    assert main(["evaluate", *settings, "--drafter", f"{kind}:{tmp_path / 'ckpt'}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    held_out = FeatureSet(features_dir / "held_out")
    num_rows = held_out.num_tokens - len(held_out)
    first = [line for line in lines if "| 1 |" in line]
    assert [line.split(" | ")[2] for line in first] == [str(num_rows)] * 2
    assert first[1].startswith("| trigrams |")


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [*DEFAULT_SIZES.items(), ("medusa", HeadSizes(num_heads=4, has_own_head=True))],
)
def test_drafters_of_the_embedded_model_stay_below_12_mib(
    kind: str, sizes: HeadSizes, features_dir: Path, tmp_path: Path
) -> None:
    shape = {"hidden_size": 576, "intermediate_size": 1536, "num_attention_heads": 9}
    shape |= {"num_key_value_heads": 3, "head_dim": 64, "vocab_size": 49152}
    config: dict[str, Any] = {**read_model_config(features_dir), **shape}
    wide = torch.zeros(1, 1).expand(49152, 576)
    target = FrozenTarget(wide, wide[:8192], torch.arange(8192), config)
    write_drafter(KINDS[kind](target, sizes), tmp_path)
    assert (tmp_path / WEIGHTS_NAME).stat().st_size <= 12 << 20
