"""Lets pip fetch a source release without running any of its code.

pip asks the build backend of a source release for its metadata, also when it only downloads. The
backends written here answer from the release's own PKG-INFO file, so nothing is built.
"""

from __future__ import annotations

from pathlib import Path

_BACKENDS = (
    "maturin",
    "setuptools.build_meta",
    "hatchling.build",
    "flit_core.buildapi",
    "poetry.core.masonry.api",
    "pdm.backend",
    "mesonpy",
    "scikit_build_core.build",
    "scikit_build_core.setuptools.build_meta",
    "sipbuild.api",
)

_SOURCE = """\
import pathlib
import re


class _Backend:
    @staticmethod
    def get_requires_for_build_wheel(config_settings=None):
        return []

    @staticmethod
    def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
        text = pathlib.Path("PKG-INFO").read_text(encoding="utf-8")
        name = re.search("^Name: (.+)$", text, re.M)[1].strip()
        version = re.search("^Version: (.+)$", text, re.M)[1].strip()
        stem = re.sub("[-_.]+", "_", name)
        folder = pathlib.Path(metadata_directory) / f"{stem}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(text, encoding="utf-8")
        (folder / "WHEEL").write_text("Wheel-Version: 1.0\\n", encoding="utf-8")
        return folder.name


get_requires_for_build_wheel = _Backend.get_requires_for_build_wheel
prepare_metadata_for_build_wheel = _Backend.prepare_metadata_for_build_wheel
# A release may wrap its backend, and asks which functions it has.
__all__ = ["get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]
__legacy__ = _Backend
"""


def write_backends(folder: Path) -> None:
    """Write one metadata-only module for every known build backend into `folder`."""
    for name in _BACKENDS:
        *packages, module = name.split(".")
        parent = folder
        for package in packages:
            parent = parent / package
            parent.mkdir(exist_ok=True)
            (parent / "__init__.py").touch()
        (parent / f"{module}.py").write_text(_SOURCE, encoding="utf-8")
