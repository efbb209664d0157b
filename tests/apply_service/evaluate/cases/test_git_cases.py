"""Cases from real repositories that these tests make with git."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from apply_service.evaluate.cases.git_cases import GitCases, is_written_by_people, read_git_cases
from apply_service.evaluate.cases.git_history import GitError

BODY = "".join(f"def function_{number}():\n    return {number}\n\n\n" for number in range(12))


class Repository:
    """A git repository in a folder of the test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.git("init", "--quiet", "--initial-branch=trunk")

    def git(self, *arguments: str) -> str:
        identity = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (
                ("NAME", "A"),
                ("EMAIL", "a@example.org"),
                ("DATE", "2026-01-01T12:00:00+00:00"),  # the same commit ids in every run
            )
        }
        done = subprocess.run(
            ["git", "-c", "core.autocrlf=false", *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            env={**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull},
        )
        return done.stdout.decode().strip()

    def commit(self, message: str = "change", **files: str | bytes) -> str:
        """Write files, named as keywords with `__` for a dot, and commit them."""
        for name, content in files.items():
            path = self.folder / name.replace("__", ".")
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def cases_of(repository: Repository, **options: object) -> GitCases:
    return read_git_cases(repository.folder, **options)  # type: ignore[arg-type]


def test_a_commit_of_one_file_becomes_a_case(repository: Repository) -> None:
    repository.commit(a__py=BODY)
    changed = BODY.replace("return 5", "return 55")
    commit = repository.commit(a__py=changed)
    found = cases_of(repository)
    assert len(found.cases) == found.num_commits == 1
    case = found.cases[0]
    assert (case.id, case.path, case.language) == (f"{commit[:12]}:a.py", "a.py", "python")
    assert (case.original, case.expected) == (BODY, changed)
    assert "return 55" in case.update
    assert len(case.update) < len(changed)


def test_newest_first_up_to_the_limit_and_always_the_same(repository: Repository) -> None:
    text = BODY
    repository.commit(a__py=text)
    commits = []
    for number in range(5):
        text = text.replace(f"return {number}\n", f"return {number}00\n")
        commits.append(repository.commit(a__py=text))
    found = cases_of(repository, limit=3)
    assert [case.id[:12] for case in found.cases] == [commit[:12] for commit in commits[:1:-1]]
    assert cases_of(repository, limit=3) == found


def test_other_commits_are_left_out(repository: Repository) -> None:
    repository.commit(a__py=BODY, b__py=BODY, c__bin=b"\0\1", d__js=BODY)
    repository.commit(a__py=BODY + "x = 1\n", b__py=BODY + "y = 1\n")
    repository.commit(c__bin=b"\0\2")
    repository.commit(d__js="// @generated\n" + BODY)
    repository.commit(a__py="everything = 'new'\n" * 90)
    repository.commit(new__py=BODY)
    repository.git("checkout", "--quiet", "-b", "side", "HEAD~2")
    repository.commit(b__py=BODY.replace("return 1\n", "return 1.5\n"))
    repository.git("merge", "--quiet", "--no-edit", "trunk")
    found = cases_of(repository)
    assert [case.path for case in found.cases] == ["b.py"]
    assert found.left_out["binary"] == 1
    assert found.left_out["a rewrite"] == 1
    assert found.left_out["generated, or with an odd name"] == 1


def test_a_huge_file_does_not_stop_the_reader(repository: Repository) -> None:
    huge = "value = 1\n" * 30_000
    repository.commit(a__py=BODY, huge__py=huge)
    repository.commit(a__py=BODY.replace("return 3", "return 33"))
    repository.commit(huge__py=huge + "more = 2\n")
    found = cases_of(repository)
    assert [case.path for case in found.cases] == ["a.py"]
    assert found.left_out == {"larger than 200000 bytes": 1}


def test_files_in_known_languages_come_first(repository: Repository) -> None:
    repository.commit(a__py=BODY, notes__xyz=BODY)
    repository.commit(a__py=BODY.replace("return 3", "return 33"))
    repository.commit(notes__xyz=BODY.replace("return 3", "return 33"))
    found = cases_of(repository)
    assert [case.path for case in found.cases] == ["a.py", "notes.xyz"]
    assert found.cases[1].language is None
    assert [case.path for case in cases_of(repository, limit=1).cases] == ["a.py"]


def test_any_revision_is_a_place_to_begin(repository: Repository) -> None:
    repository.commit(a__py=BODY)
    first = repository.commit(a__py=BODY.replace("return 3", "return 33"))
    repository.commit(a__py=BODY)
    assert [case.id[:12] for case in cases_of(repository, revision=first).cases] == [first[:12]]


def test_line_endings_are_those_of_the_file(repository: Repository) -> None:
    original = BODY.replace("\n", "\r\n")
    expected = original.replace("return 7", "return 77")
    repository.commit(a__py=original)
    repository.commit(a__py=expected)
    case = cases_of(repository).cases[0]
    assert (case.original, case.expected) == (original, expected)
    repository.commit(a__py=BODY.replace("return 7", "return 77"))
    assert cases_of(repository).left_out == {"line endings or the final newline changed": 1}


def test_odd_names_do_not_confuse_the_reader(repository: Repository) -> None:
    (repository.folder / ":100644 x.py").write_text(BODY)
    (repository.folder / "commit:a b.py").write_text(BODY)
    repository.commit()
    (repository.folder / "commit:a b.py").write_text(BODY.replace("return 3", "return 33"))
    repository.commit()
    (repository.folder / ":100644 x.py").write_text(BODY.replace("return 3", "return 33"))
    repository.commit()
    assert [case.path for case in cases_of(repository).cases] == [":100644 x.py", "commit:a b.py"]


def test_errors_say_what_git_says(repository: Repository) -> None:
    repository.commit(a__py=BODY)
    with pytest.raises(GitError, match="no-such-branch"):
        cases_of(repository, revision="no-such-branch")
    with pytest.raises(GitError):
        cases_of(repository, revision="--output=stolen")
    assert not (repository.folder / "stolen").exists()


def test_a_folder_that_is_no_repository(tmp_path: Path) -> None:
    with pytest.raises(GitError, match=str(tmp_path)):
        read_git_cases(tmp_path)


SOURCE_TEXT = "\n".join(f"statement_{number} = call({number})" for number in range(60))


def test_what_people_write() -> None:
    assert is_written_by_people(SOURCE_TEXT)


@pytest.mark.parametrize(
    "text",
    [
        "// @generated by a tool\n" + SOURCE_TEXT,
        "# Code generated from schema.sql\n" + SOURCE_TEXT,
        "var a=" + "1+" * 400 + "1",
        SOURCE_TEXT + "\n//# sourceMappingURL=a.js.map\n",
    ],
)
def test_generated_and_minified_text_is_recognised(text: str) -> None:
    assert not is_written_by_people(text)
