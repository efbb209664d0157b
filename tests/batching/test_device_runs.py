"""What `tests/gpu` asks of a GPU, asked of the CPU, so that it is known to run."""

from __future__ import annotations

from pathlib import Path

import pytest
from device_runs import DeviceRuns, share_behind_a_difference, wrong_now_and_then
from parity import check_parity

from batching.config import Dtype
from kernels.instruction_set import has_bfloat16


@pytest.mark.parametrize("dtype", ["float32", *(["bfloat16"] if has_bfloat16() else [])])
def test_drafts_change_few_tokens(tiny_model_dir: Path, dtype: Dtype) -> None:
    runs = DeviceRuns(tiny_model_dir, "cpu", num_requests=3, max_tokens=20)
    plain = runs.answer(dtype=dtype)
    drafts = wrong_now_and_then(plain)
    assert 0.0 < share_behind_a_difference(plain, drafts) < 1.0
    speculated = runs.answer(dtype=dtype, scripts=drafts)
    assert [len(tokens) for tokens in speculated] == [20] * 3
    if dtype == "float32":
        prompts = [request.prompt_token_ids for request in runs.make_requests()]
        check_parity(tiny_model_dir, prompts, plain, speculated)


def test_the_share_counts_from_the_first_difference() -> None:
    assert share_behind_a_difference([[1, 2, 3], [4]], [[1, 9, 3], [4]]) == 0.5
