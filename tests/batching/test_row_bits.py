"""The same tokens and bits in any batch, whatever the number format and its rounding."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import torch
from engine_runs import ScriptedProposer, forced_rows, running_engine

from batching.config import Dtype, EngineConfig
from batching.model.loading import load_model, read_shape
from batching.model.runner import DeviceModel, ModelRunner
from batching.request import EngineRequest, SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from kernels.instruction_set import has_bfloat16
from lookup.proposer import Draft

NUM_REQUESTS = 24
ANSWER_LEN = 30

FORMATS = ["float32", "int8", *(["bfloat16"] if has_bfloat16() else [])]
each_format = pytest.mark.parametrize("dtype", FORMATS)


def make_config(model_dir: Path, dtype: Dtype) -> EngineConfig:
    return EngineConfig(
        model_path=model_dir,
        dtype=dtype,
        kv_memory_bytes=8 << 20,
        row_grouping=forced_rows(),
    )


def make_requests(k: int, scripts: list[list[int]] | None, salt: bytes) -> list[EngineRequest]:
    generator = random.Random(8)
    requests = []
    for index in range(NUM_REQUESTS):
        prompt = tuple(generator.randrange(3, 259) for _ in range(generator.choice([7, 30, 90])))
        requests.append(
            EngineRequest(
                request_id=f"{index}-{k}-{salt!r}",
                prompt_token_ids=prompt,
                sampling=SamplingParams(max_tokens=ANSWER_LEN),
                proposer=None if scripts is None else ScriptedProposer(scripts[index]),
                max_draft_tokens=k,
                cache_salt=salt,
            )
        )
    return requests


@each_format
def test_tokens_depend_on_neither_drafts_nor_neighbours(tiny_model_dir: Path, dtype: Dtype) -> None:
    with running_engine(make_config(tiny_model_dir, dtype)) as running:
        alone = [
            outcome.token_ids
            for request in make_requests(0, None, b"alone")
            for outcome in running.run([request])
        ]
        together = running.run(make_requests(0, None, b"together"))
        scripts = [[*tokens[:11], 7, *tokens[12:]] for tokens in alone]
        drafted = running.run(make_requests(64, scripts, b"drafted"))
        accepted = running.engine.stats().accepted
    assert [outcome.token_ids for outcome in together] == alone
    assert [outcome.token_ids for outcome in drafted] == alone
    assert accepted > NUM_REQUESTS * 10


@each_format
def test_logits_have_the_same_bits_in_any_number_of_rows(
    tiny_model_dir: Path, dtype: Dtype
) -> None:
    model, _ = load_model(tiny_model_dir, dtype=dtype, device=torch.device("cpu"))
    seen: list[torch.Tensor] = []
    model.lm_head.register_forward_hook(lambda _module, _rows, output: seen.append(output))
    runner = ModelRunner(
        make_config(tiny_model_dir, dtype), loaded=DeviceModel(model, read_shape(model.config), "m")
    )
    generator = random.Random(4)
    token_ids = tuple(generator.randrange(3, 259) for _ in range(129))

    def logits(num_rows: int) -> torch.Tensor:
        scheduled = ScheduledRequest(
            request_id="r",
            token_ids=token_ids[:1],
            start=0,
            block_ids=tuple(range(9)),
            draft=Draft(token_ids[1:num_rows], "r", 0) if num_rows > 1 else None,
            has_logits=True,
            output_position=0,
            sampling=SamplingParams(max_tokens=200),
        )
        runner.execute(StepPlan((scheduled,)))
        return seen.pop()

    whole = logits(129)
    for num_rows in range(1, 129):
        assert torch.equal(logits(num_rows), whole[:num_rows]), num_rows
