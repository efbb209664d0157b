from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from training.sdist_backend import write_backends


@pytest.mark.parametrize("module", ["maturin.py", "setuptools/build_meta.py"])
def test_a_backend_answers_with_the_metadata_of_the_release(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends, release, target = (tmp_path / name for name in ("backends", "release", "target"))
    for folder in (backends, release, target):
        folder.mkdir()
    write_backends(backends)
    (release / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: some-package\nVersion: 1.2\n")
    spec = importlib.util.spec_from_file_location("backend", backends / module)
    assert spec is not None
    assert spec.loader is not None
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    monkeypatch.chdir(release)
    assert backend.get_requires_for_build_wheel() == []
    name = backend.prepare_metadata_for_build_wheel(str(target))
    assert name == "some_package-1.2.dist-info"
    assert "Name: some-package" in (target / name / "METADATA").read_text()
    assert backend.__legacy__.prepare_metadata_for_build_wheel
