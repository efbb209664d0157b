"""The writers of the client and of the service are the same, and lose nobody's update."""

from __future__ import annotations

import errno
import os
import resource
import stat
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.oracles.service.file_races import PAIRS, WRITERS, kill_while_writing, race, swap_links

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "apply_client": "apply_client.careful_files",
    "apply_service": "apply_service.cli.careful_files",
}
OLD, NEW, FOREIGN = b"old\n", b"new\n", b"foreign\n"

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away"
)


class Writer:
    """The modules of one package, and a folder with one file."""

    def __init__(self, package: str, root: Path) -> None:
        self.folders = self.module(package, "anchored_folder")
        self.files = self.module(package, "atomic_file")
        self.rights = self.module(package, "file_rights")
        self.root = root
        self.path = root / "a.py"
        self.path.write_bytes(OLD)
        self.folder = self.open()

    @staticmethod
    def module(package: str, name: str) -> ModuleType:
        return import_module(f"{PACKAGES[package]}.{name}")

    def open(self, **missing: bool) -> Any:
        """The folder, on a platform that lacks some abilities."""
        abilities = {"has_descriptors": True, "has_locks": True, "has_exchange": True, **missing}
        return self.folders.AnchoredFolder.open_root(
            self.root, abilities=self.folders.Abilities(**abilities)
        )

    def replace(self, folder: Any = None) -> tuple[str, ...]:
        losses: tuple[str, ...] = self.files.replace_file(
            folder or self.folder, "a.py", NEW, expected=OLD
        )
        return losses

    def write_foreign(self) -> None:
        """Write the file as a program does that takes no lock and replaces what there is."""
        path = self.root.parent / "foreign"
        path.write_bytes(FOREIGN)
        path.replace(self.path)


@pytest.fixture(params=PACKAGES)
def writer(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Writer]:
    root = tmp_path.resolve() / "root"
    root.mkdir()
    writer = Writer(request.param, root)
    yield writer
    writer.folder.close()


def test_both_packages_have_the_same_modules() -> None:
    client, service = (
        {
            path.name: path.read_text().replace(package, "PACKAGE")
            for path in Path(import_module(package).__path__[0]).glob("*.py")
            if path.name != "__init__.py"
        }
        for package in PACKAGES.values()
    )
    assert client == service, "change one and copy it over the other"


@pytest.mark.parametrize("name", ["hunk_review", "shown_diff"])
def test_both_command_lines_show_changes_alike(name: str) -> None:
    client, service = (
        Path(str(import_module(f"{package}.cli.{name}").__file__)).read_text()
        for package in PACKAGES
    )
    assert client == service.replace("apply_service", "apply_client"), "copy one over the other"


@pytest.mark.parametrize("pair", PAIRS, ids=" x ".join)
def test_no_update_is_lost(pair: tuple[str, str], tmp_path: Path) -> None:
    assert race(tmp_path, pair, num_writes=150).num_lost == 0


@pytest.mark.parametrize("writer_name", WRITERS)
def test_a_killed_writer_leaves_the_file_whole(writer_name: str, tmp_path: Path) -> None:
    kill_while_writing(tmp_path, writer_name, num_kills=3)


def test_links_put_in_the_way_lead_nowhere(tmp_path: Path) -> None:
    assert swap_links(tmp_path.resolve(), num_swaps=300) > 0


@needs_root
def test_owner_mode_and_set_id_bits_stay(writer: Writer) -> None:
    os.chown(writer.path, 1234, 4321)
    writer.path.chmod(0o6755)
    assert writer.replace() == ()
    status = writer.path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 4321, 0o6755)
    assert writer.path.read_bytes() == NEW


@needs_root
def test_rights_that_cannot_be_kept_get_narrower(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(writer.path, 1234, 4321)
    writer.path.chmod(0o6764)

    def refuse(*_arguments: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "fchown", refuse)
    losses = writer.replace()
    assert stat.S_IMODE(writer.path.stat().st_mode) == 0o744
    assert [loss.partition(" could")[0] for loss in losses[:2]] == [
        "its owner (user 1234)",
        "its group (4321)",
    ]
    assert "its mode was 6764" in losses[2]


@needs_root
def test_a_group_alone_is_kept(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(writer.path, 1234, 4321)
    writer.path.chmod(0o4764)
    kept = os.fchown

    def fchown(descriptor: int, uid: int, gid: int) -> None:
        if uid != -1:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        kept(descriptor, uid, gid)

    monkeypatch.setattr(os, "fchown", fchown)
    writer.replace()
    status = writer.path.stat()
    assert (status.st_gid, stat.S_IMODE(status.st_mode)) == (4321, 0o764)


def access_list(*, group: int, mask: int, user: int = 1234) -> bytes:
    """A POSIX access list as the kernel has it: a named user may read and write."""
    nobody = 0xFFFFFFFF
    entries = [
        (1, 6, nobody),
        (2, 6, user),
        (4, group, nobody),
        (16, mask, nobody),
        (32, 0, nobody),
    ]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"no {name} here: {error}")


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no attributes in Python here")
class TestAttributes:
    """Extended attributes and access lists, which are attributes too."""

    def test_they_stay(self, writer: Writer) -> None:
        set_attribute(writer.path, "user.note", b"kept")
        set_attribute(writer.path, "system.posix_acl_access", access_list(group=0, mask=6))
        mode = writer.path.stat().st_mode
        before = {name: os.getxattr(writer.path, name) for name in os.listxattr(writer.path)}
        assert writer.replace() == ()
        after = {name: os.getxattr(writer.path, name) for name in os.listxattr(writer.path)}
        assert (after, writer.path.stat().st_mode) == (before, mode)

    def test_what_is_lost_is_said(self, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
        set_attribute(writer.path, "user.note", b"lost")
        set_attribute(writer.path, "system.posix_acl_access", access_list(group=0, mask=6))

        def refuse(*_arguments: object) -> None:
            raise OSError(errno.ENOTSUP, "Operation not supported")

        monkeypatch.setattr(os, "setxattr", refuse)
        assert sorted(writer.replace()) == [
            "its extended attribute system.posix_acl_access could not be kept",
            "its extended attribute user.note could not be kept",
        ]
        # The bits of the group were the limit of the list; the group itself had no rights.
        assert stat.S_IMODE(writer.path.stat().st_mode) == 0o600

    def test_a_list_of_the_folder_gives_nobody_the_file(self, writer: Writer) -> None:
        writer.path.chmod(0o660)
        default = access_list(group=6, mask=6)
        set_attribute(writer.root, "system.posix_acl_default", default)
        assert writer.replace() == ()
        assert "system.posix_acl_access" not in os.listxattr(writer.path)
        assert stat.S_IMODE(writer.path.stat().st_mode) == 0o660


def test_other_names_of_a_file_are_told(writer: Writer) -> None:
    other = writer.root / "b.py"
    os.link(writer.path, other)
    assert writer.replace() == ("1 more of its names (hard links) keep the old content",)
    assert (writer.path.read_bytes(), other.read_bytes()) == (NEW, OLD)


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_only_regular_files_are_replaced(writer: Writer, kind: str) -> None:
    writer.path.unlink()
    if kind == "pipe":
        os.mkfifo(writer.path)
    elif kind == "folder":
        writer.path.mkdir()
    else:
        writer.path.symlink_to("/dev/null")
    before = writer.path.lstat()
    with pytest.raises(OSError, match=r"regular file|symbolic links"):
        writer.replace()
    after = writer.path.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert os.listdir(writer.root) == ["a.py"]


class TestWithoutOurLock:
    """A program that takes no lock writes at the worst moment."""

    @pytest.fixture(autouse=True)
    def _moments(self, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: list[Callable[[], object]] = []
        self.after: list[Callable[[], object]] = []
        kept = writer.folders.AnchoredFolder.try_exchange

        def try_exchange(folder: Any, one: str, other: str) -> bool:
            if self.before:
                self.before.pop()()
            is_exchanged: bool = kept(folder, one, other)
            if self.after:
                self.after.pop()()
            return is_exchanged

        monkeypatch.setattr(writer.folders.AnchoredFolder, "try_exchange", try_exchange)

    def change_error(self, writer: Writer) -> Any:
        with pytest.raises(writer.files.FileChangedError) as caught:
            writer.replace()
        return caught.value

    def test_what_replaces_the_file_stays(self, writer: Writer) -> None:
        self.before = [writer.write_foreign]
        assert self.change_error(writer).kept_as is None
        assert writer.path.read_bytes() == FOREIGN
        assert os.listdir(writer.root) == ["a.py"]

    def test_what_is_written_into_the_file_stays(self, writer: Writer) -> None:
        self.before = [lambda: writer.path.write_bytes(FOREIGN)]
        assert self.change_error(writer).kept_as is None
        assert writer.path.read_bytes() == FOREIGN
        assert os.listdir(writer.root) == ["a.py"]

    def test_a_change_of_rights_is_a_change(self, writer: Writer) -> None:
        self.before = [lambda: writer.path.chmod(0o600)]
        self.change_error(writer)
        assert writer.path.read_bytes() == OLD
        assert stat.S_IMODE(writer.path.stat().st_mode) == 0o600

    def test_what_comes_while_the_files_change_back_is_kept(self, writer: Writer) -> None:
        def write_again() -> None:
            writer.path.unlink()
            writer.path.write_bytes(b"still newer")

        self.before = [writer.write_foreign]
        self.after = [write_again]
        error = self.change_error(writer)
        assert error.kept_as in error.note
        assert writer.path.read_bytes() == FOREIGN
        assert (writer.root / error.kept_as).read_bytes() == b"still newer"
        assert len(os.listdir(writer.root)) == 2

    def test_a_removal_while_the_files_change_back(self, writer: Writer) -> None:
        self.before = [writer.write_foreign]
        self.after = [writer.path.unlink]
        assert self.change_error(writer).kept_as is None
        assert writer.path.read_bytes() == FOREIGN
        assert os.listdir(writer.root) == ["a.py"]


def test_what_changes_before_a_removal_stays(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = writer.folders.AnchoredFolder.rename

    def rename(folder: Any, old: str, new: str) -> None:
        if old == "a.py":
            writer.write_foreign()
        kept(folder, old, new)

    monkeypatch.setattr(writer.folders.AnchoredFolder, "rename", rename)
    with pytest.raises(writer.files.FileChangedError):
        writer.files.remove_file(writer.folder, "a.py", expected=OLD)
    assert writer.path.read_bytes() == FOREIGN
    assert os.listdir(writer.root) == ["a.py"]


@pytest.mark.parametrize("lacking", ["has_exchange", "has_locks", "has_descriptors"])
def test_less_of_a_platform_is_enough(writer: Writer, lacking: str) -> None:
    folder = writer.open(**{lacking: False})
    assert writer.replace(folder) == ()
    assert writer.path.read_bytes() == NEW
    assert writer.files.add_file(folder, "b.py", NEW)
    assert not writer.files.add_file(folder, "b.py", OLD)
    writer.files.remove_file(folder, "b.py", expected=NEW)
    assert os.listdir(writer.root) == ["a.py"]
    folder.close()


def test_a_file_system_without_links_takes_new_files(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    folder = writer.open(has_exchange=False)
    monkeypatch.setattr(os, "link", refuse)
    assert writer.files.add_file(folder, "b.py", NEW)
    assert not writer.files.add_file(folder, "b.py", OLD)
    assert (writer.root / "b.py").read_bytes() == NEW
    assert sorted(os.listdir(writer.root)) == ["a.py", "b.py"]
    folder.close()


def test_a_folder_is_locked_and_let_go(writer: Writer) -> None:
    other = writer.open()
    with other.locked() as is_locked:
        assert is_locked
        with pytest.raises(TimeoutError, match="locked by another program"):
            writer.folder.locked(timeout_s=0.01).__enter__()
        thread = threading.Thread(target=writer.replace)
        thread.start()
        assert writer.path.read_bytes() == OLD
    thread.join()
    assert writer.path.read_bytes() == NEW
    assert os.listdir(writer.root) == ["a.py"], "a lock leaves nothing behind"
    other.close()


def test_long_names_have_room(writer: Writer) -> None:
    name = "n" * 252 + ".py"
    (writer.root / name).write_bytes(OLD)
    writer.files.replace_file(writer.folder, name, NEW, expected=OLD)
    assert (writer.root / name).read_bytes() == NEW


FULL_DISK = """
import resource, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from tests.oracles.service.file_races import WRITERS
WRITERS[sys.argv[1]](Path(sys.argv[2]), b"new" * 10000, b"old\\n")
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="no limit to run into")
@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_that_takes_no_more_leaves_the_old_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(OLD)
    command = [sys.executable, "-c", FULL_DISK, name, str(path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "File too large" in ended.stderr.splitlines()[-1]
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["a.py"]
