"""Files that somebody names: no regular file, or too large a one, is refused before it is read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from apply_service.regular_file import SizeError, open_regular, read_regular

pytestmark = pytest.mark.timeout(20)


def test_regular_files_are_read_through_links_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "link").symlink_to("a")
    assert read_regular(tmp_path / "link", max_bytes=4) == b"text"
    with open_regular(tmp_path / "a") as stream:
        assert stream.read() == b"text"


def test_pipes_sockets_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        for path in (tmp_path / "pipe", tmp_path / "link", tmp_path / "s", Path("/dev/zero")):
            with pytest.raises(OSError, match="no regular file"):
                read_regular(path, max_bytes=10)
    with pytest.raises(IsADirectoryError):
        open_regular(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "missing")


def test_a_larger_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 42)
    with pytest.raises(SizeError, match="more than 1000 bytes"):
        read_regular(path, max_bytes=1000)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="it has no /proc")
def test_a_file_that_hides_its_size_is_read_up_to_the_limit() -> None:
    assert os.stat("/proc/self/status").st_size == 0
    with pytest.raises(SizeError):
        read_regular("/proc/self/status", max_bytes=10)
    assert read_regular("/proc/self/status", max_bytes=1 << 20).startswith(b"Name:")
