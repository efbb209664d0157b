"""Models on this machine: the embedded one is prepared once, others are found by path or name."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import platformdirs
from filelock import FileLock

from apply_service.models.adapter import SHIPPED_ADAPTER_DIR, Adapter, find_adapter
from apply_service.models.hub import check_model_dir, find_hub_model, try_find_local
from apply_service.models.manifest import (
    FORMAT_VERSION,
    MANIFEST_NAME,
    FileRecord,
    Manifest,
    ModelDamagedError,
    ModelNotFoundError,
    ModelNotPreparedError,
    ModelSourceError,
    check_files,
    file_sha256,
    read_manifest,
    record_files,
    write_manifest,
)
from apply_service.models.source import (
    EMBEDDED_SOURCE,
    Report,
    ShowShare,
    WheelSource,
    fetch_gguf,
)
from apply_service.prompts.calibration import CALIBRATION_NAME

EMBEDDED_NAME = "embedded"
# The same model without the adapter, which is what an adapter is trained on.
BASE_NAME = "embedded-base"
_DTYPE = "float32"


@dataclass(frozen=True, slots=True)
class ModelLocation:
    """A model that can be served: its folder and the prompt profile that it was trained for.

    `revision` is a hash of the content, or the commit of a model that was found by name.
    `manifest` is None for folders that this store did not write.
    """

    path: Path
    profile: str
    name: str
    revision: str
    manifest: Manifest | None = None


def cache_dir() -> Path:
    """The folder of everything prepared; `APPLY_SERVICE_CACHE` overrides the user's own."""
    chosen = os.environ.get("APPLY_SERVICE_CACHE")
    return Path(chosen).absolute() if chosen else platformdirs.user_cache_path("apply-service")


def say_nothing(_message: str) -> None:
    """A report of progress that nobody reads."""


def show_nothing(_share: float) -> None:
    """A share of a stage that nobody sees."""


class ModelStore:
    """Prepared models in one folder, each in a subfolder that appears whole or not at all."""

    def __init__(
        self,
        root: Path,
        *,
        source: WheelSource = EMBEDDED_SOURCE,
        adapter_dir: Path = SHIPPED_ADAPTER_DIR,
        report: Report = say_nothing,
        show_share: ShowShare = show_nothing,
    ) -> None:
        """`report` is told of each stage, `show_share` how much of it has been fetched."""
        self._root = root
        self._source = source
        self._adapter_dir = adapter_dir
        self._report = report
        self._show_share = show_share

    def prepare_embedded(self, from_file: Path | None = None) -> ModelLocation:
        """Make the embedded model, or mend it; nothing is fetched if its base is whole.

        Raises `ModelSourceError`, `AdapterMismatchError`, `ModelLoadError`.
        """
        base_dir = self._embedded_dir(None)
        with self._lock():
            if not self._is_whole(base_dir):
                with tempfile.TemporaryDirectory() as folder:
                    gguf_path = fetch_gguf(
                        self._source,
                        Path(folder),
                        from_file=from_file,
                        report=self._report,
                        show_share=self._show_share,
                    )
                    self._report(f"converting {gguf_path.name} to safetensors")
                    self._convert(gguf_path, base_dir, source=self._embedded_manifest(None))
            adapter = self._adapter()
            if adapter is not None and not self._is_whole(self._embedded_dir(adapter)):
                self._merge(adapter)
            self._drop_superseded(adapter)
        return self._location(self._embedded_dir(adapter))

    def resolve(self, name_or_path: str, revision: str | None = None) -> ModelLocation:
        """Find a model: "embedded", "embedded-base", a folder, a GGUF file, or a name on the hub.

        A name is looked for on this machine first, then fetched. A GGUF file is converted once.
        Raises `ModelStoreError`, `ModelLoadError`.
        """
        if name_or_path == EMBEDDED_NAME:
            return self._resolve_embedded(self._adapter())
        if name_or_path == BASE_NAME:
            return self._resolve_embedded(None)
        path = Path(name_or_path).expanduser()
        if path.is_dir():
            return self._resolve_dir(path)
        if path.is_file():
            return self._resolve_gguf(path)
        model_dir = find_hub_model(
            name_or_path, revision=revision, report=self._report, show_share=self._show_share
        )
        return ModelLocation(model_dir, _profile_of(name_or_path), name_or_path, model_dir.name)

    def try_resolve_at_hand(
        self, name_or_path: str, revision: str | None = None
    ) -> ModelLocation | None:
        """Like `resolve`, but None where the model must be fetched, converted or merged first."""
        path = Path(name_or_path).expanduser()
        if name_or_path == EMBEDDED_NAME:
            is_to_merge = self._embedded_dir(None).exists()
            is_here = self._embedded_dir(self._adapter()).exists() or not is_to_merge
        elif name_or_path == BASE_NAME or path.is_dir():
            is_here = True
        else:
            is_here = (
                not path.is_file() and try_find_local(name_or_path, revision=revision) is not None
            )
        return self.resolve(name_or_path, revision) if is_here else None

    def resolve_offline(self, name_or_path: str, revision: str | None = None) -> ModelLocation:
        """Like `resolve`, but a model that would be fetched is a `ModelNotPreparedError`."""
        is_ours = name_or_path in (EMBEDDED_NAME, BASE_NAME)
        is_here = is_ours or Path(name_or_path).expanduser().exists()
        if not is_here and try_find_local(name_or_path, revision=revision) is None:
            raise ModelNotPreparedError(
                f"the model {name_or_path!r} is not on this machine; `apply-service model prepare"
                f" {name_or_path}` fetches it, and so does the first start"
            )
        return self.resolve(name_or_path, revision)

    def prepared(self) -> list[ModelLocation]:
        """Every prepared model, by folder name; damaged manifests are left out."""
        locations = []
        for manifest_path in sorted(self._root.glob(f"*/{MANIFEST_NAME}")):
            try:
                locations.append(self._location(manifest_path.parent))
            except ModelDamagedError as error:
                self._report(str(error))
        return locations

    def remove(self, name: str) -> list[Path]:
        """Delete all prepared folders of a model, damaged ones too; the folders it deleted.

        Raises `ModelNotFoundError` if nothing of that name is prepared.
        """
        with self._lock():
            folders = [
                folder
                for folder in sorted(self._root.iterdir())
                if folder.is_dir() and name in _names_of(folder)
            ]
            if not folders:
                raise ModelNotFoundError(
                    f"no prepared model is called {name!r}; `apply-service model list` names them"
                )
            for folder in folders:
                shutil.rmtree(folder)
        return folders

    def _resolve_embedded(self, adapter: Adapter | None) -> ModelLocation:
        model_dir = self._embedded_dir(adapter)
        if not model_dir.exists():
            base_dir = self._embedded_dir(None)
            if adapter is None or not base_dir.exists():
                raise ModelNotPreparedError(
                    f"the embedded model is not prepared in {self._root};"
                    " run `apply-service model prepare`"
                )
            with self._lock():
                if not model_dir.exists():
                    check_files(base_dir, read_manifest(base_dir))
                    self._merge(adapter)
        location = self._location(model_dir)
        assert location.manifest is not None
        check_files(model_dir, location.manifest)
        return location

    def _resolve_dir(self, path: Path) -> ModelLocation:
        check_model_dir(path)
        if (path / MANIFEST_NAME).exists():
            location = self._location(path)
            assert location.manifest is not None
            check_files(path, location.manifest)
            return location
        revision = file_sha256(path / "config.json")
        return ModelLocation(path, _profile_of(path.name), path.name, revision)

    def _resolve_gguf(self, path: Path) -> ModelLocation:
        with path.open("rb") as file:
            is_gguf = file.read(4) == b"GGUF"
        if not is_gguf:
            raise ModelNotFoundError(
                f"{path} is not a GGUF file; give a GGUF file, a model's folder or its name"
            )
        digest = file_sha256(path)
        model_dir = self._root / f"gguf-{path.stem}-{digest[:12]}"
        with self._lock():
            if not self._is_whole(model_dir):
                self._report(f"converting {path.name} to safetensors")
                manifest = Manifest(
                    format_version=FORMAT_VERSION,
                    name=path.stem,
                    profile=_profile_of(path.name),
                    licence="unknown",
                    source=path.name,
                    source_sha256=digest,
                    dtype=_DTYPE,
                    adapter_sha256=None,
                    files={},
                )
                self._convert(path, model_dir, source=manifest)
        return self._location(model_dir)

    def _embedded_dir(self, adapter: Adapter | None) -> Path:
        part = "base" if adapter is None else adapter.sha256[:12]
        return self._root / f"{EMBEDDED_NAME}-{self._source.gguf_sha256[:12]}-{part}"

    def _embedded_manifest(self, adapter: Adapter | None) -> Manifest:
        return Manifest(
            format_version=FORMAT_VERSION,
            name=EMBEDDED_NAME,
            profile="embedded",
            licence=self._source.licence,
            source=f"{self._source.requirement}: {self._source.gguf_name}",
            source_sha256=self._source.gguf_sha256,
            dtype=_DTYPE,
            adapter_sha256=None if adapter is None else adapter.sha256,
            files={},
        )

    def _adapter(self) -> Adapter | None:
        return find_adapter(self._adapter_dir, base_sha256=self._source.gguf_sha256)

    def _convert(self, gguf_path: Path, model_dir: Path, *, source: Manifest) -> None:
        # transformers takes seconds to import, and a prepared model is found without it.
        from batching.model.conversion import convert_gguf

        self._write(model_dir, source, lambda folder: convert_gguf(gguf_path, folder))

    def _merge(self, adapter: Adapter) -> None:
        self._report("merging the adapter into the base model")
        base_dir = self._embedded_dir(None)
        self._write(
            self._embedded_dir(adapter),
            self._embedded_manifest(adapter),
            lambda folder: _merge_calibrated(base_dir, adapter.path, folder),
        )

    def _drop_superseded(self, adapter: Adapter | None) -> None:
        """Delete what was merged with adapters that are no longer shipped."""
        kept = {self._embedded_dir(None), self._embedded_dir(adapter)}
        pattern = f"{EMBEDDED_NAME}-{self._source.gguf_sha256[:12]}-*"
        for folder in set(self._root.glob(pattern)) - kept:
            shutil.rmtree(folder)

    def _write(self, model_dir: Path, manifest: Manifest, fill: Callable[[Path], None]) -> None:
        """Fill a hidden sibling folder and let it take the place of `model_dir`."""
        folder = Path(tempfile.mkdtemp(prefix=f".{model_dir.name}-", dir=self._root))
        try:
            fill(folder)
            for path in folder.iterdir():
                path.chmod(0o644)
            folder.chmod(0o755)
            records = record_files(folder)
            check_model_dir(folder)
            manifest = _with_files(manifest, records)
            write_manifest(folder, manifest)
            check_files(folder, manifest)
            if model_dir.exists():
                shutil.rmtree(model_dir)
            folder.rename(model_dir)
        except OSError as error:
            raise ModelSourceError(
                f"{model_dir} cannot be written ({error.strerror}); free some space or set"
                " APPLY_SERVICE_CACHE to another folder"
            ) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _is_whole(self, model_dir: Path) -> bool:
        """True if a prepared folder exists and its files are as its manifest says."""
        if not model_dir.exists():
            return False
        try:
            check_files(model_dir, read_manifest(model_dir))
        except ModelDamagedError as error:
            self._report(str(error))
            return False
        return True

    def _location(self, model_dir: Path) -> ModelLocation:
        manifest = read_manifest(model_dir)
        return ModelLocation(
            model_dir, manifest.profile, manifest.name, manifest.revision, manifest
        )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let one process at a time write to the store; remains of killed ones are swept away."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with FileLock(self._root / ".lock"):
                for remains in self._root.glob(".*-*"):
                    shutil.rmtree(remains, ignore_errors=True)
                yield
        except PermissionError as error:
            raise ModelSourceError(
                f"{self._root} cannot be written ({error.strerror});"
                " set APPLY_SERVICE_CACHE to a folder of yours"
            ) from error


def open_store(report: Report = say_nothing, show_share: ShowShare = show_nothing) -> ModelStore:
    """The store of this user."""
    return ModelStore(cache_dir() / "models", report=report, show_share=show_share)


def prepare_embedded(
    from_file: Path | None = None, *, report: Report = say_nothing
) -> ModelLocation:
    """Make the embedded model in the user's cache; see `ModelStore.prepare_embedded`."""
    return open_store(report).prepare_embedded(from_file)


def resolve_model(
    name_or_path: str, revision: str | None = None, *, report: Report = say_nothing
) -> ModelLocation:
    """Find a model by name or path; see `ModelStore.resolve`."""
    return open_store(report).resolve(name_or_path, revision)


def try_resolve_at_hand(name_or_path: str, revision: str | None = None) -> ModelLocation | None:
    """Find a model that is ready to be loaded; see `ModelStore.try_resolve_at_hand`."""
    return open_store().try_resolve_at_hand(name_or_path, revision)


def _merge_calibrated(base_dir: Path, adapter_dir: Path, folder: Path) -> None:
    """Merge an adapter, and take along what is known of its probabilities."""
    from batching.model.conversion import merge_adapter

    merge_adapter(base_dir, adapter_dir, folder)
    calibration = adapter_dir / CALIBRATION_NAME
    if calibration.is_file():
        shutil.copyfile(calibration, folder / CALIBRATION_NAME)


def _with_files(manifest: Manifest, files: dict[str, FileRecord]) -> Manifest:
    return msgspec.structs.replace(manifest, files=files)


def _names_of(folder: Path) -> tuple[str, ...]:
    """The names by which a prepared folder may be removed, told without its manifest."""
    if folder.name.startswith(f"{EMBEDDED_NAME}-"):
        return (EMBEDDED_NAME, folder.name)
    return (folder.name.rpartition("-")[0].removeprefix("gguf-"), folder.name)


def _profile_of(name: str) -> str:
    """The prompt profile that a model's name tells of: FastApply models say so."""
    plain = name.lower().replace("-", "").replace("_", "")
    return "fastapply" if "fastapply" in plain else "chat"
