"""A quantised model in the engine: the same tokens in any batch, another identity, less memory."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from engine_runs import ScriptedProposer, running_engine

from batching.config import EngineConfig
from batching.errors import ModelLoadError
from batching.kv_namespace import kv_namespace
from batching.model import load_model, read_shape
from batching.model_runner import LoadedModel, ModelRunner
from batching.request import EngineRequest, SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from kernels.int8_linear import Int8Linear
from lookup.proposer import Draft

NUM_REQUESTS = 24
ANSWER_LEN = 30


def make_config(model_dir: Path) -> EngineConfig:
    return EngineConfig(model_path=model_dir, dtype="int8", kv_memory_bytes=8 << 20)


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


def test_tokens_depend_on_neither_drafts_nor_neighbours(tiny_model_dir: Path) -> None:
    with running_engine(make_config(tiny_model_dir)) as running:
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


def test_logits_have_the_same_bits_in_any_number_of_rows(tiny_model_dir: Path) -> None:
    model, _ = load_model(tiny_model_dir, dtype="int8", device=torch.device("cpu"))
    seen: list[torch.Tensor] = []
    model.lm_head.register_forward_hook(lambda _module, _rows, output: seen.append(output))
    runner = ModelRunner(
        make_config(tiny_model_dir), loaded=LoadedModel(model, read_shape(model.config), "m")
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


def test_quantised_a_model_is_another_one(tiny_model_dir: Path) -> None:
    exact = ModelRunner(replace(make_config(tiny_model_dir), dtype="float32")).model_info
    quantised = ModelRunner(make_config(tiny_model_dir)).model_info
    assert quantised.fingerprint != exact.fingerprint
    assert quantised.num_parameters == exact.num_parameters
    assert quantised.kv_bytes_per_token == exact.kv_bytes_per_token
    names = {
        kv_namespace(
            tiny_model_dir,
            dtype=dtype,
            device="cpu",
            block_size=16,
            chunk_tokens=64,
            payload="exact",
        )
        for dtype in ("float32", "int8")
    }
    assert len(names) == 2


def test_no_linear_weights_stay_in_float32(tiny_model_dir: Path) -> None:
    model, _ = load_model(tiny_model_dir, dtype="int8", device=torch.device("cpu"))
    assert not [one for one in model.modules() if type(one) is torch.nn.Linear]
    assert sum(isinstance(one, Int8Linear) for one in model.modules()) > 7
    large = [name for name, parameter in model.named_parameters() if parameter.dim() > 1]
    assert large == ["model.embed_tokens.weight"]


def test_a_gpu_is_refused(tiny_model_dir: Path) -> None:
    with pytest.raises(ModelLoadError, match=r"int8 .* CPU .* cuda; choose bfloat16"):
        load_model(tiny_model_dir, dtype="int8", device=torch.device("cuda"))
