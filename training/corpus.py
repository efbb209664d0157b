"""Makes case files from real edits: files that changed between neighbouring releases.

`python -m training.corpus` fetches the releases and writes `build/cases/{train,dev,test}.jsonl`.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from snippets.hunks import find_hunks
from snippets.writer import GENERATOR_VERSION, write_snippet
from training.case_file import TrainingCase, document_lines, write_cases
from training.releases import Package, Release, fetch_releases, read_packages
from training.source_files import learned_language, read_sources

MAX_HUNKS = 6
MAX_CHANGED_LINES = 60
MAX_CHANGED_SHARE = 0.5
MAX_CASES_PER_PACKAGE = 60
MAX_COMMENT_SHARE = 0.1
TEST_SHARE = 0.25
DEV_SHARE = 0.10
SPLITS = ("train", "dev", "test")

_COMMENT = re.compile(r"^\s*(#|//|/\*|\*|<!--|\"\"\"|--)")


@dataclass(frozen=True, slots=True)
class Edit:
    """One file before and after a release."""

    package: str
    versions: tuple[str, str]
    path: str
    original: str
    expected: str

    @property
    def id(self) -> str:
        """Names the edit across runs."""
        return f"{self.package}@{self.versions[0]}..{self.versions[1]}:{self.path}"


def split_of(package: str) -> str:
    """The split of a package; all its edits go there."""
    share = _share(package)
    if share < TEST_SHARE:
        return "test"
    return "dev" if share < TEST_SHARE + DEV_SHARE else "train"


def _share(text: str) -> float:
    """A number in [0, 1) that depends on `text` alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def is_useful(edit: Edit) -> bool:
    """True if an edit is one that an agent could have sent: neither trivial nor a rewrite."""
    original, expected = document_lines(edit.original), document_lines(edit.expected)
    if edit.original.endswith("\n") != edit.expected.endswith("\n"):
        return False
    hunks = find_hunks(original, expected)
    num_changed = sum(hunk.num_changed for hunk in hunks)
    if not 1 <= len(hunks) <= MAX_HUNKS or num_changed > MAX_CHANGED_LINES:
        return False
    if num_changed > MAX_CHANGED_SHARE * (len(original) + len(expected)):
        return False
    removed = [line for hunk in hunks for line in original[hunk.old_start : hunk.old_end]]
    added = [line for hunk in hunks for line in expected[hunk.new_start : hunk.new_end]]
    changed = [line for line in removed + added if line.strip()]
    if not changed or _is_version_bump(removed, added):
        return False
    if all(_COMMENT.match(line) for line in changed):
        return _share("comment" + edit.id) < MAX_COMMENT_SHARE
    return True


def _is_version_bump(removed: Sequence[str], added: Sequence[str]) -> bool:
    def without_numbers(lines: Sequence[str]) -> list[str]:
        return [re.sub(r"[\d.]+(?:[-+.]?(?:a|b|rc|dev|alpha|beta)[\d.]*)?", "0", x) for x in lines]

    return len(removed) == len(added) <= 3 and without_numbers(removed) == without_numbers(added)


def edits_between(
    old: Release, new: Release, old_sources: dict[str, str], new_sources: dict[str, str]
) -> Iterator[Edit]:
    """The useful edits from one release to the next, in the order of their paths."""
    for path in sorted(old_sources.keys() & new_sources.keys()):
        if old_sources[path] == new_sources[path]:
            continue
        versions = (old.version, new.version)
        edit = Edit(new.package.name, versions, path, old_sources[path], new_sources[path])
        if is_useful(edit):
            yield edit


def edits_of(releases: Sequence[Release]) -> list[Edit]:
    """At most `MAX_CASES_PER_PACKAGE` edits of one package, chosen by hash."""
    edits: list[Edit] = []
    present = [(release, read_sources(release.archive)) for release in releases if release.archive]
    for (old, old_sources), (new, new_sources) in pairwise(present):
        edits.extend(edits_between(old, new, old_sources, new_sources))
    unique = {fingerprint(edit): edit for edit in reversed(edits)}
    chosen = sorted(unique.values(), key=lambda edit: _share(edit.id))
    return chosen[:MAX_CASES_PER_PACKAGE]


def fingerprint(edit: Edit) -> str:
    """Equal for edits that change the same lines in the same way, wherever they stand."""
    original, expected = document_lines(edit.original), document_lines(edit.expected)
    parts = [
        line.strip()
        for hunk in find_hunks(original, expected)
        for line in [
            "-",
            *original[hunk.old_start : hunk.old_end],
            "+",
            *expected[hunk.new_start : hunk.new_end],
        ]
    ]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def make_case(edit: Edit) -> TrainingCase | None:
    """The case of an edit, with the update that its id determines."""
    language = learned_language(edit.path)
    if language is None:
        return None
    snippet = write_snippet(
        document_lines(edit.original),
        document_lines(edit.expected),
        language=language,
        rng=random.Random(f"{GENERATOR_VERSION}:{edit.id}"),
    )
    if snippet is None:
        return None
    return TrainingCase(
        id=edit.id,
        path=edit.path,
        language=language,
        package=edit.package,
        original=edit.original,
        update="\n".join(snippet.lines) + "\n",
        expected=edit.expected,
        style=snippet.style,
        generator_version=GENERATOR_VERSION,
    )


def make_cases(releases: Iterable[Release]) -> dict[str, list[TrainingCase]]:
    """All cases by split; an edit that occurs in two packages stays with the first."""
    cases: dict[str, list[TrainingCase]] = {split: [] for split in SPLITS}
    seen: set[str] = set()
    for package, group in groupby(releases, key=lambda release: release.package):
        for edit in edits_of(list(group)):
            mark = fingerprint(edit)
            case = None if mark in seen else make_case(edit)
            seen.add(mark)
            if case is not None:
                cases[split_of(package.name)].append(case)
    for found in cases.values():
        found.sort(key=lambda case: _share(case.id))
    return cases


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the case files and print their counts."""
    parser = argparse.ArgumentParser(prog="python -m training.corpus", description=__doc__)
    parser.add_argument("--packages", type=Path, default=Path(__file__).with_name("packages.toml"))
    parser.add_argument("--releases", type=Path, default=Path("build/releases"))
    parser.add_argument("--out", type=Path, default=Path("build/cases"))
    parser.add_argument("--share", type=float, default=1.0, help="of the packages, chosen by name")
    chosen = parser.parse_args(arguments)
    packages: list[Package] = [
        package
        for package in read_packages(chosen.packages)
        if _share(f"chosen {package.name}") < chosen.share
    ]
    if not packages:
        print(f"a share of {chosen.share} has no package; give more, at most 1")
        return 1
    cases = make_cases(fetch_releases(packages, chosen.releases))
    for split, found in cases.items():
        num_cases = write_cases(chosen.out / f"{split}.jsonl", found)
        languages = Counter(case.language for case in found).most_common()
        listed = ", ".join(f"{language} {count}" for language, count in languages)
        print(f"{split}: {num_cases} cases ({listed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
