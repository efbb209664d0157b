"""The engine on a GPU: captured steps, and the tokens of the CPU."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from device_runs import DeviceRuns, share_behind_a_difference, wrong_now_and_then
from parity import check_parity

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture
def runs(tiny_model_dir: Path) -> DeviceRuns:
    return DeviceRuns(tiny_model_dir, "cuda")


@pytest.mark.parametrize("use_cuda_graphs", [True, False])
def test_float32_tokens_are_those_of_the_cpu(runs: DeviceRuns, use_cuda_graphs: bool) -> None:
    expected = dataclasses.replace(runs, device="cpu").answer()
    drafts = wrong_now_and_then(expected)
    answers = runs.answer(scripts=drafts, use_cuda_graphs=use_cuda_graphs)
    prompts = [request.prompt_token_ids for request in runs.make_requests()]
    check_parity(runs.model_dir, prompts, expected, answers)


def test_the_share_of_bfloat16_tokens_that_graphs_change_is_told(
    runs: DeviceRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """Padded rows are other numbers of rows for a matrix library, so ties may fall apart."""
    plain = runs.answer(dtype="bfloat16", use_cuda_graphs=False)
    captured = runs.answer(dtype="bfloat16")
    with capsys.disabled():
        print(f"\nbfloat16: {share_behind_a_difference(plain, captured):.2%} differ by graphs")
    assert [len(tokens) for tokens in captured] == [len(tokens) for tokens in plain]


def test_the_share_of_bfloat16_tokens_that_drafts_change_is_told(
    runs: DeviceRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """A matrix library may sum other numbers of rows in another order, so ties may fall apart."""
    plain = runs.answer(dtype="bfloat16")
    speculated = runs.answer(dtype="bfloat16", scripts=wrong_now_and_then(plain))
    share = share_behind_a_difference(plain, speculated)
    with capsys.disabled():
        print(
            f"\nbfloat16: {share:.2%} of {sum(map(len, plain))} tokens stand behind a first"
            " difference between speculation on and off"
        )
    assert [len(tokens) for tokens in speculated] == [len(tokens) for tokens in plain]
