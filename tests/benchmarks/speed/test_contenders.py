"""The rival in its own process: it answers, ends with its block, and its failures are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from apply_service.evaluate.worker_process import WorkerEndedError
from benchmarks.speed.contenders import RivalProcess
from benchmarks.speed.run import RivalRequest


def make_request(num_lookup_tokens: int | None = None) -> RivalRequest:
    return RivalRequest(
        prompt_token_ids=(5, 6, 7, 5, 6),
        max_tokens=6,
        stop_token_ids=(0,),
        num_lookup_tokens=num_lookup_tokens,
    )


def test_lookup_changes_the_time_and_not_the_tokens_and_a_failure_is_said(
    tiny_model_dir: Path,
) -> None:
    impossible = RivalRequest(prompt_token_ids=(1,), max_tokens=1, stop_token_ids=())
    with RivalProcess(tiny_model_dir, num_threads=1) as rival:
        plain, lookup = (rival.run(make_request(num_tokens)) for num_tokens in (None, 10))
        assert 1 <= len(plain.token_ids) <= 6
        assert lookup.token_ids == plain.token_ids
        assert plain.seconds > 0
        for request in (impossible, make_request()):
            with pytest.raises(WorkerEndedError, match="exit code 1"):
                rival.run(request)


def test_a_model_that_cannot_be_loaded_is_said(tmp_path: Path) -> None:
    with (
        pytest.raises(WorkerEndedError, match="exit code 1"),
        RivalProcess(tmp_path / "nothing", num_threads=1),
    ):
        pass
