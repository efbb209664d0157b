"""The engine on a GPU: captured steps, and the tokens of the CPU."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from engine_runs import ScriptedProposer, running_engine
from parity import check_parity

from batching.config import Device, Dtype, EngineConfig, SchedulerConfig
from batching.request import EngineRequest, SamplingParams

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

NUM_REQUESTS = 30
MAX_TOKENS = 80


def make_requests(scripts: Sequence[Sequence[int]] | None) -> list[EngineRequest]:
    generator = random.Random(4)
    lens = [generator.choice([5, 64, 700]) for _ in range(NUM_REQUESTS)]
    return [
        EngineRequest(
            request_id=f"request-{index}",
            prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(prompt_len)),
            sampling=SamplingParams(max_tokens=MAX_TOKENS),
            proposer=ScriptedProposer(scripts[index]) if scripts else None,
        )
        for index, prompt_len in enumerate(lens)
    ]


def answer(
    model_dir: Path,
    *,
    device: Device,
    dtype: Dtype = "float32",
    scripts: Sequence[Sequence[int]] | None = None,
    use_cuda_graphs: bool = True,
) -> list[list[int]]:
    config = EngineConfig(
        model_path=model_dir,
        device=device,
        dtype=dtype,
        kv_memory_bytes=16 << 20,
        use_cuda_graphs=use_cuda_graphs,
        scheduler=SchedulerConfig(max_running=16),
    )
    with running_engine(config) as running:
        return [outcome.token_ids for outcome in running.run(make_requests(scripts))]


def wrong_now_and_then(answers: list[list[int]]) -> list[list[int]]:
    generator = random.Random(5)
    return [
        [(token + 1) % 259 if generator.random() < 0.1 else token for token in tokens]
        for tokens in answers
    ]


@pytest.mark.parametrize("use_cuda_graphs", [True, False])
def test_float32_tokens_are_those_of_the_cpu(tiny_model_dir: Path, use_cuda_graphs: bool) -> None:
    expected = answer(tiny_model_dir, device="cpu")
    drafts = wrong_now_and_then(expected)
    answers = answer(tiny_model_dir, device="cuda", scripts=drafts, use_cuda_graphs=use_cuda_graphs)
    prompts = [request.prompt_token_ids for request in make_requests(None)]
    check_parity(tiny_model_dir, prompts, expected, answers)


def test_graphs_change_no_bfloat16_token(tiny_model_dir: Path) -> None:
    plain = answer(tiny_model_dir, device="cuda", dtype="bfloat16", use_cuda_graphs=False)
    assert answer(tiny_model_dir, device="cuda", dtype="bfloat16") == plain


def test_the_share_of_bfloat16_tokens_that_drafts_change_is_told(
    tiny_model_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A matrix library may sum other numbers of rows in another order, so ties may fall apart."""
    plain = answer(tiny_model_dir, device="cuda", dtype="bfloat16")
    drafts = wrong_now_and_then(plain)
    speculated = answer(tiny_model_dir, device="cuda", dtype="bfloat16", scripts=drafts)
    same_prefixes = sum(
        next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), len(left))
        for left, right in zip(plain, speculated, strict=True)
    )
    num_tokens = sum(map(len, plain))
    with capsys.disabled():
        print(
            f"\nbfloat16: {1 - same_prefixes / num_tokens:.2%} of {num_tokens} tokens stand"
            " behind a first difference between speculation on and off"
        )
    assert [len(tokens) for tokens in speculated] == [len(tokens) for tokens in plain]
