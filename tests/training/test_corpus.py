from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from training.case_file import TrainingCase, document_lines, read_training_cases, write_cases
from training.corpus import (
    MAX_CASES_PER_PACKAGE,
    SPLITS,
    Edit,
    edits_of,
    fingerprint,
    is_useful,
    main,
    make_cases,
    split_of,
)
from training.releases import Package, Release, ReleaseError, read_packages
from training.source_files import learned_language, read_sources

BODY = [f"statement_{number} = call({number})" for number in range(60)]


def edit(expected: list[str], original: list[str] | None = None, path: str = "a/b.py") -> Edit:
    old = "\n".join(BODY if original is None else original) + "\n"
    return Edit("package", ("1.0", "1.1"), path, old, "\n".join(expected) + "\n")


def write_wheel(path: Path, files: dict[str, str | bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)
    return path


def release(root: Path, version: str, files: dict[str, str | bytes]) -> Release:
    package = Package("wheel", "package", "MIT", ("1.0", "1.1"))
    return Release(package, version, write_wheel(root / version / "package.whl", files))


def test_ordinary_edits_are_useful() -> None:
    assert is_useful(edit([*BODY[:10], "new = 1", *BODY[10:]]))
    assert is_useful(edit(BODY[:10] + BODY[12:]))


def test_trivial_and_huge_edits_are_not() -> None:
    assert not is_useful(edit(BODY))
    assert not is_useful(edit([f"other_{n}()" for n in range(60)]))
    scattered = [f"{line} + {n}" if n % 5 == 0 else line for n, line in enumerate(BODY)]
    assert not is_useful(edit(scattered))
    with_version = ['__version__ = "1.2.3"', *BODY]
    bumped = ['__version__ = "1.3.0rc1"', *BODY]
    assert not is_useful(edit(bumped, with_version))
    assert is_useful(edit(['__version__ = read("version")', *BODY], with_version))


def test_a_changed_final_newline_is_no_edit_of_lines() -> None:
    text = "\n".join(BODY)
    assert not is_useful(Edit("p", ("1", "2"), "a.py", text, text + "\nnew()\n"))


def test_few_of_the_comment_edits_are_kept() -> None:
    edits = [edit([f"# note {number}", *BODY], path=f"module_{number}.py") for number in range(300)]
    kept = sum(is_useful(one) for one in edits)
    assert 10 <= kept <= 60


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("package/module.py", "python"),
        ("src/index.ts", "typescript"),
        ("lib/a.rs", "rust"),
        ("package/_vendor/module.py", None),
        ("dist/index.js", None),
        ("lib/jquery.min.js", None),
        ("lib/index.d.ts", None),
        ("source/index.d.ts", "typescript"),
        ("data/table.csv", None),
    ],
)
def test_language_of_a_path(path: str, language: str | None) -> None:
    assert learned_language(path) == language


def test_archives_give_text_without_their_packing_folder(tmp_path: Path) -> None:
    text = "\n".join(BODY) + "\n"
    files = {
        "package/good.js": text.encode(),
        "package/crlf.js": text.replace("\n", "\r\n").encode(),
    }
    files["package/binary.js"] = b"\0" * 300
    files["package/short.js"] = b"x()\n"
    files["package/latin.js"] = b"\xff" + text.encode()
    path = tmp_path / "package.tgz"
    with tarfile.open(path, "w:gz") as packed:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            packed.addfile(info, io.BytesIO(content))
    assert read_sources(path) == {"good.js": text}


def test_edits_are_deduplicated_across_files_and_versions(tmp_path: Path) -> None:
    old = "\n".join(BODY) + "\n"
    new = "\n".join([*BODY[:30], "added = True", *BODY[30:]]) + "\n"
    first = release(tmp_path, "1.0", {"p/a.py": old, "p/copy.py": old, "p/gone.py": old})
    second = release(tmp_path, "1.1", {"p/a.py": new, "p/copy.py": new})
    edits = edits_of([first, Release(first.package, "1.0.1", None), second])
    assert len(edits) == 1
    assert edits[0].versions == ("1.0", "1.1")


def test_a_package_gives_a_limited_number_of_cases(tmp_path: Path) -> None:
    def text(number: int, added: list[str]) -> str:
        body = [f"value_{number}_{line} = {line}" for line in range(20)]
        return "\n".join(body[:10] + added + body[10:]) + "\n"

    numbers = range(MAX_CASES_PER_PACKAGE + 20)
    old = {f"p/m{n}.py": text(n, []) for n in numbers}
    new = {f"p/m{n}.py": text(n, [f"added_{n} = {n}"]) for n in numbers}
    releases = [release(tmp_path, "1.0", dict(old)), release(tmp_path, "1.1", dict(new))]
    cases = make_cases(releases)
    assert sum(map(len, cases.values())) == MAX_CASES_PER_PACKAGE
    assert {split for split in SPLITS if cases[split]} == {split_of("package")}
    assert cases == make_cases(releases)


def test_splits_follow_the_name_alone_in_the_wanted_shares() -> None:
    splits = [split_of(f"package-{number}") for number in range(2000)]
    assert 0.2 < splits.count("test") / 2000 < 0.3
    assert 0.07 < splits.count("dev") / 2000 < 0.13
    assert split_of("requests") == split_of("requests")


def test_equal_changes_have_equal_fingerprints_wherever_they_stand() -> None:
    one = edit([*BODY[:10], "new = 1", *BODY[10:]])
    other = edit([*BODY[:40], "    new = 1", *BODY[40:]], path="elsewhere.py")
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint(one) != fingerprint(edit([*BODY[:10], "new = 2", *BODY[10:]]))


def test_case_files_round_trip(tmp_path: Path) -> None:
    case = TrainingCase("i", "a.py", "python", "p", "a\n", "b\u2028\n", "c\n", "context", 1)
    path = tmp_path / "deep" / "cases.jsonl"
    assert write_cases(path, [case, case]) == 2
    assert list(read_training_cases(path)) == [case, case]
    assert not path.with_suffix(".partial").exists()
    assert json.loads(path.read_text().split("\n")[0])["style"] == "context"


def test_split_lines_keeps_the_final_newline_out() -> None:
    assert document_lines("") == []
    assert document_lines("\n") == [""]
    assert document_lines("a\n\n") == ["a", ""]
    assert document_lines("a\rb\u2028c") == ["a\rb\u2028c"]


def test_the_committed_package_list_is_valid_and_has_every_split() -> None:
    packages = read_packages(Path(__file__).parents[2] / "training" / "packages.toml")
    assert len(packages) >= 60
    assert {split_of(package.name) for package in packages} == set(SPLITS)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('registry = "wheel"\nname = "x"\nlicence = "GPL-3.0"\nversions = ["1", "2"]', "licence"),
        (
            'registry = "wheel"\nname = "x"\nlicence = "MIT"\nversions = ["1"]',
            "1 of the 2",
        ),
        ('registry = "other"\nname = "x"\nlicence = "MIT"\nversions = ["1", "2"]', "registry"),
        ('name = "x"\nlicence = "MIT"\nversions = ["1", "2"]', "needs registry"),
    ],
)
def test_bad_package_lists_are_refused(tmp_path: Path, entry: str, message: str) -> None:
    path = tmp_path / "packages.toml"
    path.write_text(f"[[package]]\n{entry}\n")
    with pytest.raises(ReleaseError, match=message):
        read_packages(path)


def test_a_share_without_packages_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--share", "0"]) == 1
    assert "a share of 0.0 has no package; give more, at most 1" in capsys.readouterr().out
