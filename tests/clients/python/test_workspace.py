"""Files of a workspace: nothing outside is touched, and each is replaced whole or not at all."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from apply_client.careful_files import anchored_folder, atomic_file
from apply_client.careful_files.anchored_folder import PLATFORM, Abilities
from apply_client.workspace.errors import (
    ContentConflictError,
    FileAccessError,
    FileMissingError,
    FilePresentError,
    FileTooLargeError,
    NotAFileError,
    PathRefusedError,
    WorkspaceError,
)
from apply_client.workspace.folder import Workspace, sha256_of
from hypothesis import given, settings
from hypothesis import strategies as st

OLD, NEW = b"old\n", b"new\r\n\xff"
# This platform, and what others can do.
ABILITIES = {
    "linux": PLATFORM,
    "macos": Abilities(has_descriptors=True, has_locks=True, has_exchange=False),
    "nfs": Abilities(has_descriptors=True, has_locks=False, has_exchange=False),
    "windows": Abilities(has_descriptors=False, has_locks=False, has_exchange=False),
}


class Ground:
    """A workspace, and beside it a folder that must stay as it is."""

    def __init__(self, folder: Path, *, abilities: Abilities = PLATFORM) -> None:
        self.root = folder / "shop"
        self.outside = folder / "outside"
        for place in (self.root / "src", self.root / ".git", self.outside):
            place.mkdir(parents=True)
        self.add("src/a.py")
        (self.root / ".git" / "config").write_bytes(OLD)
        (self.outside / "secret.txt").write_bytes(b"secret")
        self.workspace = Workspace(self.root, max_file_bytes=100, abilities=abilities)

    def add(self, name: str, content: bytes = OLD) -> Path:
        path = self.root / name
        path.write_bytes(content)
        return path

    def check_outside(self) -> None:
        assert os.listdir(self.outside) == ["secret.txt"]
        assert (self.outside / "secret.txt").read_bytes() == b"secret"
        assert (self.root / ".git" / "config").read_bytes() == OLD


@pytest.fixture(params=ABILITIES.values(), ids=ABILITIES.keys())
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(tmp_path.resolve(), abilities=request.param)


def replace(ground: Ground, name: str, content: bytes = NEW) -> None:
    ground.workspace.replace(name, content, expected_sha256=sha256_of(OLD))


def test_a_file_is_read_and_replaced(ground: Ground) -> None:
    path = ground.root / "src/a.py"
    path.chmod(0o751)
    file = ground.workspace.read("./src/a.py")
    assert (file.path, file.content, file.sha256) == ("src/a.py", OLD, sha256_of(OLD))
    ground.workspace.replace(os.fspath(path), NEW, expected_sha256=file.sha256.upper())
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert os.listdir(path.parent) == ["a.py"]


@pytest.mark.skipif(not hasattr(os, "chown") or os.geteuid() != 0, reason="only root may")
def test_the_owner_stays(ground: Ground) -> None:
    path = ground.root / "src/a.py"
    os.chown(path, 1234, 1234)
    path.chmod(0o4755)
    replace(ground, "src/a.py")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 1234, 0o4755)


def test_links_within_stay_links(ground: Ground) -> None:
    (ground.root / "near.py").symlink_to("src/a.py")
    (ground.root / "lib").symlink_to(ground.root / "src")
    (ground.root / "src" / "up").symlink_to("../lib/")
    for name in ("near.py", "lib/a.py", "src/up/a.py"):
        assert ground.workspace.locate(name) == "src/a.py"
        replace(ground, name)
        assert (ground.root / "src/a.py").read_bytes() == NEW
        ground.add("src/a.py")
    assert (ground.root / "near.py").is_symlink()
    assert (ground.root / "lib").is_symlink()


def test_the_root_may_be_named_by_a_link(ground: Ground) -> None:
    link = ground.root.parent / "link"
    link.symlink_to(ground.root)
    workspace = Workspace(link)
    assert workspace.read(os.fspath(link / "src/a.py")).path == "src/a.py"
    assert workspace.read(os.fspath(ground.root / "src/a.py")).path == "src/a.py"


def _link(ground: Ground, name: str, target: str | Path) -> None:
    (ground.root / name).symlink_to(target)


ESCAPES: dict[str, Callable[[Ground], object]] = {
    "../outside/secret.txt": lambda ground: None,
    "src/../../outside/secret.txt": lambda ground: None,
    "ABSOLUTE": lambda ground: None,
    "%2e%2e/outside/secret.txt": lambda ground: None,
    "src/a.py\0/../../outside/secret.txt": lambda ground: None,
    "..\\outside\\secret.txt": lambda ground: None,
    "file.txt": lambda ground: _link(ground, "file.txt", "../outside/secret.txt"),
    "far.txt": lambda ground: _link(ground, "far.txt", ground.outside / "secret.txt"),
    "folder/secret.txt": lambda ground: _link(ground, "folder", ground.outside),
    "chain.txt": lambda ground: (
        _link(ground, "chain.txt", "src/next"),
        _link(ground, "src/next", "../../outside/secret.txt"),
    ),
    "lib/outside/secret.txt": lambda ground: _link(ground, "lib", ".."),
    "dangling.txt": lambda ground: _link(ground, "dangling.txt", ground.outside / "none.txt"),
    "loop.txt": lambda ground: _link(ground, "loop.txt", "loop.txt"),
    "git.txt": lambda ground: _link(ground, "git.txt", ".git/config"),
    "meta/config": lambda ground: _link(ground, "meta", ".git"),
    ".GIT/config": lambda ground: None,
    "proc.txt": lambda ground: _link(ground, "proc.txt", "/proc/self/root/etc/hostname"),
    "out/shop/src/a.py": lambda ground: _link(ground, "out", "../../x/../.."),
}


@pytest.mark.parametrize("name", ESCAPES)
def test_nothing_leads_out(ground: Ground, name: str) -> None:
    ESCAPES[name](ground)
    if name == "ABSOLUTE":
        name = os.fspath(ground.outside / "secret.txt")
    before = sorted(os.listdir(ground.root))
    attempts: list[Callable[[], object]] = [
        lambda: ground.workspace.locate(name),
        lambda: ground.workspace.read(name),
        lambda: ground.workspace.replace(name, NEW, expected_sha256=sha256_of(b"secret")),
        lambda: ground.workspace.add(name, NEW),
        lambda: ground.workspace.remove(name, expected_sha256=sha256_of(b"secret")),
    ]
    for attempt in attempts:
        with pytest.raises(PathRefusedError):
            attempt()
    ground.check_outside()
    assert sorted(os.listdir(ground.root)) == before


def test_a_hard_link_from_outside_is_left_alone(ground: Ground) -> None:
    os.link(ground.outside / "secret.txt", ground.root / "hard.txt")
    ground.workspace.replace("hard.txt", NEW, expected_sha256=sha256_of(b"secret"))
    assert (ground.root / "hard.txt").read_bytes() == NEW
    ground.check_outside()


def test_what_is_no_file_is_refused_without_waiting(ground: Ground) -> None:
    os.mkfifo(ground.root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        folder = os.open(ground.root, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
        for name in ("pipe", "socket", "src"):
            with pytest.raises(NotAFileError):
                ground.workspace.read(name)
    with pytest.raises(NotAFileError, match=r"through a\.py"):
        ground.workspace.read("src/a.py/b.py")


@pytest.mark.skipif(not hasattr(os, "mknod") or os.geteuid() != 0, reason="only root may")
def test_a_device_is_refused(ground: Ground) -> None:
    try:
        os.mknod(ground.root / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("not in this container")
    with pytest.raises(NotAFileError):
        ground.workspace.read("zero")


@pytest.mark.parametrize("swapped", ["folder", "file"])
def test_a_link_put_there_after_the_check_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    ground = Ground(tmp_path)
    (ground.outside / "a.py").write_bytes(OLD)
    kept = anchored_folder.AnchoredFolder.status

    def swap(folder: anchored_folder.AnchoredFolder, part: str) -> os.stat_result:
        found = kept(folder, part)
        if swapped == "folder" and part == "src" and stat.S_ISDIR(found.st_mode):
            (ground.root / "src").rename(ground.root / "moved")
            (ground.root / "src").symlink_to(ground.outside)
        if swapped == "file" and part == "a.py" and stat.S_ISREG(found.st_mode):
            (ground.root / "src" / "a.py").unlink()
            (ground.root / "src" / "a.py").symlink_to(ground.outside / "a.py")
        return found

    monkeypatch.setattr(anchored_folder.AnchoredFolder, "status", swap)
    with pytest.raises(WorkspaceError):
        replace(ground, "src/a.py")
    assert (ground.outside / "a.py").read_bytes() == OLD


def test_a_folder_renamed_meanwhile_is_still_the_one_that_was_checked(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    folder = anchored_folder.AnchoredFolder.open_root(ground.root)
    inner = folder.enter("src")
    (ground.root / "src").rename(ground.root / "moved")
    (ground.root / "src").symlink_to(ground.outside)
    assert atomic_file.add_file(inner, "b.py", NEW)
    inner.close()
    folder.close()
    assert (ground.root / "moved" / "b.py").read_bytes() == NEW
    ground.check_outside()


def test_a_file_that_changed_is_a_conflict(ground: Ground) -> None:
    ground.add("src/a.py", b"newer\n")
    with pytest.raises(ContentConflictError, match=sha256_of(b"newer\n")):
        replace(ground, "src/a.py")
    with pytest.raises(ContentConflictError):
        ground.workspace.remove("src/a.py", expected_sha256=sha256_of(OLD))
    assert (ground.root / "src/a.py").read_bytes() == b"newer\n"


def test_a_file_that_changes_during_the_write_is_a_conflict(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = os.fsync

    def change(descriptor: int) -> None:
        ground.add("src/a.py", b"newer\n")
        kept(descriptor)

    monkeypatch.setattr(os, "fsync", change)
    with pytest.raises(ContentConflictError, match="while it was written"):
        replace(ground, "src/a.py")
    assert (ground.root / "src/a.py").read_bytes() == b"newer\n"
    assert os.listdir(ground.root / "src") == ["a.py"]


@pytest.mark.parametrize("failing", ["replace", "fsync", "fchmod"])
def test_a_write_that_fails_leaves_the_old_file(
    ground: Ground, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    if failing == "replace":
        monkeypatch.setattr(anchored_folder, "try_exchange", fail)
    with pytest.raises(FileAccessError, match="No space left"):
        replace(ground, "src/a.py")
    assert (ground.root / "src/a.py").read_bytes() == OLD
    assert os.listdir(ground.root / "src") == ["a.py"]


def test_a_read_only_file_is_refused(ground: Ground) -> None:
    (ground.root / "src/a.py").chmod(0o444)
    with pytest.raises(FileAccessError, match="is read-only"):
        replace(ground, "src/a.py")
    assert (ground.root / "src/a.py").read_bytes() == OLD


def test_limits_of_size(ground: Ground) -> None:
    ground.add("large.txt", b"x" * 101)
    with pytest.raises(FileTooLargeError, match="has 101 bytes; at most 100"):
        ground.workspace.read("large.txt")
    with pytest.raises(FileTooLargeError, match="has 500 bytes"):
        replace(ground, "src/a.py", b"x" * 500)
    with pytest.raises(FileTooLargeError):
        ground.workspace.add("new.txt", b"x" * 500)
    assert sorted(os.listdir(ground.root)) == [".git", "large.txt", "src"]


def test_missing_files_come_with_their_neighbours(ground: Ground) -> None:
    with pytest.raises(FileMissingError, match=r"in its folder there is a\.py"):
        ground.workspace.read("src/aa.py")
    with pytest.raises(FileMissingError, match="no folder none"):
        ground.workspace.read("none/of/this.py")
    with pytest.raises(FileMissingError):
        replace(ground, "src/b.txt")


def test_a_new_file_and_its_folders(ground: Ground) -> None:
    ground.workspace.add("lib/deep/b.py", NEW)
    path = ground.root / "lib/deep/b.py"
    assert path.read_bytes() == NEW
    mask = os.umask(0o022)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    assert os.listdir(path.parent) == ["b.py"]
    for name in ("lib/deep/b.py", "src"):
        with pytest.raises(FilePresentError):
            ground.workspace.add(name, NEW)


def test_a_file_is_removed(ground: Ground) -> None:
    ground.workspace.remove("src/a.py", expected_sha256=sha256_of(OLD))
    assert os.listdir(ground.root / "src") == []


def test_what_a_link_leads_to_is_not_removed(ground: Ground) -> None:
    _link(ground, "near.py", "src/a.py")
    with pytest.raises(NotAFileError, match=r"is a link to src/a\.py"):
        ground.workspace.remove("near.py", expected_sha256=sha256_of(OLD))
    assert (ground.root / "near.py").read_bytes() == OLD


PARTS = st.sampled_from(
    ["src", "a.py", "..", ".", "", "in", "out", "up", "loop", "abs", "far", "deep", "none", ".git"]
)


@given(parts=st.lists(PARTS, min_size=1, max_size=6), is_absolute=st.booleans())
@settings(max_examples=400, deadline=None)
def test_what_is_located_is_where_the_system_would_look(
    maze: Ground, parts: list[str], is_absolute: bool
) -> None:
    """Whatever links stand in the way: a path that is given out is real, and below the root."""
    name = "/".join(parts)
    if is_absolute:
        name = f"{maze.root}/{name}"
    try:
        path = maze.workspace.locate(name)
    except WorkspaceError:
        return
    found = os.path.realpath(maze.root / name)
    assert found == f"{maze.root}/{path}"
    assert not {"..", "", ".git"} & set(path.split("/"))


@pytest.fixture(params=ABILITIES.values(), ids=ABILITIES.keys(), scope="module")
def maze(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """Links that lead in, out, up, around and back."""
    folder = tmp_path_factory.mktemp("maze").resolve()
    ground = Ground(folder, abilities=request.param)
    (ground.root / "deep" / "src").mkdir(parents=True)
    for name, target in {
        "in": "deep/src",
        "out": "../outside",
        "up": "..",
        "loop": "loop",
        "abs": str(ground.root / "src"),
        "far": "/",
        "deep/up": "..",
        "deep/in": "../in/../../src",
        "deep/src/out": "../../out",
        "deep/src/abs": str(ground.root),
        "deep/src/a.py": "../../src/a.py",
        "src/up": "../../shop/deep",
        "src/far": str(ground.root / "deep" / "up"),
    }.items():
        (ground.root / name).symlink_to(target)
    return ground


def test_roots_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(NotAFileError, match="is no folder"):
        Workspace(tmp_path / "none")
    with pytest.raises(WorkspaceError, match="whole disk"):
        Workspace("/")


def test_no_descriptor_is_left_open(ground: Ground) -> None:
    _link(ground, "lib", "src")
    _link(ground, "out", "..")
    before = len(os.listdir("/proc/self/fd"))
    for name in ("src/a.py", "lib/a.py", "none/a.py", "out/a.py", "src", "src/a.py/b"):
        for attempt in (ground.workspace.read, ground.workspace.locate):
            try:
                attempt(name)
            except WorkspaceError:
                continue
    assert len(os.listdir("/proc/self/fd")) == before
