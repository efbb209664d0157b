"""A file is replaced whole or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from apply_service.cli.careful_files import anchored_folder
from apply_service.cli.file_writer import FileWriteError, write_result


def make(path: Path, content: bytes = b"old", mode: int = 0o640) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_mode_bits_stay(tmp_path: Path) -> None:
    path = make(tmp_path / "a.py", mode=0o751)
    write_result(path, b"new", expected=b"old")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_the_file_of_a_user_is_still_theirs(tmp_path: Path) -> None:
    path = make(tmp_path / "a.py")
    os.chown(path, 1234, 1234)
    path.chmod(0o4755)
    assert write_result(path, b"new", expected=b"old") == ()
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 1234, 0o4755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make one")
def test_a_device_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "null"
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    with pytest.raises(FileWriteError, match="no regular file"):
        write_result(path, b"new", expected=b"")
    assert stat.S_ISCHR(path.stat().st_mode)


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    path = make(tmp_path / "real" / "a.py")
    link = tmp_path / "link.py"
    link.symlink_to(path)
    write_result(link, b"new", expected=b"old")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a.py", mode=0o444)
    with pytest.raises(FileWriteError, match="is read-only"):
        write_result(path, b"new", expected=b"old")
    assert path.read_bytes() == b"old"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a.py")
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(FileWriteError, match=r"cannot write .*; see that its folder"):
            write_result(path, b"new", expected=b"old")
    finally:
        tmp_path.chmod(0o755)
    assert path.read_bytes() == b"old"


def test_a_file_that_changed_meanwhile_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a.py", b"older")
    with pytest.raises(FileWriteError, match="has changed"):
        write_result(path, b"new", expected=b"old")
    assert path.read_bytes() == b"older"


@pytest.mark.parametrize("failing", ["exchange", "fsync", "fchmod"])
def test_nothing_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = make(tmp_path / "a.py")

    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    if failing == "exchange":
        monkeypatch.setattr(anchored_folder, "try_exchange", fail)
    else:
        monkeypatch.setattr(os, failing, fail)
    with pytest.raises(FileWriteError, match="No space left"):
        write_result(path, b"new", expected=b"old")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileWriteError, match="No such file"):
        write_result(tmp_path / "none" / "a.py", b"new", expected=b"old")
    with pytest.raises(FileWriteError, match="cannot write"):
        write_result(tmp_path, b"new", expected=b"old")
