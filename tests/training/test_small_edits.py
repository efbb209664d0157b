"""Small edits made from files: the result is what the snippet says, and its place is clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_service.evaluate.cases.case_file import Case, read_cases
from training.generated.small_edits.__main__ import PACKAGES, write_part
from training.generated.small_edits.cases import MAX_A_FILE, file_cases, is_in_order, package_cases
from training.generated.small_edits.code import table
from training.generated.small_edits.places import GRAMMARS, num_errors, parse
from training.generated.small_edits.releases import PinnedPackage, read_packages
from training.releases import PERMISSIVE_LICENCES
from training.releases import read_packages as read_releases

PYTHON = '''\
import os
import sys

LIMITS = {
    "depth": 3,
    "width": 80,
}


class Store:
    root: str = "."

    def load(self, path, encoding=None):
        """Read one file."""
        text = path.read_text(encoding)
        lines = [line for line in text.split("\\n") if line]
        return parse(lines)

    def save(self, path, items):
        if items == "all":
            path.write_text(dump(self.items))
        else:
            path.write_text(dump(items))
        self.count = len(items)


def parse(lines):
    found = []
    for line in lines:
        found.append(line.split())
    return found
'''
TYPESCRIPT = """\
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export enum Shape {
  Round = 'round',
  Square = 'square',
}

export class Drawer {
  private depth: number = 3;

  nameOf(shape: Shape, title: string): string {
    switch (title) {
      case 'short':
        return this.shortName(shape);
      case 'long':
        return this.longName(shape);
      default:
        return shape;
    }
  }

  open(path: string): void {
    const full = join(this.root, path);
    this.files.push(full);
  }
}
"""
FILES = {"store.py": PYTHON, "src/drawer.ts": TYPESCRIPT}


def _package(name: str = "shapes") -> PinnedPackage:
    return PinnedPackage("npm", name, "MIT", "1.0.0", "", "report")


def _cases(num_packages: int) -> list[Case]:
    return [
        case
        for number in range(num_packages)
        for path, text in FILES.items()
        for case in file_cases(_package(name=f"shapes{number}"), path, text)
    ]


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return _cases(12)


def test_every_case_is_an_insertion_that_its_snippet_shows(cases: list[Case]) -> None:
    for case in cases:
        assert case.original in FILES.values()
        assert case.expected != case.original
        new = case.expected.split("\n")
        shown = [line for line in case.update.split("\n") if line in new]
        hidden = [line for line in case.update.split("\n") if line not in new]
        assert is_in_order(shown, new)
        assert hidden, "no marker"
        comment = GRAMMARS[str(case.language)].comment
        assert all(line.strip().startswith((comment, "/*")) for line in hidden)
        added = [line for line in new if line not in case.original.split("\n")]
        assert added
        assert set(added) <= set(shown)


def test_the_new_file_is_well_formed(cases: list[Case]) -> None:
    for case in cases:
        assert num_errors(parse(case.expected, str(case.language))) == 0


def test_many_kinds_are_made(cases: list[Case]) -> None:
    kinds = {str(case.style).split("/")[0] for case in cases}
    assert {"guard", "early_return", "log", "parameter", "import", "variant", "arm"} <= kinds
    assert {"field", "entry", "branch", "last_statement", "assertion", "decorator"} <= kinds


def test_the_same_file_gives_the_same_cases(cases: list[Case]) -> None:
    assert cases[: len(_cases(2))] == _cases(2)
    ids = [case.id for case in cases]
    assert len(set(ids)) == len(ids)


def test_no_file_and_no_package_has_more_cases_than_its_share() -> None:
    for path, text in FILES.items():
        assert 0 < len(file_cases(_package(), path, text)) <= MAX_A_FILE
    files = [*FILES.items(), *((f"copy/{path}", text) for path, text in FILES.items())]
    cases = package_cases(_package(), files)
    assert len(cases) <= 2 * MAX_A_FILE, "a copy of a file gave cases of its own"


@pytest.mark.parametrize("text", ["", "x = 1\n", PYTHON.replace("\n", "\r\n"), PYTHON + "\n"])
def test_files_that_are_not_fit_give_no_cases(text: str) -> None:
    assert file_cases(_package(), "store.py", text) == []


def test_a_file_with_lines_like_markers_gives_no_cases() -> None:
    assert file_cases(_package(), "store.py", PYTHON + "# ... existing code ...\n") == []


def test_each_part_has_wordings_of_its_own() -> None:
    markers = table("markers")
    fit, report, usual = (
        {text for texts in markers[part].values() for text in texts}
        for part in ("fit", "report", "usual")
    )
    assert not fit & report
    assert not (fit | report) & usual
    assert len(fit | usual) >= 20
    assert len(report | usual) >= 20


def test_packages_are_permissive_and_new() -> None:
    packages = read_packages(PACKAGES)
    names = [package.name for package in packages]
    assert len(set(names)) == len(names)
    assert {package.part for package in packages} == {"fit", "report"}
    known = {
        package.name
        for other in ("packages", "blind_packages", "report_packages")
        for package in read_releases(PACKAGES.with_name(f"{other}.toml"), min_versions=1)
    }
    assert not known & set(names)
    for package in packages:
        assert set(package.licence.split(" OR ")) <= PERMISSIVE_LICENCES
        assert len(package.sha256) == 64


def test_a_part_is_written_the_same_each_time(tmp_path: Path, cases: list[Case]) -> None:
    write_part(tmp_path / "one.jsonl.gz", cases)
    write_part(tmp_path / "two.jsonl.gz", cases)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    assert list(read_cases(tmp_path / "one.jsonl.gz")) == cases
