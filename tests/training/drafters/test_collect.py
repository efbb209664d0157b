from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

from training.drafters.__main__ import main
from training.drafters.documents import part_of
from training.drafters.features import PARTS, FeaturesError, FeatureSet


def test_parts_share_no_package(features_dir: Path) -> None:
    for part in PARTS:
        names = {one.partition("@")[0] for one in FeatureSet(features_dir / part).document_ids}
        assert names
        assert {part_of(name) for name in names} == {part}


def test_what_is_stored_is_what_the_target_says(features_dir: Path, tiny_model_dir: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(tiny_model_dir).eval()
    features = FeatureSet(features_dir / "train")
    texts = list(features.texts())
    assert len(texts) == len(features) == len(features.document_ids)
    for index in range(len(features)):
        passage = features[index]
        assert torch.equal(passage.token_ids, texts[index][0])
        assert torch.equal(passage.choice_ids, texts[index][1])
        assert len(passage) <= 48
        with torch.inference_mode():
            output = model(input_ids=passage.token_ids[None], output_hidden_states=True)
        torch.testing.assert_close(
            passage.rows.float(), output.hidden_states[-1][0], rtol=1e-3, atol=1e-3
        )
        is_equal = passage.choice_ids == output.logits[0].argmax(-1)
        assert is_equal.float().mean() > 0.95


def test_an_interrupted_run_ends_with_the_same_documents(
    features_dir: Path, collect_arguments: list[str], tmp_path: Path
) -> None:
    out = ["--out", str(tmp_path)]
    assert main([*collect_arguments, *out, "--tokens", "100", "--held-out-tokens", "0"]) == 0
    partial = FeatureSet(tmp_path / "train")
    assert 100 <= partial.num_tokens < 148
    assert main([*collect_arguments, *out]) == 0
    for part in PARTS:
        first, second = FeatureSet(features_dir / part), FeatureSet(tmp_path / part)
        assert first.document_ids == second.document_ids
        assert all(
            torch.equal(first[index].rows, second[index].rows) for index in range(len(first))
        )
    assert second.num_shards == 1


def test_features_of_other_settings_are_not_mixed(
    features_dir: Path, collect_arguments: list[str]
) -> None:
    with pytest.raises(FeaturesError, match="made with seed 0, and now it is 1"):
        main([*collect_arguments, "--out", str(features_dir), "--seed", "1"])


def test_a_package_gives_no_more_than_its_share(
    collect_arguments: list[str], tmp_path: Path
) -> None:
    assert main([*collect_arguments, "--out", str(tmp_path), "--tokens-per-package", "60"]) == 0
    features = FeatureSet(tmp_path / "train")
    assert len({one.partition("@")[0] for one in features.document_ids}) * 60 >= (
        features.num_tokens
    )


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "00000.safetensors").write_bytes(b"no shard")
    with pytest.raises(FeaturesError, match="00000"):
        FeatureSet(tmp_path)
