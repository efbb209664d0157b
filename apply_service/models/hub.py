"""Models by their public name, through the hub's own client and its cache."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
from tqdm import tqdm

from apply_service.models.manifest import ModelNotFoundError
from apply_service.models.source import Report, ShowShare

_FILES = ["*.json", "*.jinja", "*.safetensors"]
_INDEX_NAME = "model.safetensors.index.json"


def find_hub_model(
    name: str, *, revision: str | None, report: Report, show_share: ShowShare
) -> Path:
    """The folder of a model on this machine, fetched first if need be. Code is never run.

    Raises `ModelNotFoundError` if it does not exist, may not be read, or no network is there.
    """
    found = try_find_local(name, revision=revision)
    if found is not None:
        return found
    report(f"fetching {name}")
    try:
        model_dir = Path(
            snapshot_download(
                name,
                revision=revision,
                allow_patterns=_FILES,
                tqdm_class=_counter_for(show_share),
            )
        )
    except OSError as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelNotFoundError(
            f"the model {name!r} is not on this machine and cannot be fetched ({reason});"
            " check name, revision and network, or give the path of a model's folder"
        ) from error
    check_model_dir(model_dir)
    return model_dir


def try_find_local(name: str, *, revision: str | None) -> Path | None:
    """The folder of a model that was fetched whole before; None if it was not.

    Raises `ModelNotFoundError` if nothing can have this name.
    """
    try:
        model_dir = Path(
            snapshot_download(name, revision=revision, allow_patterns=_FILES, local_files_only=True)
        )
    except HFValidationError:
        raise ModelNotFoundError(
            f"{name!r} is neither a path that exists nor the name of a model;"
            " check its spelling, or use the default model `embedded`"
        ) from None
    except LocalEntryNotFoundError:
        return None
    try:
        check_model_dir(model_dir)
    except ModelNotFoundError:
        return None
    return model_dir


def check_model_dir(model_dir: Path) -> None:
    """Raise `ModelNotFoundError` unless a folder has settings, weights and a tokenizer."""
    missing = [
        name for name in ("config.json", "tokenizer.json") if not (model_dir / name).is_file()
    ]
    missing += [name for name in _weight_names(model_dir) if not (model_dir / name).is_file()]
    if missing:
        raise ModelNotFoundError(
            f"{model_dir} is not a complete model: {', '.join(missing)} missing;"
            " give a folder with config.json, tokenizer.json and safetensors weights"
        )


def _counter_for(show_share: ShowShare) -> type[Any]:
    """A bar that draws nothing and tells how many of all bytes are there.

    It counts also where the hub's own bars are switched off, for example by another library.
    """

    class Counter(tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, name: str | None = None, **options: Any) -> None:
            super().__init__(*args, **options | {"file": io.StringIO(), "disable": False})

        def display(self, *_args: object, **_options: object) -> None:
            if self.unit == "B" and self.total:
                show_share(min(1.0, self.n / self.total))

    return Counter


def _weight_names(model_dir: Path) -> list[str]:
    """The files of the weights: one, or those that an index lists."""
    index_path = model_dir / _INDEX_NAME
    if not index_path.exists():
        return ["model.safetensors"]
    try:
        index = json.loads(index_path.read_text(encoding="utf-8"))
        return sorted(set(index["weight_map"].values()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelNotFoundError(
            f"{index_path} is damaged ({error}); fetch the model again"
        ) from error
