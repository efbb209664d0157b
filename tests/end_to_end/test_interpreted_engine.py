"""A whole engine on the Triton kernels, interpreted: the tokens are those of the CPU's own."""

from __future__ import annotations

import os
import random
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from engine_runs import ScriptedProposer, running_engine
from parity import check_parity

import batching.model.runner
from batching.config import EngineConfig, SchedulerConfig
from batching.request import EngineRequest, SamplingParams
from kernels.op_set import Ops

pytestmark = pytest.mark.skipif(
    find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="the kernels are not interpreted here",
)

PROMPT_LENS = (5, 21, 12)
ANSWER_LEN = 7


def make_requests(scripts: list[list[int]] | None, temperature: float) -> list[EngineRequest]:
    generator = random.Random(3)
    return [
        EngineRequest(
            request_id=f"request-{index}",
            prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(prompt_len)),
            sampling=SamplingParams(
                max_tokens=ANSWER_LEN, temperature=temperature, top_p=0.95, seed=index
            ),
            proposer=ScriptedProposer(scripts[index]) if scripts else None,
        )
        for index, prompt_len in enumerate(PROMPT_LENS)
    ]


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_tokens_are_those_of_the_reference(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    config = EngineConfig(
        model_path=tiny_model_dir,
        kv_memory_bytes=1 << 20,
        scheduler=SchedulerConfig(max_tokens_per_step=24),  # so that a prefill comes in chunks
    )
    with running_engine(config) as running:
        outcomes = running.run(make_requests(None, temperature))
    expected = [outcome.token_ids for outcome in outcomes]
    scripts = [list(answer) for answer in expected]
    for script in scripts:
        script[4] = (script[4] + 1) % 259  # one draft that is rejected

    def interpreted_ops(_device: torch.device, **_options: bool) -> Ops:
        from kernels.gpu.triton_ops import triton_ops

        return triton_ops()

    monkeypatch.setattr(batching.model.runner, "select_ops", interpreted_ops)
    with running_engine(config) as running:
        outcomes = running.run(make_requests(scripts, temperature))
        stats = running.engine.stats()
    assert stats.accepted >= 2 * len(scripts)
    answers = [outcome.token_ids for outcome in outcomes]
    if temperature:
        assert answers == expected
    else:
        prompts = [request.prompt_token_ids for request in make_requests(None, 0.0)]
        assert check_parity(tiny_model_dir, prompts, expected, answers) == []
