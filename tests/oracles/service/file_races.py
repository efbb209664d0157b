"""What comes of files when writers race each other, are killed, or have links put in their way.

    python -m tests.oracles.service.file_races --writes 3000 --kills 200 --swaps 5000

- Lost updates: two processes write one file in a tight loop. Each has a line of the file with a
  number; it reads the file, raises its number by one and writes the file by one of the product's
  writers. A write that is refused because the file has changed is made anew. A number that falls
  behind in the end is a lost update.
- Kills: a process that writes a file over and over gets SIGKILL. The file must be whole, and what
  else lies there must go with the next write.
- Links: a folder of the workspace and a link out of it change places all the time, and a file and a
  link to one outside, while they are written and files and folders are added and removed in that
  folder. Nothing outside may change.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from apply_client.careful_files.linux_rename import try_exchange
from apply_client.workspace.errors import ContentConflictError, WorkspaceError
from apply_client.workspace.folder import Workspace, sha256_of

from apply_service.cli.file_writer import FileWriteError, write_result

Write = Callable[[Path, bytes, bytes], bool]

SPAWN = multiprocessing.get_context("spawn")


def write_by_command_line(path: Path, content: bytes, expected: bytes) -> bool:
    """Write as `apply-service apply --write` does; False if the file has changed."""
    try:
        write_result(path, content, expected=expected)
    except FileWriteError as error:
        if "has changed" not in str(error):
            raise
        return False
    return True


def write_by_workspace(path: Path, content: bytes, expected: bytes) -> bool:
    """Write as `apply-client` and its MCP server do; False if the file has changed."""
    try:
        Workspace(path.parent).replace(path.name, content, expected_sha256=sha256_of(expected))
    except ContentConflictError:
        return False
    return True


WRITERS: dict[str, Write] = {"cli": write_by_command_line, "client": write_by_workspace}
PAIRS = tuple(itertools.combinations_with_replacement(WRITERS, 2))


@dataclass(frozen=True, slots=True)
class RaceResult:
    """How often both wrote, and how often that was for nothing; conflicts were made anew."""

    num_written: int
    num_lost: int
    num_conflicts: int


def race(folder: Path, writers: tuple[str, str], *, num_writes: int) -> RaceResult:
    """Have two writers write the same file at once, each so many times."""
    path = folder / "raced.txt"
    path.write_bytes(_content_of([0, 0]))
    with SPAWN.Pool(2) as pool:
        arguments = [(path, name, line, num_writes) for line, name in enumerate(writers)]
        num_conflicts = sum(pool.starmap(_raise_line, arguments, chunksize=1))
    found = _numbers_of(path.read_bytes())
    return RaceResult(2 * num_writes, 2 * num_writes - sum(found), num_conflicts)


def _raise_line(path: Path, writer: str, line: int, num_writes: int) -> int:
    """Raise the number on a line so often; how often the file had changed meanwhile."""
    write = WRITERS[writer]
    num_conflicts = 0
    for _ in range(num_writes):
        while True:
            content = path.read_bytes()
            numbers = _numbers_of(content)
            numbers[line] += 1
            if write(path, _content_of(numbers), content):
                break
            num_conflicts += 1
    return num_conflicts


def _content_of(numbers: list[int]) -> bytes:
    return b"".join(b"%08d\n" % number for number in numbers)


def _numbers_of(content: bytes) -> list[int]:
    assert len(content) == 18, f"the file was read torn: {content!r}"
    return [int(line) for line in content.splitlines()]


def kill_while_writing(folder: Path, writer: str, *, num_kills: int) -> int:
    """Kill a writer so often; how many kills left something beside the file.

    Raises AssertionError if the file is not whole, or if the next write leaves the rest there.
    """
    path = folder / "killed.txt"
    path.write_bytes(_large_content(0))
    delays = random.Random(0)
    num_left = 0
    for _ in range(num_kills):
        receiver, sender = SPAWN.Pipe(duplex=False)
        process = SPAWN.Process(target=_write_for_ever, args=(path, writer, sender))
        process.start()
        assert receiver.recv() == "writing"
        time.sleep(delays.uniform(0, 0.03))
        process.kill()
        process.join()
        content = path.read_bytes()
        assert content == _large_content(content[0]), "the file is torn"
        num_left += len(os.listdir(folder)) > 1
        assert WRITERS[writer](path, _large_content(content[0] ^ 1), content)
        assert os.listdir(folder) == [path.name], "what a killed writer left is still there"
    return num_left


def _large_content(number: int) -> bytes:
    return bytes([number]) * 300_000


def _write_for_ever(path: Path, writer: str, sender: Connection) -> None:
    number = path.read_bytes()[0]
    sender.send("writing")
    while True:
        WRITERS[writer](path, _large_content(number ^ 1), _large_content(number))
        number ^= 1


def swap_links(folder: Path, *, num_swaps: int) -> int:
    """Work in a folder that changes places with a link out of it; how much of the work was done.

    A file beside the folder does so too. Raises AssertionError if anything outside has changed.
    """
    root, outside = folder / "root", folder / "outside"
    for place in (root / "src", outside):
        place.mkdir(parents=True)
        (place / "a.py").write_bytes(b"old")
    (root / "a.py").write_bytes(b"old")
    for name, target in (("src-link", outside), ("a.py-link", outside / "a.py")):
        (root / name).symlink_to(target)
    process = SPAWN.Process(target=_swap, args=(root, num_swaps))
    process.start()
    workspace = Workspace(root)
    num_done = 0
    for number in itertools.count():
        if not process.is_alive():
            break
        for work in (_replace_in_folder, _replace, _add, _remove, _add_deep, _remove_deep):
            try:
                work(workspace, number)
            except WorkspaceError:
                continue
            num_done += 1
    assert process.exitcode == 0
    assert os.listdir(outside) == ["a.py"], "a file was made outside, or removed there"
    assert (outside / "a.py").read_bytes() == b"old", "a file was changed outside"
    return num_done


def _swap(root: Path, num_swaps: int) -> None:
    for _ in range(num_swaps):
        for name in ("src", "a.py"):
            assert try_exchange(f"{root}/{name}", f"{root}/{name}-link", folder=None)
        time.sleep(0.0001)


def _replace_in_folder(workspace: Workspace, number: int) -> None:
    _replace(workspace, number, "src/a.py")


def _replace(workspace: Workspace, number: int, name: str = "a.py") -> None:
    sha256 = workspace.read(name).sha256
    workspace.replace(name, b"%d" % number, expected_sha256=sha256)


def _add(workspace: Workspace, number: int) -> None:
    workspace.add("src/b.py", b"new")


def _remove(workspace: Workspace, number: int) -> None:
    workspace.remove("src/b.py", expected_sha256=sha256_of(b"new"))


def _add_deep(workspace: Workspace, number: int) -> None:
    workspace.add(f"src/{number}/deep/c.py", b"new")


def _remove_deep(workspace: Workspace, number: int) -> None:
    workspace.remove(f"src/{number}/deep/c.py", expected_sha256=sha256_of(b"new"))


def main() -> int:
    """Do all of it; 1 if an update was lost."""
    parser = argparse.ArgumentParser(description="Race, kill and mislead the writers of files.")
    parser.add_argument("--writes", type=int, default=3000, help="writes of each of the two")
    parser.add_argument("--kills", type=int, default=200, help="kills of each writer")
    parser.add_argument("--swaps", type=int, default=5000, help="changes of a folder and a link")
    args = parser.parse_args()
    num_lost = 0
    for pair in PAIRS:
        with tempfile.TemporaryDirectory() as folder:
            result = race(Path(folder), pair, num_writes=args.writes)
        num_lost += result.num_lost
        print(
            f"{' x '.join(pair):16} {result.num_written} written, {result.num_lost} lost,"
            f" {result.num_conflicts} conflicts made anew",
            flush=True,
        )
    for writer in WRITERS:
        with tempfile.TemporaryDirectory() as folder:
            num_left = kill_while_writing(Path(folder), writer, num_kills=args.kills)
        print(
            f"{writer:16} {args.kills} kills, 0 files torn, {num_left} times a file was left"
            " beside it, which the next write removed",
            flush=True,
        )
    with tempfile.TemporaryDirectory() as folder:
        num_done = swap_links(Path(folder).resolve(), num_swaps=args.swaps)
    print(f"links            {args.swaps} swaps, {num_done} works done, none outside")
    return 1 if num_lost else 0


if __name__ == "__main__":
    sys.exit(main())
