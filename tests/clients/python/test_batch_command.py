"""`apply-client batch`: files, patches, order, conflicts, resuming, summary and exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from apply_client.__main__ import main
from apply_client.batch.journal import Journal, JournalHead, StepOutcome
from apply_client.update_text import DiskError
from oracle_service import OracleService
from server_thread import serving

ROOT = Path(__file__).parents[3]

SOURCE = (
    "def one():\n    first = 1\n    return first\n\n\n"
    "def two():\n    second = {}\n    return second\n\n\n"
    "def three():\n    third = 3\n    return third\n"
)
UPDATE = (
    "# ... existing code ...\ndef two():\n    second = {}\n    return second\n"
    "# ... existing code ...\n"
)
LOST_DIFF = "@@ -1 +1 @@\n-nowhere\n+somewhere\n"
ADDING_METHODS = "class Gate:\n    # ...\n    def shut(self):\n        return 1\n"


def source(value: int) -> str:
    return SOURCE.format(value)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(scope="module")
def url(tiny_model_dir: Path) -> Iterator[str]:
    with serving(OracleService(tiny_model_dir).service) as address:
        yield address


@pytest.fixture(autouse=True)
def repository(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four files, the current folder beside it, and a service that is known."""
    monkeypatch.setenv("APPLY_SERVICE_URL", url)
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "repo"
    (root / "deep er").mkdir(parents=True)
    for name in ("a.py", "b.py", "deep er/c.py"):
        (root / name).write_text(source(2))
    (root / "wide.py").write_bytes(source(2).encode("utf-16"))
    return root


def write_edits(*edits: dict[str, Any] | str) -> None:
    lines = [edit if isinstance(edit, str) else json.dumps(edit) for edit in edits]
    Path("edits.jsonl").write_text("".join(f"{line}\n" for line in lines))


def edit(path: str, value: int, **members: Any) -> dict[str, Any]:
    return {"path": path, "update": UPDATE.format(value), **members}


def run(*arguments: str, root: str = "repo") -> int:
    return main(["batch", "edits.jsonl", "--root", root, "--use-model", "never", *arguments])


def test_files_are_written_and_each_edit_is_done_once(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits(edit("a.py", 10), edit("b.py", 20), "", edit("deep er/c.py", 30), edit("a.py", 40))
    assert run("--write") == 0
    assert capfd.readouterr() == ("", "4 edits: 4 applied\n")
    assert (repository / "a.py").read_text() == source(40), "in the order of their lines"
    assert (repository / "b.py").read_text() == source(20)
    assert (repository / "deep er/c.py").read_text() == source(30)

    (repository / "a.py").write_text(source(50))
    assert run("--write") == 0
    assert "4 of 4 edits are done" in capfd.readouterr().err
    assert (repository / "a.py").read_text() == source(50), "nothing is done again"
    assert sorted(path.name for path in repository.iterdir()) == [
        "a.py",
        "b.py",
        "deep er",
        "wide.py",
    ]


def test_every_encoding_survives(repository: Path) -> None:
    write_edits(edit("wide.py", 10))
    assert run("--write") == 0
    assert (repository / "wide.py").read_bytes() == source(10).encode("utf-16")


def test_without_a_goal_nothing_is_left(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits(edit("a.py", 10), edit("a.py", 20))
    assert run() == 0
    assert capfd.readouterr() == ("", "2 edits: 2 applied\n")
    assert (repository / "a.py").read_text() == source(2)
    assert sorted(path.name for path in Path().iterdir()) == ["edits.jsonl", "repo"]


def test_the_patch_is_one_that_git_applies(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (repository / "bare.py").write_text(source(2).rstrip("\n"))
    write_edits(
        edit("a.py", 10),
        edit("a.py", 20),
        edit("deep er/c.py", 30),
        edit("bare.py", 40),
        {
            "path": "new.py",
            "update": "*** Begin Patch\n*** Add File: new.py\n+x = 1\n*** Delete File: b.py\n"
            "*** End Patch\n",
        },
    )
    assert run("--patch", "out.patch") == 0
    assert "1 added, 4 applied, 1 removed" in capfd.readouterr().err
    assert (repository / "a.py").read_text() == source(2)
    subprocess.run(["git", "apply", "../out.patch"], cwd=repository, check=True)
    assert (repository / "a.py").read_text() == source(20)
    assert (repository / "deep er/c.py").read_text() == source(30)
    assert (repository / "bare.py").read_text() == source(40).rstrip("\n")
    assert (repository / "new.py").read_text() == "x = 1\n"
    assert not (repository / "b.py").exists()


def test_a_patch_leaves_out_what_has_changed_and_what_is_no_text(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits(edit("a.py", 10), edit("b.py", 20), edit("wide.py", 30))
    assert run("--patch", "-") == 4
    out, error = capfd.readouterr()
    assert out.count("diff --git") == 2
    assert "not in the patch: wide.py has NUL bytes" in error
    (repository / "a.py").write_text(source(99))
    assert run("--patch", "-") == 4
    out, error = capfd.readouterr()
    assert "a/a.py" not in out
    assert "a.py has changed since its first edit was made" in error
    assert out.count("diff --git") == 1


def test_what_is_not_sure_is_said_and_not_written(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits({"path": "a.py", "update": ADDING_METHODS, "id": "gate"}, edit("b.py", 20))
    assert run("--write") == 3
    error = capfd.readouterr().err
    assert "edits.jsonl:1 (gate) a.py: needs review\n  warning ambiguous_place: " in error
    assert "2 edits: 1 applied, 1 needs review" in error
    assert (repository / "a.py").read_text() == source(2)
    assert run("--write", "--accept-review") == 2
    assert "its accepts_review is False, not True" in capfd.readouterr().err
    assert run("--write", "--accept-review", "--journal", "other") == 3
    assert "needs review (written)" in capfd.readouterr().err
    assert "class Gate" in (repository / "a.py").read_text()


def test_failures_do_not_stop_others(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_edits(
        {"path": "a.py", "update": LOST_DIFF},
        edit("absent.py", 1),
        {"path": "a.py", "update": ""},
        {"path": "a.py", "update": "x = 1"},
        {"path": "b.py", "update": "*** Begin Patch\n*** Add File: b.py\n+x\n*** End Patch\n"},
        edit("a.py", 10),
    )
    assert run("--write") == 4
    error = capfd.readouterr().err
    assert "edits.jsonl:1 a.py: rejected\n  error anchor_not_found" in error
    assert "edits.jsonl:2 absent.py: failed: absent.py does not exist" in error
    assert "edits.jsonl:3 a.py: failed: the update has 0 lines" in error
    assert "edits.jsonl:4 a.py: rejected: the update has 1 line " in error
    assert "edits.jsonl:5 b.py: failed: b.py exists already" in error
    assert "6 edits: 1 applied, 3 failed, 2 rejected" in error
    assert (repository / "a.py").read_text() == source(10)


@pytest.mark.parametrize("goal", [["--write"], ["--patch", "out.patch"]])
def test_a_file_that_is_not_as_expected_is_a_conflict(
    goal: list[str], repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    expected = sha256(source(2))
    write_edits(
        edit("a.py", 10, expected_sha256=expected.upper()),
        edit("a.py", 20, expected_sha256=expected),
        edit("a.py", 30, expected_sha256=sha256(source(20))),
        edit("b.py", 40, expected_sha256=sha256("something else")),
        edit("b.py", 50),
        edit("absent.py", 1, expected_sha256=expected),
    )
    assert run(*goal) == 4
    error = capfd.readouterr().err
    assert "6 edits: 4 applied, 2 content conflict" in error
    assert "edits.jsonl:4 b.py: content conflict: b.py has changed: its SHA-256 is" in error
    if goal == ["--write"]:
        assert (repository / "a.py").read_text() == source(30)
        assert (repository / "b.py").read_text() == source(50)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"path": "a.py"}', "missing required field `update`"),
        ('{"path": "a.py", "update": "x", "more": 1}', "unknown field `more`"),
        ("not JSON", "line 2: JSON is malformed"),
        ('{"path": "../out.py", "update": "x"}', "has `..` in it"),
        ('{"path": ".git/config", "update": "x"}', "version control"),
        ('{"path": "a.py", "update": "*** Begin Patch\\n*** Nonsense\\n"}', "line 2: "),
    ],
)
def test_bad_lines_are_found_before_anything_is_done(
    line: str, words: str, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits(edit("a.py", 10), line)
    assert run("--write") == 2
    error = capfd.readouterr().err
    assert "edits.jsonl: 1 of its lines can not be used; nothing was done" in error
    assert words in error
    assert (repository / "a.py").read_text() == source(2)
    assert not Path("edits.jsonl.journal").exists()


def test_mistakes_of_the_command_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "absent.jsonl", "--root", "repo"]) == 2
    write_edits(edit("a.py", 10))
    assert run("--write", root="absent") == 2
    assert run("--write", "--concurrency", "0") == 2
    assert run("--patch", "absent/out.patch") == 2
    assert run("--write", "--journal", "absent/journal") == 2
    assert run("--write", "--timeout", "-1", "--journal", "other") == 2
    assert "Traceback" not in capfd.readouterr().err


def test_a_service_that_is_away_leaves_the_work_for_later(
    repository: Path, url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits(edit("a.py", 10), edit("a.py", 20), edit("b.py", 30), edit("deep er/c.py", 40))
    away = ("--write", "--url", "http://127.0.0.1:9", "--timeout", "0.2", "--concurrency", "1")
    assert run(*away) == 1
    error = capfd.readouterr().err
    assert error.count("unfinished") == 1, "the service is asked no more"
    assert "the service takes no edits yet (" in error
    assert "waiting up to 0.2 s an edit" in error
    assert "4 edits: 4 not done yet" in error
    assert run("--write") == 0
    assert (repository / "a.py").read_text() == source(20)


def test_what_would_meet_every_edit_ends_the_batch(capfd: pytest.CaptureFixture[str]) -> None:
    write_edits(edit("a.py", 10), edit("b.py", 20))
    assert run("--write", "--model", "none") == 1
    assert capfd.readouterr().err.count("'none' is not served") == 1
    assert run("--write") == 0


class TestInterruptedBetweenTwoLines:
    """The journal says that a file was about to be written; the file says whether it was."""

    @pytest.fixture(autouse=True)
    def _begun(self, repository: Path) -> None:
        write_edits(edit("a.py", 10), edit("a.py", 20))
        head = JournalHead(
            edits_sha256=sha256(Path("edits.jsonl").read_text()),
            root=str(repository),
            mode="write",
            accepts_review=False,
        )
        outcome = StepOutcome(
            status="applied", before=sha256(source(2)), after=sha256(source(10)), is_written=True
        )
        with Journal(Path("edits.jsonl.journal"), head) as journal:
            journal.begin("1", "a.py", outcome)
        with Path("edits.jsonl.journal").open("ab") as stream:
            stream.write(b'{"event":"end","step":"1","pa')  # cut off by a kill

    def test_before(self, repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
        assert run("--write") == 0
        assert "2 edits: 2 applied" in capfd.readouterr().err
        assert (repository / "a.py").read_text() == source(20)

    def test_after(self, repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (repository / "a.py").write_text(source(10))
        assert run("--write") == 0
        assert "2 edits: 2 applied" in capfd.readouterr().err
        assert (repository / "a.py").read_text() == source(20)

    def test_changed_by_somebody(self, repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (repository / "a.py").write_text(source(77))
        assert run("--write") == 4
        assert "content conflict: the work was interrupted" in capfd.readouterr().err
        assert (repository / "a.py").read_text() == source(20)


def test_a_damaged_or_foreign_journal_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    write_edits(edit("a.py", 10))
    journal = Path("edits.jsonl.journal")
    journal.write_text("something else\n")
    assert run("--write") == 2
    assert "is no journal of a batch" in capfd.readouterr().err
    journal.unlink()
    assert run("--write") == 0
    content = journal.read_text()
    journal.write_text(content.replace('"event"', '"even"', 1))
    assert run("--write") == 2
    assert "is damaged at byte" in capfd.readouterr().err
    journal.write_text(content)
    write_edits(edit("a.py", 20))
    assert run("--write") == 2
    assert "the journal of another batch: its edits_sha256" in capfd.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"notes that nobody has a copy of", id="a line without an end"),
        pytest.param(b'{"path": "a.py", "update": "x"}', id="one edit"),
        pytest.param(b'{"edits_sha256":"0123', id="cut off, of another batch"),
        pytest.param(b"first\nsecond\n", id="lines"),
        pytest.param(b"x" * 1_000_000, id="one long line"),
        pytest.param(b"\0\xff" * 500, id="bytes"),
    ],
)
def test_a_file_that_is_no_journal_is_left_alone(
    content: bytes, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits(edit("a.py", 10))
    journal = Path("notes.txt")
    journal.write_bytes(content)
    assert run("--write", "--journal", "notes.txt") == 2
    assert "notes.txt is no journal of a batch; name another one" in capfd.readouterr().err
    assert journal.read_bytes() == content
    assert (repository / "a.py").read_text() == source(2)


def test_a_journal_cut_off_in_its_first_line_is_begun_anew(repository: Path) -> None:
    write_edits(edit("a.py", 10))
    assert run("--write") == 0
    journal = Path("edits.jsonl.journal")
    journal.write_bytes(journal.read_bytes()[:40])
    (repository / "a.py").write_text(source(2))
    assert run("--write") == 0
    assert (repository / "a.py").read_text() == source(10)


def test_a_journal_is_a_regular_file(capfd: pytest.CaptureFixture[str]) -> None:
    write_edits(edit("a.py", 10))
    os.mkfifo("pipe")
    for name in ("pipe", "/dev/null"):
        assert run("--write", "--journal", name) == 2
        assert f"{name} is no regular file" in capfd.readouterr().err


def run_limited(*arguments: str, max_bytes: int | None) -> subprocess.CompletedProcess[str]:
    """`apply-client batch` in a process in which no file may grow beyond a size."""

    def limit() -> None:
        if max_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))

    command = [sys.executable, "-m", "apply_client", "batch", "edits.jsonl", "--root", "repo"]
    return subprocess.run(
        [*command, "--use-model", "never", "--concurrency", "1", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python")},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("goal", [["--write"], ["--patch", "out.patch"]], ids=["write", "patch"])
def test_a_full_disk_is_said_and_nothing_is_lost(goal: list[str], repository: Path) -> None:
    write_edits(*(edit(name, 10 * value) for value in (1, 2, 3) for name in ("a.py", "b.py")))
    for max_bytes in (100, 700, 1_100, 1_500):
        ended = run_limited(*goal, max_bytes=max_bytes)
        assert ended.returncode == 1, ended.stderr
        assert "apply-client: cannot write edits.jsonl.journal: File too large" in ended.stderr
        assert "Traceback" not in ended.stderr
    ended = run_limited(*goal, max_bytes=None)
    assert ended.returncode == 0, ended.stderr
    assert "6 edits: 6 applied" in ended.stderr
    if goal != ["--write"]:
        assert (repository / "a.py").read_text() == source(2)
        subprocess.run(["git", "apply", "../out.patch"], cwd=repository, check=True)
    assert [(repository / name).read_text() for name in ("a.py", "b.py")] == [source(30)] * 2


def test_a_file_that_has_no_room_is_done_later(repository: Path) -> None:
    (repository / "large.py").write_text(source(2) + "# more\n" * 700)
    write_edits(edit("large.py", 10), edit("a.py", 20))
    ended = run_limited("--write", max_bytes=4_000)
    assert ended.returncode == 1
    assert "large.py: unfinished: large.py cannot be used: File too large" in ended.stderr
    assert (repository / "large.py").read_text().startswith(source(2))
    assert (repository / "a.py").read_text() == source(20)
    assert run_limited("--write", max_bytes=None).returncode == 0
    assert (repository / "large.py").read_text().startswith(source(10))


def test_output_that_nobody_takes_is_said() -> None:
    write_edits(edit("a.py", 10))
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "apply_client", "batch", "edits.jsonl", "--root", "repo"]
        ended = subprocess.run(
            [*command, "--use-model", "never", "--patch", "-"],
            env={**os.environ, "PYTHONPATH": str(ROOT / "clients/python")},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr.endswith("No space left on device\n")
    assert "Traceback" not in ended.stderr


def test_a_patch_keeps_the_rights_of_a_file_and_spares_pipes(
    repository: Path,
) -> None:
    write_edits(edit("a.py", 10))
    patch = Path("real.patch")
    patch.write_text("")
    patch.chmod(0o600)
    Path("out.patch").symlink_to("real.patch")
    assert run("--patch", "out.patch") == 0
    assert Path("out.patch").is_symlink()
    assert stat.S_IMODE(patch.stat().st_mode) == 0o600
    os.mkfifo("pipe")
    with os.fdopen(os.open("pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as pipe:
        assert run("--patch", "pipe") == 0
        assert pipe.read() == patch.read_bytes() != b""
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


def test_what_a_file_loses_is_said(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    os.link(repository / "a.py", repository / "other.py")
    write_edits(edit("a.py", 10))
    assert run("--write") == 0
    error = capfd.readouterr().err
    assert "a.py: applied (written): 1 more of its names (hard links) keep the old" in error


def test_two_runs_at_once_are_refused(repository: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_edits(edit("a.py", 10))
    head = JournalHead(edits_sha256="", root="", mode="write", accepts_review=False)
    with Journal(Path("edits.jsonl.journal"), head):
        assert run("--write") == 2
    assert "is in use by another run" in capfd.readouterr().err
    assert (repository / "a.py").read_text() == source(2)


TWICE = "class A:\n    def f(self):\n        go()\n\n\nclass B:\n    def f(self):\n        go()\n"
EITHER = {"path": "t.py", "update": "# ...\n    def f(self):\n        log()\n        go()\n# ...\n"}


def questions() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("q.jsonl").read_text().splitlines()]


def answer(question: dict[str, Any], symbol: str) -> None:
    """Write the question with an answer, as a person would."""
    chosen = next(one for one in question["choices"] if one["where"]["symbol"] == symbol)
    Path("a.jsonl").write_text("\n" + json.dumps({**question, "resolve": chosen["id"]}) + "\n")


@pytest.mark.parametrize("goal", [["--write"], ["--patch", "all.patch"]])
def test_doubts_are_questions_whose_answers_the_same_command_takes(
    goal: list[str], repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (repository / "t.py").write_text(TWICE)
    write_edits(EITHER, edit("b.py", 20))
    command = [*goal, "--questions", "q.jsonl"]
    assert run(*command) == 3
    assert "q.jsonl: 1 question\n" in capfd.readouterr().err
    (question,) = questions()
    assert (question["step"], question["path"]) == ("1", "t.py")
    answer(question, "B.f")
    assert run(*command, "--answers", "a.jsonl") == 0
    assert "2 edits: 2 applied" in capfd.readouterr().err
    assert questions() == []
    if goal == ["--write"]:
        meant = TWICE.replace(
            "class B:\n    def f(self):\n", "class B:\n    def f(self):\n        log()\n"
        )
        assert (repository / "t.py").read_text() == meant
    else:
        assert "+        log()" in Path("all.patch").read_text()
    assert run(*command, "--answers", "a.jsonl") == 0, "an answer counts once"


def test_an_answer_to_what_the_file_is_no_more_is_a_new_question(
    repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (repository / "t.py").write_text(TWICE)
    write_edits(EITHER)
    command = ["--write", "--questions", "q.jsonl"]
    assert run(*command) == 3
    answer(questions()[0], "B.f")
    (repository / "t.py").write_text("# new\n" + TWICE)
    assert run(*command, "--answers", "a.jsonl") == 3
    assert "the answer is none of the choices" in capfd.readouterr().err
    assert (repository / "t.py").read_text() == "# new\n" + TWICE
    answer(questions()[0], "A.f")
    assert run(*command, "--answers", "a.jsonl") == 0
    assert (repository / "t.py").read_text().index("log") < TWICE.index("class B")


def test_a_dry_run_asks_and_the_first_run_takes_the_answers(repository: Path) -> None:
    (repository / "t.py").write_text(TWICE)
    write_edits(EITHER)
    assert run("--questions", "q.jsonl") == 3
    answer(questions()[0], "A.f")
    assert run("--write", "--answers", "a.jsonl") == 0
    assert "log()" in (repository / "t.py").read_text()


@pytest.mark.parametrize("text", ["no", '{"step": 1}', '{"step": "9", "resolve": "x"}'])
def test_bad_answers_do_nothing(
    text: str, repository: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_edits(edit("b.py", 20))
    Path("a.jsonl").write_text(text)
    assert run("--write", "--answers", "a.jsonl") == 2
    assert "write a question's `step`" in capfd.readouterr().err
    assert (repository / "b.py").read_text() == source(2)


def test_an_answer_whose_write_was_interrupted_is_told_from_the_file(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full after the file was written: the next run knows, even without answers."""
    (repository / "t.py").write_text(TWICE)
    write_edits(EITHER)
    command = ["--write", "--questions", "q.jsonl"]
    assert run(*command) == 3
    answer(questions()[0], "B.f")
    ending = Journal.end

    def killed(self: Journal, *_arguments: Any, **_members: Any) -> None:
        raise DiskError("no room")

    monkeypatch.setattr(Journal, "end", killed)
    assert run(*command, "--answers", "a.jsonl") == 1
    monkeypatch.setattr(Journal, "end", ending)
    assert "log()" in (repository / "t.py").read_text()
    assert run(*command) == 0
    assert questions() == []
    assert (repository / "t.py").read_text().count("log()") == 1
