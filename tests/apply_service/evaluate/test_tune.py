"""The tuning bench: sides take turns, the file is one that the service reads, nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

import pytest
from case_files import case_file

from apply_service.cli.main import main
from apply_service.config import Settings, load_settings
from apply_service.evaluate import tune
from apply_service.evaluate.edit_session import EditSession, EditTiming, GroupTiming
from apply_service.evaluate.edit_worker import EditJob, EditProcess, run_job
from apply_service.evaluate.worker_process import WorkerEndedError

CASES = case_file("short_edits")


class TimedProcess:
    """Stands where a process does, and takes the seconds that its settings say."""

    jobs: ClassVar[list[tuple[int, str]]] = []

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.is_running = True

    def __enter__(self) -> TimedProcess:
        if self.settings.dtype == "float16":
            raise WorkerEndedError("float16 does not run here")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_running = False

    def run(self, job: EditJob) -> GroupTiming:
        self.jobs.append((self.settings.max_tokens_per_step, job.salt))
        is_quick, is_sloppy = (
            self.settings.max_tokens_per_step == 1024,
            self.settings.dtype == "int8",
        )
        seconds = (0.8 if is_quick else 1.0) * (0.1 if is_sloppy else 1.0)
        status = "needs_review" if is_sloppy else "applied"
        edits = [EditTiming(status=status, total_s=seconds, target_passes=1) for _ in job.cases]
        return GroupTiming(edits=tuple(edits), wall_s=seconds, schedule_s=0.0, execute_s=0.0)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> type[TimedProcess]:
    monkeypatch.setattr(TimedProcess, "jobs", [])
    monkeypatch.setattr(tune, "EditProcess", TimedProcess)
    return TimedProcess


def run_tune(out: Path, *flags: str) -> int:
    return main(["bench", "tune", "--cases", str(CASES), "--out", str(out), *flags])


def test_what_is_faster_comes_into_a_file_that_the_service_reads(
    processes: type[TimedProcess], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start, out = tmp_path / "start.toml", tmp_path / "tuned.toml"
    start.write_text('port = 9000\nmodel = "some/\\"model\\""\n')
    flags = ["--config", str(start), "--limit", "5", "--dtypes", "int8,float16", "--json"]
    assert run_tune(out, *flags) == 0
    report = json.loads(capsys.readouterr().out)
    settings = load_settings(flags={}, environment={}, config_path=out).settings
    assert settings == Settings(port=9000, model='some/"model"', max_tokens_per_step=1024)
    notes = {(trial["name"], trial["value"]): trial["note"] for trial in report["trials"]}
    assert notes["dtype", "int8"] == "fewer results are trusted"
    assert notes["dtype", "float16"] == "did not run"
    assert report["settings"]["max_tokens_per_step"] == 1024
    assert report["jobs"] == 5
    text = out.read_text()
    assert "# max_tokens_per_step" in text
    assert "taken" in text


def test_a_variable_that_hides_what_was_found_is_said(
    processes: type[TimedProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("APPLY_SERVICE_MAX_TOKENS_PER_STEP", "256")
    monkeypatch.setenv("APPLY_SERVICE_PORT", "9000")
    assert run_tune(tmp_path / "tuned.toml", "--limit", "5") == 0
    assert "APPLY_SERVICE_MAX_TOKENS_PER_STEP is set" in capsys.readouterr().err
    settings = load_settings(flags={}, environment={}, config_path=tmp_path / "tuned.toml").settings
    assert settings == Settings(max_tokens_per_step=1024), "the environment is not written down"


def test_sides_take_turns_and_nothing_is_computed_twice(
    processes: type[TimedProcess], tmp_path: Path
) -> None:
    assert run_tune(tmp_path / "a.toml", "--limit", "6", "--only", "max_tokens_per_step") == 0
    salts = [salt for _, salt in processes.jobs]
    assert len(set(salts)) == len(salts)
    sides = [chunk for chunk, _ in processes.jobs if chunk in (512, 256)][6 + 2 :][: 2 * 2 * 6]
    first = [pair[0] for pair in zip(sides[::2], sides[1::2], strict=True)]
    assert {512, 256} == set(first), "neither side always begins"
    assert all(a != b for a, b in zip(sides[::2], sides[1::2], strict=True))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--limit", "2"], "--limit is 2; give a number from 5 on"),
        (["--rounds", "0"], "--rounds is 0"),
        (["--dtypes", "int4"], "choose from auto, bfloat16"),
        (["--only", "port"], "--only has 'port'"),
        (["--together", "9"], "only 1 jobs"),
    ],
)
def test_what_cannot_be_is_refused(
    flags: list[str],
    message: str,
    processes: type[TimedProcess],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_tune(tmp_path / "tuned.toml", *flags) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "tuned.toml").exists()


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "tuned.toml"
    out.write_text("port = 1\n")
    assert run_tune(out) == 1
    assert "is not overwritten" in capsys.readouterr().err
    assert out.read_text() == "port = 1\n"
    assert run_tune(tmp_path / "nowhere" / "tuned.toml") == 1
    assert "is not a folder" in capsys.readouterr().err


def tiny_settings(tiny_model_dir: Path) -> Settings:
    return Settings(model=str(tiny_model_dir), profile="embedded", threads=1, draft_budget="fixed")


def case_jobs(count: int) -> list[EditJob]:
    cases = list(tune.read_cases(CASES))[:count]
    return [EditJob(cases=(case,), salt=f"job {at}") for at, case in enumerate(cases)]


def test_a_job_asks_the_model_and_shares_nothing_with_others(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path))
    job, second = case_jobs(2)
    with EditSession.load(tiny_settings(tiny_model_dir)) as session:
        first, again = run_job(session, job), run_job(session, job)
        other = run_job(session, EditJob(cases=job.cases + second.cases, salt="other"))
    assert first.edits[0].target_passes > 0
    assert [edit.num_cached_tokens for edit in (*first.edits, *other.edits)] == [0, 0, 0]
    assert again.edits[0].num_cached_tokens > 0
    assert len(other.edits) == 2
    assert 0 < first.execute_s < first.wall_s


@pytest.mark.slow
def test_real_processes_with_settings_of_their_own(
    tiny_model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APPLY_SERVICE_CACHE", str(tmp_path))
    settings: Any = tiny_settings(tiny_model_dir)
    with EditProcess(settings) as process:
        timings = [process.run(job) for job in case_jobs(3)]
    assert all(timing.edits[0].target_passes for timing in timings)
    out = tmp_path / "tuned.toml"
    flags = ["--model", str(tiny_model_dir), "--profile", "embedded", "--threads", "1"]
    assert run_tune(out, *flags, "--limit", "5", "--rounds", "1", "--only", "draft_budget") == 0
    assert load_settings(flags={}, environment={}, config_path=out).settings.threads == 1
